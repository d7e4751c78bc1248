"""embeddings: learns word vectors of one language from the task's own training text.

The method is skip-gram with negative sampling (Mikolov et al. 2013), as in Zan et al., section III-B: "only trained using
datasets of downstream tasks". Vectors are those of words, not of subwords, because whole words are switched later. If a
model is given, they are those of its pieces, as in the authors' published code. gensim does the training, from a file
(`corpus_file`), so that several threads can work without waiting for Python's interpreter lock. Where it has no build, as for Python
3.14, `skipgram` does it.
"""

import importlib.util
import tempfile
from array import array
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from workflow_scripts.lexicon.skipgram import skipgram
from workflow_scripts.lexicon.vectors import write_vectors
from workflow_scripts.models.tokenisation import unit_segmenter
from workflow_scripts.number_types import AboveZero, NotNegative, Positive
from workflow_scripts.stage import InputError, provenance, run
from workflow_scripts.text.files import chunks, read_lines


@dataclass
class Embeddings:
    """Settings of word2vec."""

    dimensions: Positive = 300
    """Number of dimensions of a word vector."""
    window: Positive = 10
    """Maximum number of context words on each side."""
    negative: Positive = 10
    """Number of negative samples per word."""
    epochs: Positive = 20
    """Number of passes over the training text. Small corpora need more."""
    min_count: Positive = 4
    """Words with fewer occurrences get no vector, so they have no translation in the lexicon."""
    sample: NotNegative = 1e-3
    """Threshold for down-sampling frequent words; 0 uses all occurrences."""
    alpha: AboveZero = 0.025
    """Initial learning rate. It falls linearly."""
    workers: Positive = 1
    """Number of threads. With more than one, results vary between runs."""


def main(
    text: Path, vectors: Path, *, language: str, model: Path | None = None, seed: int = 1, settings: Embeddings = Embeddings()
) -> None:
    """Learn vectors of the lower-cased words of `text`, or of the pieces of `model`, and write them with the most frequent first.

    Raises `InputError` if too few words are frequent enough.
    """
    segment = unit_segmenter(language, model)
    with tempfile.TemporaryDirectory(prefix="crossgap-") as folder:
        segmented = Path(folder) / "segmented.txt"
        with open(segmented, "w", encoding="utf-8") as file:
            for lines in chunks(read_lines(text)):
                file.writelines(f"{line}\n" for line in segment(lines))
        learn = _by_gensim if importlib.util.find_spec("gensim") else by_skipgram
        words, learnt = learn(segmented, seed, settings, text)
    write_vectors(vectors, words, learnt)
    print({"words": len(words), **asdict(settings), **provenance()})


def _check_enough(words: int, settings: Embeddings, named: Path) -> None:
    if words < 2 * settings.negative:
        raise InputError(
            f"{named}: only {words} words occur {settings.min_count} times or more; give more text or lower embeddings.min_count"
        )


def _by_gensim(segmented: Path, seed: int, settings: Embeddings, named: Path) -> tuple[list[str], np.ndarray]:
    """Words and their vectors (words × dimensions) that gensim learns from a file with one sentence per line and blanks between words.

    Raises `InputError` if too few words are frequent enough; the message names the file `named`.
    """
    from gensim.models import Word2Vec

    model = Word2Vec(
        sg=1,
        hs=0,
        vector_size=settings.dimensions,
        window=settings.window,
        negative=settings.negative,
        min_count=settings.min_count,
        sample=settings.sample,
        alpha=settings.alpha,
        workers=settings.workers,
        seed=seed,
    )
    model.build_vocab(corpus_file=str(segmented))
    _check_enough(len(model.wv), settings, named)
    model.train(
        corpus_file=str(segmented),
        total_words=model.corpus_total_words,
        total_examples=model.corpus_count,
        epochs=settings.epochs,
    )
    return model.wv.index_to_key, model.wv.vectors


def by_skipgram(segmented: Path, seed: int, settings: Embeddings, named: Path) -> tuple[list[str], np.ndarray]:
    """What `skipgram` learns, as `_by_gensim` returns it."""
    words = Counter(word for line in read_lines(segmented) for word in line.split())
    counted = [(word, count) for word, count in words.most_common() if count >= settings.min_count]
    _check_enough(len(counted), settings, named)
    numbers = {word: number for number, (word, _) in enumerate(counted)}
    lines, ends = array("i"), array("q")
    for line in read_lines(segmented):
        lines.extend(numbers[word] for word in line.split() if word in numbers)
        ends.append(len(lines))
    how = {name: value for name, value in asdict(settings).items() if name != "min_count"}
    vectors = skipgram(np.asarray(lines), np.asarray(ends), np.array([count for _, count in counted]), seed=seed, **how)
    return [word for word, _ in counted], vectors


if __name__ == "__main__":
    run(main)
