"""embeddings: word vectors of one language, learnt from the task's own training text.

Skip-gram with negative sampling (Mikolov et al. 2013), as in Zan et al., section III-B: "only
trained using datasets of downstream tasks". The unit is the word, not the subword, because whole
words are switched later; with a model, its pieces are the unit, as in the authors' published code.
gensim does the learning, reading from a file (`corpus_file`), which
keeps its workers out of Python's lock.
"""

import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

from workflow_scripts.lexicon.vectors import write_vectors
from workflow_scripts.limits import AboveZero, NotNegative, Positive
from workflow_scripts.models.tokenisation import unit_segmenter
from workflow_scripts.stage import InputError, provenance, run
from workflow_scripts.text.files import read_lines


@dataclass
class Embeddings:
    """Settings of word2vec."""

    dimensions: Positive = 300
    """Length of a word vector."""
    window: Positive = 10
    """Context words on either side, at most."""
    negative: Positive = 10
    """Negative samples per word."""
    epochs: Positive = 20
    """Passes over the training text. Small corpora need more."""
    min_count: Positive = 4
    """Rarer words get no vector, hence no translation in the lexicon."""
    sample: NotNegative = 1e-3
    """Down-sampling threshold of frequent words; 0 keeps all of them."""
    alpha: AboveZero = 0.025
    """First learning rate; falls linearly."""
    workers: Positive = 1
    """Threads. One is deterministic; with more the result varies from run to run."""


def main(
    text: Path, vectors: Path, *, language: str, model: Path | None = None, seed: int = 1, settings: Embeddings = Embeddings()
) -> None:
    """Learn the vectors of the words of `text`, most frequent first, case-folded; or of the pieces of a `model`."""
    segment = unit_segmenter(language, model)
    with tempfile.TemporaryDirectory(prefix="crossgap-") as folder:
        segmented = Path(folder) / "segmented.txt"
        with open(segmented, "w", encoding="utf-8") as file:
            for line in read_lines(text):
                file.write(segment(line) + "\n")
        learnt_words, learnt = learn(segmented, seed, settings, named=text)
    write_vectors(vectors, learnt_words, learnt)
    print({"words": len(learnt_words), **asdict(settings), **provenance()})


def learn(segmented: Path, seed: int, settings: Embeddings, named: Path | None = None):
    """Words and vectors (words × dimensions) of a file of space-separated words, a sentence a line.

    Raises `InputError`, which calls the file `named`, when too few words are frequent enough.
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
    if len(model.wv) < 2 * settings.negative:
        raise InputError(
            f"{named or segmented}: only {len(model.wv)} words occur {settings.min_count} times or more; "
            "give more text or lower embeddings.min_count"
        )
    model.train(
        corpus_file=str(segmented),
        total_words=model.corpus_total_words,
        total_examples=model.corpus_count,
        epochs=settings.epochs,
    )
    return model.wv.index_to_key, model.wv.vectors


if __name__ == "__main__":
    run(main)
