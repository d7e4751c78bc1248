"""alignment: finds which words of a parallel text translate each other, with a statistical aligner.

It judges lexicons, and makes a lexicon that is an upper bound (`mapping.mode: aligned`); no other stage learns from it. The aligner is
fast_align (Dyer, Chahuneau and Smith 2013), in the systran-align package.
"""

import tempfile
from collections import Counter
from pathlib import Path

from workflow_scripts.text.files import chunks, lockstep, read_lines
from workflow_scripts.text.words import Segment


def count_links(text_a: Path, text_b: Path, segment: tuple[Segment, Segment], most: int) -> Counter[tuple[str, str]]:
    """(word, word) → number of times that they are linked in two files that are parallel line by line.

    The aligner aligns in both directions and symmetrises the links. The same text gives the same links in every run. Of more than `most`
    pairs of sentences, between half as many and `most` are aligned, evenly spaced.

    Raises `InputError` if the files differ in their number of lines.
    """
    # imported here because it is slow and rarely needed
    import systran_align
    from threadpoolctl import threadpool_limits

    every = max(1, -(-sum(1 for _ in read_lines(text_a, normalise=False)) // most))
    with tempfile.TemporaryDirectory(prefix="crossgap-") as folder:
        joined, forward, backward = (str(Path(folder) / name) for name in ("text", "forward", "backward"))
        with open(joined, "w", encoding="utf-8") as file:
            for a, b in _sentences(text_a, text_b, segment, every):
                file.write(f"{a} ||| {b}\n")
        # several threads would add up counts in another order in every run, and so round them in another way
        with threadpool_limits(limits=1, user_api="openmp"):
            systran_align.generate_alignment_probabilities(
                joined, forward, backward, favor_diagonal=True, optimize_tension=True, variational_bayes=True
            )
        aligner = systran_align.Aligner(forward, backward)
    links: Counter[tuple[str, str]] = Counter()
    for batch in chunks(_sentences(text_a, text_b, segment, every)):
        side_a, side_b = ([sentence.split() for sentence in side] for side in zip(*batch, strict=True))
        for a, b, aligned in zip(side_a, side_b, aligner.align_batch(side_a, side_b), strict=True):
            links.update((a[i], b[j]) for i, j in aligned["alignments"])
    return links


def _sentences(text_a: Path, text_b: Path, segment: tuple[Segment, Segment], every: int):
    """Of every `every`-th pair of sentences the words of both sides. Raises `InputError` for sides of different length."""
    for pairs in chunks((a, b) for number, a, b in lockstep(text_a, text_b) if not number % every):
        side_a, side_b = (cut(side) for cut, side in zip(segment, zip(*pairs, strict=True), strict=True))
        yield from ((a, b) for a, b in zip(side_a, side_b, strict=True) if a and b)
