"""The configuration: what is refused, and with what words."""

import copy
import dataclasses
import json
from pathlib import Path

import pytest
import yaml

from workflow_scripts import config
from workflow_scripts.stage import InputError, from_plain

DEFAULT = yaml.safe_load(Path("config.yaml").read_text(encoding="utf-8"))


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
    assert from_plain(config.Config, json.loads(json.dumps(DEFAULT))).corpora["help"].train.columns["de"] == 4


@pytest.mark.parametrize("recipe", sorted(Path("config").glob("*.yaml")), ids=lambda p: p.stem)
def test_recipes_are_valid(recipe):
    merged = copy.deepcopy(DEFAULT)

    def merge(below, above):
        for key, value in above.items():
            if isinstance(value, dict) and isinstance(below.get(key), dict):
                merge(below[key], value)
            else:
                below[key] = value

    merge(merged, yaml.safe_load(recipe.read_text(encoding="utf-8")))
    config.load(merged)


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
        ("corpora/help/languages", ["de", "de"], "one language twice"),
        ("corpora/help/languages", ["de", "fr"], "nothing is said about fr"),
        ("corpora/help/train/files", {"de": "a", "en": "b"}, "give either `file`"),
        ("corpora/help/dev", {}, "or `held_out`"),
        ("corpora/help/test/dev", {"held_out": 5}, "cannot be called dev"),
        ("corpora/../x", DEFAULT["corpora"]["help"], "names are folders"),
        ("arms/csr/0/updates", 7, "same number of updates"),
        ("arms/csr/0/data", "noise", "codeswitch"),
        ("arms/csr/0/training", {"dropuot": 1}, "did you mean 'dropout'"),
        ("arms/csr", [{"data": "mask", "updates": 2000}], "one `data: task` phase"),
        ("backbones/bible/small/text", {"de": "x"}, "no text for 'en'"),
        ("lexicons/unsupervised/mapping/mode", "supervised", "mapping.mode supervised needs one for 'de-en'"),
        ("lexicons/unsupervised/mapping/mode", "mapped", "needs the mapped vectors of 'de'"),
        ("lexicons/unsupervised/gold", {"en-de": "x"}, "'en-de' must be in the order of the corpus's languages, 'de-en'"),
        ("run/seeds", [-1], "different whole numbers from 0"),
        ("arms/csr/0/training", {"updates": 9}, "the phase's own `updates` counts"),
        ("arms/csr/0/training", {"dropout": "much"}, "dropout: input should be a valid number"),
        ("experiments/help-de-en/training/max_length", 4000, "more than the backbone's 512 positions"),
        ("corpora/help/test/a b", {"held_out": 5}, "letters, digits"),
        ("arms/csr/0/lexicon", "unsupervisd", "did you mean 'unsupervised'"),
        ("arms/csr/1/lexicon", "unsupervised", "the task itself takes none"),
        ("arms/csr/0/data", "released", "cannot take the lexicon 'unsupervised' of unit word"),
        ("lexicons/unsupervised/unit", "piece", r"lexicons\.unsupervised\.backbone: '' is not defined"),
        ("arms/csr/0/training", {"max_length": 4000}, r"arms\.csr\.training\.max_length: 4000 is more"),
        ("backbones/bible/small/training/max_length", 4000, r"small\.training\.max_length: 4000 is more"),
        ("lexicons/unsupervised/backbone", "bible", "is for unit piece only"),
        ("experiments/help-de-en/codeswitch/noise/poisson_lambda", 0, "poisson_lambda: input should be greater than or equal to 0.5"),
        ("run", ..., "run: is missing"),
    ],
)
def test_mistakes_are_named_with_the_way_out(path, value, message):
    raw = changed(path, value) if "../" not in path else {**DEFAULT, "corpora": {**DEFAULT["corpora"], "../x": value}}
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
    pretext, finetune = (config.phase_training(experiment, phase) for phase in loaded.arms["csr"])
    assert pretext.dropout == 0.05 and finetune.dropout == experiment.training.dropout
    assert pretext.updates + finetune.updates == loaded.arms["finetune"][0].updates


def test_lists_in_place_of_training_values_make_a_grid():
    raw = changed("experiments/help-de-en/training/learning_rate", [1e-3, 2e-3])
    raw["experiments"]["help-de-en"]["training"] |= {"adam_betas": [[0.9, 0.98], [0.9, 0.999]], "dropout": [0.1]}
    experiment = config.load(raw).experiments["help-de-en"]
    points = config.grid_points(experiment)
    assert [point["learning_rate"] for point in points] == [1e-3, 1e-3, 2e-3, 2e-3] and "dropout" not in points[0]
    phase = config.Phase("task", 10, training={"max_length": 5})
    trained = config.phase_training(experiment, phase, points[3])
    assert (trained.learning_rate, trained.adam_betas, trained.dropout, trained.max_length) == (2e-3, (0.9, 0.999), 0.1, 5)
    assert not config.grid_points(config.load(DEFAULT).experiments["help-de-en"])


@pytest.mark.parametrize(
    "training, message",
    [
        ({"learning_rate": [1e-3, "fast"]}, "learning_rate: input should be a valid number.*got 'fast'"),
        ({"learning_rte": [1e-3, 2e-3]}, "did you mean 'learning_rate'"),
        ({"updates": [10, 20]}, "it cannot be chosen"),
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
    assert config.zero_shot_tests(loaded, "help-de-en") == ["es-en@pages"]
    assert config.zero_shot_tests(loaded, "es-en") == ["help-de-en@pages", "de-en-again@pages"]
    assert config.zero_shot_tests(loaded, "en-es") == []
    loaded.run.zero_shot = False
    assert config.zero_shot_tests(loaded, "help-de-en") == []


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


def test_the_task_chooses_the_kind_of_experiment():
    loaded = config.load(classified())
    experiment = loaded.experiments["help-modules"]
    assert config.is_classification(experiment) and not config.is_classification(loaded.experiments["help-de-en"])
    assert config.switched_into(loaded, experiment) == ["de"] and config.arms_of(loaded, experiment) == loaded.run.arms
    again = from_plain(config.Config, json.loads(json.dumps(dataclasses.asdict(loaded))))
    assert again.experiments["help-modules"] == experiment


MODULES = "labelled/modules"
EXPERIMENT = "experiments/help-modules"


@pytest.mark.parametrize(
    "path, value, message",
    [
        (f"{EXPERIMENT}/clasification", {}, r"experiments\.help-modules\.clasification: unknown key, did you mean 'classification'"),
        (f"{EXPERIMENT}/classification/learning_rate", -1, r"help-modules\.classification\.learning_rate: input should be greater than 0"),
        (f"{EXPERIMENT}/training/learning_rate", [1e-3, 2e-3], r"training\.learning_rate: input should be a valid number"),
        (f"{EXPERIMENT}/corpus", "module", "'module' is not defined, did you mean 'modules'"),
        (f"{EXPERIMENT}/lexicon", ..., r"lexicon: is missing; arms\.csr-10e needs one"),
        (f"{EXPERIMENT}/lexicon", "unsupervised", r"lexicons\.unsupervised\.mapping\.mode: must be dictionary"),
        (f"{EXPERIMENT}/into", ["de", "fr"], r"lexicons\.wiktionary\.dictionary: en-fr is missing, which .*; give a file of word pairs"),
        (f"{EXPERIMENT}/into", ["en"], r"into: no language but 'en'"),
        (f"{EXPERIMENT}/arms", ["finetune"], r"arms: 'finetune' is not defined"),
        (f"{EXPERIMENT}/arms", [], "none of the run's arms"),
        (f"{EXPERIMENT}/classification/max_length", 600, r"classification\.max_length: 600 is more than the backbone's 512 positions"),
        ("lexicons/wiktionary/dictionary", {}, r"lexicons\.wiktionary\.dictionary: en-de is missing"),
        ("arms/finetune-10e", [{"data": "task", "epochs": 9}], "same number of updates in all .*9 epochs"),
        (
            "arms/finetune-10e",
            [{"data": "task", "updates": 9}],
            "the task phase of experiments.help-modules, a classification, has `epochs`",
        ),
        ("arms/finetune-10e", [{"data": "task", "updates": 9, "epochs": 10}], "a phase has either updates or epochs"),
        ("arms/finetune-10e", [{"data": "task"}], "a phase has either updates or epochs"),
        ("arms/finetune-10e", [{"data": "task", "epochs": 0}], "epochs must be at least 1, got 0"),
        ("arms/csr-10e", [{"data": "codeswitch", "epochs": 1}, {"data": "task", "epochs": 10}], "a pretext phase counts updates"),
        ("arms/mask-10e/0/data", "released", "`released` needs parallel text"),
        ("run/experiments", ["help-de-en"], r"arms\.finetune-10e: experiments\.help-de-en, a translation, counts updates"),
        (f"{MODULES}/labels", ["Writer", "Writer"], "at least two different labels"),
        (f"{MODULES}/language", "eng", "unknown language 'eng'"),
        (f"{MODULES}/test/de/language", "fr", r"small\.text: no text for 'fr'"),
        (f"{MODULES}/test/average", {"held_out": 0.1}, "cannot be called average"),
        (f"{MODULES}/test", {}, "names no test set"),
        (f"{MODULES}/dev", {}, "give a `file` with `columns`, or `held_out`"),
        (f"{MODULES}/dev/held_out", 0.7, "held_out: input should be less than or equal to 0.4"),
        (f"{MODULES}/train/held_out", 0.1, "is for dev and test sets"),
        (f"{MODULES}/train/columns", {"text": 3}, "say nothing about label"),
        (f"{MODULES}/train/columns/txt", 3, "'txt' is not defined, did you mean 'text'"),
        (f"{MODULES}/train/label_pattern", "(", "is no regular expression"),
        (f"{MODULES}/train/label_pattern", "scalc", "needs a group that is the label"),
        (f"{MODULES}/train/file", "{x}.tsv", "'{x}.tsv' has braces"),
    ],
)
def test_mistakes_in_a_classification_are_named(path, value, message):
    with pytest.raises(InputError, match=message):
        config.load(classified(path, value))
