"""word2vec on the task's own text."""

import pytest
from tiny_models import manual_pairs

from workflow_scripts.lexicon.embeddings import Embeddings, main
from workflow_scripts.lexicon.vectors import read_vectors
from workflow_scripts.stage import InputError

FAST = {"dimensions": 20, "window": 5, "negative": 5, "epochs": 2}


def text(folder, lines):
    (folder / "t.de").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return folder / "t.de"


def test_words_are_folded_frequent_and_the_result_is_deterministic(tmp_path):
    source = text(tmp_path, manual_pairs(600)[0])
    for name in ("one", "two"):
        main(source, tmp_path / name, language="de", seed=3, settings=Embeddings(**FAST))
    words, vectors = read_vectors(tmp_path / "one")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    assert vectors.shape == (len(words), 20) and all(word == word.lower() for word in words)
    assert words[0] in ("der", "die", "das", "sie") and "symbolleiste" in words and "." not in words
    main(source, tmp_path / "three", language="de", seed=4, settings=Embeddings(**FAST))
    assert (tmp_path / "three").read_bytes() != (tmp_path / "one").read_bytes()


def test_too_little_text_says_what_to_change(tmp_path):
    with pytest.raises(InputError, match=r"lower embeddings\.min_count"):
        main(text(tmp_path, ["nur ein kurzer satz"]), tmp_path / "v", language="de", settings=Embeddings(**FAST))
