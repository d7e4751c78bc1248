"""From files to plain values: `each`, `like`, patterns, published numbers, grids; and the line that an error is about."""

import copy
import re
from pathlib import Path
from typing import get_origin, get_type_hints

import pytest
import yaml
from configurations import DEFAULT, changed
from snakemake.utils import update_config

from workflow_scripts.config.phases import Phase
from workflow_scripts.run import config, config_files, loading
from workflow_scripts.stage import InputError
from workflow_scripts.tasks.experiment import grid_points, phase_training
from workflow_scripts.tasks.retrieval import NamedModel
from workflow_scripts.text.acquisition import Data


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


def test_places_of_a_template_are_left_to_it():
    template = "From {source_language}: {source}\nIn {target_language}:"
    made = config.load(many(templates={"task": template, "examples_in": ["{source}", "en"]}))
    own = made.experiments["help-es-en"]
    assert own.templates.task == template and own.templates.examples_in == ["es", "en"] and own.source == "es"


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
    files = {"each": {"code": [[], {}]}, "like": "help", "train": {"files": {"{code}": "x"}}}
    with pytest.raises(InputError, match=r"corpora\.text-\{code\}\.each: \{code\} is a key of the definition, so its values must be texts"):
        config.load(changed("corpora/text-{code}", files))


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
    others = {config.Config, Phase, NamedModel, *config._dataclasses(Data)}  # which have no `like`
    kinds = set(config._dataclasses(config.Config)) - others
    by_name = {name for kind in kinds for name, hint in get_type_hints(kind).items() if get_origin(hint) is dict}
    assert by_name == loading.BY_NAME | {"dev"}  # of text for retrieval; a corpus has one


def test_null_is_a_value_of_an_entrys_own_settings():
    own = {"cap": None, "words": {"de": None}}
    raw = copy.deepcopy(DEFAULT)
    raw["experiments"]["other"] = {"like": "help-de-en", "decoding": {"engine": "huggingface", "engine_settings": own}}
    raw["backbones"]["other"] = {"like": "bible", "small": {"objective_settings": own, "text": {"de": "task", "en": None}}}
    spelt = loading.spelt_out(raw)
    small = spelt["backbones"]["other"]["small"]
    assert spelt["experiments"]["other"]["decoding"]["engine_settings"] == small["objective_settings"] == own
    assert small["text"] == {"de": "task"}
    block = {"engine": "vllm", "engine_settings": {"cap": None}, "beam_size": 1}
    with pytest.raises(InputError, match=r"decoding\.engine_settings: .*unknown setting\(s\) \['cap'\]"):
        config.load(changed("experiments/help-de-en/decoding", block))


def test_text_for_retrieval_does_not_keep_the_dev_sets_of_what_it_is_like():
    sides = {code: {"languages": [code, "en"], "files": {code: f"{code}.txt", "en": "en.txt"}, "gold": "gold.txt"} for code in ("de", "fr")}
    blocks = {
        "one": {"test": {"de": sides["de"]}, "dev": {"de": sides["de"]}},
        "other": {"test": {"fr": sides["fr"]}, "dev": {"fr": sides["fr"]}},
    }
    spelt = loading.spelt_out({"aligned": {**blocks, "other": {"like": "one", **blocks["other"]}}})
    assert spelt["aligned"] == blocks
    without = loading.spelt_out({"aligned": {"one": {"test": {"de": sides["de"]}, "dev": {"de": None}}}})
    assert without["aligned"]["one"]["dev"] == {}


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
    table.write_text("\ufeff" + table.read_text(), encoding="utf-8")  # as spreadsheets save it
    assert config.load(changed("experiments/help-de-en/published", str(table))).experiments["help-de-en"].published == [number]


@pytest.mark.parametrize("content, message", [(None, "cannot be read"), ("arm\tvalue\n", "no column `experiment`, or no rows")])
def test_a_table_of_published_numbers_that_is_none_is_refused(tmp_path, content, message):
    if content:
        (tmp_path / "published.tsv").write_text(content)
    with pytest.raises(InputError, match=f"help-de-en.published: .*published.tsv.*{message}"):
        config.load(changed("experiments/help-de-en/published", str(tmp_path / "published.tsv")))


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


def test_an_error_names_the_file_and_the_line_of_its_key(tmp_path):
    below, above = tmp_path / "below.yaml", tmp_path / "above.yaml"
    below.write_text("run:\n  seeds: [1]\nexperiments:\n  mine:\n    source: de\n    training: {updates: 5}\n")
    above.write_text("experiments:\n  mine:\n    training:\n      lr: 1\n")
    said = (
        "config:\n  experiments.mine.training.lr: unknown key\n  experiments.mine.source.0: odd\n  experiments.other: odd\n  run.seeds: odd"
    )
    _, lr, source, other, seeds = config_files.located(said, (below, above, tmp_path / "gone.yaml"), {"run": {"seeds": 3}}).split("\n")
    assert lr.endswith(f"unknown key ({above}, line 4)") and source.endswith(f"odd ({below}, line 5)")
    below.write_text("run: &run\n  inner: *run\n")  # an alias of a block inside itself
    assert config_files.located("config:\n  run.seeds: odd", (below,)).endswith("odd")
    # one that `each` has made stands in no file, nor does what the command line sets
    assert other.endswith(": odd") and seeds.endswith(": odd")


def test_an_experiment_is_not_like_one_of_another_task():
    raw = copy.deepcopy(DEFAULT)
    raw["experiments"]["tags"] = {"like": "help-de-en", "task": "labelling", "corpus": "x"}
    with pytest.raises(
        InputError,
        match=r"experiments\.tags\.like: 'help-de-en' is an experiment of the task translation, whose source, target, .* the task labelling has not; name",
    ):
        loading.written_out(raw)
    raw["experiments"]["tags"] = {"like": "help-de-en", "task": "translation"}
    assert loading.written_out(raw)["experiments"]["tags"]["corpus"] == raw["experiments"]["help-de-en"]["corpus"]
