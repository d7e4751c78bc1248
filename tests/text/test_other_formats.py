"""Files that are not read are named, with a way out."""

import sqlite3
import zipfile

import pytest

from workflow_scripts.stage import InputError
from workflow_scripts.text.files import read_lines
from workflow_scripts.text.parallel import Source, read_pairs


@pytest.mark.parametrize(
    "name, content, said",
    [
        ("x.pdf", b"%PDF-1.7\n", "is a PDF, which is not read; save it as plain text"),
        ("x.rtf", b"{\\rtf1 x}\n", "is a document in RTF, which is not read"),
        ("x.doc", b"\xd0\xcf\x11\xe0\xa1\n", "is a file of an old Word or Excel, which is not read"),
        ("x.html", b"  <!DOCTYPE HTML>\n", r"is a web page \(HTML\)"),
        ("x.htm", b"\xef\xbb\xbf<html lang='de'>\n", r"is a web page \(HTML\)"),
        ("x.tsv", b"PAR1\x15\x04", r"is a Parquet file, which is not read; call it \.parquet"),
        ("x.arrow", b"ARROW1\0\0", "is a file of Arrow"),
        ("x.mo", b"\xde\x12\x04\x95\0", "is a compiled catalogue of gettext"),
        ("x.pkl", b"\x80\x04\x95\x05", "is a pickle"),
        ("x.rar", b"Rar!\x1a\x07\x01\0", "is packed as rar"),
        ("x.bz2", b"BZh91AY&SY\xff\xa0", "is packed as bzip2, which is not read; unpack it"),
        ("x.bin", b"\x00\x01\xff\xfe\n", r"line 1: is binary data, or UTF-16 \(byte 0xff\)"),
        ("x.txt", "Größe\n".encode("utf-16-le"), r"iconv -f utf-16"),
    ],
)
def test_files_of_other_formats_are_named(tmp_path, name, content, said):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=rf"{name}[:,].*{said}" if not said.startswith("line") else f"{name}, {said}"):
        list(read_lines(tmp_path / name))


@pytest.mark.parametrize(
    "name, said",
    [
        ("x.docx", "is a document of Word, which is not read; save it as plain text in UTF-8"),
        ("x.xlsx", r"is a spreadsheet of Excel, which is not read; save it as text with tabs between its columns \(\.tsv\)"),
        ("x.ods", "is a spreadsheet of OpenDocument"),
        ("x.sdlppx", "is a package of Trados"),
        ("x.tsv", "is packed as zip"),
    ],
)
def test_zipped_formats_are_named_as_a_corpus(tmp_path, name, said):
    with zipfile.ZipFile(tmp_path / name, "w") as archive:
        archive.writestr("content.xml", "text\n" * 9)
    for source in (
        Source(file=str(tmp_path / name), columns={"de": 1, "en": 2}),
        Source(files=dict.fromkeys(("de", "en"), str(tmp_path / name))),
    ):
        with pytest.raises(InputError, match=rf"{name}: {said}"):
            list(read_pairs(source, ("de", "en")))


def test_a_memory_of_trados_is_named(tmp_path):
    database = sqlite3.connect(tmp_path / "x.sdltm")
    database.execute("create table translation_units (source text, target text)")
    database.commit()
    database.close()
    with pytest.raises(
        InputError, match=r"x\.sdltm: is a database of SQLite, as Trados's \.sdltm are, which is not read; export it as TMX"
    ):
        list(read_pairs(Source(file=str(tmp_path / "x.sdltm"), columns={"de": 1, "en": 2}), ("de", "en")))
