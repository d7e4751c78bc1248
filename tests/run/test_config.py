"""The configuration: what is refused, and with what words."""

import copy
import csv
import dataclasses
import datetime
import json
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import get_origin, get_type_hints

import pytest
import yaml
from snakemake.utils import update_config

from workflow_scripts.run import arms, config, findings, inputs, loading, model_findings, resources, text_checks
from workflow_scripts.stage import InputError
from workflow_scripts.tasks.crosslingual import switched_into
from workflow_scripts.tasks.experiment import Phase, arms_of, grid_points, phase_training
from workflow_scripts.tasks.retrieval import NamedModel
from workflow_scripts.tasks.table import task_of
from workflow_scripts.tasks.translation import zero_shot_tests
from workflow_scripts.text.aligned import Aligned
from workflow_scripts.text.examples import LabelledSource
from workflow_scripts.text.labelled import Labelled
from workflow_scripts.training.backbone import chain_of

DEFAULT = yaml.safe_load(Path("config.yaml").read_text(encoding="utf-8"))
HELP = DEFAULT["corpora"]["help"]


def changed(path: str, value):
    """config.yaml with one value set; `...` deletes the key."""
    result = copy.deepcopy(DEFAULT)
    node = result
    *folders, last = path.split("/")
    for key in folders:
        node = node[int(key)] if isinstance(node, list) else node.setdefault(key, {})
    if value is ...:
        del node[last]
    else:
        node[int(last) if isinstance(node, list) else last] = value
    return result


def test_the_shipped_configuration_is_valid():
    loaded = config.load(DEFAULT)
    assert loaded.run.arms == ["finetune", "csr", "mask", "random"]
    assert loaded.corpora["help"].train.columns["de"] == 4


def recipe(name: str) -> config.Config:
    """A recipe's configuration, laid over that of another recipe where it says so."""
    own = yaml.safe_load(Path(f"config/{name}.yaml").read_text(encoding="utf-8"))
    below = yaml.safe_load(Path(f"config/{own['over']}").read_text(encoding="utf-8")) if "over" in own else {}
    merged = copy.deepcopy(DEFAULT)
    update_config(merged, below)
    update_config(merged, own)
    return config.load(merged)


@pytest.mark.parametrize("name", sorted(path.stem for path in Path("config").glob("*.yaml")))
def test_recipes_are_valid(name):
    assert recipe(name).run.experiments


BEFORE = Path("tests/data/version-0.1")
"""The configuration and recipes as they were before there were tables of tasks, of families and of objectives."""


@pytest.mark.parametrize("name", sorted(path.stem for path in BEFORE.glob("*.yaml")))
def test_configurations_of_the_version_before_load_and_mean_the_same(name):
    merged = yaml.safe_load((BEFORE / "config.yaml").read_text(encoding="utf-8"))
    if name != "config":
        update_config(merged, yaml.safe_load((BEFORE / f"{name}.yaml").read_text(encoding="utf-8")))
    loaded = config.load(merged)
    assert loaded.run.experiments
    for experiment in map(loaded.experiments.get, loaded.run.experiments):
        backbone = loaded.backbones[experiment.backbone]
        assert (backbone.family, backbone.objective, backbone.from_) == (None, None, None)
        assert experiment.arms is None and arms_of(loaded, experiment) == loaded.run.arms
    tasks = {"pawsx": {"classification"}, "help-summaries": {"summarisation"}}
    assert {loaded.experiments[one].task for one in loaded.run.experiments} == tasks.get(name, {"translation"})


def test_every_published_number_belongs_to_a_recipe():
    with open("config/published.tsv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    told = set(re.findall(r"-?\d+\.\d+", Path("docs/reproduce.md").read_text(encoding="utf-8")))
    assert not [row for row in rows if row["metric"] != "COMET" and row["value"] not in told]
    loaded = [recipe(name) for name in ("translation", "summarisation", "inference")]
    found = {
        (name, number.arm, number.testset or "", number.metric)
        for one in loaded
        for name, experiment in one.experiments.items()
        if name in one.run.experiments
        for number in experiment.published
    }
    assert {(row["experiment"], row["arm"], row["testset"], row["metric"]) for row in rows} == found


def test_the_configuration_is_read_without_networks():
    # they take two seconds to import, of every call of Snakemake and of the stages that import a task's settings
    line = "import sys, workflow_scripts.run.config; print([name for name in sys.modules if name.startswith('transformers')])"
    done = subprocess.run([sys.executable, "-c", line], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stdout + done.stderr


def test_the_schema_is_generated():
    assert json.loads(Path("config/schema.json").read_text(encoding="utf-8")) == config.schema()


@pytest.mark.parametrize(
    "path, value, message",
    [
        ("experiments/help-de-en/trainig", {}, r"experiments\.help-de-en\.trainig: unknown key, did you mean 'training'"),
        ("experiments/help-de-en/training/learning_rte", 1, "did you mean 'learning_rate'"),
        ("lexicons/unsupervised/lexicon/retrieval", "euclid", "csls"),
        ("experiments/help-de-en/training/dropout", "much", "dropout: input should be a valid number"),
        ("experiments/help-de-en/corpus", "hlep", "'hlep' is not defined, did you mean 'help'"),
        ("experiments/help-de-en/source", "fr", "are not the languages of corpus"),
        ("run/arms", ["finetune", "crs"], "did you mean 'csr'"),
        ("run/arms", [], "is empty"),
        ("run/seeds", [1, 1], "different whole numbers"),
        ("run/experiments", ["nothing"], "is not defined"),
        ("corpora/help/languages", ["de", "eng"], "unknown language 'eng'"),
        ("corpora/help/languages", ["DE", "en"], "unknown language 'DE': did you mean 'de'"),
        ("corpora/help/languages", ["de", "de"], "one language twice"),
        ("corpora/help/languages", ["de", "fr"], "nothing is said about fr"),
        (
            "corpora/help/dev",
            {"file": "dev.tsv"},
            r"dev: nothing is said about de, en; give `columns`; for example those of `train`, {'document'",
        ),
        ("corpora/help/train/columns", {"de": 1, "en": 2, "document": 1}, r"document is column 1, .* set document to null"),
        ("corpora/help/train/files", {"de": "a", "en": "b"}, "has `file` and `files`, where one belongs; .* set the other to null"),
        ("corpora/help/dev", {}, "or `held_out`"),
        ("corpora/help/test/dev", {"held_out": 5}, "cannot be called dev"),
        ("corpora/../x", DEFAULT["corpora"]["help"], "names are folders"),
        ("arms/csr/0/updates", 7, "same number of updates"),
        ("arms/csr/0/data", "noise", "codeswitch"),
        ("experiments/help-de-en/arms", ["csr", "randm"], "arms: 'randm' is not defined, did you mean 'random'"),
        ("experiments/help-de-en/arms", ["scratch"], "arms: none of the run's arms"),
        ("arms/csr/0/training", {"dropuot": 1}, "did you mean 'dropout'"),
        ("arms/csr", [{"data": "mask", "updates": 2000}], "one `data: task` phase"),
        ("arms/csr/1/start", "scratch", "without what the phase before it has learnt"),
        ("backbones/bible/small/text", {"de": "x"}, "no text for 'en'"),
        ("lexicons/unsupervised/mapping/mode", "supervised", "mapping.mode supervised needs one for 'de-en'"),
        ("lexicons/unsupervised/mapping/mode", "mapped", "needs the mapped vectors of 'de'"),
        ("lexicons/unsupervised/gold", {"en-de": "x"}, "'en-de' must be in the order of the corpus's languages, 'de-en'"),
        ("run/seeds", [0], "different whole numbers from 1"),
        ("experiments/help-de-en/training/pairs", True, "pairs: input should be a number, got true"),
        ("arms/csr/0/training", {"updates": 9}, "set `updates` of the phase itself instead"),
        ("arms/csr/0/training", {"pairs": 5000}, r"arms\.csr\.training\.pairs: is for the task phase; a pretext phase restores all"),
        ("backbones/bible/small/training/pairs", 5000, r"bible\.small\.training\.pairs: is for a task phase"),
        ("arms/csr/0/training", {"dropout": "much"}, "dropout: input should be a valid number"),
        ("experiments/help-de-en/training/max_length", 4000, "more than the backbone's 512 positions"),
        ("corpora/help/test/a b", {"held_out": 5}, "letters, digits"),
        ("arms/csr/0/lexicon", "unsupervisd", "did you mean 'unsupervised'"),
        ("experiments/help-de-en/lexicon", "unsupervisd", "did you mean 'unsupervised'"),
        ("experiments/help-de-en/lexicon", ..., r"experiments\.help-de-en\.lexicon: is missing; arms\.csr needs one"),
        ("arms/csr/1/lexicon", "unsupervised", "the task itself takes none"),
        ("arms/csr/0/data", "released", "cannot take the lexicon 'unsupervised' of unit word"),
        ("lexicons/unsupervised/unit", "piece", r"lexicons\.unsupervised\.backbone: '' is not defined"),
        ("arms/csr/0/training", {"max_length": 4000}, r"arms\.csr\.training\.max_length: 4000 is more"),
        ("backbones/bible/small/training/max_length", 4000, r"small\.training\.max_length: 4000 is more"),
        ("lexicons/unsupervised/backbone", "bible", "is for unit piece only"),
        ("experiments/help-de-en/codeswitch/noise/poisson_lambda", 0, "poisson_lambda: input should be greater than or equal to 0.5"),
        ("run", ..., "run: is missing"),
        ("corpora/help/dev", HELP["train"], r"help\.dev: is the same text as `train`; give another file, or `held_out`"),
        ("corpora/help/test/pages", HELP["train"], r"help\.test\.pages: is the same text as `train`"),
        ("corpus", {}, r"corpus: unknown key, did you mean 'corpora'"),
        ("experiment", {}, r"experiment: unknown key, did you mean 'experiments'"),
        ("experiments/help-de-en/epochs", 3, r"epochs: unknown key; .*arms\.NAME have a key of this name"),
        ("corpora/help/held_out", 3, r"help\.held_out: unknown key, did you mean 'held_out_min_words'"),
        ("arms/csr/0/codeswitch", {}, r"codeswitch: unknown key, did you mean 'switch'\? \(experiments\.NAME has a key of this name\)"),
        ("corpora/help/liek", "other", r"help\.liek: unknown key, did you mean 'like'"),
        ("corpora/help/test", {"held_out": 5}, r"corpora\.help\.test: holds test sets by name; write `test: \{NAME: \{held_out: …\}\}`"),
        (
            "corpora/help/test",
            {"files": {"de": "a", "en": "b"}},
            r"corpora\.help\.test: holds test sets by name; write `test: \{NAME: \{files",
        ),
        ("experiments/help-de-en/scores/metrics", ["bleu"], r"did you mean 'BLEU'\?"),
        ("backbones/bible/small/training/dropuot", 0.1, r"small\.training\.dropuot: unknown key, did you mean 'dropout'"),
    ],
)
def test_mistakes_are_named_with_the_way_out(path, value, message):
    raw = changed(path, value) if "../" not in path else {**DEFAULT, "corpora": {**DEFAULT["corpora"], "../x": value}}
    with pytest.raises(InputError, match=message):
        config.load(raw)


def test_a_misspelt_like_is_one_mistake_and_so_is_a_task_that_is_not_named():
    raw = copy.deepcopy(DEFAULT)
    raw["experiments"]["mine"] = {"liek": "help-de-en"}
    with pytest.raises(InputError) as refused:
        config.load(raw)
    assert str(refused.value).splitlines()[1:] == ["  experiments.mine.liek: unknown key, did you mean 'like'?"]
    raw["labelled"] = {"names": {"language": "en"}}
    raw["experiments"]["mine"] = {"corpus": "names", "backbone": "bible", "labels": ["O"]}
    with pytest.raises(InputError) as refused:
        config.load(raw)
    said = [line for line in str(refused.value).splitlines() if "experiments.mine" in line]
    assert len(said) == 1 and "mine.task: is missing" in said[0] and "labelling" in said[0] and "retrieval" not in said[0]


RECIPE = yaml.safe_load(Path("config/help-summaries.yaml").read_text(encoding="utf-8"))


def summaries(path: str, value):
    """The recipe of summaries over config.yaml, with one value set."""
    raw = copy.deepcopy(DEFAULT)
    raw["run"]["experiments"] = RECIPE["run"]["experiments"]
    for section in ("corpora", "backbones", "experiments"):
        raw[section] |= copy.deepcopy(RECIPE[section])
    raw["lexicons"]["unsupervised"]["corpus"] = "help"
    *folders, last = path.split("/")
    node = raw
    for key in folders:
        node = node.setdefault(key, {})
    node[last] = value
    return raw


SECTIONS, SUMMARIES = "corpora/help-sections", "experiments/help-summaries-de-en"


def test_summaries_are_measured_by_rouge_unless_one_says_otherwise():
    experiment = config.load(summaries(f"{SUMMARIES}/scores", {"samples": 7})).experiments["help-summaries-de-en"]
    assert experiment.scores.metrics == ["ROUGE-1", "ROUGE-2", "ROUGE-L"] and experiment.scores.samples == 7
    assert (experiment.training.dev_metric, experiment.choice.by) == ("ROUGE-L", "dev_rouge")
    experiment = config.load(summaries(f"{SUMMARIES}/scores", {"metrics": ["chrF"]})).experiments["help-summaries-de-en"]
    assert experiment.scores.metrics == ["chrF"] and config.load(DEFAULT).experiments["help-de-en"].training.dev_metric == "BLEU"


@pytest.mark.parametrize(
    "path, value, message",
    [
        ("experiments/help-de-en/task", ["translation"], r"there is no task \['translation'\], did you mean 'translation'"),
        ("experiments/help-de-en/corpus", ["help"], r"experiments\.help-de-en\.corpus: input should be a valid string, got \['help'\]"),
        (
            "corpora/help/languages",
            ["en", False],
            r"languages\.1: input should be a valid string, got false; YAML takes no, yes, on and off",
        ),
        ("corpora/help/test", {2017: {"held_out": 9}}, r'help\.test\.2017: .*got 2017; YAML takes it for a number: write "2017" in quotes'),
        ("run/arms", [datetime.date(2024, 1, 31)], r'YAML takes it for a date: write "2024-01-31" in quotes'),
        ("experiments/help-de-en/training", {"batch_tokens": "1e4"}, r"batch_tokens: .*got '1e4'; write it out: 10000"),
        ("experiments/help-de-en/training", {"learning_rate": 1, 1: None}, "got 1; a comma ends a value in .*decimals with a point"),
        (f"{SUMMARIES}/task", "summarization", "there is no task 'summarization', did you mean 'summarisation'"),
        (f"{SUMMARIES}/task", "translation", "task: translation of corpus 'help-sections', which has some"),
        (f"{SUMMARIES}/corpus", "help", "task: summarisation of corpus 'help', which has none"),
        (f"{SECTIONS}/documents/language", "en", "'de' is not the language of the documents, 'en'"),
        (f"{SECTIONS}/documents/language", "fr", "fr is no language of the corpus"),
        (f"{SECTIONS}/documents/cut", {"zh": {"words": 5}}, "zh is no language of the corpus"),
        (f"{SECTIONS}/documents/cut", {"de": {"wrods": 5}}, "did you mean 'words'"),
        (f"{SECTIONS}/documents/cut", {"de": {"words": 0}}, "words: input should be greater than or equal to 1"),
        (f"{SECTIONS}/train/summary", "last", "'first' or 'heading'"),
        (f"{SECTIONS}/train/columns", {"document": 1, "en": 3, "de": 4}, "summary heading needs `heading`"),
        (f"{SECTIONS}/train/columns", {"heading": 2, "en": 3, "de": 4}, "summary heading needs `document`"),
        (f"{SECTIONS}/train/file", "x.jsonl", "summary: is for a TSV file"),
        ("corpora/help/train/summary", "first", "summary is for a corpus with `documents`"),
        ("corpora/help/train/format", "ncls", "format ncls is for a corpus with `documents`"),
        ("lexicons/unsupervised/corpus", "halp", "did you mean 'help'"),
        (f"{SUMMARIES}/decoding/min_length", 50, "min_length 50 is more than max_length 30"),
        (f"{SUMMARIES}/choice", {"by": "dev_bleu"}, "dev_bleu is not measured: dev_metric is ROUGE-L; set dev_rouge"),
    ],
)
def test_mistakes_with_documents_are_named(path, value, message):
    raw = summaries(path, value)
    raw["experiments"]["help-summaries-de-en"]["training"]["learning_rate"] = [1e-3, 2e-3]
    with pytest.raises(InputError, match=message):
        config.load(raw)


def test_all_mistakes_are_listed_at_once():
    raw = changed("run/seeds", [])
    raw["run"]["arms"] = ["nobody"]
    with pytest.raises(InputError) as caught:
        config.load(raw)
    assert "run.seeds" in str(caught.value) and "nobody" in str(caught.value)


def test_a_phase_overrides_its_experiment():
    raw = changed("arms/csr/0/training", {"dropout": 0.05})
    loaded = config.load(raw)
    experiment = loaded.experiments["help-de-en"]
    pretext, finetune = (phase_training(experiment, phase) for phase in loaded.arms["csr"])
    assert pretext.dropout == 0.05 and finetune.dropout == experiment.training.dropout
    assert pretext.updates + finetune.updates == loaded.arms["finetune"][0].updates


def test_lists_in_place_of_training_values_make_a_grid():
    raw = changed("experiments/help-de-en/training/learning_rate", [1e-3, 2e-3])
    raw["experiments"]["help-de-en"]["training"] |= {"adam_betas": [[0.9, 0.98], [0.9, 0.999]], "dropout": [0.1]}
    experiment = config.load(raw).experiments["help-de-en"]
    points = grid_points(experiment)
    assert [point["learning_rate"] for point in points] == [1e-3, 1e-3, 2e-3, 2e-3] and "dropout" not in points[0]
    phase = Phase("task", 10, training={"max_length": 5})
    trained = phase_training(experiment, phase, points[3])
    assert (trained.learning_rate, trained.adam_betas, trained.dropout, trained.max_length) == (2e-3, (0.9, 0.999), 0.1, 5)
    assert not grid_points(config.load(DEFAULT).experiments["help-de-en"])


def test_acquired_data_take_the_place_of_a_file():
    raw = changed("data", {"web": {"url": "http://x/a.tgz", "member": {"en": "b", "de": "a"}, "languages": ["en", "de"]}})
    raw["data"] |= {"muse": {"url": "http://x/en-de.txt"}, "more": {"mtdata": "x", "languages": ["en", "de"]}}
    raw["data"]["all"] = {"join": ["web", "more"], "languages": ["en", "de"]}
    raw["corpora"]["help"] |= {"train": {"data": "all"}, "dev": {"data": "web"}}
    raw["lexicons"]["unsupervised"]["gold"]["de-en"] = "results/data/muse.txt"
    loaded = config.load(raw)
    assert loaded.corpora["help"].train.paths() == ["results/data/all.tsv.zst"]
    assert loaded.corpora["help"].train.columns == {"document": 1, "en": 2, "de": 3}
    assert config.data_used(loaded) == ["web", "muse", "all", "more"]
    raw["experiments"]["help-de-en"]["representation"]["text"] = {"de": "results/data/cc.txt", "en": "en.txt"}
    with pytest.raises(InputError, match=r"representation.text: 'results/data/cc.txt' is not defined"):
        config.load(raw)
    raw["data"]["cc"] = {"url": "http://x/de.txt.xz", "lines": 1000}
    assert "cc" in config.data_used(config.load(raw))
    raw["lexicons"]["unsupervised"]["gold"]["de-en"] = "results/data/muse.tsv"
    with pytest.raises(InputError, match=r"'results/data/muse.tsv' is not defined, did you mean 'results/data/muse.txt'"):
        config.load(raw)
    raw = changed("backbones/bible/small/text/de", "results/corpora/hlep.de-en/train.de")
    with pytest.raises(
        InputError, match=r"'results/corpora/hlep.de-en/train.de' is not defined, did you mean 'results/corpora/help.de-en/"
    ):
        config.load(raw)


TABLE = {"url": "http://x/a.tsv", "languages": ["de", "en"]}


@pytest.mark.parametrize(
    "data, message",
    [
        ({"licence": "CC0"}, "needs one origin of url, mtdata, huggingface, sacrebleu, debian, join; it has none"),
        ({"url": "http://x", "sacrebleu": "wmt19"}, "it has url and sacrebleu"),
        ({"url": "http://x", "sha256": "12"}, "'12' is no SHA-256"),
        ({"url": "http://x", "sha": "12"}, "unknown key, did you mean 'sha256'"),
        ({"url": {"de": "http://x/de", "en": "http://x/en"}}, r"is given for de, en; `languages` are \[\]"),
        ({"url": {"de": "a", "en": "b"}, "languages": ["de", "en"], "sha256": "0" * 64}, "needs one for each of de, en"),
        ({"url": "http://x.zip", "member": "a", "lines": 5}, "cannot be taken from an archive's member"),
        ({"sacrebleu": "wmt19"}, r"languages: is missing; sacrebleu gives parallel text"),
        ({"debian": {"packages": {"de": "libreoffice-help-de"}}}, "names the packages of two languages"),
        ({"debian": {"packages": {"de": "a", "xx": "b"}}}, "unknown language 'xx'"),
        ({"huggingface": {"dataset": "x/y"}, "languages": ["de", "en"]}, "huggingface takes none"),
        ({"sacrebleu": "wmt19", "languages": ["de", "de"]}, r"languages: \['de', 'de'\] is one language twice"),
        ({**TABLE, "columns": {"ge": 1, "en": 2}}, r"columns: nothing is said about de; it has {'ge': 1, 'en': 2}"),
        ({**TABLE, "columns": {"de": 1, "en": 2, "page": 3}}, "columns: page is no language of the data nor `document`"),
        ({**TABLE, "columns": {"de": 1, "en": 1}}, "columns: both languages are read from 1"),
        ({**TABLE, "url": "http://x/a.tmx.gz", "columns": {"de": 1, "en": 2}}, "columns: is for one `url` of a file with both languages"),
        ({"sacrebleu": "wmt19", "languages": ["de", "en"], "columns": {"de": 5, "en": 7}}, "columns: is for one `url`"),
        ({"url": "http://x/a.tsv", "columns": {"de": 1, "en": 2}}, "columns: is for parallel text, whose `languages` are missing"),
        ({"url": "http://x/a.txt.zst", "lines": 5}, "lines: can be taken from a plain, .gz or .xz file; a.txt.zst is packed otherwise"),
        ({"join": ["wbe"], "languages": ["de", "en"]}, "'wbe' is not defined, did you mean 'web'"),
        ({"join": ["web"], "languages": ["de", "en"]}, "must be parallel text"),
    ],
)
def test_mistakes_in_data_are_named(data, message):
    with pytest.raises(InputError, match=message):
        config.load(changed("data", {"web": data}))


def test_a_source_of_data_that_are_not_defined_is_named():
    with pytest.raises(InputError, match=r"corpora.help.dev.data: 'wbe' is not defined, did you mean 'web'"):
        config.load(changed("data", {"web": {"url": "http://x"}}) | {"corpora": changed("corpora/help/dev", {"data": "wbe"})["corpora"]})
    with pytest.raises(InputError, match=r"corpora.help.train: `data` takes the place of `file`"):
        config.load(changed("data", {"web": {"url": "http://x"}}) | {"corpora": changed("corpora/help/train/data", "web")["corpora"]})


@pytest.mark.parametrize(
    "training, message",
    [
        ({"learning_rate": [1e-3, "fast"]}, "learning_rate: input should be a valid number.*got 'fast'"),
        ({"learning_rte": [1e-3, 2e-3]}, "did you mean 'learning_rate'"),
        ({"updates": [10, 20]}, "training.updates: cannot be chosen from a grid"),
        ({"checkpoint": ["best", "last"]}, r"arms\.csr: sets checkpoint, which .* every arm must have the same choice"),
        ({"dropout": [0.1, 0.2], "bleu_sentences": 0}, "dev_bleu needs training.bleu_sentences"),
        ({"dropout": []}, "dropout"),
    ],
)
def test_mistakes_in_a_grid_are_named(training, message):
    raw = changed("arms/csr/1/training", {"checkpoint": "last"})
    raw["experiments"]["help-de-en"]["training"] |= training
    with pytest.raises(InputError, match=message):
        config.load(raw)


def test_zero_shot_tests_are_those_of_experiments_with_the_same_target_and_backbone():
    raw = changed("run/zero_shot", True)
    raw["corpora"]["spanish"] = {**raw["corpora"]["help"], "languages": ["es", "en"], "train": {"files": {"es": "x.es", "en": "x.en"}}}
    small = raw["backbones"]["bible"]["small"]
    small["text"]["es"] = "task"
    for name, changes in (
        ("es-en", {"corpus": "spanish", "source": "es"}),
        ("en-es", {"corpus": "spanish", "source": "en", "target": "es"}),
        ("de-en-again", {}),
    ):
        raw["experiments"][name] = {**raw["experiments"]["help-de-en"], **changes}
        raw["run"]["experiments"].append(name)
    loaded = config.load(raw)
    assert zero_shot_tests(loaded, "help-de-en") == ["es-en@pages"]
    assert zero_shot_tests(loaded, "es-en") == ["help-de-en@pages"]  # de-en-again has the same test set
    assert zero_shot_tests(loaded, "en-es") == []
    loaded.run.zero_shot = ["es-en"]
    assert zero_shot_tests(loaded, "help-de-en") == [] and zero_shot_tests(loaded, "es-en") == ["help-de-en@pages"]
    raw["run"]["zero_shot"] = ["es-em"]
    with pytest.raises(InputError, match=r"run\.zero_shot: .*es-em"):
        config.load(raw)
    loaded.run.zero_shot = False
    assert zero_shot_tests(loaded, "help-de-en") == []


@pytest.mark.parametrize(
    "models, removed", [({"csr": {"experiment": "help-de-en", "arm": "csr"}}, True), ({"b": {"backbone": "bible"}}, False)]
)
def test_no_arm_learns_the_sentences_that_retrieval_looks_up_in_its_states(models, removed):
    raw = changed("run/experiments", ["help-de-en", "looked-up"])
    raw["aligned"] = {"pairs": {"test": {"own": {"languages": ["de", "en"], "files": {"de": "a", "en": "b"}}}}}
    raw["experiments"]["looked-up"] = {"task": "retrieval", "corpus": "pairs", "models": models}
    left_out = inputs.others_held_out(config.load(raw), SimpleNamespace(corpus="help", a="de", b="en"), "a")
    assert left_out == [f"results/aligned/pairs/test/own.{side}" for side in ("source", "target") if removed]


@pytest.mark.parametrize("mode, removed", [("aligned", True), ("identical", False)])
def test_no_lexicon_is_aligned_in_the_test_sets_of_an_experiment_on_another_corpus(mode, removed):
    raw = changed("lexicons/unsupervised", {"corpus": "large", "mapping": {"mode": mode}})
    raw["corpora"]["large"] = {"like": "help", "train": {"files": {"de": "a", "en": "b"}}}
    left_out = inputs.others_held_out(config.load(raw), SimpleNamespace(corpus="large", a="de", b="en"), "a")
    files = [f"results/corpora/help.de-en/{part}.{code}" for part in ("dev", "test/pages") for code in ("de", "en")]
    assert left_out == (files if removed else [])


def many(**changes) -> dict:
    """The default configuration with its experiment made for several languages at once."""
    raw = copy.deepcopy(DEFAULT)
    own = raw["experiments"].pop("help-de-en")
    block = {**own, "each": {"source": ["de", "es"]}, "corpus": "help-{source}", "source": "{source}", "target": "en"}
    raw["experiments"] |= {"help-{source}-en": {**block, **changes}}
    raw["corpora"]["help-{other}"] = {
        **raw["corpora"].pop("help"),
        "each": {"other": ["de", "es"]},
        "languages": ["{other}", "en"],
        "train": {"file": "resources/libreoffice-help/en-{other}.tsv.xz", "columns": {"document": 1, "en": 3, "{other}": 4}},
    }
    raw["backbones"]["bible"]["small"]["text"] = {code: "task" for code in ("de", "en", "es")}
    raw["run"]["experiments"] = ["help-*-en"]
    return raw


def test_a_definition_with_each_is_many():
    raw = many()
    raw["experiments"]["help-es-en"] = {"training": {"pairs": 7}}
    made = config.load(raw)
    assert made.run.experiments == ["help-de-en", "help-es-en"]
    spanish = made.experiments["help-es-en"]
    assert (spanish.corpus, spanish.source, spanish.training.pairs, spanish.training.batch_tokens) == ("help-es", "es", 7, 500)
    assert made.corpora["help-es"].languages == ("es", "en") and made.corpora["help-es"].train.columns["es"] == 4


def test_each_may_list_the_combinations():
    raw = many(each=[{"source": "de"}])
    raw["run"]["experiments"] = ["help-de-en"]
    assert list(config.load(raw).experiments) == ["help-de-en"]


@pytest.mark.parametrize(
    "each, message",
    [
        ("de", "wants lists of values by name"),
        ({"source": "de"}, "wants lists of values by name"),
        ({"source": []}, "wants lists of values by name"),
        ([{"source": "de"}, {"target": "en"}], "wants lists of values by name"),
        ({"target": ["en", "de"]}, "makes 'help-{source}-en' twice; the name must tell them apart, as with {target} in it"),
        ({"source": ["de", "de"]}, "makes 'help-de-en' twice"),
        ([{}, {}], "wants lists of values by name"),
    ],
)
def test_a_malformed_each_is_refused(each, message):
    with pytest.raises(InputError, match=re.escape(message)):
        config.load(many(each=each))


def test_a_name_that_each_makes_is_no_list():
    with pytest.raises(InputError, match=r"corpora\.\{pair\}\.each: \{pair\} is the definition's name, so its values must be texts"):
        config.load(changed("corpora/{pair}", {"each": {"pair": [["de", "en"]]}, "like": "help"}))


FRENCH = """
run:
  experiments: [captions-fr-en]
corpora:
  captions:
    like: help
    languages: [fr, en]
    train: {files: {fr: data/captions.fr, en: data/captions.en}}
backbones:
  captions: {like: bible, small: {text: {fr: task, en: task}, disjoint: false}}
experiments:
  captions-fr-en: {like: help-de-en, corpus: captions, source: fr, backbone: captions, training: {pairs: null}} # the demo reads 5,000
"""


def over_default(text: str) -> dict:
    """A file that is laid over config.yaml."""
    merged = copy.deepcopy(DEFAULT)
    update_config(merged, yaml.safe_load(text))
    return merged


def test_a_definition_that_is_like_another_has_its_settings():
    long = copy.deepcopy(DEFAULT)
    long["run"]["experiments"] = ["captions-fr-en"]
    train = {"files": {"fr": "data/captions.fr", "en": "data/captions.en"}}
    long["corpora"]["captions"] = {**long["corpora"]["help"], "languages": ["fr", "en"], "train": train}
    small = {**long["backbones"]["bible"]["small"], "text": {"fr": "task", "en": "task"}, "disjoint": False}
    long["backbones"]["captions"] = {"kind": "small", "small": small}
    demo = long["experiments"]["help-de-en"]
    own = {"corpus": "captions", "source": "fr", "backbone": "captions", "training": {**demo["training"], "pairs": None}}
    long["experiments"]["captions-fr-en"] = {**demo, **own}
    assert config.load(over_default(FRENCH)) == config.load(long)


def test_the_example_in_the_documentation_is_the_one_that_is_tested():
    assert FRENCH.strip() in Path("README.md").read_text(encoding="utf-8")


def test_like_leads_on_and_goes_together_with_each():
    raw = over_default(
        """
        run: {experiments: [long, quick-de, quick-en]}
        arms: {}
        experiments:
          long: {like: help-de-en, training: {pairs: 7, dropout: 0.3}, scores: {metrics: [TER]}}
          "quick-{source}": {each: [{source: de, target: en}, {source: en, target: de}], like: "from-{source}", target: "{target}"}
          from-de: {like: long}
          from-en: {like: long, source: en, training: {pairs: 9}}
          quick-en: {training: {dropout: 0.5}}
        """
    )
    made = config.load(raw).experiments
    assert made["long"].scores.metrics == ["TER"] and made["long"].scores.samples == 10000  # a list replaces a list
    found = {name: (e.source, e.target, e.training.pairs, e.training.dropout, e.training.batch_tokens) for name, e in made.items()}
    assert found["quick-de"] == ("de", "en", 7, 0.3, 500) and found["quick-en"] == ("en", "de", 9, 0.5, 500)


@pytest.mark.parametrize(
    "above, found",
    [
        ({"files": {"de": "a", "en": "b"}}, {"files": {"de": "a", "en": "b"}}),
        ({"data": "manual"}, {"data": "manual"}),
        ({"held_out": 5}, {"held_out": 5}),
        ({"file": "x.tsv"}, {"file": "x.tsv", "columns": {"document": 1, "en": 3, "de": 4}}),
        ({"columns": {"de": 1, "en": 2}}, {"file": "resources/libreoffice-help/en-de.tsv.xz", "columns": {"de": 1, "en": 2}}),
    ],
)
def test_text_from_elsewhere_does_not_keep_where_it_came_from(above, found):
    raw = copy.deepcopy(DEFAULT)
    raw["corpora"]["other"] = {"like": "help", "train": above, "test": {"web": above}}
    other = loading.spelt_out(raw)["corpora"]["other"]
    assert other == {**DEFAULT["corpora"]["help"], "train": found, "test": {"web": above}}


@pytest.mark.parametrize(
    "experiments, message",
    [
        ({"a": {"like": "help-de-em"}}, "experiments.a.like: 'help-de-em' is not defined, did you mean 'help-de-en'?"),
        ({"a": {"like": "something else"}}, "experiments.a.like: 'something else' is not defined; there is help-de-en, a"),
        ({"a": {"like": "b"}, "b": {"like": "c"}, "c": {"like": "b"}}, "experiments.c.like: leads back to itself (a → b → c → b)"),
        ({"a": {"like": "a"}}, "experiments.a.like: leads back to itself (a → a); define one of them without `like`"),
        ({"a": {"like": ["help-de-en"]}}, "experiments.a.like: wants the name of one definition in experiments, got ['help-de-en']"),
    ],
)
def test_a_like_that_leads_nowhere_is_refused(experiments, message):
    with pytest.raises(InputError, match=re.escape(message)):
        config.load({**DEFAULT, "experiments": {**DEFAULT["experiments"], **experiments}})


def test_like_knows_every_setting_whose_keys_are_the_users_own():
    others = {config.Config, Phase, Aligned, NamedModel, *config._dataclasses(config.Data)}  # which have no `like`
    kinds = set(config._dataclasses(config.Config)) - others
    by_name = {name for kind in kinds for name, hint in get_type_hints(kind).items() if get_origin(hint) is dict}
    assert by_name == loading.BY_NAME


def test_what_a_pattern_has_brought_may_be_named_again_and_names_may_be_numbers():
    raw = changed("run/experiments", ["help-*", "help-de-en"])
    raw["experiments"][2024] = raw["experiments"]["help-de-en"]
    assert loading.spelt_out(raw)["run"]["experiments"].count("help-de-en") == 1
    with pytest.raises(InputError, match="names something twice"):
        config.load(changed("run/experiments", ["help-de-en", "help-de-en"]))


def test_definitions_stay_in_the_order_of_the_file():
    held_out = {"held_out": 50}
    spelt = loading.spelt_out(
        {"corpora": {"a": {"test": {"pages": held_out, "{k}": {"each": {"k": ["x", "y"]}, **held_out}, "z": held_out}}}}
    )
    assert list(spelt["corpora"]["a"]["test"]) == ["pages", "x", "y", "z"]


def test_a_pattern_that_is_like_no_experiment_is_refused():
    raw = many()
    raw["run"]["experiments"] = ["iwslt-*"]
    with pytest.raises(
        InputError, match=r"run.experiments: 'iwslt-\*' matches no experiment, or only such that are listed already; there are help-de-en"
    ):
        config.load(raw)


def test_published_numbers_may_stand_in_a_table(tmp_path):
    table = tmp_path / "published.tsv"
    table.write_text("experiment\tarm\tmetric\tvalue\tsource\ttestset\nhelp-de-en\tcsr\tBLEU\t12.5\tTable II\t\nother\tcsr\tBLEU\t1\t\t\n")
    (number,) = config.load(changed("experiments/help-de-en/published", str(table))).experiments["help-de-en"].published
    assert (number.arm, number.value, number.testset, number.source) == ("csr", 12.5, None, "Table II")


@pytest.mark.parametrize("content, message", [(None, "cannot be read"), ("arm\tvalue\n", "no column `experiment`, or no rows")])
def test_a_table_of_published_numbers_that_is_none_is_refused(tmp_path, content, message):
    if content:
        (tmp_path / "published.tsv").write_text(content)
    with pytest.raises(InputError, match=f"help-de-en.published: .*published.tsv.*{message}"):
        config.load(changed("experiments/help-de-en/published", str(tmp_path / "published.tsv")))


# ---------------------------------------------------------------------------------------------
# classification


def classified(path: str = "", value=None):
    """config.yaml with the recipe config/help-modules.yaml laid over it, and one value set; `...` deletes the key."""
    raw, recipe = copy.deepcopy(DEFAULT), yaml.safe_load(Path("config/help-modules.yaml").read_text(encoding="utf-8"))
    for section, content in recipe.items():
        raw[section] = {**raw.get(section, {}), **content}
    *folders, last = path.split("/")
    node = raw
    for key in folders:
        node = node[int(key)] if isinstance(node, list) else node.setdefault(key, {})
    if value is ...:
        del node[last]
    elif path:
        node[last] = value
    return raw


def test_the_task_chooses_the_kind_of_experiment(tmp_path):
    loaded = config.load(classified())
    experiment = loaded.experiments["help-modules"]
    assert task_of(experiment).answers == "labels" and task_of(loaded.experiments["help-de-en"]).answers == "text"
    assert switched_into(loaded, "help-modules") == ["de"] and arms_of(loaded, experiment) == loaded.run.arms
    written = tmp_path / "configuration.json"
    written.write_text(config.dumped(loaded), encoding="utf-8")
    again = config.read(written)
    assert again.experiments["help-modules"] == experiment


def test_a_grid_of_a_head_has_numbers_where_yaml_has_strings():
    loaded = config.load(classified("experiments/help-modules/classification/learning_rate", ["1e-5", "3e-5"]))
    w = SimpleNamespace(experiment="help-modules", arm="finetune-10e.grid1", seed="1")
    assert json.loads(arms.classification_settings(loaded, w))["classification"]["learning_rate"] == 3e-5
    assert all(trained.batch_tokens for trained in task_of(loaded.experiments["help-modules"]).phases(loaded, "help-modules"))


def test_a_number_of_epochs_beside_a_grid_is_refused_as_it_is_without():
    with pytest.raises(InputError, match=r"classification\.epochs: unknown key"):
        config.load(classified("experiments/help-modules/classification", {"epochs": 5, "learning_rate": [1e-5, 3e-5]}))


@pytest.mark.parametrize(
    "by, said",
    [
        ({"experiment": "help-de-en", "arm": "csr"}, "experiments.help-de-en translates de into en, not en into de"),
        ({"experiment": "help-modules", "arm": "finetune-10e"}, "experiments.help-modules is a classification; a translation is needed"),
    ],
)
def test_training_text_is_translated_by_a_model_that_can(by, said):
    raw = classified("labelled/modules/translations", {"de": {"language": "de", "by": by}})
    raw["run"] = {**raw["run"], "experiments": ["help-modules", "help-de-en"], "arms": [*raw["run"]["arms"], "finetune", "csr"]}
    raw["experiments"]["help-modules"]["arms"] = ["finetune-10e"]
    raw["experiments"]["help-de-en"]["arms"] = ["finetune", "csr"]
    with pytest.raises(InputError, match=said):
        config.load(raw)
    raw["experiments"]["help-de-en"] |= {"source": "en", "target": "de"}
    if by["arm"] == "csr":
        config.load(raw)


def test_a_backbone_that_translates_training_text_is_checked_as_any_other():
    raw = classified("labelled/modules/translations", {"de": {"language": "de", "by": {"backbone": "writer"}}})
    raw["backbones"]["writer"] = {"kind": "small", "small": {**DEFAULT["backbones"]["bible"]["small"], "text": {"en": "nowhere.txt"}}}
    loaded = config.load(raw)
    w = SimpleNamespace(backbone="writer")
    assert inputs.backbone_languages(loaded, w) == ["de", "en"] and inputs.encoder_will_do(loaded, w) == ""
    assert "nowhere.txt" in dict(config.missing_files(loaded)).values()


def test_a_folder_without_a_ready_made_backbone_and_a_table_that_is_not_there_are_missing():
    raw = copy.deepcopy(DEFAULT)
    raw["backbones"]["bible"]["small"]["ready"] = "resources/bible"
    raw["analyses"] = {
        "inside": {"models": ["bible"], "languages": ["de"], "text": {"de": "resources/bible/de.txt.xz"}, "stages": ["spectra"]}
    }
    raw["analyses"]["inside"]["published"] = "config/nowhere.tsv"
    raw["run"] = {**raw["run"], "analyses": ["inside"]}
    loaded = config.load(raw)
    missing = dict(config.missing_files(loaded))
    assert missing["backbones.bible.small.ready"] == "resources/bible/ready.json"
    assert "analyses.inside.published" in missing and "config/nowhere.tsv" in inputs.report_inputs(loaded)[0]


def test_text_that_an_analysis_alone_reads_is_missing_where_it_is_not_there():
    raw = changed("analyses", {"inside": {"models": ["bible"], "corpus": "other"}})
    raw["run"]["analyses"] = ["inside"]
    files = {part: {"files": {"de": f"{part}.de", "en": f"{part}.en"}} for part in ("train", "dev", "web")}
    raw["corpora"]["other"] = {"like": "help", "train": files["train"], "dev": files["dev"], "test": {"web": files["web"]}}
    assert dict(config.missing_files(config.load(raw))) == {"corpora.other.test.web": "web.en"}  # no job reads the other parts
    raw["corpora"]["other"]["test"]["web"] = {"held_out": 5}
    assert dict(config.missing_files(config.load(raw))) == {"corpora.other.train": "train.en"}
    raw = classified("analyses", {"inside": {"models": ["bible"], "corpus": "modules", "parallel": False, "stages": ["separability"]}})
    raw["run"] |= {"experiments": ["help-de-en"], "arms": ["finetune"], "analyses": ["inside"]}
    raw["arms"] |= DEFAULT["arms"]
    raw["labelled"]["modules"]["train"]["file"] = "nowhere.tsv"
    assert "nowhere.tsv" in dict(config.missing_files(config.load(raw))).values()


def test_questions_are_not_read_from_json_lines():
    squad = LabelledSource("results/data/squad.jsonl.zst", {"question": "question", "passage": "context", "answer": "answers.text"})
    block = Labelled(
        language="en", unit="question", train=squad, dev=LabelledSource(held_out=0.1), test={"own": LabelledSource(held_out=0.1)}
    )
    (said,) = text_checks.labelled_problems("labelled.squad", block)
    assert said.startswith("labelled.squad.train.file: results/data/squad.jsonl.zst has JSON lines, which are not read here; write a TSV")


def test_a_lexicon_learnt_for_text_with_labels_is_checked():
    raw = classified("lexicons/wiktionary", {"corpus": "help", "mapping": {"mode": "mapped"}})
    with pytest.raises(InputError, match=r"lexicons\.wiktionary\.vectors: mapping.mode mapped needs the mapped vectors of 'de'"):
        config.load(raw)
    raw["lexicons"]["wiktionary"] = {"corpus": "help", "mapping": {"mode": "identical"}}
    loaded = config.load(raw)
    assert ("help", "wiktionary") in findings.used_lexicons(loaded) and "help" in findings.used_corpora(loaded)


def test_an_error_names_the_file_and_the_line_of_its_key(tmp_path):
    below, above = tmp_path / "below.yaml", tmp_path / "above.yaml"
    below.write_text("run:\n  seeds: [1]\nexperiments:\n  mine:\n    source: de\n    training: {updates: 5}\n")
    above.write_text("experiments:\n  mine:\n    training:\n      lr: 1\n")
    said = (
        "config:\n  experiments.mine.training.lr: unknown key\n  experiments.mine.source.0: odd\n  experiments.other: odd\n  run.seeds: odd"
    )
    _, lr, source, other, seeds = loading.located(said, (below, above, tmp_path / "gone.yaml"), {"run": {"seeds": 3}}).split("\n")
    assert lr.endswith(f"unknown key ({above}, line 4)") and source.endswith(f"odd ({below}, line 5)")
    below.write_text("run: &run\n  inner: *run\n")  # an alias of a block inside itself
    assert loading.located("config:\n  run.seeds: odd", (below,)).endswith("odd")
    # one that `each` has made stands in no file, nor does what the command line sets
    assert other.endswith(": odd") and seeds.endswith(": odd")


MODULES = "labelled/modules"
EXPERIMENT = "experiments/help-modules"


@pytest.mark.parametrize(
    "path, value, message",
    [
        (f"{EXPERIMENT}/classification/lr", 1e-3, r"classification\.lr: unknown key, did you mean 'learning_rate'"),
        (f"{EXPERIMENT}/clasification", {}, r"experiments\.help-modules\.clasification: unknown key, did you mean 'classification'"),
        (f"{EXPERIMENT}/classification/learning_rate", -1, r"help-modules\.classification\.learning_rate: input should be greater than 0"),
        (f"{EXPERIMENT}/training/learning_rate", [1e-3, 2e-3], r"training\.learning_rate: input should be a valid number"),
        (f"{EXPERIMENT}/corpus", "module", "'module' is not defined, did you mean 'modules'"),
        (f"{EXPERIMENT}/lexicon", ..., r"lexicon: is missing; arms\.csr-10e needs one"),
        (f"{EXPERIMENT}/lexicon", "unsupervised", r"lexicons\.unsupervised\.mapping\.mode: must be dictionary"),
        (f"{EXPERIMENT}/into", ["de", "fr"], r"lexicons\.wiktionary\.dictionary: en-fr is missing, which .*; give a file of word pairs"),
        (f"{EXPERIMENT}/into", ["en"], r"into: no language but 'en'"),
        (f"{EXPERIMENT}/arms", ["finetun-10e"], r"arms: 'finetun-10e' is not defined"),
        (f"{EXPERIMENT}/arms", ["finetune"], "none of the run's arms"),
        (f"{EXPERIMENT}/arms", [], "none of the run's arms"),
        (f"{EXPERIMENT}/classification/max_length", 600, r"classification\.max_length: 600 is more than the backbone's 512 positions"),
        ("lexicons/wiktionary/dictionary", {}, r"lexicons\.wiktionary\.dictionary: en-de is missing"),
        ("arms/finetune-10e", [{"data": "task", "epochs": 9}], "same number of updates in all .*9 epochs"),
        (
            "arms/finetune-10e",
            [{"data": "task", "updates": 9}],
            "experiments.help-modules, a classification, counts epochs and not updates",
        ),
        ("arms/finetune-10e", [{"data": "task", "updates": 9, "epochs": 10}], "a phase has either updates or epochs"),
        ("arms/finetune-10e", [{"data": "task"}], "a phase has either updates or epochs"),
        ("arms/finetune-10e", [{"data": "task", "epochs": 0}], "epochs must be at least 1, got 0"),
        ("arms/csr-10e", [{"data": "codeswitch", "epochs": 1}, {"data": "task", "epochs": 10}], "a pretext phase counts updates"),
        ("arms/mask-10e/0/data", "released", "`released` needs parallel text"),
        ("run/experiments", ["help-de-en"], r"arms\.finetune-10e: experiments\.help-de-en, a translation, counts updates"),
        (f"{MODULES}/labels", ["Writer", "Writer"], "at least two different labels"),
        (f"{MODULES}/lowercase", True, r"modules\.lowercase: is for `unit: target`"),
        (f"{MODULES}/language", "eng", "unknown language 'eng'"),
        (f"{MODULES}/test/de/language", "fr", r"small\.text: no text for 'fr'"),
        (f"{MODULES}/test/average", {"held_out": 0.1}, "cannot be called average"),
        (f"{MODULES}/test", {}, "names no test set"),
        (f"{MODULES}/dev", {}, "give a `file` with `columns`, or `held_out`"),
        (f"{MODULES}/dev/held_out", 0.7, "held_out: input should be less than or equal to 0.4"),
        (f"{MODULES}/train/held_out", 0.1, "is for dev and test sets"),
        (f"{MODULES}/train/columns", {"text": 3}, "say nothing about label"),
        (f"{MODULES}/train/columns/txt", 3, "'txt' is not defined, did you mean 'text'"),
        (f"{MODULES}/train/columns/pair", 2, r"modules\.test\.de\.columns: have no `pair`, but those of `train` have; give it in all"),
        (f"{MODULES}/train/label_pattern", "(", "is no regular expression"),
        (f"{MODULES}/train/label_pattern", "scalc", "needs a group that is the label"),
        (f"{MODULES}/train/file", "{x}.tsv", "'{x}.tsv' has braces"),
    ],
)
def test_mistakes_in_a_classification_are_named(path, value, message):
    with pytest.raises(InputError, match=message):
        config.load(classified(path, value))


def test_experiments_with_other_arms_may_have_other_updates():
    raw = changed("experiments/help-de-en/arms", ["finetune", "csr"])
    raw["arms"]["long"] = [{"data": "task", "updates": 9000}]
    raw["run"]["arms"] = ["finetune", "csr", "long"]
    raw["experiments"]["another"] = {**raw["experiments"]["help-de-en"], "arms": ["long"]}
    raw["run"]["experiments"] = ["help-de-en", "another"]
    loaded = config.load(raw)
    assert [arms_of(loaded, loaded.experiments[name]) for name in raw["run"]["experiments"]] == [["finetune", "csr"], ["long"]]
    raw["experiments"]["another"]["arms"] = ["finetune", "long"]
    with pytest.raises(InputError, match=r"all arms of an experiment need the same number of updates .* of another"):
        config.load(raw)


# ---------------------------------------------------------------------------------------------
# backbones that are made from others


def with_backbones(**blocks):
    """config.yaml with more backbones beside its own, and its experiment on that of the name `last`."""
    result = copy.deepcopy(DEFAULT)
    text = result["backbones"]["bible"]["small"]["text"]
    made = {name: {"kind": "continued", "continued": {"text": text}, **block} for name, block in blocks.items()}
    result["backbones"] |= {name: {key: value for key, value in block.items() if value is not ...} for name, block in made.items()}
    if "last" in blocks:
        result["experiments"]["help-de-en"]["backbone"] = "last"
    return result


def test_a_chain_of_backbones_is_followed():
    loaded = config.load(with_backbones(more={"from": "bible"}, last={"from": "more", "objective": "denoising"}))
    assert chain_of(loaded.backbones, "last") == ["last", "more", "bible"]
    jobs = {name: SimpleNamespace(backbone=name) for name in ("last", "more", "bible")}
    assert [inputs.backbone_start(loaded, job).get("start") for job in jobs.values()] == [
        "results/backbones/more/model",
        "results/backbones/bible/model",
        None,
    ]
    assert len({tuple(inputs.backbone_languages(loaded, job)) for job in jobs.values()}) == 1
    assert all(inputs.backbone_held_out(loaded, job) and inputs.backbone_text(loaded, job) for job in jobs.values())
    assert [inputs.keep_head(loaded, job) for job in jobs.values()] == ["", "--keep-head", "--keep-head"]
    assert {phase.where for phase in resources.phases(loaded) if phase.rule == "backbone"} == {
        "backbones.last.continued.training",
        "backbones.more.continued.training",
        "backbones.bible.small.training",
    }
    assert model_findings.shape_of(loaded, "last") == model_findings.shape_of(loaded, "bible")
    # as the report reads it
    assert dataclasses.asdict(config.load(with_backbones(last={"from": "bible"})).backbones["last"])["from_"] == "bible"


@pytest.mark.parametrize(
    "blocks, said",
    [
        ({"a": {"from": "b"}, "b": {"from": "a"}}, r"backbones\.a\.from: a from b from a is a circle"),
        ({"a": {"from": "a"}}, r"backbones\.a\.from: a from a is a circle"),
        ({"a": {"from": "bibel"}}, r"backbones\.a\.from: 'bibel' is not defined, did you mean 'bible'\?"),
        ({"a": {}}, r"backbones\.a\.from: '' is not defined"),
        ({"a": {"from": "bible", "objective": "denoise"}}, r"a\.objective: .*got 'denoise'; did you mean 'denoising'\?"),
        ({"a": {"from": "bible", "objective": "mlm"}}, r"a\.objective: objective mlm is not for mBART, which has a decoder"),
        ({"a": {"kind": "small", "family": "xmlr", "continued": ...}}, r"a\.family: .*got 'xmlr'; did you mean 'xlmr'\?"),
        ({"a": {"from": "bible", "family": "mbart"}}, r"a\.family: is for kind small only"),
        ({"a": {"kind": "hub", "model": "x/y", "from": "bible", "continued": ...}}, r"a\.from: is for kinds continued and converted"),
        ({"a": {"kind": "hub", "model": "x/y", "objective": "mlm", "continued": ...}}, r"a\.objective: is for kinds small and continued"),
        ({"last": {"from": "bible", "continued": ...}}, r"backbones\.last: kind continued needs `continued`"),
        ({"last": {"from": "bible", "continued": {"text": {"de": "task"}}}}, r"last\.continued\.text: no text for 'en'"),
        ({"last": {"from": "bible", "continued": {"text": {"de": "task", "en": "task"}, "training": {"max_length": 999}}}}, r"999 is more"),
        ({"last": {"kind": "small", "family": "xlmr", "small": {"text": {}}, "continued": ...}}, r"last: is an encoder \(family xlmr\)"),
    ],
)
def test_backbones_that_cannot_be_made_are_refused(blocks, said):
    with pytest.raises(InputError, match=said):
        config.load(with_backbones(**blocks))


def test_results_of_another_configuration_need_snakemakes_record(tmp_path):
    loaded, made, record = config.load(DEFAULT), tmp_path / "configuration.json", tmp_path / "metadata"
    config.check_record(loaded, made, record)  # nothing is there
    made.write_text(config.dumped(loaded) + "\n")
    config.check_record(loaded, made, record)
    other = config.load(changed("corpora/help/seed", 7))
    with pytest.raises(InputError, match=r"made with another configuration, .*bring \.snakemake from where the run was"):
        config.check_record(other, made, record)
    record.mkdir()
    (record / "a file").touch()
    config.check_record(other, made, record)


def test_a_file_in_the_place_of_the_results_is_refused(tmp_path):
    config.check_folder(tmp_path / "results")
    config.check_folder(tmp_path)
    (tmp_path / "results").touch()
    with pytest.raises(InputError, match="results: is a file where the folder of the results belongs"):
        config.check_folder(tmp_path / "results")


def test_what_a_pretext_phase_does_not_heed_is_not_among_its_settings():
    first, second = (config.load(changed("experiments/help-de-en/training/pairs", pairs)) for pairs in (300, 301))
    for phase in first.arms["csr"]:
        settings = [phase_training(one.experiments["help-de-en"], phase) for one in (first, second)]
        assert (settings[0] == settings[1]) == (phase.data == "codeswitch")
