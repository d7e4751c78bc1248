"""trimming: a model's vocabulary cut down to the pieces that the run's text needs.

A task in two languages uses some ten thousand of mBART's 250,027 pieces, and no more of Gemma's 262,144. The rest costs memory in the
embeddings and time in the output layer. Kept are

- the pieces of the text as it is, lower-cased, and behind a blank;
- the letters that occur in it, digits and other printable signs of ASCII, and the pieces of all bytes where the vocabulary has them;
- the special tokens that the tokenizer, its chat template, or a setting of the model names.

That text is cut into the same pieces as before, whatever the kind of vocabulary:

- Unigram (XLM-R, mBART, mT5): a best path through the whole vocabulary is the best through any part of it that has its pieces. The piece
  with the lowest score stays, since the price of an unknown letter is set by it.
- byte-pair encoding (NLLB, Gemma, Llama, Qwen, BLOOM): the steps that lead to a kept piece stay. Of all pairs that stand beside each
  other the earliest in the list is merged, so it is the earliest in any part of the list that has it.
- WordPiece (BERT): the longest piece that fits is the longest among fewer pieces, too.

Numbers still differ a little from those of an untrimmed run. Probabilities are shared among fewer pieces, and a switched word in new
surroundings may be cut into smaller ones.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from tokenizers.pre_tokenizers import ByteLevel
from transformers import PreTrainedModel

from workflow_scripts.models.networks import configs_of, keep_rows
from workflow_scripts.models.tokenisation import Codec, sentinel_ids
from workflow_scripts.models.tokenizer import WORD_START, load_tokenizer
from workflow_scripts.stage import InputError
from workflow_scripts.text.files import chunks

MARKS = (WORD_START, "##", "Ġ")
"""What pieces begin with where a word does (SentencePiece, byte-level encoding), or where none does (BERT)."""
ALWAYS = frozenset(map(chr, range(0x21, 0x7F)))
"""Signs that are kept in any case: ASCII's letters, digits and punctuation, of which numbers and prompts are made."""


class Trimmed(NamedTuple):
    """A vocabulary that was cut down."""

    codec: Codec
    """Reads and writes with the pieces that are left."""
    counts: dict[str, int]
    """Of the text: `pieces`, those of them that are single bytes, as the vocabulary has no piece (`in_bytes`), and `unknown` ones."""


def trim(
    network: PreTrainedModel, codec: Codec, text: Iterable[str], folder: Path, prompts: Iterable[str] = (), behind: Sequence[str] = ()
) -> Trimmed:
    """Cut `network` down in place to the pieces of `text`; the tokenizer of the pieces that are left is written to `folder`.

    `prompts` are further texts, cut as they stand, special tokens included, such as those that a template makes. `behind` are texts that
    may stand directly behind a line, so that its last word is cut into pieces together with them. A model that reads bytes (ByT5) stays as
    it is, and all pieces of the text count as bytes. Raises `InputError` for a tokenizer that keeps its pieces in no `tokenizer.json`
    (M2M-100's).
    """
    if codec.form.reads_bytes:
        print(f"note: {codec.form.label} reads bytes, so there is nothing to trim", flush=True)
        size = sum(len(line.encode()) for line in text)
        return Trimmed(codec, {"pieces": size, "in_bytes": size, "unknown": 0})
    check_trimmable(codec)
    used = pieces_used(codec, text, prompts, behind)
    kept = pieces_to_keep(codec.tokenizer, {*used.ids, *sentinel_ids(codec), *ids_in_settings(network)})
    trimmed = replace(codec, tokenizer=trim_tokenizer(codec.tokenizer, kept, folder))
    trim_network(network, kept)
    return Trimmed(trimmed, used.counts)


def check_trimmable(codec: Codec) -> None:
    """Raise `InputError` for a tokenizer whose pieces are not to be had."""
    if not (codec.tokenizer.is_fast or codec.form.reads_bytes):
        raise InputError(f"the tokenizer of {codec.form.label} ({type(codec.tokenizer).__name__}) cannot be trimmed; leave `trim` out")


# ---------------------------------------------------------------------------------------------
# which pieces


@dataclass
class Used:
    """The pieces of some text."""

    ids: set[int] = field(default_factory=set)
    counts: dict[str, int] = field(default_factory=lambda: {"pieces": 0, "in_bytes": 0, "unknown": 0})


def pieces_used(codec: Codec, text: Iterable[str], prompts: Iterable[str] = (), behind: Sequence[str] = ()) -> Used:
    """The pieces of `text`, in all the forms in which noise and templates use it, also with any of `behind` there, and of `prompts`."""
    used, unknown, content = Used(), codec.tokenizer.unk_token_id, content_of(codec.tokenizer)
    # a blank or a line break by itself is spelt by no bytes, though byte-level vocabularies write it with such signs
    alone = {codec.tokenizer.convert_tokens_to_ids(piece) for piece in byte_pieces(content) - ALWAYS - {"Ġ", "Ċ", "ĉ", "č"}}
    for lines in chunks(text):
        forms = [lines, [line.lower() for line in lines]]  # as the words of a lexicon are
        if content["model"]["type"] == "BPE":  # in other vocabularies a blank at the beginning changes nothing
            forms += [[f" {line}" for line in form] for form in forms]
        for number, form in enumerate(forms):
            for ids in codec.pieces(form):
                used.ids.update(ids)
                if number == 0:
                    used.counts["pieces"] += len(ids)
                    used.counts["in_bytes"] += sum(i in alone for i in ids)
                    used.counts["unknown"] += sum(i == unknown for i in ids)
        ends = dict.fromkeys("".join(line.rpartition(" ")[1:]) for line in lines) if behind else ()
        used.ids.update(i for ids in codec.pieces([f"{end}{text}" for end in ends for text in behind]) for i in ids)
    for lines in chunks(prompts):
        for ids in codec.tokenizer(lines, add_special_tokens=False, verbose=False)["input_ids"]:
            used.ids.update(ids)
    return used


def pieces_to_keep(tokenizer: Any, used: set[int]) -> list[int]:
    """Ids of the pieces to keep, ascending: those that are `used`, and what belongs to them."""
    content = content_of(tokenizer)
    vocabulary, model = tokenizer.get_vocab(), content["model"]
    template = str(tokenizer.chat_template or "")
    named = {token["id"] for token in content["added_tokens"] if token["content"] in template}
    kept = used & {*vocabulary.values()} | named | {*tokenizer.all_special_ids, *ids_in_processor(content["post_processor"])}
    in_bytes = {vocabulary[piece] for piece in byte_pieces(content)}
    whole = in_bytes | {token["id"] for token in content["added_tokens"]}
    letters = ALWAYS | {*"".join(piece for piece, i in vocabulary.items() if i in kept)}
    kept |= {i for piece, i in vocabulary.items() if piece in MARKS or _without_mark(piece) in letters}
    if model["type"] == "BPE":
        if model.get("continuing_subword_prefix") or model.get("end_of_word_suffix"):
            raise InputError(f"the tokenizer {type(tokenizer).__name__} marks where a word ends, and cannot be trimmed; leave `trim` out")
        ranks = {tuple(pair): rank for rank, pair in enumerate(model["merges"])}
        steps = {step for piece in tokenizer.convert_ids_to_tokens([*kept - whole]) for step in merging_steps(piece, ranks)}
        kept |= {vocabulary[step] for step in steps}
    elif model["type"] == "Unigram":
        kept.add(min(range(len(model["vocab"])), key=lambda i: model["vocab"][i][1]))
        kept |= {model["unk_id"]} - {None}
    return sorted(kept | in_bytes)


def _without_mark(piece: str) -> str:
    return next((piece[len(mark) :] for mark in MARKS if piece.startswith(mark) and piece != mark), piece)


def content_of(tokenizer: Any) -> dict[str, Any]:
    """What a tokenizer's ``tokenizer.json`` says."""
    return json.loads(tokenizer.backend_tokenizer.to_str())


def byte_pieces(content: dict[str, Any]) -> set[str]:
    """The pieces that stand for a byte each, of a vocabulary that spells in bytes what it has no other piece for."""
    model = content["model"]
    vocabulary = {piece for piece, _ in model["vocab"]} if model["type"] == "Unigram" else model["vocab"].keys()
    if model.get("byte_fallback"):
        return {f"<0x{byte:02X}>" for byte in range(256)} & vocabulary
    return {*ByteLevel.alphabet()} & vocabulary if '"ByteLevel"' in json.dumps(content["pre_tokenizer"]) else set()


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


# ---------------------------------------------------------------------------------------------
# the tokenizer


def trim_tokenizer(tokenizer: Any, kept: list[int], folder: Path) -> Any:
    """The tokenizer with the kept pieces alone, in their order; `folder` is where its files go."""
    tokenizer.save_pretrained(folder)
    new_id = {old: new for new, old in enumerate(kept)}
    path = folder / "tokenizer.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    model = content["model"]
    if model["type"] == "Unigram":
        model["vocab"] = [piece for i, piece in enumerate(model["vocab"]) if i in new_id]
        model["unk_id"] = new_id.get(model["unk_id"])
    else:
        model["vocab"] = {piece: new_id[i] for piece, i in model["vocab"].items() if i in new_id}
    if "merges" in model:
        left = model["vocab"].keys()
        model["merges"] = [pair for pair in model["merges"] if {*pair, "".join(pair)} <= left]
    content["added_tokens"] = [{**token, "id": new_id[token["id"]]} for token in content["added_tokens"] if token["id"] in new_id]
    _renumber_processor(content["post_processor"], new_id)
    if content.get("padding"):
        content["padding"]["pad_id"] = new_id[content["padding"]["pad_id"]]
    path.write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")
    settings = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8"))
    if "added_tokens_decoder" in settings:
        added = settings["added_tokens_decoder"].items()
        settings["added_tokens_decoder"] = {str(new_id[int(i)]): token for i, token in added if int(i) in new_id}
        (folder / "tokenizer_config.json").write_text(json.dumps(settings, ensure_ascii=False, indent=2), encoding="utf-8")
    trimmed = load_tokenizer(folder)
    wrong = [i for i in kept if trimmed.convert_tokens_to_ids(tokenizer.convert_ids_to_tokens(i)) != new_id[i]]
    if wrong or len(trimmed) != len(kept):
        raise RuntimeError(f"the trimmed tokenizer has {len(trimmed)} pieces, not {len(kept)}; {len(wrong)} have another id than their row")
    return trimmed


def _processors(processor: dict[str, Any] | None) -> Iterator[dict[str, Any]]:
    """What puts special tokens around a text, each part by itself."""
    if processor:
        yield processor
        for part in processor.get("processors", ()):
            yield from _processors(part)


def ids_in_processor(processor: dict[str, Any] | None) -> set[int]:
    """The ids of the special tokens that a tokenizer puts around a text."""
    found: set[int] = set()
    for part in _processors(processor):
        found |= {i for token in part.get("special_tokens", {}).values() for i in token["ids"]}
        found |= {part[key][1] for key in ("cls", "sep") if key in part}
    return found


def _renumber_processor(processor: dict[str, Any] | None, new_id: dict[int, int]) -> None:
    for part in _processors(processor):
        for token in part.get("special_tokens", {}).values():
            token["ids"] = [new_id[i] for i in token["ids"]]
        for key in ("cls", "sep"):
            if key in part:
                part[key][1] = new_id[part[key][1]]


# ---------------------------------------------------------------------------------------------
# the network

_IDS = ("_token_id", "_token_ids", "_token_index", "suppress_tokens")
"""How settings are called that are the id of a piece, or a list of ids."""


def ids_in_settings(network: Any) -> set[int]:
    """The ids of pieces that settings of a network name."""
    return {i for _, _, value in _settings_of_ids(network) for i in (value if isinstance(value, list) else [value])}


def trim_network(network: Any, kept: list[int]) -> None:
    """Keep these rows of the embeddings and of the output layer; ids in the settings follow."""
    new_id = {old: new for new, old in enumerate(kept)}
    settings = [*_settings_of_ids(network)]
    keep_rows(network, kept)
    for config, name, value in settings:
        # the tag of a language that the tokenizer has lost becomes None
        setattr(config, name, [new_id[i] for i in value if i in new_id] if isinstance(value, list) else new_id.get(value))
    if words := getattr(getattr(network, "generation_config", None), "bad_words_ids", None):
        network.generation_config.bad_words_ids = [[new_id[i] for i in word] for word in words if {*word} <= new_id.keys()] or None


def _settings_of_ids(network: Any) -> Iterator[tuple[Any, str, Any]]:
    """Configuration, name and value of each setting that is an id of a piece, or a list of ids.

    An id that the embeddings never had a row for, such as the default of a mask that the model lacks, names no piece.
    """
    rows = network.get_input_embeddings().num_embeddings
    for config in (*configs_of(network.config), getattr(network, "generation_config", None)):
        for name, value in [*vars(config).items()] if config else ():
            ids = value if isinstance(value, list) else [value]
            if name.endswith(_IDS) and ids and all(type(i) is int and 0 <= i < rows for i in ids):
                yield config, name, value
