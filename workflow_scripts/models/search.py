"""search: translations of encoded rows by Hugging Face's `generate`, greedily or with a beam."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Sequence
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from workflow_scripts.device import without_gradients
from workflow_scripts.models.products import quick_products
from workflow_scripts.models.recognition import longest_output
from workflow_scripts.models.tokenisation import Codec

if TYPE_CHECKING:
    from transformers import PreTrainedModel


class Hypothesis(NamedTuple):
    """A translation, and its log-probability divided by a power of its length."""

    score: float
    text: str
    ended: bool = True
    """Whether the model ended it, as far as that is known: if not, it has as many pieces as a translation may have."""


def generate(network: PreTrainedModel, codec: Codec, rows: Sequence[Sequence[int]], code: str, beam_size: int, **choices: Any) -> list[str]:
    """The best translation of each row, see `beam_search`."""
    return [found[0].text for found in beam_search(network, codec, rows, code, beam_size, **choices)]


@without_gradients
@quick_products()
def beam_search(
    network: PreTrainedModel,
    codec: Codec,
    rows: Sequence[Sequence[int]],
    code: str,
    beam_size: int,
    n_best: int = 1,
    max_length: int | None = None,
    min_length: int = 0,
    tokens: int = 4_096,
    length_penalty: float = 1.0,
    expected: Sequence[int] = (),
) -> list[list[Hypothesis]]:
    """The `n_best` translations of each encoded row, or behind each prompt of a decoder, best first, by Hugging Face's `generate`.

    As many rows are translated at a time as fit into `tokens`, padding included.
    Without `max_length` a translation may have 1.2 times the pieces of the longest source of its batch (of a decoder: with its prompt), and
    ten more: a model that has learnt little never ends a sentence. Where it is known how many pieces are `expected` for each row, it may
    have ten more than the most of its batch in any case. A beam of one gives no scores (NaN).
    """
    network.eval()
    positions = longest_output(network.config)
    translations: list[list[Hypothesis]] = [[] for _ in rows]
    translate: Any = network.generate
    end = {*codec.ends(network)}
    ends = {"eos_token_id": sorted(end)} if codec.form.causal else {}
    if getattr(network, "is_spread", False):
        # processes that have a part of the weights each put them together as often as the slowest needs them
        way: dict[str, Any] = {"synced_gpus": True}
    elif beam_size == 1 and network.device.type == "cpu" and not getattr(network, "_is_stateful", False):
        way = {"custom_generate": partial(greedy_search, padding=codec.pad)}  # a GPU computes all rows of a batch in the time of a few
    else:
        way = {}
    for chosen, batch in padded_batches(rows, tokens, codec, network.device):
        usual = max([int(1.2 * batch["input_ids"].shape[1]), *(expected[i] for i in chosen if expected)]) + 10
        with without_penalties_of_its_own(network):
            output: Any = translate(
                **batch,
                num_beams=beam_size,
                # end with as many finished hypotheses as the beam is wide, like fairseq and CTranslate2
                early_stopping=beam_size > 1,
                num_return_sequences=n_best,
                min_new_tokens=min_length,
                max_new_tokens=min(max_length or usual, positions),
                length_penalty=length_penalty,
                do_sample=False,
                return_dict_in_generate=True,
                output_scores=n_best > 1,
                **codec.generate_arguments(code),
                **ends,
                **way,
            )
        written = output.sequences[:, batch["input_ids"].shape[1] if codec.form.causal else 0 :].tolist()
        scores = getattr(output, "sequences_scores", None)
        scores = [math.nan] * len(written) if scores is None else scores.tolist()
        for place, (score, ids, line) in enumerate(zip(scores, written, codec.decode(written), strict=True)):
            # a decoder behind an encoder may start with the piece that ends a text
            ended = not end.isdisjoint(ids if codec.form.causal else ids[1:])
            translations[chosen[place // n_best]].append(Hypothesis(score, line, ended))
    return translations


def greedy_search(
    network: Any,
    input_ids: torch.Tensor,
    logits_processor: Any,
    stopping_criteria: Any,
    padding: int,
    **inputs: Any,
) -> Any:
    """The loop of `generate` for greedy search, in which rows that have ended are left out of the batch.

    `generate` computes all rows until the longest has ended. Most rows of a decoder that answers in a line end long before it. The texts
    are the same. The arguments are those that transformers hands to a `custom_generate`, besides the piece for `padding`.
    """
    for unused in ("generation_config", "synced_gpus", "streamer"):
        inputs.pop(unused, None)

    sequences = input_ids.new_full((len(input_ids), stopping_criteria.max_length), padding)
    sequences[:, : (length := input_ids.shape[1])] = input_ids
    going = torch.arange(len(input_ids), device=input_ids.device)
    begun: dict[str, Any] = {"is_first_iteration": True}
    while len(going):
        read = network.prepare_inputs_for_generation(input_ids, **begun, **inputs)
        output = network(**read, return_dict=True)
        inputs = network._update_model_kwargs_for_generation(output, inputs, is_encoder_decoder=network.config.is_encoder_decoder)
        begun = {"next_sequence_length": 1 if inputs["use_cache"] else None}
        chosen = logits_processor(input_ids, output.logits[:, -1].float()).argmax(dim=-1)
        input_ids = torch.cat([input_ids, chosen[:, None]], dim=1)
        sequences[going, length] = chosen
        length += 1
        ended = stopping_criteria(input_ids, None)
        if ended.any():
            places = (~ended).nonzero()[:, 0]
            going, input_ids, inputs = going[places], input_ids[places], rows_at(places, inputs)
    return SimpleNamespace(sequences=sequences[:, :length])


def rows_at(places: torch.Tensor, inputs: dict[str, Any]) -> dict[str, Any]:
    """The rows at some places of what a network reads beside its ids: masks, the states of an encoder, and the cache, which is changed."""
    kept = {}
    for name, value in inputs.items():
        if isinstance(value, torch.Tensor):
            value = value[places]
        elif hasattr(value, "last_hidden_state"):
            value = type(value)(last_hidden_state=value.last_hidden_state[places])
        elif hasattr(value, "reorder_cache"):
            value.reorder_cache(places)
        kept[name] = value
    return kept


def padded_batches(
    rows: Sequence[Sequence[int]], tokens: int, codec: Codec, device: torch.device
) -> Iterator[tuple[list[int], dict[str, torch.Tensor]]]:
    """Batches of rows, the longest first: the places of their rows, and their ids and mask on the device.

    A batch has as many rows as fit into `tokens`, padding included. Rows of a decoder are filled up before them: it goes on behind them.
    """
    order, side = sorted(range(len(rows)), key=lambda i: -len(rows[i])), "left" if codec.form.causal else "right"
    while order:
        size = max(1, tokens // len(rows[order[0]]))
        chosen, order = order[:size], order[size:]
        sources = [torch.tensor(rows[i]) for i in chosen]
        padded = torch.nn.utils.rnn.pad_sequence(sources, batch_first=True, padding_value=codec.pad, padding_side=side)
        there = torch.nn.utils.rnn.pad_sequence([torch.ones_like(source) for source in sources], batch_first=True, padding_side=side)
        yield chosen, {"input_ids": padded.to(device), "attention_mask": there.to(device)}


@contextlib.contextmanager
def without_penalties_of_its_own(network: PreTrainedModel) -> Iterator[None]:
    """Let `generate` take over no more than special pieces from the model's own `generation_config.json`.

    Such a file may forbid repetitions, as BART's does, or put `</s>` in the place of the last piece that is allowed, as mBART's does.
    CTranslate2 would know nothing of either.
    """
    from transformers import GenerationConfig

    own = network.generation_config
    pieces = ("pad_token_id", "bos_token_id", "eos_token_id")
    network.generation_config = GenerationConfig(**{name: getattr(own, name) for name in pieces})
    try:
        yield
    finally:
        network.generation_config = own


@contextlib.contextmanager
def behind_prompts(network: Any, codec: Codec) -> Iterator[None]:
    """Context in which `network.generate` returns the ids that a decoder writes, without the prompts that it goes on with."""
    if not codec.form.causal:
        yield
        return
    whole = network.generate

    def generate(inputs: torch.Tensor | None = None, **named: Any) -> Any:
        read = named["input_ids"] if inputs is None else inputs
        found = whole(inputs, **named)
        if isinstance(found, torch.Tensor):
            return found[:, read.shape[1] :]
        found.sequences = found.sequences[:, read.shape[1] :]
        return found

    network.generate = generate
    try:
        yield
    finally:
        del network.generate
