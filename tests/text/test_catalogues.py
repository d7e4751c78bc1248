"""Catalogues of gettext."""

import gzip
from collections import Counter
from pathlib import Path

import pytest

from workflow_scripts.stage import InputError
from workflow_scripts.text.parallel import Source, read_pairs

HEADER = 'msgid ""\nmsgstr ""\n"Language: {}\\n"\n"Content-Type: text/plain; charset=UTF-8\\n"\n{}\n'
GERMAN = HEADER.format("de_AT", '"Plural-Forms: nplurals=2; plural=(n != 1);\\n"\n')
MESSAGES = """#: a.c:3
msgctxt "menu"
msgid "Open the \\"file\\"."
msgstr ""
"Öffnen Sie "
"die Datei.\\n"

#, fuzzy
msgid "Dog"
msgstr "Katze"

#, c-format
msgid "%d file"
msgid_plural "%d files"
msgstr[0] "%d Datei"
msgstr[1] "%d Dateien"

msgid "Save"
msgstr ""

#~ msgid "old"
#~ msgstr "alt"
"""
PAIRS = [('Open the "file".', "Öffnen Sie die Datei."), ("%d file", "%d Datei"), ("%d files", "%d Dateien")]


def read(path: Path, content: str | bytes, languages=("en", "de"), **settings) -> tuple[list[tuple[str, str]], Counter[str]]:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    passed: Counter[str] = Counter()
    return [(pair.a, pair.b) for pair in read_pairs(Source(file=str(path), **settings), languages, passed=passed)], passed


def test_messages_and_translations_are_read_and_others_counted(tmp_path):
    pairs, passed = read(tmp_path / "de.po", GERMAN + MESSAGES)
    assert pairs == PAIRS
    assert passed == {
        "fuzzy messages, whose translation nobody has seen through": 1,
        "messages that are not translated": 1,
        "obsolete messages": 1,
    }
    assert read(tmp_path / "de.po.gz", gzip.compress((GERMAN + MESSAGES).encode()), ("de", "en"))[0] == [pair[::-1] for pair in PAIRS]
    latin = (GERMAN + MESSAGES).replace("UTF-8", "ISO-8859-1").encode("latin1")
    assert read(tmp_path / "latin.po", latin)[0] == PAIRS


@pytest.mark.parametrize("mark", "\x0b\x0c\x85\u2028\u2029")
def test_what_ends_a_line_elsewhere_is_a_blank_in_a_catalogue(tmp_path, mark):
    message = f'msgid "Open{mark}now."\nmsgstr "Jetzt{mark}öffnen."\n'
    assert read(tmp_path / "de.po", f"{GERMAN}\n{message}")[0] == [("Open now.", "Jetzt öffnen.")]


@pytest.mark.parametrize(
    "code, rule, forms, expected, others",
    [
        ("ja", "nplurals=1; plural=0;", ["%d 個"], [("%d files", "%d 個")], 0),
        (
            "ru",
            "nplurals=3; plural=(n%10==1 && n%100!=11 ? 0 : n%10>=2 && n%10<=4 && (n%100<10 || n%100>=20) ? 1 : 2);",
            ["%d файл", "%d файла", "%d файлов"],
            [("%d file", "%d файл"), ("%d files", "%d файлов")],
            1,
        ),
        ("fr", "nplurals=2; plural=(n > 1);", ["%d fichier", "%d fichiers"], [("%d file", "%d fichier"), ("%d files", "%d fichiers")], 0),
    ],
)
def test_of_plural_forms_those_of_one_and_of_most_numbers_are_read(tmp_path, code, rule, forms, expected, others):
    header = HEADER.format(code, f'"Plural-Forms: {rule}\\n"\n')
    message = 'msgid "%d file"\nmsgid_plural "%d files"\n' + "".join(f'msgstr[{n}] "{form}"\n' for n, form in enumerate(forms))
    pairs, passed = read(tmp_path / "x.po", header + message, ("en", code))
    assert pairs == expected and passed["other plural forms"] == others


@pytest.mark.parametrize(
    "content, said",
    [
        (GERMAN + 'msgid "a\nmsgstr "b"\n', r"x\.po, line 7: is no line of a catalogue .*'msgid \"a'; write \" in a text as"),
        (GERMAN + 'msgid "say "hi""\nmsgstr "b"\n', r"x\.po, line 7: is no line"),
        (GERMAN + "hello\n", r"x\.po, line 7: is no line"),
        (GERMAN + 'msgid "a"\nmsgid "b"\n', r"x\.po: Syntax error in po file \(line 8\)"),
        (HEADER.format("fr", "") + MESSAGES, r"its translations are in fr, not in en nor de"),
        (MESSAGES, r"does not say the language of the translations .* `columns: \{en: msgid, de: msgstr\}`"),
        (GERMAN.replace("n != 1", "n !! 1") + MESSAGES, "`Plural-Forms` in its header is no rule"),
        (GERMAN.replace("UTF-8", "klingon") + MESSAGES, "names the encoding 'klingon', which is unknown"),
        ((GERMAN + MESSAGES).encode("latin1"), r"x\.po, line 11: not UTF-8 \(byte 0xd6\)"),
        (b"\xde\x12\x04\x95\x00\x00", r"x\.po: is a compiled catalogue of gettext, which is not read; give its \.po"),
        (GERMAN, "has no text that is read; give another file"),
    ],
)
def test_what_is_wrong_with_a_catalogue_is_an_error(tmp_path, content, said):
    with pytest.raises(InputError, match=said):
        read(tmp_path / "x.po", content)


def test_sides_of_a_catalogue_without_a_language(tmp_path):
    for columns in ({"en": "msgid", "de": "msgstr"}, {"de": "msgstr"}):
        assert read(tmp_path / "x.po", MESSAGES, columns=columns)[0] == PAIRS
    assert read(tmp_path / "x.po", GERMAN + MESSAGES, columns={"en": "msgid"})[0] == PAIRS
    assert read(tmp_path / "x.po", MESSAGES, ("de", "en"), columns={"en": "msgid", "de": "msgstr"})[0] == [pair[::-1] for pair in PAIRS]


def test_the_side_that_most_catalogues_have_their_originals_in_is_advised_in_any_order_of_languages(tmp_path):
    with pytest.raises(InputError, match=r"`columns: \{en: msgid, de: msgstr\}` if the originals are in 'en'"):
        read(tmp_path / "x.po", MESSAGES, ("de", "en"))
