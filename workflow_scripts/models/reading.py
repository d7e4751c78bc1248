"""reading: how much of a text a model's vocabulary lacks.

In a script that it does not have, each word is `<unk>`, and no model learns from that. A vocabulary of bytes, or one that falls back on
bytes, lacks nothing.
"""

import itertools
from collections.abc import Iterable
from typing import NamedTuple

from workflow_scripts.models.tokenisation import Codec
from workflow_scripts.models.tokenizer import WORD_START
from workflow_scripts.stage import InputError
from workflow_scripts.text.languages import language

LINES = 2_000
"""Lines of a text that are looked at, from its beginning."""
NOTED = 0.01
"""Share of unknown pieces from which on there is a note. In a script that a vocabulary has, rare signs alone are unknown: some in a
thousand."""
REFUSED = 0.25
"""Share from which on text is not trained on. In a script that a vocabulary lacks, only digits, punctuation and foreign words are known,
which in technical text may be half of the pieces; with every fourth piece lost, hardly a sentence is whole."""


class Unknown(NamedTuple):
    """What a vocabulary lacks of a text."""

    pieces: int
    """Pieces that were looked at, without marks of a word's beginning that stand alone."""
    unknown: int
    """Those of them that are unknown."""
    word: str
    """The first word that has one, cut to 30 characters."""

    @property
    def share(self) -> float:
        """The share of pieces that are unknown."""
        return self.unknown / max(1, self.pieces)

    def said(self, code: str) -> str:
        """The share, the language and an example in words."""
        return (
            f"{self.share:.{1 if self.share < 0.1 else 0}%} of the pieces of the {language(code).name} text are unknown, as {self.word!r}"
        )


WAY_OUT = (
    "take a model whose vocabulary has the script (NLLB, facebook/nllb-200-distilled-600M, reads 200 languages; XLM-R to understand text), "
    "or see that the file is in the language and encoding that it should be in"
)


def unknown_in(codec: Codec, lines: Iterable[str]) -> Unknown:
    """What the vocabulary lacks of the first lines of a text."""
    unk = codec.tokenizer.unk_token_id
    some = [line for line in itertools.islice(lines, LINES) if line.strip()]
    if unk is None:
        return Unknown(0, 0, "")
    # asked of each line by itself where its time is measured: to list the vocabulary takes longer than to translate
    alone = codec.tokenizer.convert_tokens_to_ids(WORD_START)
    alone = None if alone == unk else alone
    rows = codec.pieces(some)
    pieces = sum(piece != alone for row in rows for piece in row)
    unknown = sum(piece == unk for row in rows for piece in row)
    words = (word for line, row in zip(some, rows, strict=True) if unk in row for word in line.split())
    word = next((word for word in words if unk in codec.pieces([word])[0]), "") if unknown else ""
    return Unknown(pieces, unknown, word[:30])


def check_read(codec: Codec, texts: Iterable[tuple[str, str, Iterable[str]]]) -> dict[str, dict[str, float | str]]:
    """The share of unknown pieces in texts to be trained on, with an example: language → what the report says.

    Of each text there are a name, the language and the lines. Of several in a language the worst is reported. Raises `InputError` where so
    much is unknown that training makes no sense.
    """
    worst: dict[str, dict[str, float | str]] = {}
    for name, code, lines in texts:
        found = unknown_in(codec, lines)
        if found.share >= REFUSED:
            raise InputError(f"{name}: {found.said(code)}, to the vocabulary of the backbone; {WAY_OUT}")
        if found.share >= float(worst.get(code, {}).get("share", 0.0)):
            worst[code] = {"share": found.share, "word": found.word}
    return worst
