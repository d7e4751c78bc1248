"""offsets: the pieces of a text, and where in the text each stands.

A tokenizer normalises text (Unicode's NFKC and more, in the published models), so pieces do not add up to it: one letter may become two
pieces, and several blanks one. Fast tokenizers know which characters a piece came from. SentencePiece itself, which M2M-100 is read
with, counts bytes of the text before normalisation. The pieces of ByT5 are these bytes.
"""

from collections.abc import Sequence, Set
from typing import Any, NamedTuple

from workflow_scripts.models.tokenizer import WORD_START, special_pieces


class Pieces(NamedTuple):
    """The pieces of a text: ids, and for each the characters of the text that it stands for (begin, end).

    The offsets are without white space; a piece that stands for nothing else has an end that equals its begin.
    """

    ids: list[int]
    offsets: list[tuple[int, int]]


def pieces_in_place(tokenizer: Any, texts: Sequence[str]) -> list[Pieces]:
    """The pieces of each text; special tokens that happen to stand in a text are read as text."""
    specials = special_pieces(tokenizer)
    changed = [defuse_in_place(text, specials) for text in texts]
    cut = _cut_fast if tokenizer.is_fast else _cut_sentencepiece if hasattr(tokenizer, "sp_model") else _cut_bytes
    found = []
    for text, (_, origin), (ids, offsets) in zip(texts, changed, cut(tokenizer, [line for line, _ in changed]), strict=True):
        if origin:
            offsets = [(origin[begin], origin[end - 1] + 1) if end > begin else (origin[begin],) * 2 for begin, end in offsets]
        tokens = tokenizer.convert_ids_to_tokens(ids)
        found.append(Pieces(ids, [_trimmed(text, place, token) for place, token in zip(offsets, tokens, strict=True)]))
    return found


def defuse_in_place(text: str, specials: Set[str]) -> tuple[str, list[int]]:
    """`text` with special tokens taken apart by a blank, and for each character the place in `text`; no places where nothing changed.

    The last place is the end of the text.
    """
    origin: list[int] = []
    for special in specials:
        while len(special) > 1 and (at := text.find(special)) >= 0:
            origin = origin or list(range(len(text) + 1))
            text = f"{text[: at + 1]} {text[at + 1 :]}"
            origin.insert(at + 1, origin[at] + 1)
    return text, origin


def _trimmed(text: str, place: tuple[int, int], token: str) -> tuple[int, int]:
    """A piece's place without the white space around it; some tokenizers give the mere start of a word the letter that follows."""
    begin, end = place
    if token == WORD_START:
        return begin, begin
    while end > begin and text[end - 1].isspace():
        end -= 1
    while begin < end and text[begin].isspace():
        begin += 1
    return begin, end


def _cut_fast(tokenizer: Any, lines: list[str]) -> list[tuple[list[int], list[tuple[int, int]]]]:
    if not lines:
        return []
    found = tokenizer(lines, add_special_tokens=False, return_offsets_mapping=True, verbose=False)
    return [(list(ids), [(b, e) for b, e in offsets]) for ids, offsets in zip(found["input_ids"], found["offset_mapping"], strict=True)]


def _cut_sentencepiece(tokenizer: Any, lines: list[str]) -> list[tuple[list[int], list[tuple[int, int]]]]:
    made = []
    for line in lines:
        pieces = tokenizer.sp_model.encode(line, return_type="proto").pieces
        # the character that each byte of the line belongs to, and the end of the line
        character = [*_characters(line), len(line)]
        ids = tokenizer.convert_tokens_to_ids([piece.piece for piece in pieces])
        made.append((ids, [(character[piece.begin], character[piece.end]) for piece in pieces]))
    return made


def _cut_bytes(tokenizer: Any, lines: list[str]) -> list[tuple[list[int], list[tuple[int, int]]]]:
    rows = tokenizer(lines, add_special_tokens=False, verbose=False)["input_ids"] if lines else []
    return [(ids, [(at, at + 1) for at in _characters(line)]) for ids, line in zip(rows, lines, strict=True)]


def _characters(line: str) -> list[int]:
    """The character that each byte of a line belongs to."""
    return [at for at, letter in enumerate(line) for _ in letter.encode()]
