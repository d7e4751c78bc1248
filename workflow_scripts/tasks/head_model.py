"""head_model: a model with a head, examples with labels as it reads them, what the head answers, and its loss."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import torch

from workflow_scripts.device import reading_in, without_gradients
from workflow_scripts.models.batches import Row, by_length, collate, tokens_at_once
from workflow_scripts.models.family import Family
from workflow_scripts.models.networks import load_network
from workflow_scripts.models.products import quick_products
from workflow_scripts.models.recognition import UNLIMITED, family_of, longest_row, network_config
from workflow_scripts.models.structure import tells_texts_apart
from workflow_scripts.models.tokenisation import load_codec
from workflow_scripts.models.tokenizer import defuse, special_pieces
from workflow_scripts.stage import InputError
from workflow_scripts.tasks.head_settings import HeadSettings, TextHeadSettings
from workflow_scripts.text.examples import Example
from workflow_scripts.training.ragged import PORTION

if TYPE_CHECKING:
    from transformers import PreTrainedModel


def head_of(form: Family, head: str, settings: Any) -> tuple[str, dict[str, Any]]:
    """Which of the heads of a family (`form`) a task's `head` is by its settings, and what these change in the model's configuration."""
    encoder_alone = getattr(settings, "parts", "both") == "encoder"
    if head != "classification":
        return head, {"token_head": "encoder", "decoder_layers": 0} if encoder_alone else {}
    if not (encoder_alone and form.decoder):
        return head, {}
    reads = "mean" if settings.reads == "mean" else "first" if form.row[0] == "tag" else "last"
    return f"encoder_{head}", {"head_reads": reads, "decoder_layers": 0}


def load_text_head(folder: Path, labels: list[str] | None, settings: TextHeadSettings, seed: int, from_scratch: bool = False) -> Any:
    """The model in `folder` with a head for whole texts and `labels`, drawn from `seed` if it has none; without `labels`, with its own."""
    drawn: dict[str, Any] = {"seed": seed, "labels": labels, "new_head": bool(labels), "from_scratch": from_scratch}
    chosen: dict[str, Any] = {"dropout": settings.dropout, "attention_dropout": settings.attention_dropout}
    form = family_of(folder)
    if form.causal:
        # the head reads the last piece that is no padding, by this setting, which many a published decoder lacks
        chosen["pad_token_id"] = load_codec(folder).pad
    head, changes = head_of(form, "classification", settings)
    return load_network(folder, head, **chosen, **changes, **drawn)


def load_token_head(
    folder: Path, head: Literal["labelling", "answering"], labels: list[str] | None, settings: Any, seed: int, from_scratch: bool = False
) -> Any:
    """The model in `folder` with a head that reads each token: one for tags, which are the `labels`, or one that marks answers.

    It is drawn from `seed` if the model has none; without `labels` (None), the model's own is loaded.
    """
    chosen: dict[str, Any] = {"dropout": settings.dropout, "attention_dropout": settings.attention_dropout}
    _, changes = head_of(family_of(folder), head, settings)
    return load_network(folder, head, **chosen, **changes, seed=seed, labels=labels, new_head=labels is not None, from_scratch=from_scratch)


class Prefixes(NamedTuple):
    """What stands before the texts of examples."""

    text: str = ""
    """Before each text, question or query."""
    pair: str = ""
    """Before the second text of a pair, the passage or the document."""

    @classmethod
    def of(cls, settings: HeadSettings) -> Prefixes:
        """Those of a head's settings."""
        return cls(settings.prefix, settings.pair_prefix)


class Reader:
    """Examples as rows of ids and batches of tensors, in the form of the model in `folder`.

    A text in a language without a tag is read under the tag of the language that the model was finetuned in. Where it is still to be
    finetuned, that is `language`, and `prefixes` stand before texts; afterwards those of the model's folder do.
    """

    def __init__(self, folder: Path, max_length: int, language: str = "", prefixes: Prefixes = Prefixes()):
        config = network_config(folder)
        self.codec = load_codec(folder)
        self.codec.fallback = language or getattr(config, "finetuned_language", "")
        self.tokenizer = self.codec.tokenizer
        self.tokenizer.truncation_side = "right"  # some chat models cut the beginning of a text off
        self.is_encoder = not self.codec.form.decoder
        self.has_decoder = not self.is_encoder
        self.has_types = self.is_encoder and getattr(config, "type_vocab_size", 1) > 1 and tells_texts_apart(self.tokenizer)
        self.max_length = min(max_length, longest_row(config))
        self.prefixes = prefixes if language else Prefixes(*getattr(config, "finetuned_prefixes", ()))
        if (length := len(self.codec.pieces([" ".join(self.prefixes)], 1 << 30)[0])) > self.max_length // 2:
            raise InputError(f"the prefixes {[*self.prefixes]} have {length} pieces, more than half of a row; raise max_length")

    def windows(self, examples: Sequence[Example], code: str) -> list[Any]:
        """What becomes a row each: the examples themselves."""
        return list(examples)

    def rows(self, examples: Sequence[Example], code: str, labels: list[str]) -> list[Row]:
        """Ids of each example, and the number of its label."""
        numbers = {label: [number] for number, label in enumerate(labels)}
        ids = self._ids(examples, code, self.max_length)
        return [(array("i", row), numbers[example.label]) for row, example in zip(ids, examples, strict=True)]

    def cut(self, examples: Sequence[Example], code: str) -> int:
        """How many of the examples are longer than a row, so that the ends of their texts are lost."""
        read, whole = (self._ids(examples, code, longest) for longest in (self.max_length, UNLIMITED))
        return sum(len(some) < len(ids) for some, ids in zip(read, whole, strict=True))

    def _ids(self, examples: Sequence[Example], code: str, longest: int) -> Iterator[list[int]]:
        """The ids of each example, at most so many."""
        paired = any(example.pair for example in examples)
        for start in range(0, len(examples), PORTION):
            some = examples[start : start + PORTION]
            first = [f"{self.prefixes.text}{each.text}" for each in some]
            second = [f"{self.prefixes.pair}{each.pair}" if each.pair else "" for each in some]
            yield from self._encode(first, second if paired else None, code, longest)

    def _encode(self, texts: list[str], pairs: list[str] | None, code: str, longest: int) -> list[list[int]]:
        if pairs and self.codec.form.writes:  # the tokenizers of many decoders would put nothing between the two
            return self.codec.encode_pairs(texts, pairs, code, longest)
        if not self.is_encoder:
            return self.codec.encode(texts, code, longest)
        specials = special_pieces(self.tokenizer)
        sides = [[defuse(line, specials) for line in side] for side in (texts, pairs) if side]
        return self.tokenizer(*sides, truncation="longest_first", max_length=longest)["input_ids"]

    def collate(self, rows: list[Row]) -> dict[str, torch.Tensor]:
        """A batch: ids and mask (rows × longest), the decoder's ids if there is one, and the labels' numbers (−100 for none)."""
        batch = collate([(ids, ids) for ids, _ in rows], self.codec.pad, self.has_decoder, self.codec.start)
        batch["labels"] = torch.tensor([label for _, (label,) in rows])
        if self.has_types:
            ends = (batch["input_ids"] == self.tokenizer.sep_token_id).long()
            batch["token_type_ids"] = (ends.cumsum(dim=1) - ends).clamp(max=1) * batch["attention_mask"]
        return batch


class Part(NamedTuple):
    """A part of the text as a head reads it."""

    examples: list[Example]
    language: str
    windows: list[Any]
    """What the reader cuts the examples into: themselves, where nothing is cut."""
    rows: list[Row]
    """A row for each window."""


def part_of(reader: Any, examples: list[Example], code: str, labels: list[str]) -> Part:
    """Examples in a language as a head reads them."""
    windows = reader.windows(examples, code)
    return Part(examples, code, windows, reader.rows(windows, code, labels))


def head_outputs(
    network: PreTrainedModel, reader: Reader, rows: Sequence[Row], precision: str, tokens: int | None = None
) -> Iterator[tuple[list[int], torch.Tensor, torch.Tensor]]:
    """Batches of rows of like length: their places, their labels and the head's output in float32; so many `tokens` are read at once."""
    network.eval()
    for chosen in by_length([len(ids) for ids, _ in rows], tokens or tokens_at_once(network.device)):
        batch = {name: tensor.to(network.device) for name, tensor in reader.collate([rows[i] for i in chosen]).items()}
        labels = batch.pop("labels")
        with reading_in(precision, network.device):
            logits = network(**batch).logits.float()
        yield chosen, labels, logits


@without_gradients
@quick_products()
def label_scores(network: PreTrainedModel, reader: Reader, rows: Sequence[Row], precision: str, tokens: int | None = None) -> torch.Tensor:
    """The head's output for each row, in their order (rows × labels); see `head_outputs`."""
    scores = torch.empty(len(rows), int(network.config.num_labels or 0))
    for chosen, _, logits in head_outputs(network, reader, rows, precision, tokens):
        scores[chosen] = logits.cpu()
    return scores


def of_whole_texts(answered: Callable[[Part, torch.Tensor, Any], Any]) -> Callable[..., list[Any]]:
    """The `HeadTask.predictions` of a head for whole texts: part, its outputs (rows × labels), `About` → what is answered to the part.

    The rows of all parts are batched together.
    """

    def predictions(network: Any, reader: Reader, parts: list[Part], precision: str, about: Any) -> list[Any]:
        outputs = label_scores(network, reader, [row for part in parts for row in part.rows], precision)
        by_part = outputs.split([len(part.rows) for part in parts])
        return [answered(part, logits, about) for part, logits in zip(parts, by_part, strict=True)]

    return predictions


def summed_loss(outputs: Any, labels: torch.Tensor, num_items_in_batch: torch.Tensor | int | None = None) -> torch.Tensor:
    """Cross-entropy per label (of an example, or a word) of the whole update, so that small batches add up to it exactly."""
    loss = torch.nn.functional.cross_entropy(outputs.logits.float().flatten(0, -2), labels.flatten(), ignore_index=-100, reduction="sum")
    return loss / (num_items_in_batch if num_items_in_batch is not None else (labels != -100).sum())


def summed_over_rows(loss: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]) -> Callable[..., torch.Tensor]:
    """The loss per row of a whole update, by a `loss` of the outputs and labels of some rows (a number for each)."""

    def of_update(outputs: Any, labels: torch.Tensor, num_items_in_batch: torch.Tensor | int | None = None) -> torch.Tensor:
        real = labels != -100  # a row that only fills up a part of an update has no label
        found = loss(outputs.logits.float()[real], labels[real]).sum()
        return found / (num_items_in_batch if num_items_in_batch is not None else real.sum())

    return of_update
