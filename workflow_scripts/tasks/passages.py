"""passages: questions and their passages as a model reads them, in windows of long passages, and the answers that it marks.

A row is the question and a part of its passage, as the family has pairs of texts. A passage that is longer than a row is read in
several windows. Each begins `stride` pieces after the one before, and no piece is lost. In a window without the answer the right
span is the row's first special piece, of a decoder the last piece before the passage. The best span of all windows is the answer.
BERT's code (Devlin et al. 2019) reads SQuAD in such windows too. It takes an answer only from the window in which the answer's first
piece has the most text around it; here any window counts.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from workflow_scripts.device import without_gradients
from workflow_scripts.models.batches import Row
from workflow_scripts.models.offsets import Pieces, pieces_in_place
from workflow_scripts.models.products import quick_products
from workflow_scripts.models.templates import word_blank
from workflow_scripts.tasks.head_model import Prefixes, Reader, head_outputs
from workflow_scripts.text.examples import Example
from workflow_scripts.text.questions import Span, parse_spans

if TYPE_CHECKING:
    from transformers import PreTrainedModel


class Window(NamedTuple):
    """A question with a part of its passage.

    The row's labels are places in what the head reads. First come those of the answer's first and last piece, then the place for no answer,
    then all places where an answer may begin or end.
    """

    example: int
    """The place of the question among the examples."""
    row: Row
    first: int
    """The place of the window's first piece of the passage in what the head reads."""
    offsets: list[Span]
    """The characters that each piece of the passage in it stands for."""


class PassageReader(Reader):
    """Questions with their passages as rows of ids, in the form of the model in `folder`.

    Questions are cut to `longest_question` pieces, and to half a row.
    """

    def __init__(
        self,
        folder: Path,
        max_length: int,
        stride: int,
        longest_question: int,
        parts: str = "both",
        language: str = "",
        prefixes: Prefixes = Prefixes(),
    ):
        super().__init__(folder, max_length, language, prefixes)
        self.has_decoder = self.codec.form.decoder and parts == "both" and not self.codec.form.encoder_heads
        form = self.codec.row
        # BERT has one separator between two texts; RoBERTa has two, and so have the rows of pairs for models with a decoder
        self.between = self.codec.between
        if self.is_encoder and not self.codec.form.causal:
            of_pair, of_text = (self.tokenizer.num_special_tokens_to_add(pair=pair) for pair in (True, False))
            self.between = [getattr(self.tokenizer, f"{form[-1]}_token_id")] * (of_pair - of_text)
        self.before, _ = self.codec.around
        self.special = next((at for at, part in enumerate(form) if part in ("cls", "bos", "tag")), 0)
        # a blank belongs to the word behind it
        self.prefix, before_passage = (each.ids for each in pieces_in_place(self.tokenizer, [one.rstrip(" ") for one in self.prefixes]))
        self.blanks = Prefixes(*(word_blank(self.tokenizer) if one.endswith(" ") else "" for one in self.prefixes))
        self.between = [*self.between, *before_passage]
        self.room = self.max_length - sum(self.codec.around) - len(self.between) - len(self.prefix)
        self.stride = stride
        self.longest_question = min(longest_question, self.room // 2)

    def windows(self, examples: Sequence[Example], code: str) -> list[Window]:
        """The windows of all examples, in order; each example has one at least."""
        texts = dict.fromkeys(example.pair for example in examples)
        passages = dict(zip(texts, self._behind(self.blanks.pair, list(texts)), strict=True))
        questions = self._behind(self.blanks.text, [example.text for example in examples])
        made = []
        for number, (example, question) in enumerate(zip(examples, questions, strict=True)):
            passage = passages[example.pair]
            spans = parse_spans(example.label)  # none where a test set's answer is not in its passage
            answer = pieces_of_span(passage, spans[0]) if spans else None
            made += self._windows_of(number, question.ids[: self.longest_question], passage, answer, code)
        if lost := answers_lost(made, examples):
            said = f"{lost:,} of {len(examples):,} questions have an answer that no window of the passage has whole"
            print(f"WARNING: {said}; it counts as none: lower answering.stride, or raise max_length", flush=True)
        return made

    def _behind(self, blank: str, texts: list[str]) -> list[Pieces]:
        """The pieces of texts that stand behind a blank, or behind none."""
        found = pieces_in_place(self.tokenizer, [f"{blank}{text}" for text in texts])
        if not blank:
            return found
        return [Pieces(ids, [(max(0, begin - 1), max(0, end - 1)) for begin, end in offsets]) for ids, offsets in found]

    def rows(self, examples: Sequence[Any], code: str, labels: list[str]) -> list[Row]:
        """The rows of windows."""
        return [window.row for window in examples]

    def _windows_of(self, number: int, question: list[int], passage: Pieces, answer: Span | None, code: str) -> list[Window]:
        room = self.room - len(question)
        head = [*self.prefix, *question, *self.between]
        starts = range(0, max(1, len(passage.ids) - room + min(self.stride, room)), min(self.stride, room))
        texts = [[*head, *passage.ids[start : start + room]] for start in starts]
        windows = []
        for start, ids in zip(starts, self.codec.framed(texts, code), strict=True):
            offsets = passage.offsets[start : start + room]
            # the decoder reads each piece one place later, the last one first
            later = int(self.has_decoder)
            first = self.before + len(head) + later
            none = ((len(ids) - 1 if self.special > self.before else self.special) + later) % len(ids)
            if self.codec.form.causal:
                none = first - 1  # of the pieces before the passage the one that has seen the question
            inside = answer and start <= answer[0] and answer[1] < start + room
            labels = [first + place - start for place in answer] if answer and inside else [none, none]
            places = [first + at for at, (begin, end) in enumerate(offsets) if end > begin]
            windows.append(Window(number, (array("i", ids), array("i", [*labels, none, *places])), first, offsets))
        return windows

    def collate(self, rows: list[Row]) -> dict[str, torch.Tensor]:
        """A batch: what the model reads, `places` (rows × longest) where an answer may be, and labels (rows × first, last place).

        A row that only fills a batch has labels of −100.
        """
        batch = super().collate([(ids, [-100]) for ids, _ in rows])
        batch["labels"] = torch.tensor([(*marked, -100)[:2] for _, marked in rows])
        batch["places"] = torch.zeros_like(batch["input_ids"], dtype=torch.bool)
        for line, (_, marked) in zip(batch["places"], rows, strict=True):
            line[marked[2:] if len(marked) > 1 else [0]] = True
        return batch


def answers_lost(windows: Sequence[Window], examples: Sequence[Example]) -> int:
    """How many of the examples have an answer in their passage that none of their windows has whole: it lies between two of them."""
    whole = {window.example for window in windows if window.row[1][0] != window.row[1][2]}
    return sum(bool(parse_spans(example.label)) and number not in whole for number, example in enumerate(examples))


def pieces_of_span(pieces: Pieces, span: Span) -> Span | None:
    """The first and the last piece that has characters of `span`; None where no piece has."""
    inside = [at for at, (begin, end) in enumerate(pieces.offsets) if max(begin, span[0]) < min(end, span[1])]
    return (inside[0], inside[-1]) if inside else None


class Marked(NamedTuple):
    """What a model marked: for each example the span of its passage, in characters, and for each window the loss."""

    spans: list[Span]
    losses: list[float]


@without_gradients
@quick_products()
def mark(
    network: PreTrainedModel, reader: PassageReader, windows: Sequence[Window], longest: int, precision: str, tokens: int = 0
) -> Marked:
    """The best span of each example over its windows, at most `longest` pieces long; `tokens` are read at once.

    An example of whose passage no piece can be an answer has the span (0, 0).
    """
    from workflow_scripts.models.span_head import best_spans  # and networks, which the configuration does not need

    best: dict[int, tuple[float, Span]] = {}
    losses = [0.0] * len(windows)
    for chosen, labels, logits in head_outputs(network, reader, [window.row for window in windows], precision, tokens):
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="none").view(-1, 2).mean(dim=1)
        nothing = torch.tensor([windows[i].row[1][2] for i in chosen], device=logits.device)
        logits[torch.arange(len(chosen), device=logits.device), :, nothing] = float("-inf")
        found = [tensor.tolist() for tensor in (loss, *best_spans(logits, longest))]
        for i, cost, score, first, last in zip(chosen, *found, strict=True):
            window, losses[i] = windows[i], cost
            if score == float("-inf"):
                best.setdefault(window.example, (score, (0, 0)))
            elif window.example not in best or score > best[window.example][0]:
                best[window.example] = score, (window.offsets[first - window.first][0], window.offsets[last - window.first][1])
    return Marked([best[example][1] for example in sorted(best)], losses)
