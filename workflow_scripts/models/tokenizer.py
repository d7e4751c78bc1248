"""tokenizer: a model's tokenizer as its folder has it: loaded with the normaliser, its special pieces, and where its words begin."""

from __future__ import annotations

import functools
import json
import re
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

WORD_START = "▁"
"""SentencePiece's mark before the first piece of a word."""
BYTE_START = "Ġ"
"""The same of byte-level vocabularies (ModernBERT's), which the first word of a text lacks."""


def load_tokenizer(folder: Path | str) -> Any:
    """The tokenizer in a folder, which normalises text as the model's SentencePiece did."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    restore_normaliser(tokenizer, Path(folder))
    # transformers 5 takes M2M-100's tags for text: `decode` would write them, and CTranslate2 miss them in the vocabulary
    if tags := [tag for tag in getattr(tokenizer, "lang_token_to_id", ()) if tag not in tokenizer.all_special_tokens]:
        tokenizer.add_special_tokens({"additional_special_tokens": tags}, replace_extra_special_tokens=False)
    return tokenizer


def restore_normaliser(tokenizer, folder: Path) -> None:
    """Have a tokenizer normalise text as the model's SentencePiece did (NFKC and more, for the published mBARTs).

    transformers builds mBART's tokenizer anew and leaves that out; an ellipsis or a full-width letter would
    be unknown to it.
    """
    # a tokenizer that is not fast (M2M-100's) asks SentencePiece itself
    if not tokenizer.is_fast or tokenizer.backend_tokenizer.normalizer is not None:
        return
    from tokenizers import Tokenizer, normalizers

    if (folder / "tokenizer.json").exists():
        normaliser = Tokenizer.from_file(str(folder / "tokenizer.json")).normalizer
        if normaliser is not None:
            tokenizer.backend_tokenizer.normalizer = normaliser
            return
    if (folder / "sentencepiece.bpe.model").exists():
        from sentencepiece.sentencepiece_model_pb2 import ModelProto  # type: ignore[attr-defined]  # made by protobuf when imported

        rules = ModelProto.FromString((folder / "sentencepiece.bpe.model").read_bytes()).normalizer_spec.precompiled_charsmap
        if rules:
            tokenizer.backend_tokenizer.normalizer = normalizers.Precompiled(rules)


def without_rowless(tokenizer: Any, rows: int) -> Any:
    """A decoder's tokenizer without the special pieces that the embeddings have no row for.

    Gemma 3's has the piece of an image, of which its models that only read text have no row. A tokenizer is not the model's, and stays as
    it is, where the end of a text is among them.
    """
    from transformers import AutoTokenizer

    gone = {str(piece) for number, piece in tokenizer.added_tokens_decoder.items() if number >= rows and piece.special}
    if not gone or not tokenizer.is_fast or gone & {tokenizer.bos_token, tokenizer.eos_token, tokenizer.pad_token}:
        return tokenizer
    with tempfile.TemporaryDirectory(prefix="crossgap-") as name:
        tokenizer.save_pretrained(name)
        for path in Path(name).glob("*.json"):
            content = _without_pieces(json.loads(path.read_text(encoding="utf-8")), gone)
            path.write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")
        left = AutoTokenizer.from_pretrained(name)
    print(f"note: the embeddings have no row for {', '.join(sorted(gone))}, which the tokenizer has; left out", flush=True)
    return left


def _without_pieces(content: Any, gone: set[str]) -> Any:
    """The content of a tokenizer's file without what names these pieces, by their text or as an object that has it."""

    def names_one(value: Any) -> bool:
        return value in gone if isinstance(value, str) else isinstance(value, dict) and value.get("content") in gone

    if isinstance(content, dict):
        kept = {key: value for key, value in content.items() if not (names_one(value) or key in gone)}
        return {key: _without_pieces(value, gone) for key, value in kept.items()}
    if isinstance(content, list):
        return [_without_pieces(value, gone) for value in content if not names_one(value)]
    return content


def ids_needed(tokenizer: Any) -> int:
    """The rows that embeddings need for all pieces of a tokenizer. More of them are of no piece, as where they were padded for speed."""
    return 1 + max(tokenizer.get_vocab().values())


def special_pieces(tokenizer: Any) -> frozenset[str]:
    """The pieces that a tokenizer takes for signs of its own wherever they stand in a text: those that it names, as `</s>`, and others that
    were added as such, as Gemma's `<start_of_turn>`."""
    added = tokenizer.added_tokens_decoder.values()
    return frozenset({*tokenizer.all_special_tokens, *(piece.content for piece in added if piece.special)})


def defuse(line: str, specials: frozenset[str]) -> str:
    """`line` with a break inside each special piece that occurs in it, so that it is read as plain text."""
    beginnings, lengths = _beginnings(specials)

    def apart(found: re.Match[str]) -> str:
        at = found.start()
        return f"{found[0]} " if any(line[at : at + length] in specials for length in lengths) else found[0]

    return beginnings.sub(apart, line)


@functools.lru_cache(maxsize=16)
def _beginnings(specials: frozenset[str]) -> tuple[re.Pattern[str], list[int]]:
    """A pattern for the first characters of these pieces, and how long they are: Gemma has six thousand, of eight lengths."""
    first = sorted({special[0] for special in specials if special})
    return re.compile("|".join(map(re.escape, first)) or r"(?!)"), sorted({len(special) for special in specials if special})


def word_starts(tokenizer: Any) -> np.ndarray:
    """Of each id of the vocabulary, whether a word begins with that piece, as SentencePiece, a byte-level or BERT's vocabulary marks it.

    In a vocabulary without such marks each piece is a word.
    """
    tokens = tokenizer.convert_ids_to_tokens(range(len(tokenizer)))
    # a few pieces of any vocabulary begin with the marks of others, which are letters and signs as well
    mark = max(("##", WORD_START, BYTE_START), key=lambda mark: sum(token.startswith(mark) for token in tokens))
    return np.array([token.startswith(mark) != (mark == "##") for token in tokens])


def ordinary_pieces(tokenizer: Any) -> np.ndarray:
    """Ids of the pieces that text is made of, ascending (int32): all that are neither special nor added, so that they may be masked."""
    specials = {*tokenizer.all_special_ids, *tokenizer.added_tokens_decoder}
    return np.array(sorted(set(range(len(tokenizer))) - specials), dtype=np.int32)
