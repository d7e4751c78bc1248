"""lexicon: finds the k nearest words of each word in the other language, in both directions.

Each direction starts from its own side: the German-English lexicon has German words and their nearest English words, the
English-German lexicon English words and their nearest German words (Zan et al., section III-B: "one of the top-k nearest
neighbors"). A word is never its own translation, so that switching a word always changes it.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Container
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

import regex
import torch

from workflow_scripts.device import pick_device
from workflow_scripts.lexicon.alignment import count_links
from workflow_scripts.lexicon.vectors import check, read_vectors
from workflow_scripts.models.tokenisation import unit_segmenter
from workflow_scripts.models.tokenizer import WORD_START
from workflow_scripts.number_types import Positive
from workflow_scripts.similarity import Similarities, Top, nearest, neighbourhoods, set_threads
from workflow_scripts.stage import InputError, checksums, run, write_json
from workflow_scripts.text.files import read_lines
from workflow_scripts.text.word_lists import check_order, read_dictionary, write_lexicon
from workflow_scripts.text.words import count_pieces, count_words

ALIGNED_PAIRS = 2_000_000


@dataclass
class Lexicon:
    """Settings of the lexicon."""

    top_k: Positive = 3
    """Number of translations per word (the paper's k). The paper gives no number; its published code uses three."""
    retrieval: Literal["csls", "cosine", "dot", "farthest"] = "csls"
    """How neighbours are ranked. The paper uses the dot product (`dot`). CSLS has fewer hubs, words that are close to too many others. The
    authors' published code takes the least similar words (`farthest`)."""
    csls_neighbours: Positive = 10
    """Number of neighbours (k) in CSLS."""
    min_score: float | None = None
    """Candidates with a lower score are left out; by default none. The score is what `retrieval` ranks by: a cosine (−1 to 1), a dot
    product, or its negative (`farthest`). For `csls` it is twice the cosine less the mean cosines of both words to their neighbours, which
    is often negative. With `mapping.mode: aligned` it is the share of the word's links that go to the candidate. With `dictionary` it is
    always 1."""
    numbers: bool = False
    """Whether words without a letter get translations too. The neighbours of a number are other numbers, from which no model can restore
    it."""
    align: bool = True
    """Whether a statistical aligner evaluates the lexicon on the parallel text; half a million pairs are enough. Only
    `mapping.mode: aligned` uses parallel text to make the lexicon."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Device for computing; `auto` takes a GPU if there is one."""


def main(
    lexicon_ab: Path,
    lexicon_ba: Path,
    report: Path,
    *,
    languages: tuple[str, str],
    mapped_a: Path | None = None,
    mapped_b: Path | None = None,
    dictionary: Path | None = None,
    aligned: bool = False,
    aligned_pairs: int = ALIGNED_PAIRS,
    model: Path | None = None,
    text_a: Path | None = None,
    text_b: Path | None = None,
    gold: Path | None = None,
    threads: int = 0,
    settings: Lexicon = Lexicon(),
) -> None:
    """Write the lexicons of both directions, from mapped vectors, a given dictionary or parallel text, and measure how good they are.

    Args:
        lexicon_ab: Lexicon from the first language into the second, to be written: word, candidate, rank, score.
        lexicon_ba: Lexicon from the second language into the first, to be written.
        report: JSON file with sizes, coverage and precision, to be written.
        languages: Codes of the two languages.
        mapped_a: Vectors of the first language, in the same space as those of the second.
        mapped_b: Vectors of the second language.
        dictionary: Used as the lexicon instead of vectors: two words per line, separated by a tab or a blank (MUSE's format).
        aligned: Make the lexicon from `text_a` and `text_b` with a statistical aligner, instead of from vectors.
        aligned_pairs: At most so many pairs of sentences, evenly spaced, make that lexicon.
        model: The vectors are those of this model's pieces; by default those of words. `gold` then judges only pieces that are whole
            lower-case words.
        text_a: Text in which words will be switched, to measure how much of it the lexicon covers.
        text_b: The same text in the second language, parallel line by line. With both, an aligner measures how many switched words
            get a right translation.
        gold: Word list with right translations, in the format and the order of the dictionary.
        threads: CPU threads; 0 leaves the choice to torch.
        settings: How to retrieve and select candidates.

    Raises:
        InputError: The input is bad, or not exactly one of vectors, dictionary and alignment is asked for.
    """
    if [bool(dictionary), bool(mapped_a or mapped_b), aligned].count(True) != 1 or bool(mapped_a) != bool(mapped_b):
        raise InputError("give either --mapped-a and --mapped-b, or --dictionary, or --aligned")
    if aligned and not (text_a and text_b):
        raise InputError("--aligned needs the parallel text: give --text-a and --text-b")
    segment = (unit_segmenter(languages[0], model), unit_segmenter(languages[1], model))
    counts: list[Counter[str]] = [Counter(), Counter()]
    for i, text in enumerate((text_a, text_b)):
        if text:
            counts[i] = count_pieces(read_lines(text), segment[i]) if model else count_words(read_lines(text), languages[i])
    gold_ab = read_gold(gold, languages, counts, model) if gold else {}
    gold_ba = invert(gold_ab)
    if dictionary:
        sides = from_dictionary(dictionary, languages, counts)
    elif mapped_a and mapped_b:
        if threads:
            set_threads(threads)
        sides = from_vectors(mapped_a, mapped_b, settings, judged=(gold_ab, gold_ba) if gold else None)
    links: Counter[tuple[str, str]] = Counter()
    if text_a and text_b and (settings.align or aligned):
        links = count_links(text_a, text_b, segment, aligned_pairs if aligned else _JUDGED_BY)
    if aligned:
        sides = from_links(links)
        # the aligner cannot judge what it made itself
        links = Counter()
    backwards = Counter({(b, a): n for (a, b), n in links.items()})
    a, b = languages
    write_json(
        report,
        {
            "directions": {
                f"{a}-{b}": write_direction(lexicon_ab, sides[0], counts[0], gold_ab, links, settings),
                f"{b}-{a}": write_direction(lexicon_ba, sides[1], counts[1], gold_ba, backwards, settings),
            },
            "gold": str(gold) if gold else None,
            "dictionary": str(dictionary) if dictionary else None,
            "aligned": aligned,
            "aligned_pairs": aligned_pairs if aligned else None,
            "checksums": checksums((text_a, text_b, gold, dictionary)),
            "settings": asdict(settings),
        },
    )


# ---------------------------------------------------------------------------------------------
# candidates

Ranked = dict[str, list[tuple[str, float]]]
"""Word → words of the other language and their scores, best first."""

Gold = dict[str, set[str]]
"""Word → its correct translations."""


class Side(NamedTuple):
    """One direction of the lexicon, before candidates are selected."""

    ranked: Ranked
    vocabulary: set[str]
    """All words of the other language."""
    nearest: Ranked | None = None
    """The same, ranked by plain cosine, for comparison."""


def write_direction(
    path: Path, side: Side, counts: Counter[str], truth: Gold, links: Counter[tuple[str, str]], settings: Lexicon
) -> dict[str, Any]:
    """Write the lexicon of one direction; returns what the report says of it. `counts` has the words of the text, `truth` judges."""
    entries = select(side.ranked, settings)
    write_lexicon(path, entries)
    return {
        "words": len(side.ranked),
        "entries": len(entries),
        "coverage": coverage(counts, entries) if counts else None,
        "gold": evaluate(side.ranked, side.vocabulary, truth) if truth else None,
        "gold_nearest": evaluate(side.nearest, side.vocabulary, truth) if truth and side.nearest is not None else None,
        "switched": judge_switched(counts, entries, truth, links) if counts and (truth or links) else None,
    }


def from_vectors(mapped_a: Path, mapped_b: Path, settings: Lexicon, judged: tuple[Gold, Gold] | None = None) -> tuple[Side, Side]:
    """Retrieve the nearest words in both directions; those of the words that are `judged`, also by plain cosine."""
    device = pick_device(settings.device)
    words, vectors = zip(*(read_vectors(path) for path in (mapped_a, mapped_b)), strict=True)
    check(mapped_a, vectors[0], mapped_b, vectors[1])
    a, b = (torch.from_numpy(x).to(device) for x in vectors)
    # more than needed, because the word itself, its other spellings and numbers may be among them
    k = 2 * max(settings.top_k, 5) + 10
    ranked = retrieve(a, b, k, settings)
    by_cosine = retrieve(a, b, k, replace(settings, retrieval="cosine")) if judged else None
    first, second = (
        Side(
            _named(words[i], words[1 - i], ranked[i]),
            set(words[1 - i]),
            _named(words[i], words[1 - i], by_cosine[i], judged[i]) if by_cosine and judged else None,
        )
        for i in (0, 1)
    )
    return first, second


def retrieve(a: torch.Tensor, b: torch.Tensor, k: int, settings: Lexicon) -> tuple[Top, Top]:
    """For each row of `a` (words × dimensions) its k best rows of `b`, best first; and for each row of `b` its k best rows of `a`."""
    if settings.retrieval == "farthest":
        a = -a
    elif settings.retrieval != "dot":
        a, b = (torch.nn.functional.normalize(side, dim=1) for side in (a, b))
    similarities = Similarities(a, b)
    near = neighbourhoods(similarities, settings.csls_neighbours) if settings.retrieval == "csls" else None
    top_a, top_b = nearest(similarities, k, near)
    return Top(top_a.values.cpu(), top_a.indices.cpu()), Top(top_b.values.cpu(), top_b.indices.cpu())


def _named(words_x: list[str], words_z: list[str], top: Top, only: Container[str] | None = None) -> Ranked:
    return {
        word: [(words_z[j], score) for j, score in zip(row.tolist(), scores.tolist(), strict=True)]
        for word, row, scores in zip(words_x, top.indices.numpy(), top.values.numpy(), strict=True)
        if only is None or word in only
    }


def from_dictionary(path: Path, languages: tuple[str, str], counts: list[Counter[str]]) -> tuple[Side, Side]:
    """Both directions of a given dictionary. The first translation of a word ranks first.

    Raises `InputError` for an empty one, or one whose sides look swapped beside the text's words.
    """
    if not (pairs := read_dictionary(path, languages)):
        raise InputError(f"{path}: is empty")
    check_order(path, pairs, languages, counts)
    ranked: tuple[Ranked, Ranked] = ({}, {})
    for pair in dict.fromkeys(pairs):
        for i in (0, 1):
            ranked[i].setdefault(pair[i], []).append((pair[1 - i], 1.0))
    return Side(ranked[0], set(ranked[1])), Side(ranked[1], set(ranked[0]))


# links that occur once may be the aligner's guess
_LINKS = 2
_JUDGED_BY = 500_000  # pairs of sentences


def from_links(links: Counter[tuple[str, str]]) -> tuple[Side, Side]:
    """What an aligner linked at least twice in parallel text; the score is the share of a word's links that go to the translation."""
    ranked: tuple[Ranked, Ranked] = ({}, {})
    for i in (0, 1):
        totals: Counter[str] = Counter()
        for pair, n in links.items():
            totals[pair[i]] += n
        # the most frequent words come first, as in vectors, and equally good translations in the order of the alphabet
        for pair, n in sorted(links.items(), key=lambda link: (-totals[link[0][i]], link[0][i], -link[1], link[0][1 - i])):
            if n >= _LINKS:
                ranked[i].setdefault(pair[i], []).append((pair[1 - i], n / totals[pair[i]]))
    return Side(ranked[0], set(ranked[1])), Side(ranked[1], set(ranked[0]))


_LETTER = regex.compile(r"\p{L}")
_SPECIAL = regex.compile(r"<.*>|\[.*\]|▁")


def select(ranked: Ranked, settings: Lexicon) -> Ranked:
    """The lexicon: at most `top_k` candidates per word, none of them the word itself or a special token."""
    entries: Ranked = {}
    for word, row in ranked.items():
        if not _usable(word, settings):
            continue
        candidates = [
            (candidate, score)
            for candidate, score in row
            if _usable(candidate, settings)
            and candidate.casefold() != word.casefold()
            and (settings.min_score is None or score >= settings.min_score)
        ]
        if candidates:
            entries[word] = candidates[: settings.top_k]
    return entries


def _usable(word: str, settings: Lexicon) -> bool:
    return not _SPECIAL.fullmatch(word) and (settings.numbers or bool(_LETTER.search(word)))


# ---------------------------------------------------------------------------------------------
# how good the lexicon is


def coverage(counts: Counter[str], entries: Ranked) -> dict[str, float]:
    """Share of the running words (tokens) and of the distinct words (types) that have an entry; `counts` has the words of the text."""
    return {
        "running_words": sum(n for word, n in counts.items() if word in entries) / max(1, counts.total()),
        "types": sum(word in entries for word in counts) / max(1, len(counts)),
    }


def evaluate(ranked: Ranked, vocabulary: set[str], gold: Gold) -> dict[str, dict[str, float]]:
    """P@1, P@5 and P@10 of the words in `gold`, with and without identical pairs.

    A word is covered if it has a row in `ranked` and one of its right translations is in `vocabulary`. P@k is the share of the covered
    words with a right translation among the first k candidates. For `non_identical`, pairs such as *format* - *format* are removed from
    both the gold lexicon and the candidates.
    """
    result = {}
    for name, keep_identical in (("all", True), ("non_identical", False)):
        hits: Counter[int] = Counter()
        covered = 0
        right = gold if keep_identical else {word: others for word, translations in gold.items() if (others := translations - {word})}
        for word, translations in right.items():
            truth = translations & vocabulary
            if word not in ranked or not truth:
                continue
            covered += 1
            candidates = [c for c, _ in ranked[word] if keep_identical or c != word]
            rank = next((r for r, c in enumerate(candidates[:10]) if c in truth), None)
            for k in (1, 5, 10):
                hits[k] += rank is not None and rank < k
        result[name] = {"gold_words": len(right), "covered": covered, **{f"p@{k}": hits[k] / max(1, covered) for k in (1, 5, 10)}}
    return result


def judge_switched(counts: Counter[str], entries: Ranked, gold: Gold, links: Counter[tuple[str, str]]) -> dict[str, float]:
    """Measure how many of the running words that are switched get a right translation.

    A translation is right if it is in the gold lexicon, or if the aligner links it to the word at least twice in the parallel text. A
    word can be judged if it is in the gold lexicon, or if any word is linked to it that often. All candidates of a word count equally,
    as they are drawn equally often in code-switching.

    Returns:
        `judged`: the share of the switchable running words that can be judged. `right`: the share of these whose translation is right.
        `judged_by_gold` and `right_by_gold`: the same with the gold lexicon only.
    """
    linked: Gold = {}
    for (word, other), n in links.items():
        if n >= _LINKS:
            linked.setdefault(word, set()).add(other)
    switchable = judged = judged_by_gold = right = right_by_gold = 0.0
    for word, candidates in entries.items():
        n = counts[word]
        switchable += n
        by_gold, by_either = gold.get(word, set()), gold.get(word, set()) | linked.get(word, set())
        if by_gold:
            judged_by_gold += n
            right_by_gold += n * statistics.fmean(candidate in by_gold for candidate, _ in candidates)
        if by_either:
            judged += n
            right += n * statistics.fmean(candidate in by_either for candidate, _ in candidates)
    return {
        "judged": judged / max(1, switchable),
        "right": right / max(1, judged),
        "judged_by_gold": judged_by_gold / max(1, switchable),
        "right_by_gold": right_by_gold / max(1, judged_by_gold),
    }


def read_gold(path: Path, languages: tuple[str, str], counts: list[Counter[str]], model: Path | None = None) -> Gold:
    """The word list that judges words, or those pieces of a `model` that are words, lower-cased like the corpus.

    Raises `InputError` where its sides look swapped.
    """
    mark = WORD_START if model else ""
    pairs = list(dict.fromkeys((mark + word, mark + translation) for word, translation in read_dictionary(path, languages)))
    check_order(path, pairs, languages, counts)
    gold: Gold = {}
    for word, translation in pairs:
        gold.setdefault(word, set()).add(translation)
    return gold


def invert(gold: Gold) -> Gold:
    """The same pairs in the other direction."""
    inverted: Gold = {}
    for word, translations in gold.items():
        for translation in translations:
            inverted.setdefault(translation, set()).add(word)
    return inverted


if __name__ == "__main__":
    run(main)
