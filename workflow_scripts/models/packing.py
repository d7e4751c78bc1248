"""packing: a batch without padding, its rows one behind the other, for encoder-decoders.

The padded batch of the same rows gives the same loss and the same gradients. What is saved are the padding and the mask, which keeps a GPU
from its fastest attention kernel. All layers but attention look at one position at a time, so they take the rows as one long
row. Attention is told where each row begins and ends: on a GPU by PyTorch's jagged nested tensors, elsewhere it takes row after row.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from transformers import AttentionInterface, PreTrainedModel

from workflow_scripts.models.batches import Row, decoder_input
from workflow_scripts.models.families import family_of
from workflow_scripts.stage import InputError


class Segments(NamedTuple):
    """Where the rows of one side begin and end in the long row."""

    offsets: torch.Tensor
    """The first position of each row, and the number of all positions (rows + 1 whole numbers)."""
    longest: int
    """Positions of the longest row. A number, since asking a tensor would make the program wait for the GPU."""

    def positions(self, size: int) -> torch.Tensor:
        """The place of each of the `size` positions in its own row."""
        starts = torch.repeat_interleave(self.offsets[:-1], self.offsets.diff(), output_size=size)
        return torch.arange(size, device=self.offsets.device) - starts


def pack(rows: list[Row]) -> dict[str, Any]:
    """The ids of all rows in one row (1 × pieces), as the encoder and as the decoder reads them, labels, and where the rows are.

    What `collate` says of labels holds here: −100 marks a place without one, where the decoder still reads some id.
    """
    sides = [row[0] for row in rows], [decoder_input(row[1]) for row in rows], [row[1] for row in rows]
    source, target, labels = (torch.tensor([piece for row in side for piece in row])[None] for side in sides)
    lengths = [[len(row[side]) for row in rows] for side in (0, 1)]
    source_offsets, target_offsets = (F.pad(torch.tensor(side).cumsum(0), (1, 0)) for side in lengths)
    return {
        "input_ids": source,
        "decoder_input_ids": target.clamp_min(0),
        "labels": labels,
        "source_offsets": source_offsets,
        "target_offsets": target_offsets,
        "longest": tuple(map(max, lengths)),
    }


def why_not_packed(network: PreTrainedModel) -> str:
    """Why batches of this model cannot be packed; empty where they can."""
    family = family_of(network.config)
    if family.name not in ("mbart", "mbart50", "m2m100"):
        return f"{family.title} is not among the families that can be (mBART, mBART-50, M2M-100, NLLB)"
    if network.config.encoder_layerdrop or network.config.decoder_layerdrop:
        return "the model leaves out layers at random (layerdrop)"
    return ""


def packed_states(
    network: PreTrainedModel,
    input_ids: torch.Tensor,
    decoder_input_ids: torch.Tensor,
    source_offsets: torch.Tensor,
    target_offsets: torch.Tensor,
    longest: tuple[int, int],
    **_: Any,
) -> torch.Tensor:
    """The decoder's last states (1 × pieces × width) of a batch that `pack` made; what else the Trainer adds to it is not read.

    Raises `InputError` for models that cannot take it.
    """
    if reason := why_not_packed(network):
        raise InputError(f"batching: packed: {reason}; set batching: padded")
    base: Any = network.base_model
    segments = Segments(source_offsets, longest[0]), Segments(target_offsets, longest[1])
    with _attention_by_row(network):
        states = _embedded(base.encoder, input_ids, segments[0])
        for layer in base.encoder.layers:
            states = layer(states, None, segments=segments)
        source = base.encoder.layer_norm(states)
        states = _embedded(base.decoder, decoder_input_ids, segments[1])
        for layer in base.decoder.layers:
            states = layer(states, None, source, segments=segments)
        return base.decoder.layer_norm(states)


def _embedded(half: Any, ids: torch.Tensor, segments: Segments) -> torch.Tensor:
    """The first states of encoder or decoder: pieces and places, as the model's own forward adds them."""
    places = segments.positions(ids.shape[1])
    table = half.embed_positions
    # M2M-100 has sinusoids, one of which stands for padding
    sinusoids = hasattr(table, "weights")
    added = table.weights[places + table.padding_idx + 1] if sinusoids else F.embedding(places + table.offset, table.weight)
    states = half.embed_tokens(ids) + added
    if hasattr(half, "layernorm_embedding"):
        states = half.layernorm_embedding(states)
    return F.dropout(states, p=half.dropout, training=half.training)


# ---------------------------------------------------------------------------------------------
# attention


@contextmanager
def _attention_by_row(network: PreTrainedModel) -> Iterator[None]:
    """Context in which the model's layers call `attend`. Padded batches, as on the dev set, stay outside, with the model's attention."""
    config: Any = network.config
    usual = config._attn_implementation
    config._attn_implementation = "by_row"
    try:
        yield
    finally:
        config._attn_implementation = usual


def attend(
    module: Any,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    mask: None,
    dropout: float = 0.0,
    scaling: float | None = None,
    *,
    segments: tuple[Segments, Segments],
    **_: Any,
) -> tuple[torch.Tensor, None]:
    """Attention (1 × pieces × heads × width of a head) in which every row sees its own pieces alone.

    `query`, `key` and `value` (1 × heads × pieces × width of a head) are those of transformers' attention functions, as is `module`, the
    layer's attention. `segments` are those of source and target.
    """
    source, target = segments
    asking = target if module.is_decoder else source
    # a decoder's attention looks at the decoder itself where it is causal, else at the encoder
    asked = target if module.is_causal else source
    by_row = _jagged if query.is_cuda else _in_turn
    query, key, value = (tensor[0].transpose(0, 1) for tensor in (query, key, value))
    return by_row(query, key, value, asking, asked, module.is_causal, dropout, scaling)[None], None


AttentionInterface.register("by_row", attend)


def _in_turn(query, key, value, asking: Segments, asked: Segments, causal: bool, dropout: float, scaling: float | None) -> torch.Tensor:
    """Attention of pieces × heads × width, a row at a time."""
    lengths, lengths_asked = (segments.offsets.diff().tolist() for segments in (asking, asked))
    rows = zip(query.split(lengths), key.split(lengths_asked), value.split(lengths_asked), strict=True)
    return torch.cat([_row(*row, causal, dropout, scaling) for row in rows])


def _jagged(query, key, value, asking: Segments, asked: Segments, causal: bool, dropout: float, scaling: float | None) -> torch.Tensor:
    """The same by PyTorch's attention of nested tensors, which on a GPU is one kernel for all rows; on a CPU it is never causal."""

    def nested(tensor: torch.Tensor, segments: Segments) -> torch.Tensor:
        # the shortest row is asked for only where nested tensors are padded
        return torch.nested.nested_tensor_from_jagged(tensor.contiguous(), segments.offsets, min_seqlen=1, max_seqlen=segments.longest)

    return _row(nested(query, asking), nested(key, asked), nested(value, asked), causal, dropout, scaling).values()


def _row(query, key, value, causal: bool, dropout: float, scaling: float | None) -> torch.Tensor:
    """PyTorch's attention of (rows ×) pieces × heads × width."""
    query, key, value = (side.transpose(-3, -2) for side in (query, key, value))
    found = F.scaled_dot_product_attention(query, key, value, dropout_p=dropout, is_causal=causal, scale=scaling)
    return found.transpose(-3, -2)
