"""conversion: what VECO is for a task: an encoder alone, or an encoder with a decoder, made of the same stack.

For understanding, cross-attention is dropped; what is left is a plain XLM-R (section 2.3 of Luo et al. 2021). For generation, all
layers are the encoder, and some of them once more, now with their cross-attention, the decoder. That is written as a BART, which computes
the same: layer normalisation after each module, GeLU, positions from 2. So everything that takes a BART takes it. Only what the masked
language model has between the last layer and the scores is left out, a dense layer with its normalisation and the scores' bias, as in the
authors' own code.

An XLM-R without cross-attention can be converted as well: its decoder's cross-attention, or with ``random`` its whole decoder, is drawn at
random. These are the initialisations that the paper compares with.
"""

from pathlib import Path
from typing import Any, Literal

import torch
from torch import nn

from workflow_scripts.models.networks import save_model
from workflow_scripts.models.tokenisation import load_tokenizer
from workflow_scripts.models.veco import CROSS, has_cross_attention, load_stack
from workflow_scripts.stage import InputError, atomic, run

Form = Literal["encoder", "encoder-decoder"]

# in the folder for who finetunes it elsewhere; the stack has been loaded without
_XLMR_DROPOUT = {"hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1}


def main(
    model: Path,
    output: Path,
    *,
    to: Form = "encoder-decoder",
    decoder: Literal["copied", "random"] = "copied",
    decoder_layers: int | None = None,
    decoder_from: Literal["first", "last"] = "last",
    seed: int = 1,
) -> None:
    """Write a VECO or an XLM-R as an encoder, or as an encoder with a decoder, in Hugging Face's format."""
    print(convert(model, output, to, decoder, decoder_layers, decoder_from, seed))


def convert(
    model: Path,
    output: Path,
    to: Form,
    decoder: str = "copied",
    decoder_layers: int | None = None,
    decoder_from: str = "last",
    seed: int = 1,
) -> dict[str, Any]:
    """Write `model` in its form for a task into the folder `output`; return what there is to say of it.

    The decoder is made of the `first` or `last` layers (`decoder_from`), of all by default. Raises `InputError` for a model of another
    family, one whose ids are not in XLM-R's layout, and a decoder of more layers than there are.
    """
    tokenizer = load_tokenizer(model)
    whole = has_cross_attention(model)
    stack = load_stack(model, cross=whole, seed=seed)
    check_layout(model, tokenizer, stack.config)
    details: dict[str, Any] = {"from_veco": whole, "to": to}
    made = as_encoder(stack) if to == "encoder" else as_bart(stack, decoder, decoder_layers, decoder_from, seed)
    save_model(made, tokenizer, output)
    write_readme(output, to)
    if to == "encoder-decoder":
        details |= {"decoder": decoder, "decoder_layers": made.config.decoder_layers, "decoder_from": decoder_from}
    return details | {"parameters": sum(p.numel() for p in made.parameters()), "vocabulary": len(tokenizer)}


def add_generator(model: Path) -> None:
    """Add to the folder of a VECO the BART of its last layers, six at most as in the paper, and a README on how to open both."""
    stack = load_stack(model, cross=True)
    save_model(as_bart(stack, layers=min(6, stack.config.num_hidden_layers)), load_tokenizer(model), model / "bart")
    write_readme(model, "veco")


def check_layout(folder: Path, tokenizer: Any, config: Any) -> None:
    """Raise `InputError` for a vocabulary that is not in XLM-R's layout of ids, or larger than the model's embeddings."""
    layout = {"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3}
    found = {token: tokenizer.convert_tokens_to_ids(token) for token in layout}
    if found != layout or tokenizer.mask_token_id is None:
        raise InputError(
            f"{folder}: its vocabulary has the ids {found} and {tokenizer.mask_token or 'no <mask>'}; VECO needs XLM-R's layout, "
            f"{layout} and a <mask>; start from an XLM-R as it is published, or from a small one of family xlmr"
        )
    if len(tokenizer) > config.vocab_size:
        raise InputError(
            f"{folder}: the tokenizer has {len(tokenizer)} pieces, the model embeddings for {config.vocab_size}; copy both from one model"
        )


def as_encoder(stack: Any) -> Any:
    """A plain XLM-R with the head that guesses masked pieces: the stack without its cross-attention."""
    from transformers import XLMRobertaForMaskedLM

    config = type(stack.config).from_dict({**stack.config.to_dict(), "cross_attention": False, **_XLMR_DROPOUT})
    encoder = XLMRobertaForMaskedLM(config)
    left = {name: weight for name, weight in stack.state_dict().items() if CROSS not in name}
    encoder.load_state_dict(left, strict=True)
    return encoder


def as_bart(stack: Any, decoder: str = "copied", layers: int | None = None, which: str = "last", seed: int = 1) -> Any:
    """A BART whose encoder is the whole stack and whose decoder are its `first` or `last` `layers` layers, or drawn at random."""
    from transformers import BartConfig, BartForConditionalGeneration, set_seed

    shape = stack.config
    layers = shape.num_hidden_layers if layers is None else layers
    if layers < 1:
        raise InputError(f"decoder_layers: {layers}; a decoder has at least one layer")
    if layers > shape.num_hidden_layers and decoder == "copied":
        raise InputError(
            f"decoder_layers: {layers} are asked for, but the stack has {shape.num_hidden_layers}; take at most these, or decoder: random"
        )
    config = BartConfig(
        vocab_size=shape.vocab_size,
        d_model=shape.hidden_size,
        encoder_layers=shape.num_hidden_layers,
        decoder_layers=layers,
        encoder_attention_heads=shape.num_attention_heads,
        decoder_attention_heads=shape.num_attention_heads,
        encoder_ffn_dim=shape.intermediate_size,
        decoder_ffn_dim=shape.intermediate_size,
        max_position_embeddings=shape.max_position_embeddings - 2,  # BART adds the two that no piece has by itself
        activation_function=shape.hidden_act,
        scale_embedding=False,
        pad_token_id=1,
        bos_token_id=0,
        eos_token_id=2,
        decoder_start_token_id=2,
        forced_eos_token_id=None,
    )
    config.update({"normalize_before": False, "normalize_embedding": True})  # CTranslate2's converter reads these
    set_seed(seed)
    bart = BartForConditionalGeneration(config)
    own = stack.base_model.encoder.layer
    with torch.no_grad():
        _copy_half(bart.model.encoder, stack.base_model.embeddings, own)
        if decoder == "copied":
            _copy_half(bart.model.decoder, stack.base_model.embeddings, own[-layers:] if which == "last" else own[:layers])
    return bart


def _copy_half(half: Any, embeddings: Any, layers: Any) -> None:
    """Write the stack's weights into a BART's encoder or decoder."""
    half.embed_tokens.weight.copy_(embeddings.word_embeddings.weight)
    # XLM-R adds a vector for the type of the text to each piece, of which there is only one type
    half.embed_positions.weight.copy_(embeddings.position_embeddings.weight + embeddings.token_type_embeddings.weight[0])
    _copy(half.layernorm_embedding, embeddings.LayerNorm)
    for target, source in zip(half.layers, layers, strict=True):
        _copy_attention(target.self_attn, target.self_attn_layer_norm, source.attention)
        if hasattr(target, "encoder_attn") and hasattr(source, "crossattention"):
            _copy_attention(target.encoder_attn, target.encoder_attn_layer_norm, source.crossattention)
        _copy(target.fc1, source.intermediate.dense)
        _copy(target.fc2, source.output.dense)
        _copy(target.final_layer_norm, source.output.LayerNorm)


def _copy_attention(target: Any, norm: nn.LayerNorm, source: Any) -> None:
    for theirs, ours in (("q_proj", "query"), ("k_proj", "key"), ("v_proj", "value")):
        _copy(getattr(target, theirs), getattr(source.self, ours))
    _copy(target.out_proj, source.output.dense)
    _copy(norm, source.output.LayerNorm)


def _copy(target: Any, source: Any) -> None:
    target.weight.copy_(source.weight)
    target.bias.copy_(source.bias)


# ---------------------------------------------------------------------------------------------
# for who opens the folder

_OPENED = {
    "veco": """VECO: one stack that is an encoder, and with its cross-attention a decoder. It opens with transformers as an XLM-R, in which
cross-attention is left out, and as a BART, whose decoder are the last layers of the stack:

```python
from transformers import AutoModel, AutoModelForSeq2SeqLM
encoder = AutoModel.from_pretrained("{folder}")
generator = AutoModelForSeq2SeqLM.from_pretrained("{folder}", subfolder="bart")
```

Only finetuned does the generator write useful text. `AutoTokenizer.from_pretrained("{folder}")` is the tokenizer of both.
""",
    "encoder": """A plain XLM-R, which opens with transformers:

```python
from transformers import AutoModel, AutoTokenizer
tokenizer = AutoTokenizer.from_pretrained("{folder}")
model = AutoModel.from_pretrained("{folder}")
```
""",
    "encoder-decoder": """A BART, which opens with transformers; `model.get_encoder()` computes what the XLM-R that it was made from does:

```python
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer
tokenizer = AutoTokenizer.from_pretrained("{folder}")
model = AutoModelForSeq2SeqLM.from_pretrained("{folder}")
```

It reads and writes `<s> text </s>`, and its decoder starts with `</s>`. Only finetuned does it write useful text.
""",
}


def write_readme(folder: Path, form: Literal["veco", "encoder", "encoder-decoder"]) -> None:
    """Tell, in the README of a folder, how transformers opens it."""
    with atomic(folder / "README.md") as file:
        file.write(_OPENED[form].replace("{folder}", str(folder)))


if __name__ == "__main__":
    run(main)
