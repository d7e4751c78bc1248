"""other_formats: names files that are not read here by their first bytes, and says what to do with each."""

from pathlib import Path

from workflow_scripts.stage import InputError

_TABLE = "save it as text with tabs between its columns (.tsv)"
_TEXT = "save it as plain text in UTF-8, a sentence a line"
_PACKED = "unpack it, or pack it as .gz, .xz or .zst"
_ZIPPED = {
    ".docx": ("a document of Word", _TEXT),
    ".odt": ("a document of OpenDocument", _TEXT),
    ".pptx": ("a presentation of PowerPoint", _TEXT),
    ".xlsx": ("a spreadsheet of Excel", _TABLE),
    ".xlsm": ("a spreadsheet of Excel", _TABLE),
    ".ods": ("a spreadsheet of OpenDocument", _TABLE),
    ".sdlppx": ("a package of Trados", "unpack it, and name the .sdlxliff in it"),
    ".epub": ("an e-book", _TEXT),
}
_FORMATS = (
    (b"BZh", "packed as bzip2", _PACKED),
    (b"7z\xbc\xaf", "packed as 7z", _PACKED),
    (b"Rar!", "packed as rar", _PACKED),
    (b"%PDF", "a PDF", _TEXT),
    (b"{\\rtf", "a document in RTF", _TEXT),
    (b"\xd0\xcf\x11\xe0", "a file of an old Word or Excel", f"{_TEXT}, or {_TABLE}"),
    (b"SQLite format 3", "a database of SQLite, as Trados's .sdltm are", "export it as TMX (.tmx), or as text with tabs (.tsv)"),
    (b"PAR1", "a Parquet file", "call it .parquet"),
    (b"ARROW1", "a file of Arrow", "write it as .parquet, with pyarrow.parquet.write_table"),
    (b"\xff\xff\xff\xff", "a stream of Arrow, as Hugging Face's cache has them", "write it as .parquet, with Dataset.to_parquet"),
    (b"\xde\x12\x04\x95", "a compiled catalogue of gettext", "give its .po; msgunfmt makes one"),
    (b"\x95\x04\x12\xde", "a compiled catalogue of gettext", "give its .po; msgunfmt makes one"),
    (b"\x89HDF", "a file of HDF5", _TABLE),
    (b"\x80\x02", "a pickle", _TEXT),
    (b"\x80\x03", "a pickle", _TEXT),
    (b"\x80\x04", "a pickle", _TEXT),
    (b"\x80\x05", "a pickle", _TEXT),
)
_PAGE = (b"<!doctype html", b"<html")
_HTML = ("a web page (HTML)", f"{_TEXT}, or open the address in a browser and download the data itself")
_SUFFIXES = {
    ".pdf": b"%PDF",
    ".rtf": b"{\\rtf",
    ".doc": b"\xd0\xcf\x11\xe0",
    ".xls": b"\xd0\xcf\x11\xe0",
    ".sdltm": b"SQLite format 3",
    ".mo": b"\xde\x12\x04\x95",
}


def refuse_others(path: Path, head: bytes) -> None:
    """Raise `InputError` for a file that begins with the bytes `head` if its format is known, and not read."""
    if (other_format := _what_it_is(path, head)) is not None:
        what, way_out = other_format
        raise InputError(f"{path}: is {what}, which is not read; {way_out}")


def format_by_name(file: str) -> str:
    """The message for a file whose name says that it is not read, such as x.docx; empty for others."""
    suffix = Path(file).suffix.lower()
    other_format = _ZIPPED.get(suffix) or (_HTML if suffix in (".html", ".htm") else _what_it_is(Path(file), _SUFFIXES.get(suffix, b"")))
    return f"{file} is {other_format[0]}, which is not read; {other_format[1]}" if other_format else ""


def _what_it_is(path: Path, head: bytes) -> tuple[str, str] | None:
    if head.startswith(b"PK\x03\x04"):
        return _ZIPPED.get(path.suffix.lower(), ("packed as zip", _PACKED))
    if head.removeprefix(b"\xef\xbb\xbf").lstrip().lower().startswith(_PAGE):
        return _HTML
    if head.startswith(b"PAR1") and path.suffix.lower() == ".parquet":
        return "a Parquet file", "only corpora read such. Save it as .jsonl, with pandas' to_json(FILE, orient='records', lines=True)"
    return next(((what, way_out) for magic, what, way_out in _FORMATS if head.startswith(magic)), None)
