"""What is refused in a corpus, and with what words."""

import pytest
from configurations import DEFAULT, changed, summaries

from workflow_scripts.run import config
from workflow_scripts.stage import InputError

HELP = DEFAULT["corpora"]["help"]
SECTIONS = "corpora/help-sections"


@pytest.mark.parametrize(
    "path, value, message",
    [
        ("corpora/help/languages", ["de", "eng"], "unknown language 'eng'"),
        ("corpora/help/languages", ["DE", "en"], "unknown language 'DE': did you mean 'de'"),
        ("corpora/help/languages", ["de", "de"], "one language twice"),
        ("corpora/help/languages", ["de", "fr"], "nothing is said about fr"),
        ("corpora/help/dev", {"file": "dev.tsv"}, r"dev: nothing is said about de, en; give `columns`; for example those of `train`"),
        ("corpora/help/train/columns", {"de": 1, "en": 2, "document": 1}, r"document is column 1, .* set document to null"),
        ("corpora/help/train/files", {"de": "a", "en": "b"}, "has `file` and `files`, where one belongs; .* set the other to null"),
        ("corpora/help/dev", {}, "or `held_out`"),
        ("corpora/help/test/dev", {"held_out": 5}, "cannot be called dev"),
        ("corpora/help/test/a b", {"held_out": 5}, "letters, digits"),
        ("corpora/help/dev", HELP["train"], r"help\.dev: is the same text as `train`; give another file, or `held_out`"),
        ("corpora/help/test/pages", HELP["train"], r"help\.test\.pages: is the same text as `train`"),
        ("corpora/help/train/summary", "first", "summary is for a corpus with `documents`"),
        ("corpora/help/train/format", "ncls", "format ncls is for a corpus with `documents`"),
    ],
)
def test_mistakes_in_a_corpus_are_named(path, value, message):
    with pytest.raises(InputError, match=message):
        config.load(changed(path, value))


@pytest.mark.parametrize(
    "path, value, message",
    [
        (f"{SECTIONS}/documents/language", "en", "'de' is not the language of the documents, 'en'"),
        (f"{SECTIONS}/documents/language", "fr", "fr is no language of the corpus"),
        (f"{SECTIONS}/documents/cut", {"zh": {"words": 5}}, "zh is no language of the corpus"),
        (f"{SECTIONS}/train/columns", {"document": 1, "en": 3, "de": 4}, "summary heading needs `heading`"),
        (f"{SECTIONS}/train/columns", {"heading": 2, "en": 3, "de": 4}, "summary heading needs `document`"),
        (f"{SECTIONS}/train/file", "x.jsonl", "summary: is for a TSV file"),
    ],
)
def test_mistakes_in_documents_are_named(path, value, message):
    with pytest.raises(InputError, match=message):
        config.load(summaries(path, value))


TMX, WMT = "tests/data/cases/iso3.tmx", "tests/data/cases/wmt21.xml"


@pytest.mark.parametrize(
    "source, message",
    [
        ({"file": TMX, "columns": {"de": 1, "en": 2}}, r"is read by the codes of .* not by numbers; .* write \{de: null, en: null\}"),
        ({"file": "x.parquet", "columns": {"de": 1}}, r"x\.parquet is read by names of columns, not by numbers"),
        ({"file": TMX, "columns": {"document": "page"}}, r"iso3\.tmx has no column for `document`; .* set document to null"),
        ({"file": TMX, "columns": {"de": "deu", "en": "deu"}}, "both languages are read from 'deu'"),
        ({"file": TMX, "columns": {"fr": "fra"}}, "fr: is no language of the corpus"),
        ({"file": TMX, "header": True}, "header: is for a TSV file; leave it out here"),
        ({"file": TMX, "quoted": True}, "quoted: is for a TSV file; leave it out here"),
        ({"file": "x.jsonl", "columns": {"de": "de", "en": "en"}, "quoted": True}, "quoted: is for a TSV file"),
        ({"file": "x.parquet", "quoted": True}, "quoted: is for a TSV file"),
        ({"files": {"de": "x.de", "en": "x.en"}, "quoted": True}, "quoted: is for a TSV file"),
        ({"file": TMX, "reference": "A"}, r"reference: is for the XML of WMT \(\.xml\)"),
        ({"files": {"de": TMX, "en": TMX}}, "both languages are read from"),
        ({"file": "x.docx"}, r"x\.docx is a document of Word, which is not read; save it as plain text"),
        ({"file": "x.xlsx"}, r"x\.xlsx is a spreadsheet of Excel, which is not read; save it as text with tabs"),
        ({"file": "x.sdltm"}, r"x\.sdltm is a database of SQLite, .* export it as TMX"),
        ({"file": "x.html"}, r"x\.html is a web page"),
    ],
)
def test_mistakes_with_files_that_name_their_languages(source, message):
    with pytest.raises(InputError, match=message):
        config.load(changed("corpora/help/dev", source))


def test_files_that_name_their_languages_need_no_columns():
    for source in (
        {"file": TMX},
        {"file": TMX, "columns": {"de": "deu"}},
        {"file": TMX, "columns": {"de": None, "en": None}},  # as the error advises
        {"file": WMT, "reference": "B"},
        {"file": "x.parquet", "columns": {"document": "page"}},
        {"file": "de.po.gz"},
        {"file": "x.sdlxliff"},
    ):
        assert config.load(changed("corpora/help/dev", source)).corpora["help"].dev.file == source["file"]
