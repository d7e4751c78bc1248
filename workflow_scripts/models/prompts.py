"""prompts: semantic-guided alignment-then-denoising (SGA), an encoder that writes text (section 4 of the paper).

A pretrained masked language model is run three times, by *units* that share all its weights. What differs from unit to unit is a
*prompt*: keys and values for every layer, which are concatenated with those of the text (section 3).

1. **Semantic encoding** (4.2, equations 1 and 2). The source runs through the model with the encoding prompt. The output of each layer is
   projected by W_K and W_V, which all layers share, into more keys and values of that layer: the semantic guide.
2. **Alignment** (4.3, equations 3 and 4). A row of `<mask>` runs through the model with the guide and the alignment prompt, and all pieces
   of the target come out at once. With `reads: source` the row has the source's pieces instead. What is written for a translation is an
   alignment of CTC (`ctc`); for other texts, a row of the length that was predicted, of which the most doubtful pieces are masked and
   guessed again (mask-predict, Ghazvininejad et al. 2019).
3. **Denoising** (4.4, equations 5 and 6). What came out runs through the model with the guide and the denoising prompt, again and again
   until nothing changes. It always writes CTC's alignments.

The loss is the sum of that of alignment and that of denoising (equation 7). Only prompts, W_K and W_V are trained, and a classifier of the
target's length where it is predicted. What the denoiser reads while it is trained, and how texts are decoded, is in `refining`.

A generator need not be frozen (`generator: ctc`): then all weights are trained, without prompts and denoising, which is translation by
CTC alone. From random weights it stands in for the paper's baseline NAT, a larger model with an encoder and a decoder of their own; here
one stack both encodes and writes.
"""

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict
from itertools import cycle, islice
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import nn
from transformers import AttentionInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import AttentionMaskInterface, sdpa_mask

from workflow_scripts.models.networks import last_states, output_layer
from workflow_scripts.models.recognition import family_of, longest_row, reserved_in
from workflow_scripts.models.sga import BLOCK, FILE, SGA
from workflow_scripts.models.structure import attention_window
from workflow_scripts.models.tokenisation import Codec
from workflow_scripts.stage import InputError

UNITS = ("encoding", "alignment", "denoising")

Prefix = list[tuple[torch.Tensor, torch.Tensor]]
"""For each layer, keys and values (rows × heads × length × width of a head) that stand before those of the text."""


def attend_with_prefix(
    module: Any, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, mask: torch.Tensor | None, **given: Any
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Attention of transformers with the layer's own prefix before keys and values; without one, plain attention."""
    prefix: Prefix | None = given.pop("prefix", None)
    if prefix is not None:
        keys, values = prefix[module.layer_idx]
        key, value = torch.cat([keys, key], dim=2), torch.cat([values, value], dim=2)
    return sdpa_attention_forward(module, query, key, value, mask, **given)


def drawn_prompt(layers: int, length: int, width: int) -> torch.Tensor:
    """Keys and values of every layer (layers × 2 × length × width) by Xavier's uniform initialisation, each matrix by itself."""
    prompt = torch.empty(layers, 2, length, width)
    for matrix in prompt.flatten(0, 1):
        nn.init.xavier_uniform_(matrix)
    return prompt


ATTENTION = "crossgap_prefix"
AttentionInterface.register(ATTENTION, attend_with_prefix)
AttentionMaskInterface.register(ATTENTION, sdpa_mask)


class Guide(NamedTuple):
    """What a source tells the units that write: keys and values of each layer, and the rows' masks and lengths."""

    prefix: Prefix
    mask: torch.Tensor
    """Rows × source positions: whether there is a piece."""
    lengths: torch.Tensor
    """Pieces of each source, special ones included."""
    summary: torch.Tensor
    """Rows × width: the state of the last layer, the mean or the first one, from which the target's length is guessed."""

    def rows(self, kept: torch.Tensor | list[int]) -> "Guide":
        """Some of the rows."""
        return Guide([(k[kept], v[kept]) for k, v in self.prefix], self.mask[kept], self.lengths[kept], self.summary[kept])

    def detached(self) -> "Guide":
        """The same guide, into which no gradient goes."""
        return self._replace(prefix=[(k.detach(), v.detach()) for k, v in self.prefix])


class PromptedEncoder(nn.Module):
    """An encoder with the prompts that make it a generator."""

    def __init__(
        self,
        encoder: Any,
        settings: SGA,
        blank: int,
        mask: int,
        losses: Callable[..., dict[str, torch.Tensor]],
        frozen: bool = True,
        length_width: int = 1,
    ):
        """`encoder` is a masked language model of transformers; `blank` and `mask` are ids of pieces. A class of lengths has `length_width`
        lengths. Prompts are drawn from PyTorch's generator (Xavier). `losses` are what it learns by (`refining.losses`)."""
        super().__init__()
        self.losses = losses
        self.encoder, self.settings, self.blank, self.mask = encoder, settings, blank, mask
        self.backbone = ""  # its name, which a file of prompts tells
        self.frozen, self.length_width, self.reserved_positions = frozen, length_width, reserved_in(encoder)
        encoder.set_attn_implementation(ATTENTION)
        encoder.requires_grad_(not frozen)
        size = family_of(encoder.config).size
        layers, width = (getattr(encoder.config, size[name]) for name in ("layers", "width"))
        self.heads = getattr(encoder.config, size["heads"])
        self.units = UNITS if settings.denoising else UNITS[:2]
        self.prompts = nn.ParameterDict(
            {unit: drawn_prompt(layers, settings.prompt_length, width) for unit in self.units} if settings.prompt_length else {}
        )
        # the learned scale of multi-stage prompting (Tan et al. 2022, section 3.3), whose prompts the paper follows
        self.scales = nn.ParameterDict({unit: torch.ones(()) for unit in self.prompts})
        self.project_keys, self.project_values = nn.Linear(width, width), nn.Linear(width, width)
        self.length = nn.Linear(width, settings.length_classes) if settings.alignment == "mask_predict" else None

    @property
    def config(self) -> Any:
        """The encoder's configuration."""
        return self.encoder.config

    @property
    def device(self) -> torch.device:
        """Where it computes."""
        return self.project_keys.weight.device

    @property
    def longest_source(self) -> int:
        """The longest source, special pieces included."""
        return self.settings.longest_source(longest_row(self.config))

    @property
    def longest_target(self) -> int:
        """The longest target."""
        return self.settings.longest_target(longest_row(self.config))

    @property
    def sees(self) -> dict[str, int]:
        """What a piece of a text sees: the position of the first piece, and how many pieces away layers with a window see (0: all)."""
        return {"first_position": self.reserved_positions, "window": attention_window(self.config) or 0}

    def trained(self) -> dict[str, nn.Parameter]:
        """The weights that are trained, by name."""
        return {name: weight for name, weight in self.named_parameters() if weight.requires_grad}

    def state_dict(self, *given: Any, **named: Any) -> Any:
        """The weights that are trained: a checkpoint of a frozen encoder has its prompts alone."""
        whole, trained = super().state_dict(*given, **named), self.trained()
        return {name: weight for name, weight in whole.items() if name.removeprefix(named.get("prefix", "")) in trained}

    def tie_weights(self) -> None:
        """Have the output layer share the embeddings, as transformers' models do."""
        self.encoder.tie_weights()

    def save_pretrained(self, folder: Path) -> None:
        """Write the encoder in Hugging Face's format, so that whatever reads encoders reads it, and the prompts beside it."""
        self.encoder.save_pretrained(folder)
        save_prompts(self, Path(folder) / FILE)

    # -----------------------------------------------------------------------------------------
    # the units

    def encode(self, ids: torch.Tensor, mask: torch.Tensor) -> Guide:
        """Semantic encoding of a source (rows × positions), equations 1 and 2."""
        prefix = self.prefix("encoding", len(ids))
        states = self.encoder.base_model(**self._inputs(ids, mask, prefix, None), output_hidden_states=True).hidden_states[1:]
        guide = [(self.by_head(self.project_keys(layer)), self.by_head(self.project_values(layer))) for layer in states]
        return Guide(guide, mask.bool(), mask.sum(dim=1), self._summary(states[-1], mask))

    def _summary(self, states: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Rows × width: what the target's length is guessed from."""
        if self.settings.length_from == "first":
            return states[:, 0]
        # bfloat16 counts to 256
        weights = (mask / mask.sum(dim=1, keepdim=True)).to(states.dtype)
        return torch.einsum("rp,rpw->rw", weights, states)

    def align(self, guide: Guide, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """States before the output layer of what alignment reads; equations 3 and 4.

        That is `<mask>` at every position, some of which may be filled in, or with `reads: source` the source's pieces.
        """
        return last_states(self.encoder, **self._inputs(ids, mask, self.prefix("alignment", len(ids)), guide))

    def denoise(self, guide: Guide, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """States before the output layer of what is to be denoised; equations 5 and 6."""
        return last_states(self.encoder, **self._inputs(ids, mask, self.prefix("denoising", len(ids)), guide))

    def prefix(self, unit: str, rows: int) -> Prefix | None:
        """A unit's prompt for so many rows; None where prompts have no length."""
        if unit not in self.prompts:
            return None
        prompt = self.scales[unit].clamp_min(1.0) * self.prompts[unit]
        if torch.is_autocast_enabled(self.device.type):
            # prompts are kept in float32; what is computed in half precision would be carried in float32 with them
            prompt = prompt.to(torch.get_autocast_dtype(self.device.type))
        return [tuple(self.by_head(side[None].expand(rows, -1, -1)) for side in layer) for layer in prompt]  # type: ignore[misc]

    def by_head(self, states: torch.Tensor) -> torch.Tensor:
        """Rows × length × width → rows × heads × length × width of a head."""
        return states.unflatten(2, (self.heads, -1)).transpose(1, 2)

    def _inputs(self, ids: torch.Tensor, mask: torch.Tensor, prefix: Prefix | None, guide: Guide | None) -> dict[str, Any]:
        """What the encoder is given: positions are counted without the prefix, and no padding is looked at."""
        seen = mask.bool()
        if prefix is not None:
            length = prefix[0][0].shape[2]
            seen = torch.cat([seen.new_ones(len(ids), length), seen], dim=1)
        if guide is not None:
            seen = torch.cat([guide.mask, seen], dim=1)
            if prefix is None:
                prefix = guide.prefix
            else:
                pairs = zip(guide.prefix, prefix, strict=True)
                prefix = [(torch.cat([a, k], dim=2), torch.cat([b, v], dim=2)) for (a, b), (k, v) in pairs]
        positions = torch.arange(ids.shape[1], device=ids.device)[None].expand(len(ids), -1)
        return {
            "input_ids": ids,
            "position_ids": positions + self.reserved_positions,
            "attention_mask": self._by_kind_of_layer(seen[:, None, None].expand(-1, -1, ids.shape[1], -1)),
            **({"prefix": prefix} if prefix is not None else {}),
        }

    def _by_kind_of_layer(self, seen: torch.Tensor) -> torch.Tensor | dict[str, torch.Tensor]:
        """The mask (rows × 1 × positions × keys), or one for each kind of layer: one with a window sees near text, and all prefixes."""
        if not (window := attention_window(self.config)):
            return seen
        positions, keys = seen.shape[2:]
        places = torch.arange(positions, device=seen.device)
        near = (places[:, None] - places).abs() <= window
        near = torch.cat([near.new_ones(positions, keys - positions), near], dim=1)
        return {"full_attention": seen, "sliding_attention": seen & near}

    # -----------------------------------------------------------------------------------------
    # training

    def forward(
        self, input_ids: torch.Tensor, attention_mask: torch.Tensor, targets: torch.Tensor, random: torch.Generator | None = None
    ) -> dict[str, torch.Tensor]:
        """The summed losses of a batch, each in nats; see `refining.losses`."""
        return self.losses(self, input_ids, attention_mask, targets, random)

    def output_layer(self) -> tuple[torch.Tensor, torch.Tensor]:
        """The matrix and the bias that make a piece's score from the states."""
        return output_layer(self.encoder)


# ---------------------------------------------------------------------------------------------
# made from a backbone


def check_encoder(config: Any, codec: Codec, settings: SGA, where: str) -> None:
    """Raise `InputError` for a model of which no generator can be made by these settings; `where` names it in the message.

    That is one with a decoder, without attention, without `<mask>` or without the blank, and one with fewer positions than prompts have
    keys. Prompts take up no positions. A prompt longer than the model's rows is taken for a slip of the pen.
    """
    if codec.form.writes:
        has = "is a decoder" if codec.form.causal else "has a decoder"
        raise InputError(
            f"{where}: is a model of the family {codec.form.label}, which {has}; SGA and CTC make a generator of an encoder alone, "
            "such as an XLM-R or mBERT"
        )
    if not all(hasattr(config, codec.form.size[name]) for name in ("layers", "width", "heads")):
        raise InputError(unread(config.model_type, where))
    tokenizer = codec.tokenizer
    if tokenizer.mask_token is None:
        raise InputError(f"{where}: its vocabulary has no mask token, of which the alignment starts; choose a masked language model")
    if settings.blank not in tokenizer.get_vocab():
        own = tokenizer.bos_token or tokenizer.cls_token
        raise InputError(f"{where}: its vocabulary has no piece {settings.blank!r} to stand for the blank; set sga.blank: {own!r}")
    if settings.prompt_length > (longest := longest_row(config)):
        raise InputError(
            f"sga.prompt_length: {settings.prompt_length} is more than the {longest} positions of {where}; set it to {longest} at most"
        )


def check_reading(model: PromptedEncoder, where: str) -> None:
    """Raise `InputError` for an encoder that does not read prompts, in some layer or at all, or that is another one without them.

    There are many encoders, so this one is tried.
    """
    training = model.encoder.training
    model.encoder.eval()
    try:
        able = _without_prompts_is_plain(model) and reads_prompts(model)
    except Exception:  # whatever another network does with what it does not know
        able = False
    finally:
        model.encoder.train(training)
    if not able:
        raise InputError(unread(model.config.model_type, where))


def unread(kind: str, where: str) -> str:
    """The message about an encoder of a `model_type` that does not read prompts; `where` names it."""
    return (
        f"{where}: SGA and CTC put keys and values before those of each layer, and a model of type {kind} does not read them; "
        "take an XLM-R, a BERT, a RoBERTa, a ModernBERT or an ELECTRA"
    )


@torch.no_grad()
def _without_prompts_is_plain(model: PromptedEncoder) -> bool:
    """Whether a generator without prompts has the states of its encoder, in a row beyond a window and in one with padding."""
    pad = model.config.pad_token_id or 0
    pieces = cycle(piece for piece in range(model.config.vocab_size) if piece != pad)
    ids = torch.tensor([[*islice(pieces, (attention_window(model.config) or 0) + 8)]] * 2, device=model.device)
    ids[1, 4:] = pad
    mask = (ids != pad).long()
    plain = model.encoder.base_model(input_ids=ids, attention_mask=mask).last_hidden_state
    own = model.encoder.base_model(**model._inputs(ids, mask, None, None)).last_hidden_state
    return torch.allclose(plain[mask.bool()], own[mask.bool()], rtol=1e-3, atol=1e-3)


@torch.enable_grad()
def reads_prompts(model: PromptedEncoder) -> bool:
    """Whether the states of two pieces depend on a key and a value before those of each layer."""
    ids = torch.zeros(1, 2, dtype=torch.long, device=model.device)
    size = family_of(model.config).size
    layers, width = (getattr(model.config, size[name]) for name in ("layers", "width"))
    sides = torch.zeros(2 * layers, 1, 1, width, device=model.device, requires_grad=True).unbind()
    prefix = [(model.by_head(keys), model.by_head(values)) for keys, values in zip(sides[::2], sides[1::2], strict=True)]
    states = model.encoder.base_model(**model._inputs(ids, torch.ones_like(ids), prefix, None)).last_hidden_state
    return all(gradient is not None for gradient in torch.autograd.grad(states.sum(), sides, allow_unused=True))


# ---------------------------------------------------------------------------------------------
# kept in a file


def save_prompts(model: PromptedEncoder, path: Path) -> None:
    """Write what a generator has besides its encoder."""
    from safetensors.torch import save_file

    metadata = {
        "backbone": model.backbone,
        "checksum": checksum_of(model.encoder),
        "frozen": model.frozen,
        "length_width": model.length_width,
        "sees": model.sees,
        BLOCK: asdict(model.settings),
    }
    weights = {name: weight.contiguous().cpu() for name, weight in model.state_dict().items() if not name.startswith("encoder.")}
    save_file(weights, path, metadata={"format": "pt", "crossgap": json.dumps(metadata)})


def checksum_of(encoder: Any) -> str:
    """SHA-256 of the names and numbers (float32) of a model's weights; of weights that are shared, once."""
    digest = hashlib.sha256()
    for name, weight in sorted(encoder.named_parameters()):
        digest.update(f"{name}{tuple(weight.shape)}".encode())
        digest.update(weight.detach().to("cpu", torch.float32).contiguous().numpy().data)
    return digest.hexdigest()
