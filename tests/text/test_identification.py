"""Sides in the wrong language are refused."""

import pytest

from workflow_scripts.stage import InputError
from workflow_scripts.text.identification import check_languages, reads_as
from workflow_scripts.text.parallel import Pair, Source, read_pairs


def test_swapped_languages_of_one_script():
    source = Source(file="resources/libreoffice-help/en-de.tsv.xz", columns={"document": 1, "en": 3, "de": 4})
    pairs = list(read_pairs(source, ("de", "en")))[:400]
    check_languages(pairs, ("de", "en"), "manual")
    with pytest.raises(InputError, match=r"manual, line 1: the English side reads as German.*exchange"):
        check_languages(pairs, ("en", "de"), "manual")


def test_swapped_scripts(tmp_path):
    path = tmp_path / "r.tsv"
    path.write_text("Откройте файл и выберите окно\tOpen the file, choose the window\n" * 5, encoding="utf-8")
    source = Source(
        file=str(path),
        columns={"ru": 1, "en": 2},
    )
    check_languages(list(read_pairs(source, ("ru", "en"))), ("ru", "en"), "r.tsv")
    swapped = Source(file=source.file, columns={"ru": 2, "en": 1})
    with pytest.raises(InputError, match=r"r\.tsv, line 1: the Russian side is written in Latin script; the sides look swapped"):
        check_languages(list(read_pairs(swapped, ("ru", "en"))), ("ru", "en"), "r.tsv")
    both = [pair._replace(a=pair.b) for pair in read_pairs(source, ("ru", "en"))]
    with pytest.raises(InputError, match=r"is written in Latin script; name the right file or column of ru$"):
        check_languages(both, ("ru", "en"), "r.tsv")


def test_a_romanised_side_is_read_with_a_note(capsys):
    hindi = "Yeh file bahut badi hai, aur mujhe yeh kitaab pasand hai."
    pairs = [Pair("", hindi, "This file is very large, and I like this book.", number) for number in range(1, 60)]
    check_languages(pairs, ("hi", "en"), "chat.tsv")
    assert capsys.readouterr().out == "note: chat.tsv: the Hindi side is written in Latin script, and does not read as English\n"
    with pytest.raises(
        InputError, match=r"chat\.tsv, line 1: the Hindi side is written in Latin script; name the right file or column of hi"
    ):
        check_languages([pair._replace(a=pair.b) for pair in pairs], ("hi", "en"), "chat.tsv")


def test_a_language_may_have_two_scripts():
    latin = [Pair("", "Otvorite datoteku i izaberite prozor", "Open the file, choose the window", number) for number in range(1, 60)]
    cyrillic = [pair._replace(a="Отворите датотеку и изаберите прозор") for pair in latin]
    for pairs in (latin, cyrillic):
        check_languages(pairs, ("sr", "en"), "manual")


def test_a_third_language_is_named():
    source = Source(file="resources/libreoffice-help/en-de.tsv.xz", columns={"document": 1, "en": 3, "de": 4})
    german = [pair.b for pair in read_pairs(source, ("en", "de"))][:400]
    assert reads_as(german, "nl") == "German" and reads_as(german, "de") == ""
    assert reads_as(german[:80], "nl") == "" and reads_as(german, "tpi") == ""
    danish = ["Åbn filen, og vælg det vindue, som du ikke længere har brug for, før du lukker programmet igen."] * 200
    assert reads_as(danish, "sv") and not reads_as(danish, "nb")
