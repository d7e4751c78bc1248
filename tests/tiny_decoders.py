"""Small decoders of many kinds with random weights, made where a test needs them."""

from pathlib import Path
from typing import Any

from tiny_vocabularies import decoder_tokenizer
from tokenizers import AddedToken
from transformers import CONFIG_MAPPING, AutoModelForCausalLM, AutoModelForImageTextToText, set_seed

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
    "gpt2": ("bloom", {"n_layer": 2, "n_head": 4, "n_embd": 32, "n_positions": 512}),
}
"""`model_type` → the kind of its tokenizer, and settings of its own."""
CHAT = (
    "{{ bos_token or '' }}{% for turn in messages %}<|turn|>{{ turn.role }}\n{{ turn.content }}<|end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|turn|>assistant\n{% endif %}"
)


_SEES = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "image_size": 8, "patch_size": 4}
_HYBRID = {f"linear_num_{part}_heads": 2 for part in ("key", "value")} | {f"linear_{part}_head_dim": 8 for part in ("key", "value")}
MULTIMODAL: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "gemma3": ("gemma3_text", KINDS["gemma3_text"][1], {"vision_config": _SEES, "mm_tokens_per_image": 4}),
    "mistral3": (
        "mistral",
        {"sliding_window": None},
        {"vision_config": {**_SEES, "model_type": "pixtral", "head_dim": 8}, "tie_word_embeddings": False},
    ),
    "qwen3_5": (
        "qwen3_5_text",
        {"layer_types": ["linear_attention", "full_attention"], **_HYBRID},
        {"vision_config": {"depth": 1, "hidden_size": 16, "intermediate_size": 32, "num_heads": 2, "out_hidden_size": 32}},
    ),
    "idefics3": ("llama", {}, {"vision_config": _SEES}),
    "gemma4": (
        "gemma4_text",
        {"layer_types": ["full_attention"] * 2, "hidden_size_per_layer_input": 8},
        {"vision_config": None, "audio_config": None},
    ),
}
"""`model_type` of a model that also sees → that of its text part, settings of that part, and of the whole."""


def small_multimodal(folder: Path, kind: str) -> Path:
    """A tiny model of this `model_type` that reads text and images, as the hub has Gemma 3 from four billion weights on."""
    text, own, rest = MULTIMODAL[kind]
    tokenizer = decoder_tokenizer({"gemma3": "gemma", "gemma4": "gemma", "qwen3_5": "qwen"}.get(kind, "llama"))
    set_seed(1)
    ids = {f"{name}_token_id": getattr(tokenizer, f"{name}_token_id") for name in ("bos", "eos", "pad")}
    rows = {name: len(tokenizer) + 4 for name in ("vocab_size", "vocab_size_per_layer_input")}
    part = {**SHAPE, **own, **ids, **rows, "model_type": text}
    AutoModelForImageTextToText.from_config(CONFIG_MAPPING[kind](text_config=part, **rest)).save_pretrained(folder / "whole")
    tokenizer.save_pretrained(folder / "whole")
    return folder / "whole"


def small_decoder(folder: Path, kind: str = "gemma3_text", *, chat: bool = False, paragraphs: bool = False, **settings: Any) -> Path:
    """A tiny decoder of this `model_type`, with a chat template and pieces of `paragraphs` if asked; its embeddings are padded, as on the hub.

    `settings` are further ones of its configuration. A kind that is not in `KINDS` has Llama's tokenizer.
    """
    vocabulary, own = KINDS.get(kind, ("llama", {}))
    tokenizer = decoder_tokenizer(vocabulary, paragraphs)
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
