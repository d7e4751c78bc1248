"""Sides in the wrong language are refused."""

import pytest

from workflow_scripts.stage import InputError
from workflow_scripts.text.identification import check_languages
from workflow_scripts.text.parallel import Source, read_pairs


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
    with pytest.raises(InputError, match=r"r\.tsv, line 1: the Russian side is written in Latin script"):
        check_languages(list(read_pairs(swapped, ("ru", "en"))), ("ru", "en"), "r.tsv")
