"""XML is read safely, whole, or not at all."""

from collections import Counter
from pathlib import Path

import pytest

from workflow_scripts.stage import InputError
from workflow_scripts.text.xml_elements import LEFT_OUT, LONGEST_ENTITY, elements


def segments(path: Path, content: str | bytes) -> tuple[list[str], Counter[str]]:
    """The text of all `seg` of a file with this content, and what was left out."""
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    passed: Counter[str] = Counter()
    found = elements(path, ("seg",), (), passed)
    assert next(found)[0].tag == "x"
    return ["".join(segment.itertext()) for segment, _ in found], passed


LOSING = ("R&D 500", "500 < 3", "if a<b then", "</x>")
"""Texts of which a parser that guesses would lose a part."""


def nested(order: range) -> str:
    """Entities that are each ten of the one before, in an order."""
    inner = {0: "lol", **{depth: f"&e{depth - 1};" * 10 for depth in range(1, 10)}}
    return "".join(f'<!ENTITY e{depth} "{inner[depth]}">' for depth in order)


@pytest.mark.parametrize(
    "definitions, text, said",
    [
        ('<!ENTITY e SYSTEM "file:///etc/passwd">', "&e;", r"line 2: the entity 'e' stands in another file, 'file:///etc/passwd'"),
        ('<!ENTITY e PUBLIC "p" "http://127.0.0.1/x">', "", r"line 2: the entity 'e' stands in another file"),
        ('<!ENTITY % e SYSTEM "more.dtd"> %e;', "", r"line 2: the entity 'e' stands in another file"),
        (nested(range(10)), "&e9;", r"line 2: the entity 'e3' stands for .* characters, more than the 1,000 that are read"),
        (nested(range(9, -1, -1)), "&e9;", r"line 2: the entity 'e9' is made of 'e8', which is not defined before it"),
        ('<!ENTITY a "&b;"><!ENTITY b "&a;">', "&a;", r"the entity 'a' is made of 'b'"),
        (f'<!ENTITY e "{"x" * (LONGEST_ENTITY + 1)}">', "&e;", r"the entity 'e' stands for 1,001 characters"),
        ("", "&foo;", r"line 3: nothing defines the entity &foo;"),
    ],
)
def test_entities_from_elsewhere_and_those_that_grow_are_refused(tmp_path, definitions, text, said):
    with pytest.raises(InputError, match=said):
        segments(tmp_path / "x.tmx", f"<!DOCTYPE x [\n{definitions}]>\n<x><seg>{text}</seg></x>")


def test_entities_that_are_defined_or_known_are_read(tmp_path):
    head = '<!DOCTYPE x SYSTEM "tmx14.dtd" [<!ENTITY office "Libre&#79;ffice"><!ENTITY seven "&office;&#160;7"><!ENTITY office "other">]>'
    assert segments(tmp_path / "x.tmx", f"{head}<x><seg>&seven; &amp; &nbsp;&uuml;</seg></x>")[0] == ["LibreOffice\xa07 & \xa0ü"]
    assert segments(tmp_path / "x.tmx", "<x><seg>f&uuml;r<![CDATA[&nbsp;<b>]]></seg></x>")[0] == ["für&nbsp;<b>"]


def test_characters_that_xml_lacks_are_left_out_wherever_a_block_ends(tmp_path):
    for before in range(65520, 65545):  # the file is read in blocks of 65,536 bytes
        text, passed = segments(tmp_path / "x.tmx", f"<x><seg>{'a' * before}ü\x0b&#x1F;&#31;&#xD800;&#65;\ufffe</seg></x>")
        assert text == [f"{'a' * before}üA"] and passed == {LEFT_OUT: 5}


def test_an_ampersand_before_a_line_end_keeps_it_wherever_a_block_ends(tmp_path):
    for before in range(65500, 65540):
        text, _ = segments(tmp_path / "x.tmx", f"<x><seg><![CDATA[{'a' * before}AT&T\nand]]></seg></x>")
        assert text == [f"{'a' * before}AT&T\nand"]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-8-sig", "latin1", "windows-1252"])
def test_other_encodings_are_read(tmp_path, encoding):
    name = "utf-16" if "16" in encoding else encoding.removesuffix("-sig")
    content = f'<?xml version="1.0" encoding="{name}"?>\n<x><seg>Größe</seg></x>'.encode(encoding)
    assert segments(tmp_path / "x.tmx", content)[0] == ["Größe"]


@pytest.mark.parametrize("name", ["UTF-16", "utf-16le", "UTF-32"])
def test_a_file_in_utf_8_that_still_says_utf_16_is_read(tmp_path, name):
    content = f'<?xml version="1.0" encoding="{name}"?>\n<x><seg>Größe</seg></x>'
    assert segments(tmp_path / "x.tmx", content)[0] == ["Größe"]


@pytest.mark.parametrize(
    "content, said",
    [
        (b"<x>\n<seg>Gr\xf6\xdfe</seg></x>", r"line 2: not utf-8 \(byte 0xf6\); convert the file, or name its encoding"),
        (b'<?xml version="1.0" encoding="klingon"?><x/>', "names the encoding 'klingon', which is unknown"),
        (b'<?xml version="1.0" encoding="rot13"?><x/>', "names the encoding 'rot13', which is unknown"),
        (b"<x>\n<seg>one", "line 2: is not well-formed XML .*; see that the file is whole"),
        *((f"<x>\n<seg>{text}</seg></x>", r"line 2: is not well-formed XML .*; mend the file, or write & as") for text in LOSING),
        (b"", "is not well-formed XML"),
        (b"<x><seg>" + b"<b>" * 300, "line 1: more than 200 elements are inside each other"),
        (b"<!DOCTYPE html><html></html>", r"is a web page \(HTML\), which is not read"),
        (b"PK\x03\x04", "is packed as zip, which is not read"),
    ],
)
def test_other_files_are_refused_in_one_line(tmp_path, content, said):
    with pytest.raises(InputError, match=said) as error:
        segments(tmp_path / "x.tmx", content)
    assert "\n" not in str(error.value)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        next(elements(tmp_path / "x.tmx", ()))


def test_a_large_file_is_a_stream(tmp_path):
    import tracemalloc

    with open(tmp_path / "x.tmx", "w") as file:
        file.write("<x>" + "<seg>a sentence of some words, no line feed after it</seg>" * 50_000 + "</x>")
    tracemalloc.start()
    assert sum(1 for _ in elements(tmp_path / "x.tmx", ("seg",))) == 50_001
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < (tmp_path / "x.tmx").stat().st_size / 4
