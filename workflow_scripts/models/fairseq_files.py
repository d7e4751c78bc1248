"""fairseq_files: the files beside a checkpoint of fairseq, its dictionary and its SentencePiece model, and the tokenizer that they make."""

from pathlib import Path
from typing import Any, NamedTuple

from workflow_scripts.models.makers import FIRST, tagged_tokenizer
from workflow_scripts.stage import InputError
from workflow_scripts.text.words import MASK

_UNKNOWN_SHARE = 0.01
"""The share of a dictionary that may be no pieces: rare characters, and what fairseq fills a dictionary up with."""


class Files(NamedTuple):
    """The files of a model of fairseq."""

    checkpoint: Path
    dictionary: Path
    pieces: Path


class Vocabulary(NamedTuple):
    """The pieces of a model in the order of their ids."""

    symbols: list[str]
    tags: list[str]
    """Those of `symbols` that are tags of languages, such as ``[de_DE]``."""


def files_of(model: Path) -> Files:
    """The files of a model, in a folder or beside its checkpoint. Raises `InputError` for those that are not there."""
    folder = model if model.is_dir() else model.parent
    checkpoint = folder / "model.pt" if model.is_dir() else model
    if not checkpoint.is_file():
        others = sorted(path.name for path in folder.glob("*.pt")) if folder.is_dir() else []
        instead = f"; name one of {', '.join(others[:5])} itself" if others else "; give the folder of a model of fairseq"
        raise InputError(f"{checkpoint}: no such file{instead}")
    if (folder / "dict.txt").is_file():
        dictionary = folder / "dict.txt"
    elif found := sorted(folder.glob("dict.*.txt")):
        dictionary = found[0]
        if other := next((path for path in found if path.read_bytes() != dictionary.read_bytes()), None):
            raise InputError(f"{other}: differs from {dictionary.name}; a model whose sides have dictionaries of their own is not read")
    else:
        raise InputError(f"{folder / 'dict.txt'}: no such file; copy the dictionary of the checkpoint there")
    pieces = sorted(folder.glob("*.model"))
    if len(pieces) != 1:
        there = f"there are {len(pieces)}: {', '.join(path.name for path in pieces)}" if pieces else "there is none"
        raise InputError(f"{folder}: needs one SentencePiece model (sentencepiece.bpe.model), and {there}")
    return Files(checkpoint, dictionary, pieces[0])


def read_dictionary(path: Path) -> list[str]:
    """The entries of a dictionary in their order.

    Raises `InputError` for a line that is no entry with its count, and for an entry that comes twice.
    """
    found: dict[str, int] = {}
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: is not UTF-8 ({error.reason} at byte {error.start}); copy the dictionary again") from None
    for number, line in enumerate(lines, start=1):
        if not line.strip() and number == len(lines):
            break
        entry, _, count = line.rstrip("\r").removesuffix(" #fairseq:overwrite").rpartition(" ")
        if not entry or not count.isascii() or not count.lstrip("-").isdigit():
            raise InputError(f"{path}, line {number}: {line!r} is no entry of fairseq's dictionaries; each is a piece, a blank and a count")
        if entry in found:
            raise InputError(f"{path}, line {number}: {entry!r} stands in line {found[entry]} as well; copy the dictionary again")
        found[entry] = number
    if not found:
        raise InputError(f"{path}: is empty; copy the dictionary again")
    return [*found]


def vocabulary_of(files: Files, arguments: dict[str, Any], rows: int) -> Vocabulary:
    """The vocabulary of a model with embeddings for `rows` pieces: its dictionary, and behind that tags of languages and ``<mask>``.

    Raises `InputError` where no such combination has that many pieces.
    """
    entries = read_dictionary(files.dictionary)
    languages = _languages(files, arguments)
    tags = [f"[{code}]" for code in languages]
    tried = []
    # a model that was finetuned to translate may have lost its mask
    ends = ([MASK], []) if "translation" in str(arguments.get("task")) else ([MASK],)
    for more in ([*before, *end] for end in ends for before in (tags, [])):
        symbols = list(dict.fromkeys([*FIRST, *entries, *more]))
        if len(symbols) == rows:
            return Vocabulary(symbols, [tag for tag in tags if tag in symbols])
        tried.append(len(symbols))
    said = f"{len(languages)} languages" if languages else "no languages"
    raise InputError(
        f"{files.dictionary}: has {len(entries):,} entries, which makes {' or '.join(f'{n:,}' for n in dict.fromkeys(tried))} pieces with "
        f"{said}, and {files.checkpoint.name} has {rows:,}; copy the dictionary of that checkpoint, or, where the checkpoint does not name "
        f"its languages, list them in {files.dictionary.with_name('langs.txt')}, one a line, in their order"
    )


def _languages(files: Files, arguments: dict[str, Any]) -> list[str]:
    """The languages that a model has tags for, in their order: of its arguments, or listed beside it."""
    named = arguments.get("langs")
    if isinstance(named, str) and named:
        return named.split(",")
    if isinstance(named, list | tuple):
        return [str(code) for code in named]
    listed = files.dictionary.with_name("langs.txt")
    return listed.read_text(encoding="utf-8").split() if listed.is_file() else []


def scores_of(path: Path) -> dict[str, float]:
    """The pieces of a SentencePiece model with their scores. Raises `InputError` for a file that is none, and one of another kind."""
    model = _proto(path)
    if model.trainer_spec.model_type != model.trainer_spec.UNIGRAM:
        raise InputError(f"{path}: is a SentencePiece model with merges (BPE); models of kind unigram, as XLM-R and mBART have, are read")
    ordinary = model.SentencePiece.NORMAL, model.SentencePiece.USER_DEFINED
    return {piece.piece: piece.score for piece in model.pieces if piece.type in ordinary}


def _proto(path: Path) -> Any:
    from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
    from sentencepiece.sentencepiece_model_pb2 import ModelProto  # type: ignore[attr-defined]  # made by protobuf when imported

    try:
        model = ModelProto.FromString(path.read_bytes())
    except DecodeError:
        model = ModelProto()
    if not model.pieces:
        raise InputError(f"{path}: is no SentencePiece model; copy it again")
    return model


def entries_without_piece(files: Files, entries: list[str], scores: dict[str, float]) -> list[str]:
    """Entries of a dictionary that SentencePiece lacks. Raises `InputError` where they are many: the two files are of two models."""
    lacking = [entry for entry in entries if entry not in scores]
    if len(lacking) > max(8, _UNKNOWN_SHARE * len(entries)):
        raise InputError(
            f"{files.pieces}: lacks {len(lacking):,} of the {len(entries):,} entries of {files.dictionary.name}, such as {lacking[0]!r}; "
            "copy the SentencePiece model of that checkpoint"
        )
    return lacking


def tokenizer_of(files: Files, vocabulary: Vocabulary, kind: str) -> tuple[Any, dict[str, int]]:
    """A tokenizer that cuts text as the SentencePiece model does and has the ids of `vocabulary`, and how many pieces only one of them has.

    Tags lose their brackets, as transformers has them. Raises `InputError` where the dictionary is of another SentencePiece model.
    """
    from tokenizers import normalizers
    from transformers import XLMRobertaTokenizer

    scores = scores_of(files.pieces)
    lowest = min(scores.values())
    own = {*FIRST, MASK, *vocabulary.tags}
    lacking = entries_without_piece(files, [symbol for symbol in vocabulary.symbols if symbol not in own], scores)
    names = {tag: tag[1:-1] for tag in vocabulary.tags}
    pieces = [(names.get(symbol, symbol), 0.0 if symbol in own else scores.get(symbol, lowest)) for symbol in vocabulary.symbols]
    rules = _proto(files.pieces).normalizer_spec.precompiled_charsmap
    tokenizer: Any = (
        XLMRobertaTokenizer(vocab=pieces)
        if kind == "xlm-roberta"
        else tagged_tokenizer(pieces, [*names.values()], masks=MASK in vocabulary.symbols)
    )
    if rules:
        tokenizer.backend_tokenizer.normalizer = normalizers.Precompiled(rules)
    return tokenizer, {"entries_that_are_no_pieces": len(lacking), "pieces_that_are_no_entries": len({*scores} - {*vocabulary.symbols})}
