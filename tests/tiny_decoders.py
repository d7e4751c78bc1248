"""Small decoders in the formats of the real ones, with random weights, made where a test needs them."""

import functools
import json
from pathlib import Path

from tiny_models import manual_pairs
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import CONFIG_MAPPING, AutoModelForCausalLM, PreTrainedTokenizerFast, set_seed

SHAPE = {
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "max_position_embeddings": 512,
    "initializer_range": 0.3,
}
KINDS = {
    "gemma3_text": {"layer_types": ["sliding_attention", "full_attention"], "sliding_window": 64, "query_pre_attn_scalar": 8},
    "gemma2": {"query_pre_attn_scalar": 8, "final_logit_softcapping": 3.0},
    "qwen2": {},
    "qwen3": {},
    "llama": {},
    "mistral": {"sliding_window": None},
    "bloom": {"n_layer": 2, "n_head": 4},
}
"""`model_type` → settings of its own."""
BYTE_LEVEL = ("qwen2", "qwen3", "bloom")
"""Those whose tokenizer is a byte-level BPE without a piece that begins a text; others have Gemma's, with <bos> and bytes to fall back on."""
CHAT = (
    "{{ bos_token or '' }}{% for turn in messages %}<|turn|>{{ turn.role }}\n{{ turn.content }}<|end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|turn|>assistant\n{% endif %}"
)


@functools.cache
def _tokenizer(byte_level: bool) -> str:
    """The tokenizer's JSON, learnt from some manual text."""
    text = [line for side in manual_pairs(500) for line in side]
    specials = ["<pad>", "<eos>", "<bos>", "<|turn|>", "<|end|>"]
    if byte_level:
        made = Tokenizer(models.BPE())
        made.pre_tokenizer, made.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
        made.train_from_iterator(
            text,
            trainers.BpeTrainer(
                vocab_size=700, special_tokens=specials, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
            ),
        )
        return made.to_str()
    made = Tokenizer(models.BPE(byte_fallback=True, fuse_unk=True, unk_token="<unk>"))
    made.normalizer = normalizers.Replace(" ", "▁")
    made.pre_tokenizer = pre_tokenizers.Metaspace(
        prepend_scheme="never"
    )  # no piece spans two words, as if longer text had been learnt from
    made.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    trainer = trainers.BpeTrainer(
        vocab_size=700, special_tokens=[*specials, "<unk>", *(f"<0x{byte:02X}>" for byte in range(256)), "\n"], show_progress=False
    )
    made.train_from_iterator(text, trainer)
    made.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    content = json.loads(made.to_str())
    content["added_tokens"] = [one for one in content["added_tokens"] if one["content"] in (*specials, "<unk>")]
    made = Tokenizer.from_str(json.dumps(content))
    bos = made.token_to_id("<bos>")
    made.post_processor = processors.TemplateProcessing(single="<bos> $A", pair="<bos> $A <bos> $B", special_tokens=[("<bos>", bos)])
    return made.to_str()


def small_decoder(folder: Path, kind: str = "gemma3_text", *, chat: bool = False) -> Path:
    """A tiny decoder of this `model_type`, with a chat template if asked."""
    byte_level = kind in BYTE_LEVEL
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer.from_str(_tokenizer(byte_level)),
        eos_token="<eos>",
        **({} if byte_level else {"bos_token": "<bos>", "unk_token": "<unk>"}),
        # Llama's has no padding
        **({} if kind == "llama" else {"pad_token": "<pad>"}),
        extra_special_tokens=["<|turn|>", "<|end|>"],
    )
    if chat:
        tokenizer.chat_template = CHAT
    set_seed(1)
    ids = {"bos_token_id": tokenizer.bos_token_id, "eos_token_id": tokenizer.eos_token_id, "pad_token_id": tokenizer.pad_token_id}
    # rows of no piece, as where embeddings were padded for speed
    config = CONFIG_MAPPING[kind](**{**SHAPE, **KINDS[kind], **ids, "vocab_size": len(tokenizer) + 4})
    AutoModelForCausalLM.from_config(config).save_pretrained(folder / "model")
    tokenizer.save_pretrained(folder / "model")
    return folder / "model"
