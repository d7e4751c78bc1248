"""Tiny encoders of the kinds that no entry of the registry names, with random weights and tokenizers of the kinds that they have."""

from pathlib import Path

import sentencepiece
from tiny_models import small_encoder, train_sentencepiece
from tiny_vocabularies import decoder_tokenizer
from tokenizers import AddedToken, processors
from transformers import (
    AutoModelForMaskedLM,
    AutoTokenizer,
    BertConfig,
    DebertaV2Config,
    DebertaV2Tokenizer,
    EuroBertConfig,
    ModernBertConfig,
    RemBertConfig,
    RemBertTokenizer,
    set_seed,
)

ENCODERS = ("e5", "deberta", "modernbert", "mmbert", "rembert", "eurobert")
WIDTH = 32
INNER = 48


def tiny_encoder(folder: Path, kind: str) -> Path:
    """A tiny encoder, saved as the hub's are: e5 is a BERT with XLM-R's pieces, mmBERT a ModernBERT with Gemma's."""
    tokenizer = _tokenizer(folder, kind)
    shape = {
        "vocab_size": len(tokenizer),
        "hidden_size": WIDTH,
        "intermediate_size": INNER,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "max_position_embeddings": 128,
        "pad_token_id": tokenizer.pad_token_id,
        "bos_token_id": tokenizer.bos_token_id,
        "eos_token_id": tokenizer.eos_token_id,
    }
    modern = {"cls_token_id": tokenizer.cls_token_id, "sep_token_id": tokenizer.sep_token_id, "local_attention": 8}
    config = {
        "e5": lambda: BertConfig(**shape, tokenizer_class="XLMRobertaTokenizer"),
        "deberta": lambda: DebertaV2Config(
            **shape, type_vocab_size=0, relative_attention=True, position_buckets=16, norm_rel_ebd="layer_norm", share_att_key=True,
            pos_att_type=["p2c", "c2p"], max_relative_positions=-1, position_biased_input=False,
        ),
        "modernbert": lambda: ModernBertConfig(**shape, **modern, global_attn_every_n_layers=2),
        "mmbert": lambda: ModernBertConfig(**shape, **modern, global_attn_every_n_layers=2),
        "rembert": lambda: RemBertConfig(**shape, input_embedding_size=16, output_embedding_size=40),
        "eurobert": lambda: EuroBertConfig(**shape, num_key_value_heads=2),
    }[kind]()  # fmt: skip
    set_seed(1)
    network = AutoModelForMaskedLM.from_config(config)
    # the published mDeBERTa comes without a head of this name
    (network.base_model if kind in ("e5", "deberta") else network).save_pretrained(folder / "model")
    tokenizer.save_pretrained(folder / "model")
    return folder / "model"


def _tokenizer(folder: Path, kind: str):
    if kind == "e5":
        return AutoTokenizer.from_pretrained(small_encoder(folder, "xlm-roberta"))
    if kind in ("deberta", "rembert"):
        processor = sentencepiece.SentencePieceProcessor(model_file=str(train_sentencepiece(folder)))
        pieces = [(processor.id_to_piece(i), processor.get_score(i)) for i in range(3, len(processor))]
        first = ("[PAD]", "[CLS]", "[SEP]", "[UNK]", "[MASK]") if kind == "deberta" else ("<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]")
        vocabulary = [*((token, 0.0) for token in first), *pieces]
        return (DebertaV2Tokenizer if kind == "deberta" else RemBertTokenizer)(vocab=vocabulary)
    tokenizer = decoder_tokenizer("gemma" if kind == "mmbert" else "llama")
    if kind == "mmbert":
        return _framed(tokenizer, "<bos>", "<eos>")
    if kind == "modernbert":
        names = {name: f"[{name.upper()}]" for name in ("cls", "sep", "pad", "mask", "unk")}
        tokenizer.add_special_tokens({f"{name}_token": AddedToken(token, special=True) for name, token in names.items()})
        return _framed(tokenizer, "[CLS]", "[SEP]")
    # EuroBERT pads with its end mark
    tokenizer.add_special_tokens({"mask_token": "<|mask|>"})
    tokenizer.pad_token = tokenizer.eos_token
    return _framed(tokenizer, tokenizer.bos_token, tokenizer.eos_token)


def _framed(tokenizer, before: str, after: str):
    ids = [(token, tokenizer.convert_tokens_to_ids(token)) for token in (before, after)]
    pair = f"{before} $A {after} $B {after}"
    tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(f"{before} $A {after}", pair, ids)
    return tokenizer
