"""labelling: a model learns to tag the words of sentences in one language, and tags those in others.

Parts of speech or named entities, as in XGLUE and XTREME. The first piece of a word carries its tag, as in BERT (Devlin et al.
2019, section 5.3). With a decoder alone the last one does, since it has read the whole word only there. mBERT and XLM-R tag with
transformers' own heads. mBART and M2M-100 tag by the states of the decoder, which reads what the encoder reads (`tagger`). The
commands are those of `head`; scores are accuracy and F1, beside those of a word list.
"""

from __future__ import annotations

import importlib.metadata
from array import array
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from workflow_scripts.device import without_gradients
from workflow_scripts.evidence import tag_scores
from workflow_scripts.evidence.average import scores_beside
from workflow_scripts.models.batches import Row, decoder_input
from workflow_scripts.models.products import quick_products
from workflow_scripts.models.recognition import config_of, family_of
from workflow_scripts.models.templates import word_blank
from workflow_scripts.models.tokenisation import SPECIAL_PLACES
from workflow_scripts.number_types import AboveZero, Positive
from workflow_scripts.tasks.entry import Measure
from workflow_scripts.tasks.head_model import Part, Prefixes, Reader, head_outputs, load_token_head
from workflow_scripts.tasks.head_settings import HeadSettings
from workflow_scripts.tasks.head_task import About, Answered, head_task
from workflow_scripts.text.examples import Example
from workflow_scripts.text.tagged import join_words, split_words


@dataclass
class Labelling(HeadSettings):
    """Settings of finetuning. The defaults are XTREME's for mBERT and XLM-R."""

    batch_size: Positive = 32
    """Sentences per update."""
    learning_rate: AboveZero = 2e-5
    """Peak learning rate."""
    metric: Literal["auto", "accuracy", "f1"] = "auto"
    """Main score, which chooses checkpoints. `auto`: F1 of spans if tags mark spans, else accuracy of tags. XTREME uses `f1` for parts of
    speech."""
    choose_by: Literal["score", "loss"] = "score"
    """Dev result that early stopping and the choice of the checkpoint use."""
    parts: Literal["both", "encoder"] = "both"
    """For a model with a decoder: `both` reads tags from the decoder's states; `encoder` reads them from the encoder's states, without a
    decoder."""


# ---------------------------------------------------------------------------------------------
# answers and scores


def score(examples: list[Example], answers: list[list[str]], code: str, about: About) -> dict[str, Any]:
    """All scores of a test set in per cent, those of the word list (`chance`), and the confusion matrix.

    `low` and `high` limit the 95 % interval of the leading score, from sentences drawn anew (bootstrap).
    """
    word_list = tag_scores.learn_word_list((split_words(example.text), example.label.split(" ")) for example in about.learnt)
    truth = [example.label.split(" ") for example in examples]
    words = [split_words(example.text) for example in examples]
    counts = tag_scores.count(truth, answers)
    trivial = tag_scores.count(truth, [word_list.tag(sentence) for sentence in words]).sum(axis=0)
    confusion = Counter((a, b) for right, tags in zip(truth, answers, strict=True) for a, b in zip(right, tags, strict=True))
    return {
        "examples": len(examples),
        "words": int(counts[:, 1].sum()),
        **scores_beside(counts, trivial, tag_scores.SCORES, leading(about.settings, about.labels), "word_list"),
        "unknown_words": sum(word not in word_list.words for sentence in words for word in sentence) / counts[:, 1].sum(),
        "confusion": {label: {other: confusion[label, other] for other in about.labels} for label in about.labels},
        "signature": f"seqeval {importlib.metadata.version('seqeval')}, default mode",
    }


def counts(examples: list[Example], given: list[list[str]], code: str, about: About) -> np.ndarray:
    """What is counted in each sentence (`tag_scores.count`)."""
    return tag_scores.count([example.label.split(" ") for example in examples], given)


def tags_in(example: Example, line: str) -> list[str]:
    """The tags in a line of a file of answers. Raises `ValueError` when the sentence has more words or fewer."""
    tags = line.split(" ")
    if len(tags) != len(example.label.split(" ")):
        raise ValueError("its lines do not have a tag for each word of the test set")
    return tags


def leading(settings: Labelling, labels: Sequence[str]) -> str:
    """The score that stands for the others: what is chosen, or what the tags ask for."""
    return tag_scores.leading(labels) if settings.metric == "auto" else settings.metric


def predictions(network: Any, reader: Any, parts: list[Part], precision: str, about: About) -> list[Answered]:
    """A tag for each word."""

    def answered(part: Part, logits: torch.Tensor) -> Answered:
        truth = torch.tensor([number for _, tags in part.rows for number in tags if number >= 0])
        tags = tags_of_sentences(part.windows, [about.labels[number] for number in logits.argmax(dim=1).tolist()])
        return Answered(tags, lambda: float(torch.nn.functional.cross_entropy(logits, truth)))

    outputs = word_scores(network, reader, [row for part in parts for row in part.rows], precision)
    words = [sum(len(split_words(example.text)) for example in part.examples) for part in parts]
    return [answered(*one) for one in zip(parts, outputs.split(words), strict=True)]


def beside(path: Path, part: Part, answered: Answered, reader: Any, about: About) -> dict[str, Any]:
    """How many sentences were cut, and how many words were read as an unknown piece because nothing was left of them."""
    unread = sum(word in reader.unread for example in part.examples for word in split_words(example.text))
    return {"cut_sentences": len(part.windows) - len(part.examples), "unread_words": unread}


def measure(settings: Any, text: Any) -> Measure:
    """What the scores are called."""
    metric = leading(settings.labelling, text.labels)
    note = {"accuracy": " of tags in per cent", "f1": " of spans in per cent (seqeval, in its default mode)"}[metric]
    return Measure(
        metric=metric,
        note=note,
        others=tuple(other for other in ("accuracy", "f1", "precision", "recall") if other != metric),
        interval="the 95 % interval (bootstrap over sentences)",
        trivial="word list",
        trivially="each word has the tag that it most often has in the training text, any other word the most frequent tag",
        signature="most frequent tag of each word in the training text",
        guess="giving each word the tag that it most often has in the training text, whatever stands around it,",
        loss="nats per word",
    )


# ---------------------------------------------------------------------------------------------
# words and pieces


class WordReader(Reader):
    """Sentences of words as rows of ids in which a piece of each word has its tag (`tagged_piece`), in the form of the model in `folder`.

    A word is cut into pieces by itself, with a blank before it where that makes a difference. Where the tokenizer's
    normalisation leaves nothing of a word, it is read as an unknown piece, as in XTREME.
    """

    def __init__(self, folder: Path, max_length: int, parts: str = "both", language: str = "", prefixes: Prefixes = Prefixes()):
        super().__init__(folder, max_length, language, prefixes)
        self.has_decoder = self.codec.form.decoder and parts == "both" and not self.codec.form.encoder_heads
        (self.prefix,) = self.codec.pieces([self.prefixes.text.rstrip(" ")], self.max_length)
        self.room = self.max_length - sum(self.codec.around) - len(self.prefix)
        form = self.codec.form
        self.blank = word_blank(self.tokenizer) if form.by_structure or form.causal or form.reads_bytes else ""
        self.tagged_piece = tagged_piece(folder)
        self.unread: set[str] = set()
        """Words that were read as an unknown piece because nothing was left of them."""
        self._pieces: dict[str, list[int]] = {}

    def pieces(self, examples: Sequence[Example]) -> list[list[list[int]]]:
        """The ids of each word of each example; no word is without one, none is longer than a row."""
        sentences = [split_words(example.text) for example in examples]
        new = list(dict.fromkeys(word for words in sentences for word in words if word not in self._pieces))
        for word, ids in zip(new, self.codec.pieces([f"{self.blank}{word}" for word in new], self.room + SPECIAL_PLACES), strict=True):
            if not ids:
                self.unread.add(word)
            self._pieces[word] = ids or [self.tokenizer.unk_token_id]
        return [[self._pieces[word] for word in words] for words in sentences]

    def windows(self, examples: Sequence[Example], code: str = "") -> list[Example]:
        """The examples, those that are longer than a row cut between words into several; their `line` tells which belong together."""
        made = []
        for example, pieces in zip(examples, self.pieces(examples), strict=True):
            words, tags = split_words(example.text), example.label.split(" ")
            start = length = 0
            for at, ids in enumerate([*pieces, [0] * (self.room + 1)]):
                if at > start and length + len(ids) > self.room:
                    made.append(example._replace(label=" ".join(tags[start:at]), text=join_words(words[start:at])))
                    start, length = at, 0
                length += len(ids)
        return made

    def rows(self, examples: Sequence[Example], code: str, labels: list[str]) -> list[Row]:
        """Ids of each example, and for each id the number of its word's tag where it is the piece that has it, else −100."""
        numbers = {label: number for number, label in enumerate(labels)}
        texts, tags = [], []
        for example, pieces in zip(examples, self.pieces(examples), strict=True):
            texts.append([*self.prefix, *(i for ids in pieces for i in ids)])
            named = zip(example.label.split(" "), pieces, strict=True)
            tags.append([-100] * len(self.prefix) + [number for tag, ids in named for number in self._marked(numbers[tag], len(ids))])
        before, _ = self.codec.around
        framed = self.codec.framed(texts, code)
        padded = ([*[-100] * before, *row, *[-100] * (len(ids) - len(row) - before)] for ids, row in zip(framed, tags, strict=True))
        return [(array("i", ids), array("i", row)) for ids, row in zip(framed, padded, strict=True)]

    def _marked(self, number: int, pieces: int) -> list[int]:
        others = [-100] * (pieces - 1)
        return [number, *others] if self.tagged_piece == "first" else [*others, number]

    def collate(self, rows: list[Row]) -> dict[str, torch.Tensor]:
        """A batch: ids and mask (rows × longest), the tags' numbers likewise, and the decoder's ids where it reads them.

        The decoder's ids are those of the encoder, rotated by one place, and so are the tags then.
        """
        batch = super().collate([(ids, [-100]) for ids, _ in rows])
        batch["labels"] = torch.full_like(batch["input_ids"], -100)
        for line, (_, tags) in zip(batch["labels"], rows, strict=True):
            line[: len(tags)] = torch.tensor(decoder_input(tags) if self.has_decoder else tags)
        return batch


def tagged_piece(folder: Path) -> Literal["first", "last"]:
    """Which piece of a word has its tag: the last for a decoder alone, else the first.

    A tagger that was made of a decoder names it in its configuration. One that does not is of an earlier version, and learnt the first.
    """
    if not family_of(folder).causal:
        return "first"
    config = config_of(folder)
    is_tagger = any(name.endswith("ForTokenClassification") for name in config.get("architectures") or ())
    return config.get("tagged_piece", "first" if is_tagger else "last")


def load_tagger(folder: Path, labels: list[str], *others: Any) -> Any:
    """A model with a head for tags, whose configuration says at which piece of a word a decoder has its tag."""
    network = load_token_head(folder, "labelling", labels, *others)
    if family_of(folder).causal:
        network.config.tagged_piece = tagged_piece(folder)
    return network


def tags_of_sentences(windows: Sequence[Example], tags: Sequence[str]) -> list[list[str]]:
    """The tags of each sentence, in order, from those of all words of its windows."""
    found: dict[int, list[str]] = {}
    given = iter(tags)
    for window in windows:
        found.setdefault(window.line, []).extend(next(given) for _ in window.label.split(" "))
    return list(found.values())


@without_gradients
@quick_products()
def word_scores(network, reader: WordReader, rows: Sequence[Row], precision: str, tokens: int | None = None) -> torch.Tensor:
    """The head's output for each word of all rows, in their order (words × tags); see `head_outputs`."""
    found: list[torch.Tensor] = [torch.empty(0)] * len(rows)
    for chosen, labels, logits in head_outputs(network, reader, rows, precision, tokens):
        for i, row, wanted in zip(chosen, logits, labels >= 0, strict=True):
            found[i] = row[wanted].cpu()
    return torch.cat(found)


LABELLING = head_task(
    "labelling",
    Labelling,
    label="token labelling",
    about="Token labelling: words are tagged with parts of speech or named entities; finetuned in one language, tested in others.",
    answers="tags",
    unit="word",
    head="labelling",
    baseline_learns=True,
    reader=lambda folder, settings, language: WordReader(folder, settings.max_length, settings.parts, language, Prefixes.of(settings)),
    network=load_tagger,
    predictions=predictions,
    counts=counts,
    scores=tag_scores.SCORES,
    score=score,
    compared=lambda example, tags: (example.label.split(" "), tags),
    line=lambda example, tags: " ".join(tags),
    answer=tags_in,
    leading=leading,
    beside=beside,
    words={"learns": "tag the words of sentences", "inputs": "sentences", "outputs": "tags", "row": "sentences"},
    parts={"tagged": ("Tags side by side", "tagged")},
    measure=measure,
    cut=True,
)
