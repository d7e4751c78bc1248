"""Parallel text in Parquet files."""

from pathlib import Path

import pyarrow
import pytest
from pyarrow import parquet
from tiny_models import manual_pairs

from workflow_scripts.stage import InputError
from workflow_scripts.text.parallel import Documents, Source, read_pairs

GERMAN, ENGLISH = manual_pairs(5)
PAIRS = list(zip(GERMAN, ENGLISH, strict=True))
NESTED = {"id": [1, 2, 3, 4, 5], "translation": [{"de": a, "en": b} for a, b in PAIRS]}


def read(path: Path, table: dict[str, list], **settings) -> list[tuple[str, str, str]]:
    parquet.write_table(pyarrow.table(table), path)
    return [pair[:3] for pair in read_pairs(Source(file=str(path), **settings), ("de", "en"))]


@pytest.mark.parametrize(
    "table, columns",
    [
        (NESTED, {}),
        (NESTED, {"de": "translation.de", "en": "translation.en"}),
        ({"eng": ENGLISH, "de-DE": GERMAN}, {}),
        ({"first": GERMAN, "second": ENGLISH}, {"de": "first", "en": "second"}),
        ({"first": GERMAN, "en": ENGLISH}, {"de": "first"}),
        ({"pair": [{"a": {"x": a}, "b": b} for a, b in PAIRS]}, {"de": "pair.a.x", "en": "pair.b"}),
        ({"text.de": GERMAN, "text.en": ENGLISH}, {}),
        ({"pair": [{"a.x": a, "b": b} for a, b in PAIRS]}, {"de": "pair.a.x", "en": "pair.b"}),
    ],
)
def test_columns_are_named_or_called_like_the_languages(tmp_path, table, columns):
    assert read(tmp_path / "x.parquet", table, columns=columns) == [("block 0", a, b) for a, b in PAIRS]


def test_documents_lists_of_sentences_and_nulls(tmp_path):
    rows = read(
        tmp_path / "x.parquet", {"de": GERMAN, "en": [*ENGLISH[:4], None], "page": ["p"] * 2 + ["q"] * 3}, columns={"document": "page"}
    )
    assert [document for document, _, _ in rows] == ["p", "p", "q", "q", "q"] and rows[4][2] == ""
    parquet.write_table(pyarrow.table({"de": [GERMAN], "en": [ENGLISH[0]]}), tmp_path / "x.parquet")
    (pair,) = read_pairs(Source(file=str(tmp_path / "x.parquet")), ("de", "en"), Documents("de"))
    assert (pair.a, pair.b) == (" </s> ".join(GERMAN), ENGLISH[0])
    with pytest.raises(InputError, match=r"x\.parquet, row 1: \['.* are not both texts; name other columns"):
        list(read_pairs(Source(file=str(tmp_path / "x.parquet")), ("de", "en")))


def test_an_empty_name_of_a_document_is_none(tmp_path):
    (row,) = read(tmp_path / "x.parquet", {"de": GERMAN[:1], "en": ENGLISH[:1], "page": [""]}, columns={"document": "page"})
    assert row[0] == "block 0"


def test_a_row_without_the_name_of_its_document_is_an_error(tmp_path):
    with pytest.raises(InputError, match=r"x\.parquet, row 2: the column 'page' is null, which names no document"):
        read(tmp_path / "x.parquet", {"de": GERMAN[:2], "en": ENGLISH[:2], "page": ["p", None]}, columns={"document": "page"})


@pytest.mark.parametrize(
    "columns, said",
    [
        ({}, r"no column that is called like 'de'; it has id, translation\.fr, translation\.en: name one of them"),
        ({"de": "german"}, r"there is no column 'german' for 'de'; .* it has id, translation\.fr, translation\.en"),
        ({"de": "id", "en": "translation.en"}, r"row 1: 1 and '.*' are not both texts"),
    ],
)
def test_columns_that_are_not_there_are_refused(tmp_path, columns, said):
    table = {"id": [1], "translation": [{"fr": "Un.", "en": "One."}]}
    with pytest.raises(InputError, match=said):
        read(tmp_path / "x.parquet", table, columns=columns)


def test_files_that_are_none_are_refused(tmp_path):
    for name, content, said in (
        ("x.parquet", b"no", r"x\.parquet: cannot be read as Parquet"),
        ("x.parquet.gz", b"no", r"Parquet is packed inside; unpack"),
    ):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(InputError, match=said):
            list(read_pairs(Source(file=str(tmp_path / name)), ("de", "en")))
    with pytest.raises(InputError, match="no such file"):
        list(read_pairs(Source(file=str(tmp_path / "y.parquet")), ("de", "en")))
