"""Small decoders of many kinds with random weights, made where a test needs them."""

from pathlib import Path
from typing import Any

from tiny_vocabularies import decoder_tokenizer
from tokenizers import AddedToken
from transformers import CONFIG_MAPPING, AutoModelForCausalLM, set_seed

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
    "gemma3_text": (
        "gemma",
        {"layer_types": ["sliding_attention", "full_attention"], "sliding_window": 64, "query_pre_attn_scalar": 8},
    ),
    "gemma2": ("gemma", {"query_pre_attn_scalar": 8, "final_logit_softcapping": 3.0}),
    "qwen2": ("qwen", {}),
    "qwen3": ("qwen", {"tie_word_embeddings": True}),
    "llama": ("llama", {}),
    "mistral": ("llama", {"sliding_window": None}),
    "bloom": ("bloom", {"n_layer": 2, "n_head": 4}),
}
"""`model_type` → the kind of its tokenizer, and settings of its own."""
CHAT = (
    "{{ bos_token or '' }}{% for turn in messages %}<|turn|>{{ turn.role }}\n{{ turn.content }}<|end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|turn|>assistant\n{% endif %}"
)


def small_decoder(folder: Path, kind: str = "gemma3_text", *, chat: bool = False, **settings: Any) -> Path:
    """A tiny decoder of this `model_type`, with a chat template if asked; its embeddings are padded, as on the hub.

    `settings` are further ones of its configuration. A kind that is not in `KINDS` has Llama's tokenizer.
    """
    vocabulary, own = KINDS.get(kind, ("llama", {}))
    tokenizer = decoder_tokenizer(vocabulary)
    if chat:
        tokenizer.add_tokens([AddedToken(piece, special=True) for piece in ("<|turn|>", "<|end|>")])
        tokenizer.chat_template = CHAT
    if kind == "llama":
        tokenizer.pad_token = None  # as Llama 3's has none
    set_seed(1)
    ids = {f"{name}_token_id": getattr(tokenizer, f"{name}_token_id") for name in ("bos", "eos", "pad")}
    config = CONFIG_MAPPING[kind](**{**SHAPE, **own, **ids, "vocab_size": len(tokenizer) + 4, **settings})
    AutoModelForCausalLM.from_config(config).save_pretrained(folder / "model")
    tokenizer.save_pretrained(folder / "model")
    return folder / "model"
