"""lexicon: for every word its k nearest words in the other language, in both directions.

Each direction is retrieved from its own side: the rows of the German-English lexicon are German
words and their English neighbours, and the other way round (Zan et al., section III-B: "one of the
top-k nearest neighbors"). A word is never its own translation, so that switching it changes it.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

import regex
import torch

from workflow_scripts.device import pick_device
from workflow_scripts.mapping import read_dictionary
from workflow_scripts.similarity import Similarities, Top, nearest, neighbourhoods
from workflow_scripts.stage import InputError, atomic, run, write_json
from workflow_scripts.text import read_lines, segment
from workflow_scripts.vectors import read_vectors


@dataclass
class Lexicon:
    """Settings of the lexicon."""

    top_k: int = 3
    """Candidates per word (the paper's k)."""
    retrieval: Literal["csls", "cosine", "dot"] = "csls"
    """How neighbours are ranked. The paper says dot product; csls finds fewer hubs."""
    csls_neighbours: int = 10
    """k of CSLS."""
    min_score: float | None = None
    """Candidates with a lower score are left out; nothing is by default."""
    numbers: bool = False
    """Whether words without a letter get candidates. The neighbours of a number are other numbers, which no model can restore."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Where to compute."""


def main(
    mapped_a: Path,
    mapped_b: Path,
    text_a: Path,
    text_b: Path,
    lexicon_ab: Path,
    lexicon_ba: Path,
    report: Path,
    *,
    languages: tuple[str, str],
    gold: Path | None = None,
    settings: Lexicon = Lexicon(),
) -> None:
    """Write both lexicons and what they are worth.

    `text_a` and `text_b` are the training text, for the coverage. `gold` is a word list, a pair
    a line in the order of `languages`, separated by a tab or a blank (MUSE's format).
    """
    device = pick_device(settings.device)
    words_a, a = read_vectors(mapped_a)
    words_b, b = read_vectors(mapped_b)
    a, b = torch.from_numpy(a).to(device), torch.from_numpy(b).to(device)
    gold_ab = read_gold(gold, languages) if gold else None
    gold_ba = invert(gold_ab) if gold_ab else None
    # one more than asked for, because the word itself may be among them
    ranked_ab, ranked_ba = retrieve(a, b, max(settings.top_k, 10) + 1, settings)
    directions = {}
    for code_x, code_z, words_x, words_z, ranked, text, path, truth in (
        (*languages, words_a, words_b, ranked_ab, text_a, lexicon_ab, gold_ab),
        (*languages[::-1], words_b, words_a, ranked_ba, text_b, lexicon_ba, gold_ba),
    ):
        entries = select(words_x, words_z, ranked, settings)
        write_lexicon(path, entries)
        directions[f"{code_x}-{code_z}"] = {
            "words": len(words_x),
            "entries": len(entries),
            "coverage": coverage(text, code_x, set(entries)),
            "gold": evaluate(words_x, words_z, ranked, truth) if truth else None,
        }
    write_json(
        report,
        {"directions": directions, "gold": str(gold) if gold else None, "settings": asdict(settings)},
    )


# ---------------------------------------------------------------------------------------------
# retrieval


def retrieve(a: torch.Tensor, b: torch.Tensor, k: int, settings: Lexicon) -> tuple[Top, Top]:
    """For each row of `a` (words × dimensions) its k best rows of `b`, nearest first, and the other way round."""
    if settings.retrieval != "dot":
        a, b = (torch.nn.functional.normalize(side, dim=1) for side in (a, b))
    similarities = Similarities(a, b)
    near = neighbourhoods(similarities, settings.csls_neighbours) if settings.retrieval == "csls" else None
    return tuple(Top(*(part.cpu() for part in top)) for top in nearest(similarities, k, near))


_LETTER = regex.compile(r"\p{L}")
_SPECIAL = regex.compile(r"^(<.*>|\[.*\]|▁.*)$")

Entries = dict[str, list[tuple[str, float]]]
"""Word → its candidates and their scores, best first."""


def select(words_x: list[str], words_z: list[str], ranked: Top, settings: Lexicon) -> Entries:
    """The lexicon proper: `top_k` candidates a word, none of them the word itself or a special piece."""
    usable_z = [bool(_usable(word, settings)) for word in words_z]
    entries: Entries = {}
    for word, row, scores in zip(words_x, ranked.indices.tolist(), ranked.values.tolist(), strict=True):
        if not _usable(word, settings):
            continue
        candidates = [
            (words_z[j], score)
            for j, score in zip(row, scores, strict=True)
            if usable_z[j] and words_z[j].casefold() != word.casefold() and (settings.min_score is None or score >= settings.min_score)
        ]
        if candidates:
            entries[word] = candidates[: settings.top_k]
    return entries


def _usable(word: str, settings: Lexicon) -> bool:
    return not _SPECIAL.match(word) and (settings.numbers or bool(_LETTER.search(word)))


# ---------------------------------------------------------------------------------------------
# what the lexicon is worth


def coverage(text: Path, language: str, known: set[str]) -> dict[str, float]:
    """Share of the running words and of the different words of `text` that have an entry."""
    counts = Counter(word for line in read_lines(text) for word in segment(line, language).split())
    total = sum(counts.values())
    return {
        "running_words": sum(n for word, n in counts.items() if word in known) / max(1, total),
        "types": sum(word in known for word in counts) / max(1, len(counts)),
    }


Gold = dict[str, set[str]]
"""Word → its correct translations."""


def evaluate(words_x: list[str], words_z: list[str], ranked: Top, gold: Gold) -> dict[str, dict[str, float]]:
    """P@1, P@5 and P@10 over the covered words of `gold`, with and without identical pairs.

    A word is covered when it and one of its translations have vectors; P@k is the share of covered
    words with a correct translation among the first k. Without identical pairs, pairs such as
    *format* - *format* count neither as gold nor as candidate.
    """
    vocabulary = set(words_z)
    rows = {word: row for row, word in enumerate(words_x)}
    result = {}
    for name, keep_identical in (("all", True), ("non_identical", False)):
        hits: Counter[int] = Counter()
        covered = 0
        for word, translations in gold.items():
            truth = {t for t in translations & vocabulary if keep_identical or t != word}
            if word not in rows or not truth:
                continue
            covered += 1
            candidates = [words_z[j] for j in ranked.indices[rows[word]].tolist()]
            if not keep_identical:
                candidates = [c for c in candidates if c != word]
            rank = next((r for r, c in enumerate(candidates[:10]) if c in truth), None)
            for k in (1, 5, 10):
                hits[k] += rank is not None and rank < k
        result[name] = {"gold_words": len(gold), "covered": covered, **{f"p@{k}": hits[k] / max(1, covered) for k in (1, 5, 10)}}
    return result


def read_gold(path: Path, languages: tuple[str, str]) -> Gold:
    """A word list as a mapping; words are folded like the corpus."""
    gold: Gold = {}
    for a, b in read_dictionary(path, languages):
        gold.setdefault(a, set()).add(b)
    return gold


def invert(gold: Gold) -> Gold:
    """The same pairs, looked up from the other side."""
    inverted: Gold = {}
    for word, translations in gold.items():
        for translation in translations:
            inverted.setdefault(translation, set()).add(word)
    return inverted


# ---------------------------------------------------------------------------------------------
# file


def write_lexicon(path: Path, entries: Entries) -> None:
    """Write ``word  candidate  rank  score``, tab-separated, words in order of frequency."""
    with atomic(path) as file:
        for word, candidates in entries.items():
            for rank, (candidate, score) in enumerate(candidates, 1):
                file.write(f"{word}\t{candidate}\t{rank}\t{score:.4f}\n")


def read_lexicon(path: Path) -> Iterator[tuple[str, str, float]]:
    """The (word, candidate, score) rows of a lexicon, in order.

    Raises `InputError` naming the line that is not one.
    """
    for number, line in enumerate(read_lines(path), 1):
        cells = line.split("\t")
        try:
            yield cells[0], cells[1], float(cells[3])
        except (IndexError, ValueError):
            raise InputError(f"{path}, line {number}: expected word, candidate, rank, score: {line[:60]!r}") from None


if __name__ == "__main__":
    run(main)
