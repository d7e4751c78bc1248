"""alignment: finds which words of a parallel text translate each other, with a statistical aligner.

It judges lexicons, and makes a lexicon that is an upper bound (`mapping.mode: aligned`); no other stage learns from it. The aligner is
fast_align (Dyer, Chahuneau and Smith 2013), as Thot has it (the package sil-thot).
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from workflow_scripts.text.files import chunks, lockstep, read_lines
from workflow_scripts.text.words import Segment

# rounds of learning, as in the paper; with ten P@1 of the manual's lexicon is the same
_ROUNDS = 5


def count_links(text_a: Path, text_b: Path, segment: tuple[Segment, Segment], most: int) -> Counter[tuple[str, str]]:
    """(word, word) → number of times that they are linked in two files that are parallel line by line.

    The aligner aligns in both directions, and the links that both find are counted. The same text gives the same links in every run. If
    there are more than `most` pairs of sentences, between half of `most` and `most` are aligned, evenly spaced. Pairs with more than 1,024
    words on a side, which the aligner does not take, are left out, and a line on standard output counts them.

    Raises `InputError` if the files differ in their number of lines.
    """
    # imported here because it is rarely needed
    from thot.alignment import FastAlignModel, SymmetrizationHeuristic, SymmetrizedAligner
    from threadpoolctl import threadpool_limits

    every = max(1, -(-sum(1 for _ in read_lines(text_a, normalise=False)) // most))
    forward, backward = FastAlignModel(), FastAlignModel()
    too_long = 0
    for a, b in _sentences(text_a, text_b, segment, every):
        if _is_too_long(a, b):
            too_long += 1
            continue
        forward.add_sentence_pair(a, b)
        backward.add_sentence_pair(b, a)
    if too_long:
        print(f"note: {too_long:,} pairs have more than {_LONGEST:,} words on a side, and are not aligned", flush=True)
    links: Counter[tuple[str, str]] = Counter()
    # several threads would add up counts in another order in every run, and so round them in another way
    with threadpool_limits(limits=1, user_api="openmp"):
        _learn(forward)
        _learn(backward)
        aligner = SymmetrizedAligner(forward, backward)
        # more links (GROW_DIAG) make a lexicon with a lower P@1 that covers hardly more of the text
        aligner.heuristic = SymmetrizationHeuristic.INTERSECTION
        for batch in chunks(pair for pair in _sentences(text_a, text_b, segment, every) if not _is_too_long(*pair)):
            side_a, side_b = ([*side] for side in zip(*batch, strict=True))
            for a, b, (_, aligned) in zip(side_a, side_b, aligner.get_best_alignments(side_a, side_b), strict=True):
                links.update((a[i], b[j]) for i, j in zip(*aligned.to_numpy().nonzero(), strict=True))
    return links


def _learn(model: Any) -> None:
    model.variational_bayes = True
    model.start_training()
    for _ in range(_ROUNDS):
        model.train()
    model.end_training()


_LONGEST = 1024
"""The most words of a sentence that Thot aligns; it says nothing of longer ones."""


def _is_too_long(a: list[str], b: list[str]) -> bool:
    return max(len(a), len(b)) > _LONGEST


def _sentences(text_a: Path, text_b: Path, segment: tuple[Segment, Segment], every: int) -> Iterator[tuple[list[str], list[str]]]:
    """The words of both sides of every `every`-th pair of sentences. Raises `InputError` for sides of different length."""
    for pairs in chunks((a, b) for number, a, b in lockstep(text_a, text_b) if not number % every):
        side_a, side_b = (cut(side) for cut, side in zip(segment, zip(*pairs, strict=True), strict=True))
        yield from ((a.split(), b.split()) for a, b in zip(side_a, side_b, strict=True) if a and b)
