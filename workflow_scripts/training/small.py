"""small: small models with random weights and a vocabulary of their own, of the families whose entries say how one is made."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import regex

from workflow_scripts import registry
from workflow_scripts.number_types import Positive
from workflow_scripts.stage import InputError
from workflow_scripts.text.files import write_lines
from workflow_scripts.text.words import read_sentences
from workflow_scripts.training.pretraining_settings import Pretraining


@dataclass
class Small(Pretraining):
    """A small model made in the run: its shape and its pretraining."""

    vocabulary: Positive = 4_000
    """Number of SentencePiece pieces, for all languages together."""
    d_model: Positive = 192
    """Model width: size of the hidden states."""
    layers: Positive = 2
    """Number of layers in the encoder, and in the decoder if there is one."""
    heads: Positive = 4
    """Number of attention heads."""
    ffn: Positive = 512
    """Width of the feed-forward layers."""
    max_positions: Positive = 512
    """Maximum length of a row, in pieces."""


_LINES = 2_000_000
"""Lines that a vocabulary is learnt from, at most. SentencePiece holds some thirty bytes for each character."""


_LONGEST = 16_384
"""The bytes of a line beyond which SentencePiece would leave it out without a word."""


def build_model(
    small: Small, family: str, languages: tuple[str, ...], lines: list[str], task_text: tuple[Path, ...], folder: Path, seed: int
) -> Path:
    """A SentencePiece vocabulary in the family's layout of ids, and a model with random weights; in ``folder/start``, which it returns."""
    import sentencepiece
    from transformers import set_seed

    maker = registry.entry("family", family).maker
    if maker is None:
        raise InputError(f"small models are made of the families {', '.join(makeable())}, not {family}")
    text = folder / "vocabulary.txt"
    chosen = evenly_spaced(lambda: chain(lines, *map(read_sentences, task_text)), _LINES)
    write_lines(text, (part for line in chosen for part in _short_enough(line)))
    try:
        sentencepiece.SentencePieceTrainer.train(
            input=str(text),
            model_prefix=str(folder / "sentencepiece"),
            vocab_size=small.vocabulary,
            character_coverage=0.9995,
            model_type="unigram",
            num_threads=1,
            max_sentence_length=_LONGEST,
            hard_vocab_limit=False,
            normalization_rule_name="identity",  # the text is NFC already
            minloglevel=2,
        )
    except RuntimeError as error:  # its words name a line of its own source
        if not (needed := regex.search(r"required_chars\. \d+ vs (\d+)", str(error))):
            raise
        raise InputError(
            f"backbone: vocabulary: {small.vocabulary} is less than the {needed[1]} characters and signs that the text needs; raise it, to "
            "some thousands more than that"
        ) from None
    tokenizer = maker.tokenizer(folder / "sentencepiece.model", languages)
    set_seed(seed)
    maker.network(small, len(tokenizer)).save_pretrained(folder / "start")
    tokenizer.save_pretrained(folder / "start")
    return folder / "start"


def _short_enough(line: str) -> Iterable[str]:
    """A line in parts that SentencePiece reads; a character has at most four bytes."""
    most = _LONGEST // 4
    return [line] if len(line) <= most or len(line.encode()) <= _LONGEST else (line[at : at + most] for at in range(0, len(line), most))


def evenly_spaced(read: Callable[[], Iterable[str]], most: int) -> Iterator[str]:
    """At most `most` lines, evenly spaced over the text; `read` opens the text anew each time it is called."""
    count = max(most, sum(1 for _ in read()))
    return (line for at, line in enumerate(read()) if at * most // count > (at - 1) * most // count)


def makeable() -> list[str]:
    """The families of which small models can be made."""
    return [name for name, family in registry.entries("family").items() if family.maker]
