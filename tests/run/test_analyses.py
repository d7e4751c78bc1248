"""Analyses in the configuration: mistakes in them, the flags of their rules, and the languages of backbones that only they use."""

import copy
import dataclasses

import pytest
from configurations import DEFAULT, job

from workflow_scripts.config.analyses import ours
from workflow_scripts.run import analyses, backbone_inputs, report_inputs
from workflow_scripts.run.config import load
from workflow_scripts.stage import InputError
from workflow_scripts.tasks.plan import Plans
from workflow_scripts.text.parallel import Documents

ARMS = ["bible", "help-de-en/finetune/seed1/finetune", "help-de-en/csr/seed1/pretext"]
PART = {"analysis": "insides", "backbone": "other"}


def configured(**changes):
    """config.yaml with an analysis, whose settings `changes` replace; `also` are further top-level definitions."""
    raw = copy.deepcopy(DEFAULT)
    also = changes.pop("also", {})
    raw["run"]["analyses"] = ["insides"]
    raw["analyses"] = {"insides": {"models": ARMS, "base": "bible", "corpus": "help", **changes}}
    for section, definitions in also.items():
        raw.setdefault(section, {}).update(copy.deepcopy(definitions))
    return load(raw)


def small(**changes):
    """A backbone that is made here, of another shape than the demo's where `changes` say so."""
    return {"kind": "small", "small": {**DEFAULT["backbones"]["bible"]["small"], "ready": None, **changes}}


def test_an_analysis_reads_models_of_backbones_and_arms_and_the_first_test_set():
    config = configured()
    assert analyses.model_folders(job(config, **PART)) == [
        "results/backbones/bible/model",
        "results/runs/help-de-en/finetune/seed1/finetune/model",
        "results/runs/help-de-en/csr/seed1/pretext/model",
    ]
    assert analyses.texts(job(config, **PART)) == ["results/corpora/help.de-en/test/pages.de", "results/corpora/help.de-en/test/pages.en"]
    shared_flags = ["--names", *ARMS, "--side", "encoder"]
    assert analyses.stage_flags(job(config, **PART), "cka") == [*shared_flags, "--base", "bible", "--languages", "de", "en", "--parallel"]
    assert analyses.stage_flags(job(config, **PART), "spectra") == [*shared_flags, "--base", "bible"]
    assert analyses.stage_flags(job(config, **PART), "separability") == [*shared_flags, "--languages", "de", "en", "--parallel"]
    assert {f"results/analyses/insides/{stage}.json" for stage in ours()} <= {*report_inputs.report_inputs(Plans(config))}
    only = configured(languages=["en"], stages=["cka"], parallel=False, cka={"poolings": ["first"]})
    assert analyses.stage_flags(job(only, **PART), "cka")[-2:] == ["--languages", "en"]
    assert analyses.results(only) == ["results/analyses/insides/cka.json"]


def test_texts_that_change_places_change_a_parameter_and_other_texts_change_none():
    said = []
    for files in (["one", "two"], ["two", "one"]):
        part = job(configured(corpus=None, text=dict(zip(("de", "en"), files, strict=True))), **PART)
        assert analyses.given_texts(part, "cka") == analyses.texts(part) == files
        said.append(analyses.stage_flags(part, "cka"))
    assert said[0] == said[1]
    for changes in ({}, {"corpus": None, "text": {"de": "one"}, "parallel": False, "stages": ["cka"], "cka": {"poolings": ["first"]}}):
        part = job(configured(**changes), **PART)
        assert analyses.given_texts(part, "cka") == analyses.stage_flags(part, "cka")


def test_nothing_changes_without_analyses():
    config = load(DEFAULT)
    assert config.run.analyses == [] and analyses.results(config) == []


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"models": ["bibel"], "base": None}, "insides.models: 'bibel' is not defined, did you mean 'bible'?"),
        (
            {"models": ["help-de-en/csr/seed2/finetune"], "base": None},
            r"models: 'help-de-en/csr/seed2/finetune' is not defined, did you mean 'help-de-en/csr/seed1/finetune'\?",
        ),
        ({"models": []}, "insides.models: names no model"),
        ({"models": ["bible", "bible"]}, "names a model twice"),
        ({"base": "help-de-en/csr/seed1/finetune"}, "insides.base: .* is not defined"),
        ({"cka": {"against": ["bibel"]}}, "cka.against: 'bibel' is not defined, did you mean 'bible'"),
        ({"cka": {"poolings": []}}, "cka.poolings: .* at least one"),
        ({"cka": {"poolings": ["men"]}}, "cka.poolings.0: .*did you mean 'mean'"),
        ({"cka": {"texts": 4}}, "cka.texts: 4 are fewer than the estimate needs, 5"),
        ({"cka": {"block": 10}}, "cka.block: 10 texts are too few"),
        ({"separability": {"texts": 3}}, "separability.texts: 3 are fewer than its 5 folds"),
        ({"corpus": "helb"}, "insides.corpus: 'helb' is not defined, did you mean 'help'"),
        ({"testset": "page"}, "insides.testset: 'page' is not defined, did you mean 'pages'"),
        ({"corpus": None}, "give either `text`, a file for each language, or `corpus`"),
        ({"text": {"de": "a.txt"}}, "give either `text`, a file for each language, or `corpus`"),
        ({"languages": ["de", "fr"]}, "insides.languages: there is no text for fr; the text has de, en"),
        ({"languages": ["de"]}, "separability needs two languages at least"),
        ({"corpus": None, "text": {"de": "a", "xx": "b"}}, "insides: .*'xx'"),
        ({"corpus": None, "text": {"de": "a", "fr": "b"}}, "backbone bible does not know fr, it knows de, en"),
        ({"stages": ["cka"], "parallel": False, "models": ["bible"]}, "CKA has nothing to compare: no model besides bible"),
        ({"stages": ["cka"], "languages": ["de"], "cka": {"against": ARMS}}, "CKA has nothing to compare: no model besides bible, help"),
        ({"models": ["bible", "deep"], "also": {"backbones": {"deep": small(layers=3)}}}, "2 layers and deep 3; set `cka.layers: all`"),
        (
            {"models": ["bible", "wide"], "also": {"backbones": {"wide": small(d_model=64)}}},
            r"insides.base: wide has \(layers, width, feed-forward width\) \(2, 64, 512\), bible \(2, 192, 512\)",
        ),
        (
            {"models": ["bible", "xlmr"], "side": "decoder", "also": {"backbones": {"xlmr": {**small(), "family": "xlmr"}}}},
            "insides.side: xlmr is an encoder .* no decoder",
        ),
        ({"models": ["bible", "other"], "also": {"backbones": {"other": small(text={"de": "x"})}}}, "small.text: no text for 'en', which"),
        ({"models": ["bible", "other"], "also": {"backbones": {"other": {"kind": "hub"}}}}, "backbones.other: kind hub needs `model`"),
        (
            {"models": ["bible", "other"], "also": {"backbones": {"other": small(text={"de": "task", "en": "task"})}}},
            r"other.small.text.de: no experiment of the run uses this backbone, .* name a file, such as results/corpora/",
        ),
        (
            {
                "models": ["one"],
                "base": None,
                "also": {"backbones": {n: {"kind": "continued", "from": o} for n, o in ("ab", "ba", ("one", "a"))}},
            },
            "is a circle",
        ),
    ],
)
def test_what_is_wrong_is_said(changes, said):
    with pytest.raises(InputError, match=said):
        configured(**changes)


def test_text_with_labels_has_no_translations_line_by_line():
    labelled = {
        "topics": {
            "language": "en",
            "labels": ["a", "b"],
            "train": {"file": "t.tsv", "columns": {"text": 1, "label": 2}},
            "dev": {"held_out": 0.2},
            "test": {"first": {"held_out": 0.2}, "german": {"file": "de.tsv", "language": "de", "columns": {"text": 1, "label": 2}}},
        }
    }
    with pytest.raises(InputError, match=r"insides.parallel: .*set it to false"):
        configured(corpus="topics", also={"labelled": labelled})
    with pytest.raises(InputError, match=r"insides.testset: is for `corpora`; .*Leave it out"):
        configured(corpus="topics", parallel=False, testset="german", also={"labelled": labelled})
    config = configured(corpus="topics", parallel=False, also={"labelled": labelled})
    assert analyses.texts(job(config, **PART)) == [
        "results/labelled/topics/test/first.en.tsv",
        "results/labelled/topics/test/german.de.tsv",
    ]
    assert analyses.stage_flags(job(config, **PART), "cka")[-1] == "--labelled"


def test_documents_are_read_as_in_training():
    config = configured()
    assert "--documents" not in analyses.stage_flags(job(config, **PART), "cka")
    corpus = config.analyses["insides"].corpus
    config.corpora[corpus] = dataclasses.replace(config.corpora[corpus], documents=Documents("de"))
    last = {stage: analyses.stage_flags(job(config, **PART), stage)[-1] for stage in ours()}
    assert {stage for stage, flag in last.items() if flag == "--documents"} == {"cka", "separability"}


def test_a_backbone_that_only_analyses_use_knows_their_languages_and_may_be_an_encoder():
    config = configured(models=["bible", "other"], also={"backbones": {"other": {"kind": "hub", "model": "xlm-roberta-base"}}})
    assert backbone_inputs.backbone_languages(job(config, **PART)) == ["de", "en"]
    assert backbone_inputs.encoder_will_do(job(config, **PART)) == "--encoder-will-do"
    assert backbone_inputs.encoder_will_do(job(config, backbone="bible")) == ""
    # what experiments need of a backbone is not changed by looking into it
    assert backbone_inputs.backbone_languages(job(configured(languages=["en"], stages=["cka"]), backbone="bible")) == ["de", "en"]


def test_models_of_other_depth_are_compared_if_each_layer_is_or_if_they_are_not_compared_with_each_other():
    also = {"backbones": {"deep": small(layers=3), "deeper": small(layers=3)}}
    settings = {"models": ["bible", "deep"], "base": None, "stages": ["cka"], "also": also}
    with pytest.raises(InputError, match=r"set `cka\.layers: all`"):
        configured(**settings)
    assert configured(**settings, cka={"layers": "all"})
    assert configured(**{**settings, "models": ["deep", "deeper"]})


def test_definitions_can_be_like_others():
    also = {"analyses": {"more": {"like": "insides", "side": "decoder"}}}
    config = configured(also=also)
    assert config.analyses["more"].models == ARMS and config.analyses["more"].side == "decoder"
