"""What jobs read and are told."""

import contextlib
import copy
import dataclasses
import re
from types import SimpleNamespace

import pytest
from configurations import DEFAULT, changed, classified

from workflow_scripts.run import config, inputs, model_findings, resources, uses
from workflow_scripts.stage import InputError
from workflow_scripts.training.backbone import chain_of


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
    assert "nowhere.txt" in dict(uses.missing_files(loaded)).values()


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
    assert [inputs.loaded_for(loaded, job) for job in jobs.values()] == ["", "--keep-head", "--keep-head"]
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


@pytest.mark.parametrize(
    "asked, said",
    [
        ({"backbone": "bibel"}, "a file of backbone 'bibel' is asked for, which is not defined, did you mean 'bible'?"),
        (
            {"experiment": "help-de-en", "arm": "crs", "seed": "1"},
            "a file of arm 'crs' is asked for, which is not defined, did you mean 'csr'?",
        ),
        ({"analysis": "insides"}, "a file of analysis 'insides' is asked for, which is not defined; there is nothing"),
        ({"experiment": "help-de-en", "arm": "csr.grid3"}, None),
        ({"experiment": "help-de-en", "arm": "trivial"}, None),
    ],
)
def test_a_file_of_a_name_that_is_not_defined_is_told(asked, said):
    told = pytest.raises(InputError, match=f"^{re.escape(said)}$") if said else contextlib.nullcontext()
    with told:
        inputs.check_names(config.load(DEFAULT), asked)
