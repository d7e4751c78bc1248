"""The table of families, and how a model's family is found."""

import json

import pytest
from tiny_models import small_encoder, small_model
from transformers import AutoConfig
from transformers.convert_slow_tokenizer import MBART50_LANGUAGES, MBART_LANGUAGES
from transformers.models.m2m_100 import tokenization_m2m_100
from transformers.models.nllb.tokenization_nllb import FAIRSEQ_LANGUAGE_CODES

from workflow_scripts.models.families import FAMILIES, family_of, longest_row
from workflow_scripts.models.networks import load_network
from workflow_scripts.models.tokenisation import load_codec
from workflow_scripts.stage import InputError
from workflow_scripts.text.languages import LANGUAGES

MADE = {
    "mbart": "mbart",
    "cc25": "mbart",
    "mbart50": "mbart50",
    "nllb": "m2m100",
    "m2m100": "m2m100",
    "bert": "mbert",
    "xlm-roberta": "xlmr",
    "bart": "bart",
}


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """A tiny model of each family."""
    make = {kind: small_encoder if kind in ("bert", "xlm-roberta") else small_model for kind in MADE}
    return {kind: make[kind](tmp_path_factory.mktemp(kind), kind) for kind in MADE}


def test_each_model_has_its_family_and_what_the_table_says_of_it(models):
    assert set(MADE.values()) == set(FAMILIES)
    for kind, folder in models.items():
        family = family_of(folder)
        assert family.name == MADE[kind]
        config = AutoConfig.from_pretrained(folder)
        assert all(hasattr(config, name) for name in (*family.dropout, *family.off, *family.size.values()))
        assert longest_row(config) == (64 if kind == "xlm-roberta" else config.max_position_embeddings)
        for head in family.heads:
            labels = None if head == "text" else ["a", "b"]
            network = load_network(folder, head, dropout=0.25, attention_dropout=0.125, seed=1, labels=labels)
            assert [getattr(network.config, name) for name in family.dropout] == [0.25, 0.125]


def test_a_model_of_no_known_family_is_refused_with_the_nearest(tmp_path):
    for told, near in (({"model_type": "m2m_10"}, "the nearest that is known is m2m_100"), ({}, "none that Crossgap knows")):
        (tmp_path / "config.json").write_text(json.dumps(told))
        with pytest.raises(InputError, match=near):
            family_of(tmp_path)
    for broken in ("{", "[]"):
        (tmp_path / "config.json").write_text(broken)
        with pytest.raises(InputError, match=r"config\.json: cannot be read"):
            family_of(tmp_path)


def test_a_head_that_a_family_lacks_is_refused(models, monkeypatch):
    monkeypatch.setitem(FAMILIES, "m2m100", FAMILIES["m2m100"]._replace(heads={"text": "AutoModelForSeq2SeqLM"}))
    with pytest.raises(
        InputError, match=r"M2M-100 or NLLB, which has no head for classification; those that have one: mBART-50, mBART, XLM-R"
    ):
        load_network(models["nllb"], "classification", dropout=0.1, attention_dropout=0.1, seed=1)


def test_tags_of_languages_are_the_models_own():
    # Breton, Frisian and Latin are unknown to NLLB, and of some of its languages the table has one of two scripts
    assert {code for code, row in LANGUAGES.items() if not row.nllb} == {"br", "fy", "la"}
    second = {"ace_Arab", "bjn_Arab", "kas_Deva", "knc_Arab", "taq_Tfng", "zho_Hant"}
    assert {row.nllb for row in LANGUAGES.values()} - {""} == set(FAIRSEQ_LANGUAGE_CODES) - second
    # which calls Northern Sotho by another code
    assert set(tokenization_m2m_100.FAIRSEQ_LANGUAGE_CODES["m2m100"]) - set(LANGUAGES) == {"ns"}
    for number, tags in ((25, MBART_LANGUAGES), (50, MBART50_LANGUAGES)):
        assert {row.tag for row in LANGUAGES.values() if row.mbart and row.mbart <= number} == set(tags)


def test_a_language_without_a_tag_is_refused(models):
    with pytest.raises(InputError, match=r"has no tag __br__ for 'br'"):
        load_codec(models["nllb"]).tag("br")
