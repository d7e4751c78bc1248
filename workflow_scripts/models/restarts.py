"""restarts: how a network learns that several sentences stand in one row, so that positions begin anew with each of them.

Each function is what a family's entry says of this (`Family.restarts`). It takes the network and the positions (rows × length, from 0) that
the encoder reads, and those of the decoder where there is one. It is a context in which the network counts so, and gives what is handed to
the network beside that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from workflow_scripts.models.recognition import reserved_in

if TYPE_CHECKING:
    from torch import Tensor


@contextmanager
def relative(network: Any, positions: Tensor, decoder: Tensor | None = None) -> Iterator[dict[str, Any]]:
    """Positions are distances between pieces, which are the same wherever a sentence stands in its row."""
    yield {}


@contextmanager
def given(network: Any, positions: Tensor, decoder: Tensor | None = None, reserved: int = 0) -> Iterator[dict[str, Any]]:
    """The network takes positions, counted from the first one that a piece may have, behind the `reserved` ones (BERT, XLM-R)."""
    yield {"position_ids": positions + reserved}


@contextmanager
def found_out(network: Any, positions: Tensor, decoder: Tensor | None = None) -> Iterator[dict[str, Any]]:
    """The same, where the network itself tells how many are reserved (RoBERTa, CamemBERT)."""
    with given(network, positions, reserved=reserved_in(network)) as more:
        yield more


@contextmanager
def learnt(network: Any, positions: Tensor, decoder: Tensor | None = None) -> Iterator[dict[str, Any]]:
    """Each half has a table of learnt vectors, whose first rows no piece has (BART, mBART)."""
    from torch.nn.functional import embedding

    with _looked_up(network, positions, decoder, lambda table, places: embedding(places + table.offset, table.weight)):
        yield {}


@contextmanager
def computed(network: Any, positions: Tensor, decoder: Tensor | None = None) -> Iterator[dict[str, Any]]:
    """Each half has a table of sines, in which the first piece has the row behind that of padding (M2M-100)."""
    with _looked_up(network, positions, decoder, lambda table, places: table.weights[places + table.padding_idx + 1]):
        yield {}


@contextmanager
def _looked_up(network: Any, positions: Tensor, decoder: Tensor | None, look_up: Callable[[Any, Tensor], Tensor]) -> Iterator[None]:
    """Context in which the tables of both halves give the vectors of these positions, whatever they are asked."""
    body = network.base_model
    tables = [(body.encoder.embed_positions, positions)]
    if decoder is not None:
        tables.append((body.decoder.embed_positions, decoder))
    try:
        for table, places in tables:
            table.forward = lambda *_, table=table, places=places, **__: look_up(table, places)
        yield
    finally:
        for table, _ in tables:
            del table.forward
