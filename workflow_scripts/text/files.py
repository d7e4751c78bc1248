"""files: reads and writes text line by line.

Text is UTF-8 in Unicode's normal form NFC, one sentence per line, plain or compressed (.gz, .xz, .zst). Files of lines are never held in
memory as a whole.
"""

import codecs
import contextlib
import csv
import difflib
import gzip
import itertools
import json
import lzma
import re
import unicodedata
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, TypeVar, cast

from workflow_scripts.stage import InputError, atomic
from workflow_scripts.text.other_formats import refuse_others

BYTE_ORDER_MARK = "\ufeff"
"""What some programs write at the beginning of a file. Unicode has given up its other meaning, a blank of no width."""


def read_lines(path: Path, normalise: bool = True) -> Iterator[str]:
    """Yield the lines of `path` without line ends; a byte-order mark at its beginning and `\\r` at the end of a line are dropped.

    They are in NFC, and byte-order marks inside, as in joined files, are removed, unless `normalise` is off.

    Only `\\n` ends a line. Other characters that some programs take for line ends, such as U+2028, would put the two sides of a parallel
    text out of step.

    Raises:
        InputError: The file is missing, is not in the format of its suffix, or is not UTF-8. The message names file and line.
    """
    path = Path(path)
    number = 0
    with _one_error(path, lambda: f", after line {number}"), open_packed(path) as file:
        for number, raw in enumerate(_lines_of(_zstd_blocks(file)) if packing(path) == ".zst" else file, 1):
            if number == 1 and (encoding := _unmarked(raw)):
                raise ValueError(f"it is {encoding.upper()} without its mark; convert the file: iconv -f {encoding} -t utf-8")
            try:
                line = raw.decode("utf-8").rstrip("\n").rstrip("\r")
            except UnicodeDecodeError as error:
                raise _not_text(path, number, raw, error) from None
            if number == 1:
                refuse_others(path, raw)
                line = line.removeprefix(BYTE_ORDER_MARK)
                if b"\r" in raw.rstrip(b"\r\n") and not raw.endswith(b"\n"):
                    raise ValueError("its lines end in \\r alone; convert the file: tr '\\r' '\\n' < old > new")
            if normalise and not line.isascii():
                line = unicodedata.normalize("NFC", line.replace(BYTE_ORDER_MARK, ""))
            yield line


def read_blocks(path: Path) -> Iterator[bytes]:
    """Yield what is in `path` in blocks of bytes, unpacked. Raises `InputError` as `read_lines` does, but for text that is not UTF-8."""
    path = Path(path)
    with _one_error(path, str), open_packed(path) as file:
        yield from filter(None, _zstd_blocks(file) if packing(path) == ".zst" else iter(lambda: file.read(_BYTES), b""))


def _not_text(path: Path, number: int, raw: bytes, error: UnicodeDecodeError) -> InputError:
    """The error of a line that is not UTF-8."""
    is_marked = raw.startswith(_UTF_16_MARKS)
    wrong = f"byte {raw[error.start]:#04x}"
    message = f"{path}, line {number}: not UTF-8 ({wrong}); convert the file, e.g. iconv -f"
    if number == 1:
        if packed := next((suffix for suffix, magic in _MAGIC.items() if raw.startswith(magic)), ""):
            return InputError(f"{path}: is compressed, and its name does not say so; call it {path.name}{packed}")
        refuse_others(path, raw)
        if is_marked:
            return InputError(f"{message} utf-16 -t utf-8")
    if b"\0" in raw and not is_marked:
        return InputError(f"{path}, line {number}: is binary data, or UTF-16 ({wrong}); convert text, e.g. iconv -f utf-16 -t utf-8")
    # Latin letters are mostly ASCII; of other scripts each letter has such bytes
    if sum(byte >= 0x80 for byte in raw) > len(raw) / 3:
        others = "shift_jis (Japanese), euc-kr (Korean) or windows-1251 (Russian)"
        return InputError(f"{message} gb18030 -t utf-8 if it is Chinese (or big5), else from {others}")
    return InputError(f"{message} latin1 -t utf-8")


def declared_encoding(name: str) -> str:
    """The encoding of a text that names it in ASCII: the one it names, or UTF-8 for UTF-16 and its like, which are not written so.

    Programs that convert a text may leave the old name in it. Raises `LookupError` for a name that is none of a text's encoding.
    """
    try:
        b" ".decode(name)
    except UnicodeError:  # a single byte is no character
        return "utf-8"
    return name


_UTF_16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


@contextlib.contextmanager
def _one_error(path: Path, where: Callable[[], str]) -> Iterator[None]:
    """Turn what can happen while a file is read into one `InputError`; `where` says how far the reader was."""
    try:
        yield
    except FileNotFoundError:
        raise InputError(missing_file(path)) from None
    except IsADirectoryError:
        raise InputError(f"{path}: is a folder, a text file was expected") from None
    except (gzip.BadGzipFile, EOFError, lzma.LZMAError, zlib.error) as error:
        way_out = f"copy or download it again, or if it is not compressed, take {path.suffix} off its name"
        raise InputError(f"{path}{where()}: cannot be read as {path.suffix}: {error}; {way_out}") from None
    except (OSError, ValueError) as error:
        raise InputError(f"{path}{where()}: cannot be read as {path.suffix or 'text'}: {error}") from None


def _unmarked(raw: bytes) -> str:
    """The form of UTF-16 that a first line seems to be in, without a byte-order mark; empty for other text.

    Of Latin letters every second byte is 0, of Cyrillic ones 4, and so on. Such bytes are UTF-8 as well, of control characters.
    """
    head = b"" if raw.startswith(_UTF_16_MARKS) else raw[:1000]
    for encoding, high, low in ("utf-16le", head[1::2], head[::2]), ("utf-16be", head[::2], head[1::2]):
        control = bytes(byte for byte in high if byte < 32 and byte not in b"\t\r\n\x1b")
        most = max((control.count(byte) for byte in set(control)), default=0)
        if len(head) > 2 and 3 * most > 2 * len(high) and not any(low.count(byte) for byte in set(control)):
            return encoding
    return ""


def _zstd_blocks(file: IO[bytes]) -> Iterator[bytes]:
    """What is in a compressed file. Unlike zstandard's own reader, this notices a file that was cut off."""
    import zstandard

    data = file.read(_BYTES)
    try:
        while data:
            # `zstd --long` writes windows of up to 2 GB
            frame = zstandard.ZstdDecompressor(max_window_size=1 << 31).decompressobj()
            while not frame.eof:
                if not data:
                    raise EOFError("the compressed file is cut off")
                yield frame.decompress(data)
                data = frame.unused_data or file.read(_BYTES)
    except zstandard.ZstdError as error:
        raise EOFError(str(error)) from None


def _lines_of(blocks: Iterable[bytes]) -> Iterator[bytes]:
    begun: list[bytes] = []  # the parts of a line that is not over
    for block in blocks:
        end, *others = block.split(b"\n")
        begun.append(end)
        if others:
            *lines, rest = others
            yield b"".join(begun)
            yield from lines
            begun = [rest]
    if line := b"".join(begun):
        yield line


_BYTES = 1 << 16


T = TypeVar("T")
Side = TypeVar("Side", Path, str)


def lockstep(path_a: Path, path_b: Path) -> Iterator[tuple[int, str, str]]:
    """The lines of two files that are parallel line by line, each pair with its number. Raises `InputError` where one file ends first."""
    return in_step(path_a, path_b, read_lines)


def in_step(side_a: Side, side_b: Side, read: Callable[[Side], Iterable[T]]) -> Iterator[tuple[int, T, T]]:
    """What `read` yields of two parallel files, or of all files of two languages, each pair with its number.

    Raises `InputError` where one side ends first.
    """
    for number, (a, b) in enumerate(itertools.zip_longest(read(side_a), read(side_b)), 1):
        if a is None or b is None:
            short, long = (side_a, side_b) if a is None else (side_b, side_a)
            raise InputError(
                f"{short} ends after line {number - 1}, {long} goes on at line {number}: the two sides are not aligned; "
                "both files need the same number of lines"
            )
        yield number, a, b


Column = int | str
"""A column of a TSV file: its number, from 1, or its name in the header."""


def table_rows(
    path: Path,
    wanted: Mapping[str, Column | list[Column]],
    header: bool = False,
    normalise: bool = True,
    quoted: bool = False,
) -> Iterator[tuple[int, dict[str, str]]]:
    """The lines of a TSV file: the number of the line, and for each name in `wanted` its cell, or several cells joined by blanks.

    Cells may be `quoted`, as spreadsheets and Python's `csv` write them; such a cell may go over several lines. Empty lines are passed
    over. Raises `InputError` for a column that is not there, and for quotation marks that are not those of such a program.
    """
    places: dict[str, list[int]] = {}
    last = 0
    lines = read_lines(path, normalise)
    rows = _quoted_rows(path, lines) if quoted else ((number, line.split("\t")) for number, line in enumerate(lines, 1) if line)
    for number, cells in rows:
        if not places:
            several = {name: columns if isinstance(columns, list) else [columns] for name, columns in wanted.items()}
            places = {name: [_place_of(column, cells, header, path, name) for column in columns] for name, columns in several.items()}
            last = max(itertools.chain.from_iterable(places.values()))
            if header:
                continue
        if len(cells) <= last:
            start = "\t".join(cells)[:80]
            asked = f"but `columns` asks for column {last + 1}"
            raise InputError(f"{path}, line {number}: {len(cells)} column(s), {asked}: {start!r}{what_else(path)}")
        yield number, {name: cells[at[0]] if len(at) == 1 else " ".join(cells[place] for place in at) for name, at in places.items()}


def _quoted_rows(path: Path, lines: Iterator[str]) -> Iterator[tuple[int, list[str]]]:
    """The number of the line where each row of a TSV file with quoted cells begins, and its cells."""
    csv.field_size_limit(10_000_000)  # of a cell: documents are longer than Python's 131,072 characters
    # a carriage return inside a line is a blank, as in files without quotes
    rows = csv.reader((line.replace("\r", " ") + "\n" for line in lines), delimiter="\t", strict=True)
    number = 1
    try:
        for cells in rows:
            if cells:
                yield number, cells
            number = rows.line_num + 1
    except csv.Error as error:
        problem = f"{path}, line {number}: is not quoted as `quoted: true` says ({error})"
        way_out = "a cell that begins with a quotation mark ends with one, and those inside are doubled; correct it, or leave `quoted` out"
        raise InputError(f"{problem}: {way_out}") from None


NOT_ASKED_FOR = "not asked for (where)"
"""Why a line was left out, in reports."""


def with_where(columns: Mapping[str, Any], where: Iterable[str]) -> dict[str, Any]:
    """`columns`, and the columns that a `where` names, under names that `columns` cannot have."""
    return {**columns, **{f"where {key}": key for key in where}}


def is_asked_for(cells: Mapping[str, Any], where: Mapping[str, str]) -> bool:
    """Whether the cells of a line, read by `with_where`, have all the values that `where` asks for."""
    return all(str(cells[f"where {key}"]) == value for key, value in where.items())


def asked_for(
    rows: Iterable[tuple[int, dict[str, Any]]], where: Mapping[str, str], removed: Counter[str]
) -> Iterator[tuple[int, int, dict[str, Any]]]:
    """The rows that `where` asks for, each with its place among them, from 1, and its line; the others are counted in `removed`.

    In files without documents the place says which block a row is in (`block_of`). So the same rows are held out in another language, whose
    lines may stand elsewhere in the file.
    """
    place = 0
    for number, cells in rows:
        if is_asked_for(cells, where):
            place += 1
            yield place, number, cells
        else:
            removed[NOT_ASKED_FOR] += 1


def missing_file(path: Path | str) -> str:
    """The message for a file that is not there: it names the nearest name in its folder, or the folder that is not there."""
    path = Path(path)
    known: list[str] = []
    with contextlib.suppress(OSError):
        known = [file.name for file in path.parent.iterdir() if file.exists()]
    if re.match(r"[a-z]+:/", str(path)):
        way_out = "an address stands under `data`, which downloads it; name it here as `data: NAME`"
    elif "\\" in str(path):
        way_out = "write / between folders, not \\"
    elif not path.parent.is_dir():
        way_out = f"there is no folder {path.parent}; check the path (relative to {Path.cwd()})"
    elif near := difflib.get_close_matches(path.name, known, n=1, cutoff=0.75):
        way_out = f"did you mean {path.parent / near[0]}?"
    else:
        way_out = f"check the path (relative to {Path.cwd()})"
    return f"{path}: no such file; {way_out}"


def whole_characters(text: str) -> str:
    """The same text. Raises `ValueError` for one with half of a surrogate pair, which JSON can write, and which is no character."""
    if not text.isascii():
        text.encode()
    return text


def json_rows(
    path: Path, take: Callable[[Any], T], wanted: object, normalise: bool = True, way_out: str = "correct the line, or set `columns`"
) -> Iterator[tuple[int, T]]:
    """The lines of a file of JSON objects: the number of the line, and what `take` makes of its object.

    Empty lines are passed over. Raises `InputError`, with what is `wanted` of an object, for a line that is none, or from which `take`
    cannot take it.
    """
    for number, line in enumerate(read_lines(path, normalise), 1):
        if not line.strip():
            continue
        try:
            taken = take(json.loads(line))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            problem = f"not a JSON object with {wanted} ({error}): {line[:80]!r}"
            raise InputError(f"{path}, line {number}: {problem}; {way_out}") from None
        yield number, taken


def _plain_text(row: Any) -> str:
    """The text of a JSON object, as lines are read: its escapes have become characters since. `null` is an empty text."""
    text = whole_characters("" if row["text"] is None else row["text"])
    return unicodedata.normalize("NFC", text.replace(BYTE_ORDER_MARK, ""))


def plain_lines(path: Path) -> Iterator[str]:
    """The lines of a text, whatever its name ends in. But JSON lines are read by the key `text`, which text of the hub has, with a blank
    line behind each object.

    Raises `InputError` for other JSON, and an object without a text.
    """
    if kind_of(path) == ".jsonl":
        for _, text in json_rows(path, _plain_text, "a text at the key `text`", way_out="correct or delete the line"):
            yield from (*text.splitlines(), "")
        return
    if kind_of(path) == ".json":
        raise InputError(f"{path}: is no plain text; give a sentence a line, or JSON lines (.jsonl) with the key `text`")
    yield from read_lines(path)


def refuse_table(path: Path) -> None:
    """Raise `InputError` for a file under `files` that has several columns or keys by its name, and as .tsv by its first line as well."""
    kind = kind_of(path)
    if kind in (".json", ".jsonl") or (kind == ".tsv" and "\t" in next(read_lines(path), "")):
        raise InputError(f"{path}: is a table; name it as `file`, with `columns`, not under `files`")


def _place_of(column: Column, cells: Sequence[str], header: bool, path: Path, what: str) -> int:
    """The place, from 0, of the column that `what` is read from: its name among `cells`, those of the header, or its number, from 1.

    A text of digits is a name where the header has it, else a number. Raises `InputError` where there is no such column, or several.
    """
    named = places_named(column, cells, path, what) if header else []
    place = named[0] if named else int(column) - 1 if str(column).isdecimal() else -1
    if place < 0:
        known = f"the header has {', '.join(cells)}" if header else "without `header: true` columns are numbers from 1"
        quoted = f'; for the name write "{column}", with quotation marks' if header and str(column) in cells else ""
        raise InputError(f"{path}, line 1: there is no column {column!r} for {what!r}; {known}{quoted}{what_else(path)}")
    return place


def places_named(column: Column, names: Sequence[str], path: Path, what: str) -> list[int]:
    """The place, from 0, of the column of this name, or nothing; a number is no name. Raises `InputError` where several have the name."""
    places = [place for place, name in enumerate(names) if name == column]
    if len(places) > 1:
        numbers = " and ".join(str(place + 1) for place in places)
        raise InputError(f"{path}: columns {numbers} are both called {column!r}, so {what!r} may be either; give the number of one of them")
    return places


def what_else(path: Path) -> str:
    """What to do with a file that was read as a TSV file and is none by its name or content, as the end of a message."""
    if kind_of(path) == ".csv":
        return "; a CSV file is not read: write tabs between the columns"
    with contextlib.suppress(InputError):
        if next(read_blocks(path), b"").removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"<?xml"):
            return "; the file is XML, of which a corpus reads TMX (.tmx), XLIFF (.xlf) and WMT's (.xml), without numbers of columns"
    return "; JSON is read with one object a line, from a file that ends in .jsonl" if kind_of(path) == ".json" else ""


_MAGIC = {".gz": b"\x1f\x8b", ".xz": b"\xfd7zXZ", ".zst": b"\x28\xb5\x2f\xfd"}
"""What packed files of each suffix begin with."""


def packing(path: Path) -> str:
    """The suffix of a file that is packed, in small letters; empty for others."""
    return path.suffix.lower() if path.suffix.lower() in _MAGIC else ""


def kind_of(path: Path | str) -> str:
    """The suffix that says how a file is to be read: `.tsv`, `.jsonl` (also of .ndjson), `.json`, `.conllu`, …, however it is packed."""
    path = Path(path)
    suffix = Path(path.stem if packing(path) else path.name).suffix.lower()
    return ".jsonl" if suffix == ".ndjson" else suffix


def open_packed(path: Path) -> IO[bytes]:
    """Open a .gz or .xz file's content, or another file as it is, for reading bytes."""
    if packing(path) == ".gz":
        return cast(IO[bytes], gzip.open(path))
    return lzma.open(path) if packing(path) == ".xz" else open(path, "rb")


def write_lines(path: Path, lines: Iterable[str]) -> int:
    """Write `lines` atomically (compressed if the suffix is .zst), and return their number."""
    count = 0
    with atomic(path, "wb") as file, _writer(path, file) as write:
        for line in lines:
            write(line)
            count += 1
    return count


def write_pairs(path_a: Path, path_b: Path, pairs: Iterable[tuple[str, str]]) -> int:
    """Write pairs into two files that are parallel line by line, and return their number. If an error occurs, neither file is written."""
    count = 0
    with writers([path_a, path_b]) as (write_a, write_b):
        for a, b in pairs:
            write_a(a)
            write_b(b)
            count += 1
    return count


@contextlib.contextmanager
def writers(paths: Sequence[Path]) -> Iterator[list[Callable[[str], object]]]:
    """A function for each file that writes a line into it (compressed if its suffix is .zst). If an error occurs, no file is written."""
    with contextlib.ExitStack() as open_files:
        files = [open_files.enter_context(atomic(path, "wb")) for path in paths]
        with contextlib.ExitStack() as stack:
            yield [stack.enter_context(_writer(path, file)) for path, file in zip(paths, files, strict=True)]
        for file in files:  # before the first one gets its name
            file.flush()


# how many lines compiled code and string methods handle at once, and after how many characters they take no more
_CHUNK = 4096
_CHARACTERS = 4_000_000


@contextlib.contextmanager
def _writer(path: Path, file: Any) -> Iterator[Callable[[str], object]]:
    """A function that writes a line into the open `file`, compressed if the suffix of its `path` says so."""
    with contextlib.ExitStack() as stack:
        if packing(Path(path)) == ".zst":
            import zstandard

            file = stack.enter_context(zstandard.ZstdCompressor(level=3).stream_writer(file, closefd=False))
        waiting: list[str] = []

        def flush() -> None:
            if waiting:
                file.write("\n".join([*waiting, ""]).encode("utf-8"))
                waiting.clear()

        def write(line: str) -> None:
            waiting.append(line)
            if len(waiting) == _CHUNK:
                flush()

        yield write
        flush()


def evenly(items: Sequence[T], number: int) -> list[T]:
    """At most `number` of `items`, evenly spaced from the first."""
    return [items[i * len(items) // number] for i in range(number)] if len(items) > number else list(items)


def chunks(items: Iterable[T]) -> Iterator[list[T]]:
    """Lists of some thousand `items`, which are lines or tuples with lines; shorter lists where the lines are long, as documents are."""
    chunk: list[T] = []
    characters = 0
    for item in items:
        chunk.append(item)
        characters += len(item) if isinstance(item, str) else sum(len(part) for part in cast(Any, item) if isinstance(part, str))
        if len(chunk) == _CHUNK or characters > _CHARACTERS:
            yield chunk
            chunk, characters = [], 0
    if chunk:
        yield chunk
