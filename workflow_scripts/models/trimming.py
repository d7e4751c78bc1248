"""trimming: a backbone's vocabulary cut down to the pieces that the run's text needs.

Of mBART's 250,027 pieces a task in two languages uses some ten thousand; the rest costs memory in the
embeddings and time in the output layer. Kept are the pieces of the text as it is and lower-cased,
single characters that occur in it, and all special tokens. That text is cut into the same pieces as
before: a best path through the whole vocabulary is the best through any part of it that has its
pieces, and a vocabulary that is put together by merging (NLLB's) keeps the steps to these pieces.
Numbers differ a little from an untrimmed run's all the same: label smoothing spreads its mass over
fewer pieces, and a switched word in new surroundings may be cut into smaller ones.
"""

import json
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

from transformers import PreTrainedModel

from workflow_scripts.models.networks import keep_rows
from workflow_scripts.models.tokenisation import WORD_START, Codec, load_tokenizer
from workflow_scripts.stage import InputError
from workflow_scripts.text.files import chunks


def trim(network: PreTrainedModel, codec: Codec, text: Iterable[str], folder: Path) -> Codec:
    """Cut `network` down in place; return the codec of the pieces that are left, whose tokenizer is written to `folder`.

    Raises `InputError` for a tokenizer that keeps its pieces in no `tokenizer.json` (M2M-100's).
    """
    if not codec.tokenizer.is_fast:
        raise InputError(f"the tokenizer of {codec.form.title} ({type(codec.tokenizer).__name__}) cannot be trimmed; leave `trim` out")
    kept = needed_pieces(codec, text)
    trimmed = Codec(trim_tokenizer(codec.tokenizer, kept, folder), codec.family)
    trim_network(network, kept)
    return trimmed


def needed_pieces(codec: Codec, text: Iterable[str]) -> list[int]:
    """Ids of the pieces to keep, ascending."""
    tokenizer = codec.tokenizer
    used: set[int] = set()
    for lines in chunks(text):
        # also lower-cased, because the words of a lexicon are
        for ids in codec.pieces([*lines, *(line.lower() for line in lines)], 1 << 30):
            used.update(ids)
    vocabulary = tokenizer.get_vocab()
    characters = set("".join(piece for piece, i in vocabulary.items() if i in used))
    special = {*tokenizer.all_special_ids, *tokenizer.added_tokens_decoder}
    single = {i for piece, i in vocabulary.items() if piece == WORD_START or piece.removeprefix(WORD_START) in characters}
    merges = json.loads(tokenizer.backend_tokenizer.to_str())["model"].get("merges")
    if merges:
        ranks = {tuple(pair): rank for rank, pair in enumerate(merges)}
        steps = {step for i in used for step in merging_steps(tokenizer.convert_ids_to_tokens(i), ranks)}
        used |= {vocabulary[step] for step in steps}
    return sorted(used | special | single)


def merging_steps(piece: str, ranks: dict[tuple[str, str], int]) -> set[str]:
    """The pieces through which byte-pair encoding (Sennrich et al. 2016) puts `piece` together, itself included.

    `ranks` are those of the pairs that may be merged, the earliest first. A piece is put together in the same way wherever it
    stands, as nothing on its inside is ever merged with what is outside.
    """
    symbols, seen = list(piece), set()
    while pairs := [(ranks[pair], at) for at, pair in enumerate(pairwise(symbols)) if pair in ranks]:
        _, at = min(pairs)
        symbols[at : at + 2] = ["".join(symbols[at : at + 2])]
        seen.add(symbols[at])
    return seen


def trim_tokenizer(tokenizer, kept: list[int], folder: Path):
    """The tokenizer with the kept pieces alone, in their order; `folder` is where its files go."""
    tokenizer.save_pretrained(folder)
    new_id = {old: new for new, old in enumerate(kept)}
    path = folder / "tokenizer.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    model = content["model"]
    if "merges" in model:
        model["vocab"] = {piece: new_id[i] for piece, i in model["vocab"].items() if i in new_id}
        left = model["vocab"].keys()
        model["merges"] = [pair for pair in model["merges"] if {*pair, "".join(pair)} <= left]
    else:
        model["vocab"] = [piece for i, piece in enumerate(model["vocab"]) if i in new_id]
        model["unk_id"] = new_id[model["unk_id"]]
    for token in content["added_tokens"]:
        token["id"] = new_id[token["id"]]
    for token in ((content.get("post_processor") or {}).get("special_tokens") or {}).values():
        token["ids"] = [new_id[i] for i in token["ids"]]
    path.write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")
    trimmed = load_tokenizer(folder)
    wrong = [i for i in kept if trimmed.convert_tokens_to_ids(tokenizer.convert_ids_to_tokens(i)) != new_id[i]]
    if wrong or len(trimmed) != len(kept):
        raise RuntimeError(f"the trimmed tokenizer has {len(trimmed)} pieces, not {len(kept)}; {len(wrong)} have another id than their row")
    return trimmed


def trim_network(network: Any, kept: list[int]) -> None:
    """Keep these rows of the embeddings and of the output layer; ids in the configuration follow."""
    new_id = {old: new for new, old in enumerate(kept)}
    keep_rows(network, kept)
    for config in (network.config, network.generation_config):
        for name in (
            "pad_token_id",
            "bos_token_id",
            "eos_token_id",
            "decoder_start_token_id",
            "forced_bos_token_id",
            "forced_eos_token_id",
        ):
            old = getattr(config, name, None)
            if old is not None:
                # the tag of a language that the tokenizer has lost becomes None
                setattr(config, name, new_id.get(old))
