"""What the jobs of text read: what is left out of it, and what translates it."""

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest
from configurations import DEFAULT, changed, classified, job

from workflow_scripts.run import backbone_inputs, config, text_inputs, uses
from workflow_scripts.stage import InputError, from_plain
from workflow_scripts.tasks.plan import Plans
from workflow_scripts.text.labelled import Labelled
from workflow_scripts.text.labelled_source import LabelledSource
from workflow_scripts.text.languages import _read_table


@pytest.mark.parametrize(
    "models, removed", [({"csr": {"experiment": "help-de-en", "arm": "csr"}}, True), ({"b": {"backbone": "bible"}}, False)]
)
def test_no_arm_learns_the_sentences_that_retrieval_looks_up_in_its_states(models, removed):
    raw = changed("run/experiments", ["help-de-en", "looked-up"])
    raw["aligned"] = {"pairs": {"test": {"own": {"languages": ["de", "en"], "files": {"de": "a", "en": "b"}}}}}
    raw["experiments"]["looked-up"] = {"task": "retrieval", "corpus": "pairs", "models": models}
    left_out = text_inputs.others_held_out(job(config.load(raw), corpus="help", a="de", b="en"), "a")
    assert left_out == [f"results/aligned/pairs/test/own.{side}" for side in ("source", "target") if removed]


@pytest.mark.parametrize("mode, removed", [("aligned", True), ("identical", False)])
def test_no_lexicon_is_aligned_in_the_test_sets_of_an_experiment_on_another_corpus(mode, removed):
    raw = changed("lexicons/unsupervised", {"corpus": "large", "mapping": {"mode": mode}})
    raw["corpora"]["large"] = {"like": "help", "train": {"files": {"de": "a", "en": "b"}}}
    left_out = text_inputs.others_held_out(job(config.load(raw), corpus="large", a="de", b="en"), "a")
    files = [f"results/corpora/help.de-en/{part}.{code}" for part in ("dev", "test/pages") for code in ("de", "en")]
    assert left_out == (files if removed else [])


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
    of_writer = job(loaded, backbone="writer")
    assert backbone_inputs.backbone_languages(of_writer) == ["de", "en"] and backbone_inputs.encoder_will_do(of_writer) == ""
    assert "nowhere.txt" in dict(uses.missing_files(Plans(loaded))).values()


def of_user() -> dict:
    """An experiment that starts from the model of an arm which the run does not compare, and which reads a corpus of its own."""
    raw = changed("arms/bookish", [{"data": "denoising", "text": "books", "updates": 1400}, {"data": "task", "updates": 2800}])
    raw["corpora"] |= {name: {"like": "help", "train": {"files": {"de": f"{name}.de", "en": f"{name}.en"}}} for name in ("books", "own")}
    raw["backbones"]["restored"] = {"kind": "arm", "from": "help-de-en/bookish/seed1/finetune"}
    raw["experiments"]["user"] = {"like": "help-de-en", "corpus": "own", "backbone": "restored"}
    raw["run"] |= {"experiments": ["user"], "arms": ["finetune"]}
    return raw


def test_no_arm_whose_model_is_a_backbone_learns_what_its_user_is_tested_on():
    loaded = config.load(of_user())
    left_out = text_inputs.others_held_out(job(loaded, corpus="books", a="de", b="en"), "a")
    assert {f"results/corpora/own.de-en/{part}.{code}" for part in ("dev", "test/pages") for code in ("de", "en")} <= {*left_out}
    assert "books.de" in [path for _, path in uses.missing_files(Plans(loaded))]


@pytest.mark.parametrize("side", ["de", "en"])
def test_no_text_that_is_learnt_together_has_a_side_of_the_test_set(side):
    raw = changed("experiments/help-de-en/together_with", ["general"])
    raw["corpora"]["general"] = {"like": "help", "train": {"files": {"de": "general.de", "en": "general.en"}}}
    left_out = text_inputs.others_held_out(job(config.load(raw), corpus="general", a="de", b="en"), "a" if side == "de" else "b")
    assert f"results/corpora/help.de-en/test/pages.{side}" in left_out


def test_the_experiment_of_an_arm_that_translates_training_text_is_needed():
    raw = classified("labelled/modules/translations", {"de": {"language": "de", "by": {"backbone": "writer"}}})
    raw["backbones"]["writer"] = {"kind": "arm", "from": "help-en-de/finetune/seed1/finetune"}
    raw["experiments"]["help-en-de"] = {"like": "help-de-en", "source": "en", "target": "de"}
    assert [plan.name for plan in Plans(config.load(raw)).needed] == ["help-modules", "help-en-de"]


def test_the_settings_of_text_in_two_hundred_languages_fit_into_one_argument():
    source = LabelledSource("data/a/folder/with/a/name/en.train.tsv", {"label": "label", "text": "text"}, header=True)
    several = {code: replace(source, file=f"data/a/folder/with/a/name/{code}.test.tsv", language=code) for code in _read_table()}
    block = Labelled(language="en", labels=["a", "b"], train=source, dev=LabelledSource(held_out=0.1), test=several, more_dev=several)
    settings = text_inputs.labelled_settings(SimpleNamespace(labelled=block))
    assert len(several) > 150 and len(settings.encode()) < 2**17
    assert from_plain(Labelled, json.loads(settings)) == block
