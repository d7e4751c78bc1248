"""Examples that are chosen by rule: lexicon entries, switched sentences, translations (Table VIII of Zan et al.)."""

import difflib
import itertools
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import sacrebleu
import zstandard

from workflow_scripts.evidence.scores import parallel_lines
from workflow_scripts.evidence.word_accuracy import read_frequencies, tokenizer
from workflow_scripts.noise.rounds import read_form
from workflow_scripts.report import drawing
from workflow_scripts.report.study import Study
from workflow_scripts.text.files import evenly
from workflow_scripts.text.languages import language
from workflow_scripts.text.words import BREAK, words

# the lexicon


def lexicon(study: Study) -> dict[str, Any]:
    """Quality of mapping and lexicon, and entries of each direction."""
    assert study.lexicon, f"{study.name} has no lexicon"  # and no such part, see `parts_of`
    report = study.json(study.lexicon / "lexicon.json")
    examples = {direction: lexicon_examples(study.lexicon / f"{direction}.tsv") for direction in report["directions"]}
    mapping = study.json(study.lexicon / "mapping.json") if _has_mapping(report) else None
    others = {}
    for name, folder in study.other_lexicons.items():
        other = study.json(folder / "lexicon.json")
        others[name] = {"aligned": False, **other, "mapping": study.json(folder / "mapping.json") if _has_mapping(other) else None}
    return {"aligned": False, **report, "mapping": mapping, "examples": examples, "others": others}


def _has_mapping(report: dict[str, Any]) -> bool:
    return not report["dictionary"] and not report.get("aligned")


FREQUENT = 400
"""Among how many of the most frequent words those are that are shown of a lexicon."""


def shown_entries(path: Path) -> bytes:
    """A lexicon with the entries alone that some are shown of, for packs."""
    with open(path, encoding="utf-8") as file:
        groups = itertools.groupby(file, key=lambda line: line.partition("\t")[0])
        return "".join(line for _, group in itertools.islice(groups, FREQUENT) for line in group).encode()


def lexicon_examples(path: Path, among: int = FREQUENT, number: int = 20) -> list[tuple[str, list[tuple[str, float]]]]:
    """`number` words, evenly spaced among the `among` most frequent ones, with their candidates and scores."""
    with open(path, encoding="utf-8") as file:
        lines = (line.rstrip("\n").split("\t") for line in file)
        groups = itertools.groupby(lines, key=lambda cells: cells[0])
        words = [(word, [(cells[1], float(cells[3])) for cells in group]) for word, group in itertools.islice(groups, among)]
    return evenly(words, number)


# switched text


def switched(study: Study) -> dict[str, Any]:
    """The data of the part "Switched sentences": how much was switched, and examples."""
    arms = {kind: ", ".join(names) for kind, names in noises(study).items()}
    return {"counts": switched_counts(study), "examples": switched_examples(study), "arms": arms, "among": AMONG}


def switched_counts(study: Study) -> list[dict[str, Any]]:
    """One row per kind of noise, seed and language: words, replaced words, rate, coverage, shortfall."""
    return [
        {"arms": [*arms], "kind": kind, "seed": seed, "language": code, **counts}
        for kind, arms in noises(study).items()
        for seed in study.seeds
        for code, counts in study.json(study.noised / kind / f"seed{seed}" / "codeswitch.json")["sides"].items()
    ]


AMONG = 300
"""Of how many rows of noised text some are shown."""


def shown_rows(path: Path) -> bytes:
    """Noised text with the rows alone that some are shown of, for packs."""
    with zstandard.open(path, "rt", encoding="utf-8") as file:
        return zstandard.compress("".join(itertools.islice(file, AMONG)).encode(), 19)


def switched_examples(study: Study, per_side: int = 3, among: int = AMONG) -> list[dict[str, Any]]:
    """The same sentences under all noises of a text: 8 to 25 tokens, evenly spaced in the first `among` lines. First seed, round 0."""
    by_text: dict[str, list[str]] = {}
    for kind in noises(study):
        by_text.setdefault(kind.partition("@")[2], []).append(kind)
    examples = []
    for kinds, code in itertools.product(by_text.values(), study.languages):
        found = {kind: noised_lines(study.noised / kind / f"seed{study.seeds[0]}", code, among) for kind in kinds}
        # of documents a plugin's noise may leave no sentence that can be told apart
        sides = [side for side in found.values() if side] or [{}]
        # the noise of the published code hits one side of each pair only
        shared = [line for line in sides[0] if all(line in side for side in sides) and 8 <= len(tokens_of(line, code)) <= 25]
        for line in evenly([line for line in shared if sides[0][line] != line], per_side):
            noised = {kind: marked(line, side[line], code) for kind, side in found.items() if side}
            examples.append({"language": code, "original": line, "noised": noised})
    return examples


def noised_lines(folder: Path, code: str, among: int) -> dict[str, str]:
    """Original line → noised line, for the first `among` rows of round 0. Pieces are joined to words again."""
    with zstandard.open(folder / f"round0.{code}.tsv.zst", "rt", encoding="utf-8") as file:
        rows = [line.rstrip("\n").split("\t") for line in itertools.islice(file, among)]
    if read_form(folder).pieces:
        rows = [(noised.replace(" ", "").replace("▁", " ").strip(), original) for noised, original in rows]
    # a document is a row; its sentences are shown one by one, also where nothing of it is read
    split = ((noised.split(BREAK), original.split(BREAK)) for noised, original in rows)
    split = (([""] * len(original) if noised == [""] else noised, original) for noised, original in split)
    return {
        old.strip(): new.strip()
        for noised, original in split
        if len(noised) == len(original)
        for new, old in zip(noised, original, strict=True)
    }


def marked(original: str, changed: str, code: str) -> list[tuple[str, bool]]:
    """`changed` split into runs of tokens: (text, whether it differs from `original`)."""
    before, after = tokens_of(original, code), tokens_of(changed, code)
    glue = " " if language(code).spaced else ""
    blocks = difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    return [(glue.join(after[start:end]), tag != "equal") for tag, _, _, start, end in blocks if end > start]


def tokens_of(line: str, code: str) -> list[str]:
    """A line divided at blanks, or, in a script without spaces, its words and what stands between them."""
    if language(code).spaced:
        return line.split()
    points = sorted({0, len(line), *(point for span in words(line, code) for point in span)})
    return [line[start:end] for start, end in itertools.pairwise(points)]


def noises(study: Study) -> dict[str, list[str]]:
    """Kind of noise → the arms that train on it."""
    kinds: dict[str, list[str]] = {}
    for arm, arm_phases in study.arms.items():
        for phase in arm_phases:
            if phase.restores:
                kinds.setdefault(phase.noised, []).append(arm)
    return kinds


# translations


def translations(study: Study, each: int = 5) -> dict[str, Any]:
    """The `each` sentences of the first test set where an arm's chrF is furthest above the baseline's, furthest below, and typical.

    Typical are those nearest the median of the differences that are not zero. `counts` says how often the arm is better, worse and equal.
    """
    testset = study.testsets[0]
    source, reference = study.test_files(testset)
    sources, references = parallel_lines(source, reference)
    hypotheses = {arm: parallel_lines(study.hypotheses(arm, testset), reference)[0] for arm in study.arms}
    compared = study.compared
    chrf = {
        arm: [sacrebleu.sentence_chrf(h, [r]).score for h, r in zip(hypotheses[arm], references, strict=True)]
        for arm in dict.fromkeys((study.baseline, compared))
    }
    gap = [mine - base for mine, base in zip(chrf[compared], chrf[study.baseline], strict=True)]
    order = sorted(range(len(gap)), key=lambda i: -gap[i])
    chosen = [i for i in order[:each] if gap[i] > 0] + [i for i in order[-each:] if gap[i] < 0]
    typical = typical_ones(gap, each, {*chosen}) if chosen else []
    best, worst = ([i for i in chosen if sign * gap[i] > 0] for sign in (1, -1))
    shown = [*best, *typical, *worst] or evenly(range(len(gap)), 2 * each)
    low, underline = underlining(study, [references[i] for i in shown])
    return {
        "languages": [code for code, _ in study.sides(testset)],
        "testset": testset,
        "compared": compared,
        "differ": bool(chosen),
        "gaps": gap,
        "ranges": drawing.counted(gap),
        "counts": {"better": sum(one > 0 for one in gap), "worse": sum(one < 0 for one in gap), "equal": sum(one == 0 for one in gap)},
        "rows": [
            {
                "line": i + 1,
                "gap": gap[i],
                "group": "typical" if i in typical else "better" if gap[i] > 0 else "worse",
                "sentences": _sentences(study, sources[i]),
                "reference": underline(at, references[i]),
            }
            | {"hypotheses": {arm: underline(at, lines[i]) for arm, lines in hypotheses.items()}}
            for at, i in enumerate(shown)
        ],
        "low": low,
    }


def typical_ones(gap: list[float], number: int, but: set[int]) -> list[int]:
    """The places of `number` differences nearest the median of those that are not zero, the smallest first; none of those in `but`."""
    others = [i for i, one in enumerate(gap) if one and i not in but]
    if not others:
        return []
    middle = statistics.median(one for one in gap if one)
    return sorted(sorted(others, key=lambda i: (abs(gap[i] - middle), i))[:number], key=lambda i: (gap[i], i))


def underlining(study: Study, references: list[str]) -> tuple[int, Callable[[int, str], list[tuple[str, bool]]]]:
    """Below how many occurrences a word is rare, and what marks the rare words of a reference, by its place, in a line.

    Where words are not counted, as in tasks that are tested in other languages than that of the training text, nothing is marked.
    """
    if study.generated:
        return 0, lambda at, line: [(line, False)] if line else []
    low, cut = study.settings.word_accuracy.low, tokenizer(study.target, study.settings.word_accuracy)
    counts = read_frequencies(study.run / "frequencies.tsv")
    wanted = [{word for word in cut(line) if counts[word] < low and any(map(str.isalnum, word))} for line in references]
    return low, lambda at, line: rare_words(line, wanted[at], cut)


def _sentences(study: Study, source: str) -> list[str]:
    return [sentence.strip() for sentence in source.split(BREAK)] if study.task.documents else [source]


def rare_words(line: str, wanted: set[str], cut: Callable[[str], list[str]]) -> list[tuple[str, bool]]:
    """`line` split into (text, whether it is a `wanted` word); `cut` splits a line into words."""
    pieces, at, plain = [], 0, 0  # up to `at` the line is looked through, from `plain` on nothing is in a piece
    for word in cut(line):
        # the tokeniser may have changed characters of the word, such as quotation marks
        start = line.find(word, at)
        if word in wanted and start >= 0:
            pieces += [(line[plain:start], False), (word, True)]
            at = plain = start + len(word)
        elif start >= 0 and not line[at:start].strip():
            at = start + len(word)
    return [piece for piece in [*pieces, (line[plain:], False)] if piece[0]]
