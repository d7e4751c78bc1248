"""Noise, the code-switched corpus and its controls."""

import numpy as np
import pytest
import zstandard
from tiny_models import manual_pairs

from workflow_scripts import registry
from workflow_scripts.noise.candidates import Lookup
from workflow_scripts.noise.codeswitch import CodeSwitch, main, one_sided, rows_of_pairs
from workflow_scripts.noise.span_noise import SpanNoise
from workflow_scripts.noise.switching import find_words, match_case, replace_words, switch_lines, switch_words
from workflow_scripts.stage import InputError, read_json
from workflow_scripts.text import files
from workflow_scripts.text.examples import Example, write_table
from workflow_scripts.text.words import MASK, fold, words_of

LINE = "Öffnen Sie die Datei, und drucken Sie dann das Fenster (nur in Writer) noch einmal aus."
CANDIDATES = {fold(word, "de"): [f"w{i}", f"v{i}", f"u{i}"] for i, word in enumerate(words_of([LINE], "de").strings())}


def test_documents_keep_their_breaks_and_no_mask_spans_one():
    sentences = ["Öffnen Sie die Datei.", "Drucken Sie", "noch </s einmal s aus"]
    document = " </s> ".join(sentences)
    candidates = {fold(word, "de"): ["wort"] for word in words_of([document], "de").strings()} | {"s": ["falsch"]}
    lookup = Lookup(candidates, "de")
    (switched,), counts = switch_lines([document], lookup, noise=SpanNoise(rate=1))
    assert [part.split().count("wort") + part.split().count("Wort") for part in switched.split(" </s> ")] == [3, 2, 3]
    assert counts["words"] == 11 and switched.count("</s>") == 2
    (masked,), _ = switch_lines([document], lookup, "mask", noise=SpanNoise(rate=1))
    assert [part.strip() for part in masked.split("</s>")][1] == MASK and masked.count("</s>") == 2
    long = " </s> ".join([document] * 40)
    (switched,), counts = switch_lines([long], lookup)
    assert switched.count("</s>") == long.count("</s>") and counts["replaced"] == pytest.approx(0.35 * counts["words"], abs=1)


def switch(line=LINE, **choices):
    """One sentence, switched."""
    (switched,), counts = switch_lines([line], Lookup(CANDIDATES, "de"), **choices)
    return switched, counts


def test_case_and_punctuation_survive():
    assert [match_case(m, "file") for m in ("Datei", "DATEI", "datei", "A")] == ["File", "FILE", "file", "File"]
    assert [match_case(m, "paper") for m in ("A4", "B2B")] == ["Paper", "PAPER"]
    assert [match_case(m, "სახლი", "ka") for m in ("Haus", "HAUS")] == ["სახლი", "სახლი"]  # Georgian text has no capitals
    # what is two letters in one has the first as a capital
    assert [match_case("And", word, code) for word, code in (("և", "hy"), ("ǆep", "hr"))] == ["Եւ", "ǅep"]
    assert [match_case(m, "indir", "tr") for m in ("Download", "DOWNLOAD")] == ["İndir", "İNDİR"]
    assert match_case("Ein", "iş", "crh") == "İş"
    switched, counts = switch()
    assert [c for c in switched if not c.isalnum() and c != " "] == [c for c in LINE if not c.isalnum() and c != " "]
    assert counts["words"] == 16 and counts["replaced"] in (5, 6)


def test_replacements_have_the_capitals_of_their_own_language():
    spellings = {"datei": "Datei", "pdf": "PDF"}, {"pdf": "PDF", "acrobat": "Acrobat"}
    candidates = {"die": ["the"], "datei": ["file"], "pdf": ["acrobat"], "als": ["pdf"], "ist": ["is"], "neu": ["new"]}

    def switched(line, *capitals):
        return switch_lines([line], Lookup(candidates, "de", "en", *capitals), noise=SpanNoise(rate=1))[0][0]

    line = "Die Datei als PDF ist neu. Neu ist die DATEI, die datei Als pdf."
    assert switched(line, spellings) == "The file PDF Acrobat is new. New is the FILE, the file PDF Acrobat."
    assert switched(line) == "The File pdf ACROBAT is new. New is the FILE, the file Pdf acrobat."


def test_the_stage_learns_capitals_from_the_text_and_can_copy_them(corpora, tmp_path):
    """In this text *Datei* and *Fenster* always have a capital, *file* and *window* never."""
    inputs = [corpora / name for name in ("train.de", "train.en", "dev.de", "dev.en")]
    lexicons = {"lexicon_ab": corpora / "de-en.tsv", "lexicon_ba": corpora / "en-de.tsv"}
    main(*inputs, tmp_path / "copied", **lexicons, languages=("de", "en"), seed=5, tokens=1, settings=CodeSwitch(capitals="copied"))
    own, copied = ({"de": "", "en": ""} for _ in range(2))
    for texts, folder in ((own, corpora / "codeswitch"), (copied, tmp_path / "copied")):
        for code in texts:
            texts[code] = " ".join(noised for noised, _ in rows(folder, f"round0.{code}.tsv.zst"))
    assert {"file", "window"} <= words_in(own["de"]) and not {"File", "Window"} & words_in(own["de"])
    assert {"Datei", "Fenster"} <= words_in(own["en"]) and not {"datei", "fenster"} & words_in(own["en"])
    assert {"File", "Window"} <= words_in(copied["de"]) and {"datei", "fenster"} <= words_in(copied["en"])
    # what is chosen does not hang on how it is spelt
    assert all(own[code].lower() == copied[code].lower() for code in own)
    assert {"Open", "Sentence"} <= words_in(own["de"]) and {"Öffnen", "Satz"} <= words_in(own["en"])


def words_in(text):
    """The distinct words of a text, as they are spelt."""
    return set(words_of([text], "en").strings())


def test_counted_words_really_changed():
    for i in range(200):
        switched, counts = switch(first=i)
        before, after = LINE.split(), switched.split()
        assert sum(a != b for a, b in zip(before, after, strict=True)) == counts["replaced"]


def test_scripts_without_spaces_get_blanks_around_foreign_words():
    words = words_of(["打开文件并选择", "打开文件。"], "zh")
    assert words.strings() == ["打开", "文件", "并", "选择", "打开", "文件"]
    assert replace_words(words, np.array([1, 4, 5]), ["file", "open", "file"], spaced=False) == ["打开 file 并选择", "open file。"]


def test_a_blank_comes_after_a_vowel_sign_too():
    words = words_of(["ที่บ้านหมู่สวย"], "th")
    assert words.strings() == ["ที่", "บ้าน", "หมู่", "สวย"]
    assert replace_words(words, np.array([1, 3]), ["house", "pretty"], spaced=False) == ["ที่ house หมู่ pretty"]


def test_any_sentence_can_be_made_again_alone(monkeypatch):
    text, lookup = [LINE] * 100, Lookup(CANDIDATES, "de")
    at_once, counts = switch_words(find_words(text, lookup), lookup, registry.entry("noise", "codeswitch"), 3, 5, 0, SpanNoise())
    monkeypatch.setattr(files, "_CHUNK", 30)
    whole, total = switch_lines(text, lookup, seed=3, stream=5)
    assert whole == at_once and total == pytest.approx(counts)
    assert whole[77] == switch(seed=3, stream=5, first=77)[0]
    others = [switch(seed=s, stream=t, first=n)[0] for s, t, n in ((4, 5, 77), (3, 3, 77), (3, 4, 77), (3, 5, 78))]
    assert all(other != whole[77] for other in others)


@pytest.fixture(scope="module")
def corpora(tmp_path_factory):
    """The three pretext tasks on the same small corpus."""
    folder = tmp_path_factory.mktemp("codeswitch")
    german = [f"Satz {i}: Öffnen Sie die Datei und drucken Sie das kleine Fenster." for i in range(400)]
    english = [f"Sentence {i}: Open the file and print the small window." for i in range(400)]
    for code, lines in (("de", german), ("en", english)):
        (folder / f"train.{code}").write_text("\n".join(lines) + "\n")
        (folder / f"dev.{code}").write_text("\n".join(lines[:9]) + "\n")
    pairs = "satz sentence,öffnen open,sie you,die the,datei file,und and,drucken print,das the,kleine small,fenster window"
    for name, order in (("de-en", 1), ("en-de", -1)):
        rows = [pair.split()[::order] for pair in pairs.split(",")]
        (folder / f"{name}.tsv").write_text("".join(f"{a}\t{b}\t1\t0.5\n" for a, b in {r[0]: r for r in rows}.values()))
    for kind in ("codeswitch", "mask", "random"):
        inputs = (folder / n for n in ("train.de", "train.en", "dev.de", "dev.en", kind))
        lexicons = {"lexicon_ab": folder / "de-en.tsv", "lexicon_ba": folder / "en-de.tsv"}
        main(*inputs, **lexicons, languages=("de", "en"), kind=kind, seed=5, tokens=20_000, settings=CodeSwitch(frequency_bin=4))
    return folder


def rows(folder, name):
    with zstandard.open(folder / name, "rt", encoding="utf-8") as file:
        return [line.rstrip("\n").split("\t") for line in file]


def test_realised_rate_is_within_a_point(corpora):
    for kind in ("codeswitch", "mask", "random"):
        for side in read_json(corpora / kind / "codeswitch.json")["sides"].values():
            assert side["rate"] == pytest.approx(0.35, abs=0.01) and abs(side["shortfall"]) < 0.03


def test_every_pair_gives_both_tasks_in_every_round_with_fresh_noise(corpora):
    report = read_json(corpora / "codeswitch" / "codeswitch.json")
    # 400 × (11 + 10) words a round
    assert report["rounds"] == -(-20_000 // (400 * 22))
    for code in ("de", "en"):
        originals = (corpora / f"train.{code}").read_text().splitlines()
        made = [rows(corpora / "codeswitch", f"round{r}.{code}.tsv.zst") for r in range(report["rounds"])]
        assert all([original for _, original in one] == originals for one in made)
        assert sum(a[0] != b[0] for a, b in zip(made[0], made[1], strict=True)) > 350
        assert len(rows(corpora / "codeswitch", f"dev.{code}.tsv.zst")) == 9


def test_all_kinds_hit_the_same_words(corpora):
    for code in ("de", "en"):
        made = {kind: rows(corpora / kind, f"round0.{code}.tsv.zst") for kind in ("codeswitch", "mask", "random")}
        for switched, masked, scrambled in zip(*made.values(), strict=True):
            original = switched[1].split()
            changed = {i for i, (a, b) in enumerate(zip(original, switched[0].split(), strict=True)) if a != b}
            assert changed == {i for i, (a, b) in enumerate(zip(original, scrambled[0].split(), strict=True)) if a != b}
            kept = [w for i, w in enumerate(original) if i not in changed]
            assert [w for w in masked[0].replace(f"{MASK} .", MASK).replace(f"{MASK} :", MASK).split() if w != MASK] == kept
        assert sum(a[0] == b[0] for a, b in zip(made["codeswitch"], made["random"], strict=True)) < 40


@pytest.mark.parametrize(
    "entries, said", [("", "no entries"), ("xyzzy\tplugh\t1\t1.0\n", "no word of the text in en; give a dictionary en-de, or vectors")]
)
def test_a_lexicon_that_would_switch_nothing_is_refused(tmp_path, corpora, entries, said):
    (tmp_path / "useless.tsv").write_text(entries)
    inputs = [corpora / n for n in ("train.de", "train.en", "dev.de", "dev.en")]
    lexicons = {"lexicon_ab": corpora / "de-en.tsv", "lexicon_ba": tmp_path / "useless.tsv"}
    with pytest.raises(InputError, match=rf"useless\.tsv: .*{said}"):
        main(*inputs, tmp_path / "out", **lexicons, languages=("de", "en"))


# ---------------------------------------------------------------------------------------------
# one side, several dictionaries


ENGLISH = manual_pairs(400)[1]
WORDS = sorted({fold(word, "en") for word in words_of(ENGLISH, "en").strings() if word.isalpha()})


def one_side(folder, kind="codeswitch", **changes):
    """The rows of the first round of English text that is switched into German and French, and the report."""
    pairs = [Example("same", *texts) for texts in zip(ENGLISH[::2], ENGLISH[1::2], strict=True)]
    if changes.get("pairs"):
        write_table(folder / "text.en", [*pairs, pairs[0]])
    else:
        (folder / "text.en").write_text("".join(f"{line}\n" for line in ENGLISH), encoding="utf-8")
    lexicons = []
    for code in ("de", "fr"):
        # every other word has a translation in either language
        rows = (f"{word}\t{code}ð{word}\t1\t1.0\n" for word in WORDS if len(word) % 2 or code == "de")
        (folder / f"en-{code}.tsv").write_text("".join(rows), encoding="utf-8")
        lexicons.append(folder / f"en-{code}.tsv")
    out = folder / kind
    texts = folder / "text.en", folder / "text.en"
    one_sided(*texts, out, lexicons=tuple(lexicons), language="en", into=("de", "fr"), kind=kind, **changes)
    with zstandard.open(out / "round0.en.tsv.zst", "rt", encoding="utf-8") as file:
        return [line.rstrip("\n").split("\t") for line in file], read_json(out / "codeswitch.json")


def test_a_language_whose_words_are_not_known_gets_no_more_rounds_than_its_letters_need(tmp_path):
    """What stands between two blanks is a clause in Khmer: the text has three of them, of 180 letters and signs."""
    text = tmp_path / "text.km"
    text.write_text("ឯកសារនេះត្រូវបានសរសេរជាភាសាខ្មែរសម្រាប់អ្នកប្រើប្រាស់ទាំងអស់។\n" * 3, encoding="utf-8")
    one_sided(text, text, tmp_path / "out", language="km", kind="plain_text", tokens=450)
    assert read_json(tmp_path / "out/codeswitch.json")["rounds"] == 10


def test_each_sentence_is_switched_into_one_language_drawn_for_it(tmp_path):
    rows, report = one_side(tmp_path)
    assert [original for _, original in rows] == ENGLISH
    drawn = [{code for code in ("de", "fr") if f"{code}ð" in noised.lower()} for noised, _ in rows]
    assert all(len(codes) <= 1 for codes in drawn) and 120 < drawn.count({"fr"}) < 240 and 120 < drawn.count({"de"}) < 240
    assert report["into"] == ["de", "fr"] and report["sides"]["en"]["rate"] == pytest.approx(0.35, abs=0.03)
    assert one_side(tmp_path)[0] == rows != one_side(tmp_path, seed=2)[0]


def test_the_texts_of_a_pair_are_restored_as_one_with_single_words_switched_each_text_into_its_own_language(tmp_path):
    rows, report = one_side(tmp_path, pairs=True)
    # a pair that comes twice is a row once
    pairs = dict.fromkeys(zip(ENGLISH[::2], ENGLISH[1::2], strict=True))
    assert [tuple(original.split(" </s> ")) for _, original in rows] == [*pairs]
    texts = [noised.lower().split(" </s> ") for noised, _ in rows]
    drawn = [tuple("".join(code for code in ("de", "fr") if f"{code}ð" in text) for text in pair) for pair in texts]
    assert {("de", "fr"), ("fr", "de"), ("de", "de")} <= {*drawn} and "defr" not in {code for pair in drawn for code in pair}
    assert report["pairs"] and report["sides"]["en"]["rate"] == pytest.approx(0.35, abs=0.03)
    (tmp_path / "single").mkdir()
    spans, _ = one_side(tmp_path / "single")

    def runs(lines):
        """How often the word after a switched one is switched, too."""
        hits = ["ð" in word for line in lines for word in [*line.lower().split(), "</s>"]]
        return sum(a and b for a, b in zip(hits, hits[1:], strict=False)) / sum(hits)

    assert runs(noised for noised, _ in rows) < 0.75 * runs(noised for noised, _ in spans)


def test_a_text_without_a_second_is_no_pair(tmp_path):
    write_table(tmp_path / "text.en", [Example("same", "One text.", "Another one."), Example("same", "Alone.", "")])
    with pytest.raises(InputError, match=r"text\.en, line 2: has no second text; `restore: pairs` is for pairs of texts"):
        list(rows_of_pairs(tmp_path / "text.en"))


def test_a_break_inside_a_text_of_a_pair_is_a_blank(tmp_path):
    struck = ["The new document <s>is</s> open.", "</s>", "Save the file."]
    write_table(tmp_path / "text.en", [Example("same", struck[0], struck[2]), Example("same", struck[1], struck[2])])
    rows = ["The new document <s>is open. </s> Save the file.", " </s> Save the file."]
    assert list(rows_of_pairs(tmp_path / "text.en")) == rows
    (tmp_path / "en-de").write_text("file\tdatei\t1\t1.0\n")
    texts = tmp_path / "text.en", tmp_path / "text.en"
    one_sided(*texts, tmp_path / "out", lexicons=(tmp_path / "en-de",), language="en", into=("de",), pairs=True)
    written = files.read_lines(tmp_path / "out/round0.en.tsv.zst")
    assert [line.partition("\t")[2] for line in written] == rows


def test_controls_hit_the_same_words_of_one_side(tmp_path):
    switched, masked, scrambled = (one_side(tmp_path, kind)[0] for kind in ("codeswitch", "mask", "random"))
    for (a, original), (b, _), (c, _) in zip(switched, masked, scrambled, strict=True):
        # word by word, where nothing in a word is left but what stands around it
        hit, too = ([x != y for x, y in zip(side.split(), original.split(), strict=True)] for side in (a, c))
        assert hit == too and (MASK in b) == any(hit)
    assert switched != scrambled


def test_rounds_differ_and_suffice(tmp_path):
    rows, report = one_side(tmp_path, tokens=15_000)
    assert report["rounds"] > 1 and len(list((tmp_path / "codeswitch").glob("round*.en.tsv.zst"))) == report["rounds"]
    # called again by hand for fewer, it leaves none of those before
    assert one_side(tmp_path)[1]["rounds"] == len(list((tmp_path / "codeswitch").glob("round*.en.tsv.zst"))) == 1


def test_a_noise_of_pieces_needs_both_sides(tmp_path):
    with pytest.raises(InputError, match="the noise `released` needs both sides"):
        one_side(tmp_path, kind="released")
