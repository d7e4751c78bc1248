"""conversion: what VECO is for a task: an encoder alone, or an encoder with a decoder, made of the same stack.

For understanding, cross-attention is dropped; what is left is a plain XLM-R (section 2.3 of Luo et al. 2021). For generation, all
layers are the encoder, and some of them once more, now with their cross-attention, the decoder. That is written as a BART, which computes
the same: layer normalisation after each module, GeLU, positions from 2. So everything that takes a BART takes it.

A BART has no place for the *head*, the dense layer with its normalisation that a masked language model has between the last layer and the
scores. The authors' own code drops it, and multiplies the embeddings by states that were never trained for that: what the stack had learnt
to guess is mostly lost. So by default the head is folded into the output layer, which departs from the authors (`fold_head`).

An XLM-R without cross-attention can be converted as well, and a BERT, which becomes an XLM-R (`layout`). Its decoder's cross-attention, or
with ``random`` its whole decoder, is drawn at random. These are the initialisations that the paper compares with.
"""

from pathlib import Path
from typing import Any, Literal

import torch
from torch import nn

from workflow_scripts.models.layout import open_stack
from workflow_scripts.models.networks import head_states, lacks_head, output_layer, save_model
from workflow_scripts.models.recognition import longest_row
from workflow_scripts.models.tokenizer import load_tokenizer
from workflow_scripts.models.veco import CROSS, encode, has_cross_attention, load_stack
from workflow_scripts.stage import InputError, atomic, run

Form = Literal["encoder", "encoder-decoder"]
Head = Literal["folded", "dropped"]

# in the folder for who finetunes it elsewhere; the stack has been loaded without
_XLMR_DROPOUT = {"hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1}


def convert(
    model: Path,
    output: Path,
    to: Form = "encoder-decoder",
    decoder: Literal["copied", "random"] = "copied",
    decoder_layers: int | None = None,
    decoder_from: Literal["first", "last"] = "last",
    head: Head = "folded",
    encoder_layers: int | None = None,
    seed: int = 1,
) -> dict[str, Any]:
    """Write `model`, a VECO, an XLM-R or a BERT, in its form for a task into the folder `output`; print and return what there is to say.

    The decoder is made of the `first` or `last` layers (`decoder_from`), of all by default. The `head` of a copied decoder is folded into
    the output layer or dropped; of a model without one none is folded. Beside a random decoder the encoder has the first
    `encoder_layers`, by default all. Raises `InputError` for a model of another family, one whose ids cannot have XLM-R's layout, and a
    half of more layers than there are.
    """
    stack, tokenizer = open_stack(model, seed)
    details: dict[str, Any] = {"from_veco": has_cross_attention(model), "to": to}
    if to == "encoder":
        made = as_encoder(stack)
        # a random head would pass for one that was pretrained
        made = made.base_model if lacks_head(stack) else made
    else:
        made = as_bart(stack, decoder, decoder_layers, decoder_from, encoder_layers, seed)
        if decoder == "copied":
            if head == "folded" and lacks_head(stack):
                head = "dropped"
                print(f"note: {model}: has no head that guesses masked pieces, so there is none to fold (head: dropped)", flush=True)
            details["head"] = head
            if head == "folded":
                details["head_explained"] = fold_head(made, stack, tokenizer.mask_token_id, seed)
    save_model(made, tokenizer, output)
    write_readme(output, to)
    if to == "encoder-decoder":
        details |= {"decoder": decoder, "decoder_layers": made.config.decoder_layers, "decoder_from": decoder_from}
        details |= {"encoder_layers": made.config.encoder_layers} if encoder_layers else {}
    details |= {"parameters": sum(p.numel() for p in made.parameters()), "vocabulary": len(tokenizer)}
    print(details)
    return details


def add_generator(model: Path) -> None:
    """Add to the folder of a VECO the BART of its last layers, six at most as in the paper, and a README on how to open both."""
    stack = load_stack(model, cross=True)
    tokenizer = load_tokenizer(model)
    bart = as_bart(stack, layers=min(6, stack.config.num_hidden_layers))
    fold_head(bart, stack, tokenizer.mask_token_id)
    save_model(bart, tokenizer, model / "bart")
    write_readme(model, "veco")


def as_encoder(stack: Any) -> Any:
    """A plain XLM-R with the head that guesses masked pieces: the stack without its cross-attention."""
    from transformers import XLMRobertaForMaskedLM

    config = type(stack.config).from_dict({**stack.config.to_dict(), "cross_attention": False, **_XLMR_DROPOUT})
    encoder = XLMRobertaForMaskedLM(config)
    left = {name: weight for name, weight in stack.state_dict().items() if CROSS not in name}
    encoder.load_state_dict(left, strict=True)
    return encoder


def as_bart(
    stack: Any, decoder: str = "copied", layers: int | None = None, which: str = "last", read_by: int | None = None, seed: int = 1
) -> Any:
    """A BART whose encoder is the whole stack, or its first `read_by` layers, and whose decoder are its `first` or `last` `layers` layers,
    or drawn at random."""
    from transformers import BartConfig, BartForConditionalGeneration, set_seed

    shape = stack.config
    layers = shape.num_hidden_layers if layers is None else layers
    if layers < 1:
        raise InputError(f"decoder_layers: {layers}; a decoder has at least one layer")
    if layers > shape.num_hidden_layers and decoder == "copied":
        raise InputError(
            f"decoder_layers: {layers} are asked for, but the stack has {shape.num_hidden_layers}; take at most these, or decoder: random"
        )
    read_by = shape.num_hidden_layers if read_by is None else read_by
    if not 1 <= read_by <= shape.num_hidden_layers:
        raise InputError(f"encoder_layers: {read_by} are asked for, and the stack has {shape.num_hidden_layers}; take 1 or more of these")
    config = BartConfig(
        vocab_size=shape.vocab_size,
        d_model=shape.hidden_size,
        encoder_layers=read_by,
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
        _copy_half(bart.model.encoder, stack.base_model.embeddings, own[:read_by])
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
# the head

_ROWS, _LENGTH = 512, 64  # 32,768 states, for matrices of at most some thousand columns
_MASKED = 0.3


@torch.no_grad()
def fold_head(bart: Any, stack: Any, mask: int, seed: int = 1) -> float:
    """Give the BART of a stack an output layer of its own that scores the decoder's states as the stack's head does; in place.

    No text is needed: rows that the stack makes up itself lead to states that do nearly as well as those of text (docs/results/veco.md).
    `mask` is the id of `<mask>`. Returns the share of the head's variance that `head_as_layer` explains.
    """
    weight, bias, explained = head_as_layer(stack, _decoder_states(bart.eval(), stack, mask, seed))
    bart.config.tie_word_embeddings = False
    bart.lm_head.weight = nn.Parameter(weight)
    bart.final_logits_bias = bias[None]
    return explained


@torch.no_grad()
def head_as_layer(stack: Any, states: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, float]:
    """An output layer, matrix (vocabulary × width) and bias (vocabulary), that scores `states` (number × width) as the stack's head does.

    The head is h(s) = LayerNorm(GeLU(W s + c)), and the scores are E h(s) + d with the embeddings E. Over the states that a model has, h
    is nearly affine: A and b with h(s) ≈ A s + b are fitted by least squares. Then E (A s + b) + d is a layer with the matrix E A and the
    bias E b + d. The third value is the share of the variance of h(s) that the fit explains.
    """
    matrix, offset, explained = _affine_fit(states, head_states(stack, states))
    embeddings, bias = output_layer(stack)
    return embeddings @ matrix, embeddings @ offset + bias, explained


def _decoder_states(bart: Any, stack: Any, mask: int, seed: int) -> torch.Tensor:
    """States (number × width) of a BART's decoder, where both halves read rows that the stack makes up."""
    random = torch.Generator().manual_seed(seed)
    read, written = (made_up(stack, mask, random).split(32) for _ in range(2))
    states = [bart.model(input_ids=x, decoder_input_ids=y, use_cache=False).last_hidden_state for x, y in zip(read, written, strict=True)]
    return torch.cat(states).flatten(0, 1)


@torch.no_grad()
def made_up(stack: Any, mask: int, random: torch.Generator) -> torch.Tensor:
    """Rows of ids: each piece is drawn by what the stack guesses at its place in a row of masks; then some are masked again."""
    empty = torch.full((1, min(_LENGTH, longest_row(stack.config))), mask)
    empty[0, 0] = stack.config.bos_token_id
    embeddings, bias = output_layer(stack)
    scores = head_states(stack, encode(stack.eval(), empty, torch.ones_like(empty, dtype=torch.bool))[0]) @ embeddings.T + bias
    scores[:, [*range(4), mask]] = -torch.inf  # no special pieces
    ids = torch.multinomial(scores.softmax(dim=1), _ROWS, replacement=True, generator=random).T
    ids = ids.masked_fill(torch.rand(ids.shape, generator=random) < _MASKED, mask)
    ids[:, 0] = stack.config.bos_token_id
    return ids.contiguous()


def _affine_fit(given: torch.Tensor, wanted: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, float]:
    """A (width × width) and b (width) with A s + b nearest to what is wanted of the states s, and the share of variance explained."""
    means = given.mean(dim=0), wanted.mean(dim=0)
    centred = [(values - mean).double() for values, mean in zip((given, wanted), means, strict=True)]
    # states behind a layer normalisation lie in a plane: of all solutions the one with the least norm
    found = torch.linalg.lstsq(*centred, rcond=1e-5, driver="gelsd").solution
    left = (centred[1] - centred[0] @ found).square().sum() / centred[1].square().sum()
    matrix = found.T.float()
    return matrix, means[1] - matrix @ means[0], 1 - float(left)


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
    run(convert)
