"""Damaged files: every reader of text gives one clear line, or reads what is there as it should be."""

import gzip
import json
import lzma
import random
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import zstandard
from tiny_models import manual_pairs

from workflow_scripts.stage import InputError
from workflow_scripts.text.aligned import AlignedSource, read_aligned
from workflow_scripts.text.examples import read_any
from workflow_scripts.text.files import read_lines
from workflow_scripts.text.graded import read_texts
from workflow_scripts.text.labelled_source import LabelledSource
from workflow_scripts.text.parallel import Source, read_pairs
from workflow_scripts.text.word_lists import read_dictionary, read_lexicon

GERMAN, ENGLISH = manual_pairs(12)
TAGS = ["O", "B-PER", "I-PER"]
WORDS = [line.split() for line in GERMAN]


def labelled(unit: str, labels: list[str], **settings) -> Callable[[Path], list]:
    def read(path: Path) -> list:
        return list(read_any(unit, LabelledSource(str(path), language="de", **settings), labels, Counter(), Counter()))

    return read


def rows(*columns: list[str]) -> str:
    return "".join("\t".join(cells) + "\n" for cells in zip(*columns, strict=True))


def json_lines(**columns: list) -> str:
    return "".join(
        json.dumps(dict(zip(columns, cells, strict=True)), ensure_ascii=False) + "\n" for cells in zip(*columns.values(), strict=True)
    )


def tagged(number: bool) -> str:
    sentences = []
    for words in WORDS:
        named = ["B-PER", *["O"] * (len(words) - 1)]
        cells = [[word, tag] for word, tag in zip(words, named, strict=True)]
        sentences.append("\n".join("\t".join([str(at), *each] if number else each) for at, each in enumerate(cells, 1)))
    return "\n\n".join(sentences) + "\n"


def conllu() -> str:
    def line(at: int, word: str) -> str:
        return "\t".join([str(at), word, word.lower(), "PER" if at == 1 else "O", "_", "_", str(at - 1), "dep", "_", "_"])

    return "\n\n".join("\n".join(line(at, word) for at, word in enumerate(words, 1)) for words in WORDS) + "\n"


PLACES = [{"text": words[0], "answer_start": 0} for words in WORDS]
ASKED = [{"id": f"q{i}", "question": english, "answers": [answer]} for i, (english, answer) in enumerate(zip(ENGLISH, PLACES, strict=True))]
SQUAD = {"data": [{"title": "x", "paragraphs": [{"context": a, "qas": [asked]} for a, asked in zip(GERMAN, ASKED, strict=True)]}]}
LABELS = ["yes" if at % 2 else "no" for at in range(12)]
QUESTION = {"question": 1, "passage": 2, "answer": 3}
PLAIN = [word for words in WORDS for word in words if word.isalpha()]
FIRST = [words[0] for words in WORDS]
TAGGED = {"columns": {"word": 2, "tag": 3}}

READERS: dict[str, tuple[str, str, Callable[[Path], list]]] = {
    "lines": ("x.txt", rows(GERMAN), lambda path: list(read_lines(path))),
    "pairs in a table": ("x.tsv", rows(GERMAN, ENGLISH), lambda path: list(read_pairs(Source(str(path), columns={"de": 1, "en": 2}), ("de", "en")))),
    "pairs in JSON lines": (
        "x.jsonl",
        json_lines(de=GERMAN, en=ENGLISH),
        lambda path: list(read_pairs(Source(str(path), columns={"de": "de", "en": "en"}), ("de", "en"))),
    ),
    "pairs in two files": ("x.de", rows(GERMAN), lambda path: list(read_pairs(Source(files={"de": str(path), "en": str(path)}), ("de", "en")))),
    "retrieval": ("x.tsv", rows(GERMAN, ENGLISH), lambda path: list(read_aligned(AlignedSource(("de", "en"), file=str(path), columns={"de": 1, "en": 2}))[0])),
    "texts with labels": ("x.tsv", rows(GERMAN, LABELS), labelled("text", ["yes", "no"], columns={"text": 1, "label": 2})),
    "labels in JSON lines": ("x.jsonl", json_lines(text=GERMAN, label=LABELS), labelled("text", ["yes", "no"], columns={"text": "text", "label": "label"})),
    "tags": ("x.txt", tagged(number=False), labelled("word", TAGS)),
    "tags of numbered words": ("x.iob2", tagged(number=True), labelled("word", TAGS, **TAGGED)),
    "CoNLL-U": ("x.conllu", conllu(), labelled("word", ["O", "PER"])),
    "CoNLL-U as XTREME reads it": ("x.conllu", conllu(), labelled("word", ["O", "PER"], multiword="fused")),
    "tags in JSON lines": ("x.jsonl", json_lines(words=WORDS, tags=[["O"] * len(words) for words in WORDS]), labelled("word", TAGS)),
    "SQuAD": ("x.json", json.dumps(SQUAD, ensure_ascii=False, indent=1), labelled("question", [])),
    "SQuAD for targets": ("x.json", json.dumps(SQUAD, ensure_ascii=False), labelled("target", [])),
    "questions in JSON lines": ("x.jsonl", json_lines(question=ENGLISH, context=GERMAN, answers=PLACES), labelled("question", [])),
    "questions in a table": ("x.tsv", rows(ENGLISH, GERMAN, FIRST), labelled("question", [], columns=QUESTION)),
    "targets": ("x.tsv", rows(GERMAN, ENGLISH), labelled("target", [], columns={"text": 1, "target": 2})),
    "targets in JSON lines": ("x.jsonl", json_lines(text=GERMAN, target=ENGLISH), labelled("target", [], columns={"text": "text", "target": "target"})),
    "queries": ("x.tsv", rows(GERMAN, ENGLISH, [str(at % 2) for at in range(12)]), labelled("query", ["0", "1"], columns={"text": 1, "pair": 2, "label": 3})),
    "queries by name": ("x.tsv", rows([f"q{at}" for at in range(12)], GERMAN), lambda path: list(read_texts(path).items())),
    "queries in SQuAD": ("x.json", json.dumps(SQUAD, ensure_ascii=False), lambda path: list(read_texts(path).items())),
    "a dictionary": ("x.txt", rows(PLAIN, PLAIN), read_dictionary),
    "a lexicon": ("x.tsv", rows(FIRST, FIRST, ["1"] * 12, ["0.5"] * 12), lambda path: list(read_lexicon(path))),
}  # fmt: skip
"""Name → name of a file, its text, and what reads it."""


def read(reader: str, folder: Path, content: bytes, suffix: str = "") -> list | str:
    """What a reader reads of `content`, or the error, which must be one line that names the file."""
    name, _, reads = READERS[reader]
    path = folder / f"{name}{suffix}"
    path.write_bytes(content)
    try:
        return reads(path)
    except InputError as error:
        assert str(path) in str(error) and "\n" not in str(error) and len(str(error)) < 1000, str(error)
        return str(error)


PACKED = {".gz": gzip.compress, ".xz": lzma.compress, ".zst": zstandard.compress}


@pytest.mark.parametrize("reader", READERS)
def test_marks_ends_of_lines_and_packing_make_no_difference(tmp_path, reader):
    text = READERS[reader][1]
    right = read(reader, tmp_path, text.encode())
    assert isinstance(right, list) and right
    assert read(reader, tmp_path, text.encode("utf-8-sig")) == right
    assert read(reader, tmp_path, text.replace("\n", "\r\n").encode()) == right
    assert read(reader, tmp_path, text.rstrip("\n").encode()) == right
    for suffix, pack in PACKED.items():
        assert read(reader, tmp_path, pack(text.encode()), suffix) == right


@pytest.mark.parametrize("reader", READERS)
def test_what_is_no_whole_file_of_utf8_is_refused(tmp_path, reader):
    text = READERS[reader][1]
    long = text.encode()
    for suffix, pack in PACKED.items():
        packed = pack(long)
        for cut in (len(packed) // 2, len(packed) - 4):
            assert "cannot be read as" in read(reader, tmp_path, packed[:cut], suffix)
        assert f"its name does not say so; call it {READERS[reader][0]}{suffix}" in read(reader, tmp_path, packed)
        assert isinstance(read(reader, tmp_path, long, suffix), str)
    for encoding, said in (("utf-16", "utf-16"), ("utf-16-le", "utf-16le"), ("utf-16-be", "utf-16be")):
        assert f"iconv -f {said}" in read(reader, tmp_path, text.encode(encoding))
    russian = f"Привет, мир и все остальные\n{text}".encode("utf-16-le")
    assert "iconv -f utf-16le" in read(reader, tmp_path, russian)
    accent = text.replace("e", "é")
    assert "not UTF-8" in read(reader, tmp_path, accent.encode("latin1", "replace"))


@pytest.mark.parametrize(
    "line, encoding, said",
    [
        ("Größe der Datei", "latin1", "iconv -f latin1 -t utf-8"),
        ("帮助菜单", "gb18030", "iconv -f gb18030 -t utf-8 if it is Chinese"),
        ("Откройте файл", "windows-1251", r"windows-1251 \(Russian\)"),
    ],
)
def test_the_encoding_that_is_named_fits_the_script(tmp_path, line, encoding, said):
    (tmp_path / "text").write_bytes(f"{line}\n".encode(encoding))
    with pytest.raises(InputError, match=said):
        [*read_lines(tmp_path / "text")]


def broken(text: str) -> Iterator[bytes]:
    """The file with damage at random places: a stretch gone, other bytes, lines exchanged, separators in the text."""
    draw = random.Random(1)
    content = text.encode()
    for _ in range(12):
        at = draw.randrange(len(content))
        yield content[:at]
        yield content[:at] + content[at + draw.randrange(1, 40) :]
        for put in (
            b"\0",
            b"\t",
            b"\n",
            b"\r",
            b"\xff",
            b"\xc3",
            b'"',
            b"#",
            "\ufeff".encode(),
            "\u2028".encode(),
            b"\\ud83d",
            b"[",
            b"-1 ",
        ):
            yield content[:at] + put + content[at:]
            yield content[:at] + put + content[at + 1 :]
    lines = content.split(b"\n")
    draw.shuffle(lines)
    yield b"\n".join(lines)
    yield content + b"\0" * 600
    yield b"\0" * 600 + content


@pytest.mark.parametrize("reader", READERS)
def test_any_damage_is_one_line_or_is_read(tmp_path, reader):
    for content in broken(READERS[reader][1]):
        read(reader, tmp_path, content)


@pytest.mark.parametrize("reader", READERS)
def test_nothing_and_a_very_long_line(tmp_path, reader):
    text = READERS[reader][1]
    for content in (b"", b"\n", b"\n\n \n", "\ufeff".encode(), b"\0", b" ", b"\t", b"null", b"[]", b"{}", b"1", b'"x"'):
        read(reader, tmp_path, content)
    word = GERMAN[0].split()[0]
    longer = text.replace(word, word + "ß" * 1_000_000, 1)
    found = read(reader, tmp_path, longer.encode())
    assert isinstance(found, str) or len(found) == len(read(reader, tmp_path, text.encode()))


def test_a_text_that_was_packed_with_a_long_window_is_read(tmp_path):
    window = zstandard.ZstdCompressionParameters(window_log=28, enable_ldm=True)
    packed = zstandard.ZstdCompressor(compression_params=window).compressobj()
    (tmp_path / "x.txt.zst").write_bytes(packed.compress(b"one\ntwo\n") + packed.flush())
    assert list(read_lines(tmp_path / "x.txt.zst")) == ["one", "two"]
