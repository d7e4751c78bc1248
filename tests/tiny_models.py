"""Small models in the formats of the real ones, made where a test needs them."""

import functools
import io
import json
from pathlib import Path
from typing import Any

import sentencepiece
import torch
from sentencepiece.sentencepiece_model_pb2 import ModelProto
from tokenizers import BertWordPieceTokenizer
from transformers import (
    BertConfig,
    BertForMaskedLM,
    BertTokenizer,
    ByT5Tokenizer,
    LongT5Config,
    LongT5ForConditionalGeneration,
    M2M100Config,
    M2M100ForConditionalGeneration,
    M2M100Tokenizer,
    MBart50Tokenizer,
    MBartConfig,
    MBartForConditionalGeneration,
    MBartTokenizer,
    MT5Config,
    MT5ForConditionalGeneration,
    NllbTokenizer,
    T5Config,
    T5ForConditionalGeneration,
    T5Tokenizer,
    UMT5Config,
    UMT5ForConditionalGeneration,
    XLMRobertaConfig,
    XLMRobertaForMaskedLM,
    XLMRobertaTokenizer,
    set_seed,
)
from transformers.convert_slow_tokenizer import MBART50_LANGUAGES, MBART_LANGUAGES

from workflow_scripts.models.conversion import convert
from workflow_scripts.models.makers import mbart_tokenizer
from workflow_scripts.text.files import read_lines

MANUAL = Path("resources/libreoffice-help/en-de.tsv.xz")


@functools.cache
def _manual() -> list[tuple[str, str]]:
    """The German and English sentences of the embedded corpus, of five words or more; it takes a moment to unpack."""
    rows = [line.split("\t") for line in read_lines(MANUAL)]
    return [(row[3], row[2]) for row in rows if len(row[2].split()) >= 5]


def manual_pairs(n: int) -> tuple[list[str], list[str]]:
    """n German and English sentences of the embedded corpus, of five words or more."""
    chosen = _manual()[:n]
    return [a for a, _ in chosen], [b for _, b in chosen]


def _manual_text() -> str:
    return "\n".join(line for side in manual_pairs(500) for line in side) + "\n"


@functools.cache
def _sentencepiece(size: int, normaliser: str, kind: str) -> bytes:
    """The file of a SentencePiece model of some manual text; tests need few different ones, many times."""
    trained = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(_manual_text().splitlines()),
        model_writer=trained,
        vocab_size=size,
        model_type=kind,
        normalization_rule_name=normaliser,
        minloglevel=2,
    )
    return trained.getvalue()


def train_sentencepiece(folder: Path, size: int = 400, normaliser: str = "identity", kind: str = "unigram") -> Path:
    """A SentencePiece model of some manual text (text.txt beside it)."""
    (folder / "text.txt").write_text(_manual_text(), encoding="utf-8")
    (folder / "spm.model").write_bytes(_sentencepiece(size, normaliser, kind))
    return folder / "spm.model"


def small_model(folder: Path, family: str = "mbart") -> Path:
    """A tiny model of any kind that the functions here and in `tiny_decoders` make, with random weights.

    `mbart` is as Crossgap makes it, `cc25` and `mbart50` have the tokenizers of the hub's models.
    """
    from tiny_decoders import KINDS, small_decoder  # whose vocabularies are learnt from the text that is here

    others: dict[str, Any] = {"bart": small_bart, "nllb": small_m2m100, "m2m100": small_m2m100}
    others |= {"bert": small_encoder, "xlm-roberta": small_encoder}
    others |= dict.fromkeys(T5_KINDS, small_t5) | dict.fromkeys(KINDS, small_decoder)
    if family in others:
        return others[family](folder, family)
    model = train_sentencepiece(folder)
    processor = sentencepiece.SentencePieceProcessor(model_file=str(model))
    pieces = [(processor.id_to_piece(i), processor.get_score(i)) for i in range(3, len(processor))]
    if family in ("cc25", "mbart50"):
        kind, tags = (MBartTokenizer, MBART_LANGUAGES) if family == "cc25" else (MBart50Tokenizer, MBART50_LANGUAGES)
        # as in the files on the hub
        first, last = (((token, 0.0) for token in tokens) for tokens in (("<s>", "<pad>", "</s>", "<unk>"), (*tags, "<mask>")))
        tokenizer = kind(vocab=[*first, *pieces, *last], src_lang="de_DE", tgt_lang="en_XX")
    else:
        tokenizer = mbart_tokenizer(model, ("de", "en"))
    set_seed(1)
    config = MBartConfig(
        vocab_size=len(tokenizer),
        d_model=32,
        encoder_layers=1,
        decoder_layers=1,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=64,
        decoder_ffn_dim=64,
        max_position_embeddings=256,
        normalize_before=True,
        normalize_embedding=True,
        scale_embedding=True,
        activation_function="relu" if family == "mbart50" else "gelu",
        tokenizer_class={"cc25": "MBartTokenizer", "mbart50": "MBart50Tokenizer"}.get(family),
    )
    MBartForConditionalGeneration(config).save_pretrained(folder / "model")
    tokenizer.save_pretrained(folder / "model")
    return folder / "model"


def small_m2m100(folder: Path, kind: str = "nllb") -> Path:
    """A tiny M2M-100 (`m2m100`) or NLLB (`nllb`) with random weights, in the format of the hub's models."""
    model = train_sentencepiece(folder, kind="bpe")
    pieces = [piece.piece for piece in ModelProto.FromString(model.read_bytes()).pieces][3:]
    ids = {piece: number for number, piece in enumerate(("<s>", "<pad>", "</s>", "<unk>", *pieces))}
    made_up = 0
    if kind == "nllb":
        # a piece's rank among the merges is its place in SentencePiece's model
        merges = [(piece[:at], piece[at:]) for piece in pieces for at in range(1, len(piece)) if {piece[:at], piece[at:]} <= ids.keys()]
        tokenizer = NllbTokenizer(vocab=ids, merges=merges)
    else:
        made_up = 8  # rows of the embeddings that no piece has
        (folder / "vocab.json").write_text(json.dumps(ids), encoding="utf-8")
        tokenizer = M2M100Tokenizer(str(folder / "vocab.json"), str(model), num_madeup_words=made_up)
        made_up += len(tokenizer.lang_token_to_id)  # which transformers does not count
    set_seed(1)
    config = M2M100Config(
        vocab_size=len(tokenizer) + made_up,
        d_model=32,
        encoder_layers=1,
        decoder_layers=1,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=64,
        decoder_ffn_dim=64,
        max_position_embeddings=256,
    )
    M2M100ForConditionalGeneration(config).save_pretrained(folder / "model")
    tokenizer.save_pretrained(folder / "model")
    return folder / "model"


def small_bart(folder: Path, kind: str = "bart") -> Path:
    """A tiny XLM-R with random weights in the form that it takes to write text."""
    convert(small_encoder(folder, "xlm-roberta"), folder / kind, "encoder-decoder", decoder="random")
    return folder / kind


def small_encoder(folder: Path, kind: str) -> Path:
    """A tiny mBERT (`bert`, cased) or XLM-R (`xlm-roberta`) with random weights, in the format of the hub's models."""
    model = train_sentencepiece(folder)
    if kind == "bert":
        pieces = BertWordPieceTokenizer(lowercase=False, strip_accents=False)
        pieces.train(str(folder / "text.txt"), vocab_size=500, show_progress=False)
        tokenizer = BertTokenizer(vocab=pieces.get_vocab(), do_lower_case=False)
    else:
        processor = sentencepiece.SentencePieceProcessor(model_file=str(model))
        vocabulary = [(processor.id_to_piece(i), processor.get_score(i)) for i in range(3, len(processor))]
        specials = [(token, 0.0) for token in ("<s>", "<pad>", "</s>", "<unk>")]
        tokenizer = XLMRobertaTokenizer(vocab=[*specials, *vocabulary, ("<mask>", 0.0)])
    set_seed(1)
    shape = {
        "vocab_size": len(tokenizer),
        "hidden_size": 32,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 64,
        "max_position_embeddings": 66,
        "initializer_range": 0.2,
    }
    if kind == "bert":
        network = BertForMaskedLM(BertConfig(**shape))
    else:
        network = XLMRobertaForMaskedLM(XLMRobertaConfig(**shape, type_vocab_size=1, layer_norm_eps=1e-5))
    network.save_pretrained(folder / "model")
    tokenizer.save_pretrained(folder / "model")
    return folder / "model"


T5_KINDS: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "mt5": (MT5ForConditionalGeneration, MT5Config, {}),
    "umt5": (UMT5ForConditionalGeneration, UMT5Config, {}),
    "t5": (T5ForConditionalGeneration, T5Config, {"feed_forward_proj": "relu"}),
    "t5-1.1": (T5ForConditionalGeneration, T5Config, {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}),
    "longt5": (
        LongT5ForConditionalGeneration,
        LongT5Config,
        {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False, "local_radius": 8, "global_block_size": 4}
        | {"encoder_attention_type": "transient-global"},
    ),
    "byt5": (T5ForConditionalGeneration, T5Config, {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}),
}
"""Kind → network, configuration, and settings of its own. The first T5 has one matrix for what it reads and writes, and scales its outputs."""


def small_t5(folder: Path, kind: str = "mt5") -> Path:
    """A tiny model of T5's kin with random weights, with the output layer, the sentinels and the embeddings of those on the hub."""
    tokenizer = t5_tokenizer(folder, kind)
    set_seed(1)
    network, config, own = T5_KINDS[kind]
    shape = {"d_model": 32, "d_kv": 16, "d_ff": 64, "num_layers": 2, "num_decoder_layers": 2, "num_heads": 2, "decoder_start_token_id": 0}
    rows = len(tokenizer) + (0 if kind == "byt5" else 12)
    made = network(config(**shape, **own, vocab_size=rows, initializer_factor=0.3))
    if kind == "t5":
        made.save_pretrained(folder / "model")
    else:
        made.lm_head.weight = torch.nn.Parameter(0.3 * torch.randn_like(made.shared.weight))
        made.save_pretrained(folder / "model", state_dict={name: weight.clone() for name, weight in made.state_dict().items()})
    path = folder / "model/config.json"
    said = {"tie_word_embeddings": kind == "t5", **({"tokenizer_class": "ByT5Tokenizer"} if kind == "byt5" else {})}
    path.write_text(json.dumps({**json.loads(path.read_text(encoding="utf-8")), **said}), encoding="utf-8")
    tokenizer.save_pretrained(folder / "model")
    return folder / "model"


def t5_tokenizer(folder: Path, kind: str) -> Any:
    """A tokenizer of T5's kin: mT5's sentinels are pieces, the others' are special tokens, and ByT5's pieces are bytes."""
    if kind == "byt5":
        return ByT5Tokenizer()
    processor = sentencepiece.SentencePieceProcessor(model_file=str(train_sentencepiece(folder)))
    pieces = [(processor.id_to_piece(i), processor.get_score(i)) for i in range(3, len(processor))]
    as_pieces = kind in ("mt5", "longt5")
    name = "▁<extra_id_{}>" if as_pieces else "<extra_id_{}>"
    sentinels = [(name.format(number), 0.0) for number in reversed(range(8))]
    vocab = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), *pieces, *sentinels]
    return T5Tokenizer(vocab=vocab, extra_ids=0 if as_pieces else 8)
