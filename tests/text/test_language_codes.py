"""Which codes name one language, and which variant of it is taken."""

import pytest

from workflow_scripts.text.language_codes import matching, of_country, of_language, same_language
from workflow_scripts.text.languages import LANGUAGES, unknown_language


@pytest.mark.parametrize(
    "one, other",
    [
        ("iw", "he"),
        ("jw", "jv"),
        ("in", "id"),
        ("ji", "yi"),
        ("deu", "de"),
        ("ger", "de"),
        ("chi", "zh"),
        ("cmn", "zh"),
        ("nob", "no"),
        ("nb-NO", "no"),
        ("fil", "tl"),
        ("EN_us", "en"),
        ("sr-Latn", "sr"),
        ("ekk", "et"),
        ("x-own", "X_OWN"),
    ],
)
def test_codes_of_one_language(one, other):
    assert same_language(one, other) and same_language(other, one)


@pytest.mark.parametrize(
    "one, other", [("nn", "no"), ("yue", "zh"), ("hr", "sr"), ("arz", "ar"), ("de", "gsw"), ("", "de"), ("x-own", "de")]
)
def test_codes_of_two_languages(one, other):
    assert not same_language(one, other) and not same_language(other, one)


@pytest.mark.parametrize(
    "wanted, codes, taken",
    [
        ("zh", ["en", "zh-Hant", "ZH_cn"], ["ZH_cn", "zh-Hant"]),
        ("zh-Hant", ["zh-Hans", "zh", "zh-TW"], ["zh-TW"]),
        ("pt-BR", ["pt-PT", "pt", "pt-br"], ["pt-br", "pt"]),
        ("en-GB", ["en-US", "en"], []),
        ("no", ["nb", "nn", "no"], ["no", "nb"]),
        ("sr", ["sr-Latn", "sr-Cyrl"], ["sr-Cyrl", "sr-Latn"]),
    ],
)
def test_the_variant_that_is_asked_for_is_taken_else_the_usual_one(wanted, codes, taken):
    assert matching(codes, wanted) == matching(codes[::-1], wanted) == taken


@pytest.mark.parametrize(("code", "spoken"), [("jp", "ja"), ("cn", "zh"), ("cz", "cs"), ("gr", "el"), ("xx", ""), ("us", ""), ("j", "")])
def test_a_country_names_its_language(code, spoken):
    assert of_country(LANGUAGES, code) == spoken
    assert not spoken or f"did you mean {spoken!r}" in unknown_language(code)


def test_each_code_of_the_table_finds_itself_and_a_name_nothing():
    assert all(of_language(LANGUAGES, code)[0] == code for code in LANGUAGES) and of_language(LANGUAGES, "english") == []
