"""A noise of one's own: what its function gets, and what becomes of what it returns."""

from dataclasses import dataclass

import numpy as np
import pytest
import zstandard
from tiny_models import manual_pairs

from workflow_scripts import registry
from workflow_scripts.errors import InputError
from workflow_scripts.noise import codeswitch
from workflow_scripts.noise.candidates import Lookup
from workflow_scripts.noise.codeswitch import CodeSwitch, main, switch_lines
from workflow_scripts.noise.entry import PARAMETERS, noise
from workflow_scripts.noise.span_noise import SpanNoise
from workflow_scripts.stage import read_json
from workflow_scripts.text.words import fold, words_of

LINES = ["Öffnen Sie die Datei, und drucken Sie sie (2-mal).", "", "Das Fenster ist zu."]
CANDIDATES = {fold(word, "de"): [f"w{i}", f"v{i}"] for i, word in enumerate(dict.fromkeys(words_of(LINES, "de").strings()))}


@pytest.fixture
def register():
    """Registers a function as a noise, and forgets it."""
    names = []

    def made(function, **about):
        names.append(f"made-{len(names)}")
        noise(names[-1], label="made", asks="Does it help?", **about)(function)
        return names[-1]

    yield made
    for name in names:
        registry.forget("noise", name)


def noised(name, lines=LINES, code="de", candidates=None, **more):
    return switch_lines(lines, Lookup(CANDIDATES if candidates is None else candidates, code), name, **more)[0]


def test_a_function_gets_what_it_asks_for(register):
    seen = []

    @dataclass
    class Window:
        width: int = 3

    def every(words, draw, text, places, language, candidates, hits, settings):
        seen.append((words, text, places, language, candidates, hits, settings, draw.integers(1000)))
        return words

    assert noised(register(every, settings=Window), noise_settings='{"width": 5}') == LINES
    assert set(PARAMETERS) == {"words", "draw", "text", "places", "language", "candidates", "hits", "settings"}
    for line, (words, text, places, language, candidates, hits, settings, _) in zip(LINES, seen, strict=True):
        assert text == line and language == "de" and settings == Window(5)
        assert [line[a:b] for a, b in places] == words == words_of([line], "de").strings()
        assert [[*each] for each in candidates] == [CANDIDATES[fold(word, "de")] for word in words]
        assert all(0 <= hit < len(words) for hit in hits)
    assert seen[1][0] == [] and len({each[-1] for each in seen}) == 3


@pytest.mark.parametrize("parameter", [*PARAMETERS])
def test_each_parameter_may_be_asked_for_alone(parameter, register):
    scope = {}
    exec(f"def f({parameter}):\n    assert {parameter} is not None or '{parameter}' == 'settings'\n    return 'new'", scope)
    settings = dataclass(type("Own", (), {})) if parameter == "settings" else None
    name = register(scope["f"], settings=settings)
    assert noised(name) == ["new"] * 3
    assert registry.entry("noise", name).lexicon == ("own" if parameter in ("candidates", "hits") else "")


def test_as_many_words_take_the_places_of_the_old_ones(register):
    assert noised(register(lambda words: words[::-1])) == ["mal 2 sie Sie, drucken und Datei die (Sie-Öffnen).", "", "zu ist Fenster Das."]
    assert noised(register(lambda words: [word.upper() for word in words]))[2] == "DAS FENSTER IST ZU."


def test_another_number_of_words_is_the_whole_text(register):
    assert noised(register(lambda words: words[1:]))[2] == "Fenster ist zu"
    assert noised(register(lambda words: [*words, "mehr"]))[1:] == ["mehr", "Das Fenster ist zu mehr"]
    assert noised(register(lambda words: []))[2] == ""
    assert noised(register(lambda words: (word for word in words if word != "ist")))[2] == "Das Fenster zu"


def test_a_text_is_the_whole_text(register):
    assert noised(register(lambda text: text.replace("e", "")))[2] == "Das Fnstr ist zu."
    assert noised(register(lambda text: np.str_(text)))[2] == LINES[2]


def test_no_line_break_or_tab_gets_into_a_row(register):
    for function in (
        lambda words: [f"{word}\n\t" for word in words],
        lambda words: ["a\nb\tc", *words],
        lambda text: f"{text}\t{text}\n",
    ):
        for code in ("de", "zh"):
            assert not any(set(line) & set("\n\t\r\u2028") for line in noised(register(function), ["Das ist gut.", "a b"], code))


@pytest.mark.parametrize("rate", [0.2, 1.0])
def test_candidates_and_hits_are_those_of_codeswitch(rate, register):
    """So a control can hit the same words."""

    def same(words, candidates, hits):
        return [candidates[i][0] if i in hits else word for i, word in enumerate(words)]

    german = manual_pairs(60)[0]
    candidates = {fold(word, "de"): [f"w{i}"] for i, word in enumerate(dict.fromkeys(words_of(german, "de").strings())) if i % 3}
    settings = {"candidates": candidates, "seed": 7, "stream": 5, "first": 11, "noise": SpanNoise(rate=rate)}
    ours = noised("codeswitch", german, **settings)
    theirs = noised(register(same), german, **settings)
    # ours takes over capitals as well
    assert [line.lower() for line in theirs] == [line.lower() for line in ours] != [line.lower() for line in german]


def test_a_sentence_can_be_made_again_alone(register):
    name = register(lambda words, draw: [words[i] for i in draw.permutation(len(words))])
    german = manual_pairs(30)[0]
    whole = noised(name, german, seed=3, stream=4, first=100)
    assert [noised(name, [line], seed=3, stream=4, first=100 + number)[0] for number, line in enumerate(german)] == whole
    assert noised(name, german[10:], seed=3, stream=4, first=110) == whole[10:]
    for other in ({"seed": 4, "stream": 4, "first": 100}, {"seed": 3, "stream": 5, "first": 100}, {"seed": 3, "stream": 4, "first": 101}):
        assert noised(name, german, **other) != whole


def test_scripts_without_spaces(register):
    chinese = ["我喜欢红色的苹果。", "他在北京工作。"]
    words = [words_of([line], "zh").strings() for line in chinese]
    assert noised(register(lambda words: words), chinese, "zh") == chinese
    assert noised(register(lambda words: words[::-1]), chinese, "zh") == ["".join(each[::-1]) + "。" for each in words]
    assert noised(register(lambda words: words[1:]), chinese, "zh") == ["".join(each[1:]) for each in words]
    # words of a script with spaces do not run together
    assert noised(register(lambda words: ["red", "apple", *words[2:]]), chinese, "zh")[0].startswith("red apple ")
    assert noised(register(lambda words: ["red", "apple"]), chinese, "zh") == ["red apple"] * 2
    # and what stood without a blank stays so
    assert noised(register(lambda words: words), ["用A4纸打印。"], "zh") == ["用A4纸打印。"]


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        (None, "returned None"),
        (3, "returned 3"),
        (b"x", "returned b'x'"),
        ([1, 2], "returned 1"),
        ([["a"]], "returned ['a']"),
        ({"a": 1}, "returned {'a': 1}"),
        (["a", None], "returned None"),
    ],
)
def test_a_wrong_return_is_one_clear_error(returned, said, register):
    name = register(lambda words: returned)
    with pytest.raises(InputError) as error:
        noised(name)
    assert str(error.value) == f"noise '{name}' {said} for {LINES[0]!r}; it returns words, or one text"


def test_a_function_that_fails_says_file_line_and_sentence(register):
    def broken(words):
        return [words[5]]

    name = register(broken)
    with pytest.raises(InputError) as error:
        noised(name, first=40)
    line = broken.__code__.co_firstlineno + 1
    assert str(error.value) == (
        f"noise '{name}': line {line} of {__file__}, `return [words[5]]`: IndexError: list index out of range (sentence 42: '')"
    )

    def yielding(words):
        yield words[5]

    with pytest.raises(InputError, match=r"`yield words\[5\]`: IndexError: list index out of range \(sentence 2: ''\)"):
        noised(register(yielding))

    def refusing(words):
        raise InputError("needs a longer sentence")

    name = register(refusing)
    with pytest.raises(InputError, match="needs a longer sentence \\(sentence 1: 'Öffnen"):
        noised(name)


def test_settings_that_a_noise_has_not(register):
    @dataclass
    class Own:
        window: int = 3

    with pytest.raises(InputError, match=r"has no settings of its own, got {'window': 3}"):
        noised(register(lambda words: words), noise_settings={"window": 3})
    name = register(lambda words, settings: words[: settings.window], settings=Own)
    assert noised(name, noise_settings='{"window": 1}')[2] == "Das" and noised(name)[2] == "Das Fenster ist"
    with pytest.raises(InputError, match=r"Own: unknown setting\(s\) \['widow'\]"):
        noised(name, noise_settings={"widow": 3})
    with pytest.raises(InputError, match=r"are one JSON value, got '{'"):
        noised(name, noise_settings="{")


@pytest.mark.parametrize("masks", [True, False])
def test_masks_are_masks_where_the_noise_says_so(masks, register, tmp_path):
    name = register(lambda words: ["<mask>", *words[1:]], masks=masks)
    stage(tmp_path, kind=name)
    assert read_json(tmp_path / "out/codeswitch.json")["masks"] == masks
    with zstandard.open(tmp_path / "out/round0.de.tsv.zst", "rt", encoding="utf-8") as file:
        assert all(line.startswith("<mask>") for line in file)


def test_a_noise_without_a_lexicon_counts_what_it_changes(register, tmp_path):
    stage(tmp_path, kind=register(lambda words: ["neu", *words[1:]]))
    (side,) = {each["replaced"] for each in read_json(tmp_path / "out/codeswitch.json")["sides"].values()}
    assert side == 40
    stage(tmp_path, kind=register(lambda words: words))
    for side in read_json(tmp_path / "out/codeswitch.json")["sides"].values():
        assert side["replaced"] == side["rate"] == side["shortfall"] == 0


def stage(folder, **changes):
    """The stage with a noise that needs no lexicon."""
    for code, lines in zip(("de", "en"), manual_pairs(40), strict=True):
        for part in ("text", "dev"):
            (folder / f"{part}.{code}").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    files = [folder / name for name in ("text.de", "text.en", "dev.de", "dev.en", "out")]
    main(*files, languages=("de", "en"), settings=CodeSwitch(), **changes)


def test_the_stage_refuses_a_lexicon_that_is_not_needed(register, tmp_path):
    name = register(lambda words: words)
    with pytest.raises(InputError, match=f"the noise {name} needs no lexicon, got x"):
        stage(tmp_path, kind=name, lexicon_ab="x", lexicon_ba="y")
    with pytest.raises(InputError, match=r"needs a lexicon for each language .* got 0 lexicon\(s\) for 2 language\(s\)"):
        stage(tmp_path, kind=register(lambda hits: "x"))


def test_sentences_are_shown(register, tmp_path, capsys):
    (tmp_path / "text").write_text("".join(f"{line}\n" for line in [*LINES, *LINES]), encoding="utf-8")
    codeswitch.show(tmp_path / "text", language="de", kind=register(lambda words: words[:2]), sentences=3)
    assert capsys.readouterr().out.split("\n\n")[:-1] == [
        f"{LINES[0]}\nÖffnen Sie",
        f"{LINES[2]}\nDas Fenster",
        f"{LINES[0]}\nÖffnen Sie",
    ]
