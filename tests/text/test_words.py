"""Reading, writing and segmenting text."""

import gzip
import itertools
import lzma
import marshal
import os
import random
import subprocess
import sys
import unicodedata

import numpy as np
import pytest
import regex
import zstandard

from workflow_scripts.stage import InputError
from workflow_scripts.text.files import chunks, read_lines, write_lines, write_pairs
from workflow_scripts.text.languages import LANGUAGES, language
from workflow_scripts.text.word_lists import read_dictionary
from workflow_scripts.text.words import fold, segment, sentences, words, words_of


@pytest.mark.parametrize("suffix, compress", [("", bytes), (".gz", gzip.compress), (".xz", lzma.compress), (".zst", zstandard.compress)])
def test_plain_and_compressed_files_read_alike(tmp_path, suffix, compress):
    path = tmp_path / f"text{suffix}"
    path.write_bytes(compress("\ufeffeins\r\nzwei e\u0301\n\u2028drei\n".encode()))
    assert list(read_lines(path)) == ["eins", "zwei é", "\u2028drei"]


def test_a_line_in_many_parts_of_a_compressed_file_is_one(tmp_path):
    lines = ["short", "long " * 100_000 + "end", "", "last without a line end " * 20_000]
    frames = [zstandard.compress(part.encode()) for part in ("\n".join(lines)[:70_000], "\n".join(lines)[70_000:])]
    (tmp_path / "text.zst").write_bytes(b"".join(frames))
    assert list(read_lines(tmp_path / "text.zst")) == lines


def test_lists_of_long_lines_are_short():
    lines = ["x" * 1_500_000] * 7 + ["y"] * 5000
    assert [len(some) for some in chunks(lines)] == [3, 3, 4096, 905]
    pairs = [("doc", "x" * 1_500_000, "y" * 1_500_000, 3)] * 5
    assert [len(some) for some in chunks(pairs)] == [2, 2, 1] and list(chunks([])) == []


@pytest.mark.parametrize("suffix", ["", ".zst"])
def test_written_lines_come_back(tmp_path, suffix):
    path = tmp_path / f"deep/folder/text{suffix}"
    assert write_lines(path, ["a", "", "ß 漢"]) == 3
    assert list(read_lines(path)) == ["a", "", "ß 漢"]


def test_a_dictionary_is_read_in_muse_format_and_folded(tmp_path):
    path = tmp_path / "seed.txt"
    path.write_text("Haus house\nNew York\tBig Apple\n")
    assert read_dictionary(path, ("de", "en")) == [("haus", "house"), ("new york", "big apple")]
    path.write_text("haus \t house\n")
    assert read_dictionary(path) == read_dictionary(path, ("de", "en")) == [("haus", "house")]
    for wrong in ("haus", "haus\t", "\thouse", "haus\t \thouse", "haus; house", "haus, house", "haus;house"):
        path.write_text(f"haus house\n{wrong}\n")
        with pytest.raises(InputError, match="line 2: expected two words"):
            read_dictionary(path)


def test_nothing_is_half_written(tmp_path):
    def broken():
        yield "a", "b"
        raise RuntimeError

    # half of a surrogate pair cannot be written, in the first file or in the packed one
    for pairs, error in ((broken(), RuntimeError), ([("\ud800", "x")], UnicodeEncodeError), ([("x", "\ud800")], UnicodeEncodeError)):
        with pytest.raises(error):
            write_pairs(tmp_path / "a", tmp_path / "b.zst", pairs)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "code, line, expected",
    [
        ("en", "Don't use 3.14, (ANOVA) twice!", "don't use 3.14 anova twice"),
        ("fa", "او می\u200cخواهد.", "او می\u200cخواهد"),
        ("si", "\u0dc1\u0dca\u200d\u0dbb\u0dd3 ලංකා", "\u0dc1\u0dca\u200d\u0dbb\u0dd3 ලංකා"),
        ("de", "Donau\u00addampf", "donaudampf"),
        # acronyms as they are typed, beside words in quotation marks
        ("he", 'חיילי צה"ל בארה"ב, ד"ר', 'חיילי צה"ל בארה"ב ד"ר'),
        ("he", 'ה"IDF" אמר "שלום" ו"הלך".', 'ה idf אמר שלום ו"הלך'),
        ("de", "Die Straße: Software-Paket, z.B. „Größe“.", "die straße software paket z.b größe"),
        ("ru", "Привет, мир — 5 €", "привет мир 5"),
        ("tr", "IŞIK İÇİN", "ışık için"),
        ("crh", "IŞIQ İçün", "ışıq içün"),
        ("zh", "打开文件,并选择“复制”。", "打开 文件 并 选择 复制"),
        ("ja", "ファイルを開く。", "ファイル を 開く"),
        ("th", "เปิดไฟล์", "เปิด ไฟล์"),
        # words of other scripts are wholes, whatever the dictionaries' programs make of them
        ("zh", "莫斯科（Москва）和Müller，ドラえもん2024年", "莫斯科 москва 和 müller ドラえもん 2024 年"),
        ("th", "เขาชื่อ Müller ไปโรงเรียน", "เขา ชื่อ müller ไป โรงเรียน"),
        ("uz", "O‘zbekiston ‘go‘zal’", "o‘zbekiston go‘zal"),
        # a mark that was typed before its letter, and one that changes the look of a symbol
        ("ur", "صبح ُوسی کی", "صبح ُوسی کی"),
        ("de", "❤️Liebe", "liebe"),
        ("en", "a😀b … – ?!", "a b"),
    ],
)
def test_segments(code, line, expected):
    assert segment([line, "", line], code) == [expected, "", expected]


@pytest.mark.parametrize("code", ["de", "zh", "ja", "th", "ko"])
def test_spans_point_at_their_words(code):
    line = "Öffnen 打开文件 ファイルを開く เปิดไฟล์ 파일을 열다 3.14"
    spans = words(line, code)
    assert spans == sorted(spans) and all(line[s:e].strip() == line[s:e] != "" for s, e in spans)
    assert all(end <= start for (_, end), (start, _) in zip(spans, spans[1:], strict=False))


def test_chinese_words_do_not_depend_on_what_others_left_in_the_folder_for_temporary_files(tmp_path):
    (tmp_path / "jieba.cache").write_bytes(marshal.dumps(({"今": 0, "今天": 0, "今天很": 0, "今天很好": 9}, 9)))
    ask = "from workflow_scripts.text.words import segment; print(ascii(segment(['今天很好'], 'zh')))"
    done = subprocess.run([sys.executable, "-c", ask], env={**os.environ, "TMPDIR": str(tmp_path)}, capture_output=True, text=True)
    assert done.stdout.strip() == ascii(["今天 很 好"]), done.stderr


@pytest.mark.parametrize(
    "code, line, expected", [("en", "One day. </s> S is it?", "one day s is it"), ("zh", "今天 </s> 天气好。", "今天 天气 好")]
)
def test_a_break_between_sentences_is_no_word(code, line, expected):
    assert segment([line, "", line], code) == [expected, "", expected]
    assert [line[s:e].lower() for s, e in words(line, code)] == expected.split()


@pytest.mark.parametrize(
    "text, expected",
    [
        ("Open it. Then close it!  Is it?", ["Open it.", "Then close it!", "Is it?"]),
        ('He said: "Go." She went (home.) All did.', ['He said: "Go."', "She went (home.)", "All did."]),
        ("The U.S. Army of J. Smith paid 3.5 dollars. etc. and so on", ["The U.S. Army of J. Smith paid 3.5 dollars. etc. and so on"]),
        ("他说：“好。”然后走了。真的吗？ 是！", ["他说：“好。”", "然后走了。", "真的吗？", "是！"]),
        ("Мир. Труд… «Май.» Всё", ["Мир.", "Труд…", "«Май.»", "Всё"]),
        ("Er sagte: „Ich komme.“ Dann ging er.", ["Er sagte: „Ich komme.“", "Dann ging er."]),
        ("Sagte er: »Komm!« ›Gleich.‹ Dann ging er.", ["Sagte er: »Komm!«", "›Gleich.‹", "Dann ging er."]),
        ("ሰላም። እንዴት ነህ፧ ደህና", ["ሰላም።", "እንዴት ነህ፧", "ደህና"]),
        ("བཀྲ་ཤིས། བདེ་ལེགས།", ["བཀྲ་ཤིས།", "བདེ་ལེགས།"]),
        ("no end", ["no end"]),
        (" ", []),
    ],
)
def test_sentences_of_running_text(text, expected):
    assert sentences(text) == expected


def test_language_table():
    assert list(LANGUAGES) == sorted(LANGUAGES) and len(LANGUAGES) == 200
    assert language("de").tag == "de_DE" and language("ko").bleu_tokenizer == "ko-mecab" and not language("zh").spaced
    assert language("no").nllb == "nob_Latn" and language("sr").scripts == ("Cyrillic", "Latin") and language("lo").segments_clauses
    assert fold("Straße", "de") == "straße"
    with pytest.raises(InputError, match=r"did you mean 'de'"):
        language("German")


@pytest.mark.parametrize(
    "code, said",
    [
        ("fil", "'tl'? Here it is the code of Tagalog (models call it tl_XX in mBART and tgl_Latn in NLLB)"),
        ("iw", "'he'? Here it is the code of Hebrew (models call it he_IL in mBART and heb_Hebr in NLLB)"),
        ("jw", "'jv'? Here it is the code of Javanese (models call it jav_Latn in NLLB)"),
        ("in", "'id'? Here it is the code of Indonesian"),
        ("cmn", "'zh'? Here it is the code of Chinese (models call it zh_CN in mBART and zho_Hans in NLLB)"),
        ("nob", "'nb'? Here it is the code of Norwegian Bokmål (models call it nob_Latn in NLLB)"),
        ("sr-Latn", "'sr'? Here it is the code of Serbian (models call it srp_Cyrl in NLLB); a code names no script or region here"),
        ("zh-Hans", "'zh'? Here it is the code of Chinese"),
        ("zh-Hant", "here, but `columns: {zh: zh-Hant}` reads this variant of a TMX file"),
        ("zh_CN", "'zh'? Here it is the code of Chinese (models call it zh_CN in mBART and zho_Hans in NLLB)"),
        ("pt-BR", "'pt'?"),
        ("ger", "'de'? Here it is the code of German (models call it de_DE in mBART and deu_Latn in NLLB)"),
        ("chi", "'zh'?"),
        ("rum", "'ro'?"),
        ("ekk", "'et'?"),
        ("ji", "'yi'?"),
        ("Deutsch", "'de'?"),
        ("Simplified Chinese", "'zh'?"),
        ("gsw", "Swiss German is not among the languages that are known here; known codes: ace"),
        ("qqq", "known codes: ace"),
        ("", "known codes: ace"),
    ],
)
def test_another_code_is_answered_with_the_one_here(code, said):
    with pytest.raises(InputError) as refused:
        language(code)
    assert said in str(refused.value), refused.value


def test_every_tag_of_a_model_leads_to_its_language():
    for row in LANGUAGES.values():
        for form in filter(None, (row.tag, row.nllb)):
            with pytest.raises(InputError, match="did you mean") as refused:
                language(form)
            said = str(refused.value)
            # Norwegian and its Bokmål share a tag
            assert f"did you mean {row.code!r}" in said or (form, row.code) == ("nob_Latn", "nb"), (form, said)


def test_the_compiled_segmenter_follows_its_pattern():
    pattern = regex.compile(r"\p{M}*[\p{L}\p{N}][\p{L}\p{M}\p{N}_]*(?:[.,:'’‘·׳״][\p{L}\p{N}][\p{L}\p{M}\p{N}_]*)*")
    lines = [cell for line in itertools.islice(read_lines("resources/libreoffice-help/en-de.tsv.xz"), 3000) for cell in line.split("\t")]
    alphabet = "aß1_.,:'’‘·׳״ -\t\u0301İ字ท😀"
    lines += ["".join(random.Random(n).choices(alphabet, k=n % 12)) for n in range(3000)]
    found = words_of(lines, "de")
    assert found.strings() == [word for line in lines for word in pattern.findall(line)]
    assert np.diff(found.before).tolist() == [len(pattern.findall(line)) for line in lines]
    assert words_of([], "de").strings() == words_of([""], "zh").strings() == []


def test_a_folded_word_is_composed_as_files_are():
    # these letters have no capital of one character
    for capital, small in (("J\u030caba", "ǰaba"), ("Ϊ\u0301", "ΐ"), ("STRASSE", "strasse"), ("ÀÉ", "àé")):
        assert fold(capital, "en") == small == unicodedata.normalize("NFC", small)


def test_hebrew_acronyms_are_one_word():
    assert segment(["צה״ל הודיע"], "he") == ["צה״ל הודיע"]
