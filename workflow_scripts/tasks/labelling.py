"""labelling: a model learns to tag the words of sentences in one language, and tags those in others.

Parts of speech or named entities, as in XGLUE and XTREME. The first piece of a word carries its tag, as in BERT (Devlin et al.
2019, section 5.3). mBERT and XLM-R tag with transformers' own heads, mBART and M2M-100 by the states of the decoder, which
reads what the encoder reads (`tagger`). The steps are commands:

``finetune``
    some epochs with the tags, with early stopping; goes on from checkpoints like `training`
``predict``
    a tag for each word of all test sets, whatever their languages, in one process; accuracy and F1 of each test set, with their
    intervals and what a word list gets
``compare``
    tests of the arms' differences, on each test set and on average over them
"""

from __future__ import annotations

import importlib.metadata
from array import array
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import torch

from workflow_scripts.device import pick_device, pick_precision, reading_in, without_gradients
from workflow_scripts.evidence import tag_scores
from workflow_scripts.evidence.average import Significance, compare_folders, scores_beside
from workflow_scripts.limits import AboveZero, Positive
from workflow_scripts.models.batches import Row, by_length, decoder_input, tokens_at_once
from workflow_scripts.models.products import quick_products
from workflow_scripts.stage import InputError, run, write_json
from workflow_scripts.tasks.crosslingual import Finetuned, crosslingual_task
from workflow_scripts.tasks.finetuning import Batches, HeadSettings, Prepared, Told, finetune_head, mean_of, some_of, with_choice
from workflow_scripts.tasks.heads import Reader, load_token_head
from workflow_scripts.text.examples import Example, read_table
from workflow_scripts.text.files import read_lines, write_lines
from workflow_scripts.text.tagged import join_words, split_words
from workflow_scripts.training.job import Job
from workflow_scripts.training.launching import launch


@dataclass
class Labelling(HeadSettings):
    """Settings of finetuning. The defaults are XTREME's for mBERT and XLM-R."""

    batch_size: Positive = 32
    """Sentences per update."""
    learning_rate: AboveZero = 2e-5
    """Peak of the learning rate."""
    metric: Literal["auto", "accuracy", "f1"] = "auto"
    """The score that stands for the others: F1 of spans where tags mark spans, else accuracy of tags. XTREME's score of parts of
    speech is `f1`."""
    choose_by: Literal["score", "loss"] = "score"
    """What early stopping and the choice of the checkpoint go by, on the dev set."""
    parts: Literal["both", "encoder"] = "both"
    """Of a model with a decoder: whether tags are read off the decoder's states, or off the encoder's, without a decoder."""


@dataclass(kw_only=True)
class Tagging(Told):
    """What one call of `finetune` is told."""

    labels: list[str]
    """All tags."""
    labelling: Labelling = field(default_factory=Labelling)
    """Settings of the head and of its finetuning."""


@dataclass(kw_only=True)
class LabellingExperiment(Finetuned):
    """Token labelling: words are tagged with parts of speech or named entities; finetuned in one language, tested in others."""

    head: ClassVar[str] = "labelling"
    task: Literal["labelling"]
    """What is finetuned for."""
    labelling: Labelling = field(default_factory=Labelling)
    """Settings of finetuning; the epochs stand in the arms."""
    scores: Significance = field(default_factory=Significance)
    """Tests of significance."""


LABELLING = crosslingual_task(LabellingExperiment, key="labelling", answers="tags", rule="labelling_finetune", unit="word")


# ---------------------------------------------------------------------------------------------
# steps


def finetune(job: Job, *, train: tuple[Path, ...], dev: tuple[Path, ...], settings: Tagging) -> None:
    """Finetune a model to tag words; see `Job` and `finetune_head`."""
    finetune_head(job, train, dev, settings, "labelling", prepare)


def prepare(job: Job, train: tuple[Path, ...], dev: tuple[Path, ...], settings: Tagging) -> Prepared:
    """The model with its head, the text as rows, and how a look at the dev sets is made."""
    chosen, labels = settings.labelling, settings.labels
    metric = leading(chosen, labels)
    reader = WordReader(job.start, chosen.max_length, chosen.parts, settings.language)
    rows: list[Row] = []
    for path, code in zip(train, settings.train_languages, strict=True):
        rows += reader.rows(reader.windows(some_of(read_table(path, labels, "word"), chosen.examples)), code, labels)
    held_out = [read_table(path, labels, "word") for path in dev]
    dev_windows = [reader.windows(table) for table in held_out]
    codes = settings.dev_languages
    dev_rows = [reader.rows(windows, code, labels) for windows, code in zip(dev_windows, codes, strict=True)]
    network = load_token_head(job.start, "labelling", labels, chosen, job.seed, job.from_scratch)
    precision = pick_precision(chosen.precision, pick_device(chosen.device))

    def look_at(table: list[Example], windows: list[Example], rows: list[Row]) -> dict[str, float]:
        logits = word_scores(network, reader, rows, precision)
        given = tags_of_sentences(windows, [labels[i] for i in logits.argmax(dim=1).tolist()])
        counted = tag_scores.count([example.label.split(" ") for example in table], given).sum(axis=0)
        numbers = torch.tensor([number for _, tags in rows for number in tags if number >= 0])
        loss = float(torch.nn.functional.cross_entropy(logits, numbers))
        return {"eval_loss": loss, "eval_error": 1 - tag_scores.SCORES[metric](counted)}

    def look() -> dict[str, float]:
        return mean_of([look_at(*one) for one in zip(held_out, dev_windows, dev_rows, strict=True)])

    return Prepared(network, reader, Batches(lambda epoch: rows, len(rows), settings.epochs, chosen, job.seed), look, metric)


def predict(
    model: Path,
    train: Path,
    examples: tuple[Path, ...],
    folder: Path,
    *,
    testsets: tuple[str, ...],
    languages: tuple[str, ...],
    choice: Path | None = None,
    threads: int = 0,
    settings: Labelling = Labelling(),
) -> None:
    """Tag the words of all test sets; write each one's tags, a sentence a line (``NAME.hyp``), and ``NAME.scores.json`` into `folder`.

    `examples`, `testsets` and `languages` are of one order; `choice` is what a grid chose (`with_choice`). The word list that the model is
    compared with is made of the table `train`. Raises `InputError` for a true tag that the model has not learnt.
    """
    settings = with_choice(settings, choice)
    if threads:
        torch.set_num_threads(threads)
    reader = WordReader(model, settings.max_length, settings.parts)
    network = load_token_head(model, "labelling", None, settings, seed=0, new_head=False).to(pick_device(settings.device))
    labels = [network.config.id2label[i] for i in range(network.config.num_labels)]
    tables = [read_table(path, labels, "word") for path in examples]
    windows = [reader.windows(table) for table in tables]
    rows = [reader.rows(some, code, labels) for some, code in zip(windows, languages, strict=True)]
    logits = word_scores(network, reader, [row for some in rows for row in some], pick_precision(settings.precision, network.device))
    given = iter([labels[i] for i in logits.argmax(dim=1).tolist()])
    word_list = tag_scores.learn_word_list((split_words(e.text), e.label.split(" ")) for e in read_table(train, labels, "word"))
    for name, table, some in zip(testsets, tables, windows, strict=True):
        tags = tags_of_sentences(some, [next(given) for window in some for _ in window.label.split(" ")])
        write_lines(folder / f"{name}.hyp", (" ".join(line) for line in tags))
        scores = score(table, tags, word_list, labels, leading(settings, labels))
        unread = sum(word in reader.unread for example in table for word in split_words(example.text))
        write_json(folder / f"{name}.scores.json", {**scores, "cut_sentences": len(some) - len(table), "unread_words": unread})


def score(table: list[Example], given: list[list[str]], word_list: tag_scores.WordList, labels: list[str], metric: str) -> dict[str, Any]:
    """All scores of a test set in per cent, those of the word list (`chance`), and the confusion matrix.

    `low` and `high` limit the 95 % interval of the leading score `metric`, from sentences drawn anew (bootstrap).
    """
    truth = [example.label.split(" ") for example in table]
    words = [split_words(example.text) for example in table]
    counts = tag_scores.count(truth, given)
    trivial = tag_scores.count(truth, [word_list.tag(sentence) for sentence in words]).sum(axis=0)
    confusion = Counter((a, b) for tags, answers in zip(truth, given, strict=True) for a, b in zip(tags, answers, strict=True))
    return {
        "examples": len(table),
        "words": int(counts[:, 1].sum()),
        **scores_beside(counts, trivial, tag_scores.SCORES, metric, "word_list"),
        "unknown_words": sum(word not in word_list.words for sentence in words for word in sentence) / counts[:, 1].sum(),
        "confusion": {label: {other: confusion[label, other] for other in labels} for label in labels},
        "signature": f"seqeval {importlib.metadata.version('seqeval')}, default mode",
    }


def compare_arms(
    systems: tuple[Path, ...],
    examples: tuple[Path, ...],
    output: Path,
    *,
    names: tuple[str, ...],
    testsets: tuple[str, ...],
    seeds: tuple[int, ...],
    metric: str,
    settings: Significance = Significance(),
) -> None:
    """Test the differences in `metric` between every two arms, on each test set and on average: by seed, and over the seeds.

    `systems` are the folders of predictions, ordered by arm, then by seed; `examples` are ordered like `testsets`.
    """
    truth = {testset: [example.label.split(" ") for example in read_table(path)] for testset, path in zip(testsets, examples, strict=True)}

    def counts_in(hypotheses: Path, testset: str) -> np.ndarray:
        return tag_scores.count(truth[testset], aligned_tags(hypotheses, truth[testset]))

    found = compare_folders(systems, counts_in, tag_scores.SCORES[metric], names, testsets, seeds, settings)
    write_json(output, {"metric": metric, **found})


def aligned_tags(hypotheses: Path, truth: list[list[str]]) -> list[list[str]]:
    """The tags in a file, a sentence a line; raises `InputError` when sentences or their words are not as many as in `truth`."""
    lines = [line.split(" ") for line in read_lines(hypotheses)]
    if list(map(len, lines)) != list(map(len, truth)):
        raise InputError(
            f"{hypotheses}: its lines do not have a tag for each word of the test set; delete it and run the same command again"
        )
    return lines


def leading(settings: Labelling, labels: Sequence[str]) -> str:
    """The score that stands for the others: what is chosen, or what the tags ask for."""
    return tag_scores.leading(labels) if settings.metric == "auto" else settings.metric


# ---------------------------------------------------------------------------------------------
# words and pieces


class WordReader(Reader):
    """Sentences of words as rows of ids whose first piece of each word has the word's tag, in the form of the model in `folder`.

    A word is cut into pieces by itself, so that a blank before it makes no difference. What is left of a word when the
    tokenizer has normalised it may be nothing; it is then read as an unknown piece, as XTREME does.
    """

    def __init__(self, folder: Path, max_length: int, parts: str = "both", language: str = ""):
        super().__init__(folder, max_length, language)
        self.has_decoder = self.codec.form.decoder and parts == "both"
        self.room = self.max_length - len(self.codec.form.row) + 1
        self.unread: set[str] = set()
        """Words that were read as an unknown piece because nothing was left of them."""
        self._pieces: dict[str, list[int]] = {}

    def pieces(self, examples: Sequence[Example]) -> list[list[list[int]]]:
        """The ids of each word of each example; no word is without one, none is longer than a row."""
        sentences = [split_words(example.text) for example in examples]
        new = list(dict.fromkeys(word for words in sentences for word in words if word not in self._pieces))
        for word, ids in zip(new, self.codec.pieces(new, self.room + 2), strict=True):
            if not ids:
                self.unread.add(word)
            self._pieces[word] = ids or [self.tokenizer.unk_token_id]
        return [[self._pieces[word] for word in words] for words in sentences]

    def windows(self, examples: Sequence[Example]) -> list[Example]:
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
        """Ids of each example, and for each id the number of its word's tag where it is the word's first, else −100."""
        numbers = {label: number for number, label in enumerate(labels)}
        texts, tags = [], []
        for example, pieces in zip(examples, self.pieces(examples), strict=True):
            texts.append([i for ids in pieces for i in ids])
            named = zip(example.label.split(" "), pieces, strict=True)
            tags.append([number for tag, ids in named for number in (numbers[tag], *[-100] * (len(ids) - 1))])
        before = self.codec.form.row.index("text")
        framed = self.codec.framed(texts, code)
        padded = ([*[-100] * before, *row, *[-100] * (len(ids) - len(row) - before)] for ids, row in zip(framed, tags, strict=True))
        return [(array("i", ids), array("i", row)) for ids, row in zip(framed, padded, strict=True)]

    def collate(self, rows: list[Row]) -> dict[str, torch.Tensor]:
        """A batch: ids and mask (rows × longest), the tags' numbers likewise, and the decoder's ids where it reads them.

        The decoder's ids are those of the encoder, rotated by one place, and so are the tags then.
        """
        padded, pad = torch.nn.utils.rnn.pad_sequence, self.tokenizer.pad_token_id
        read = [torch.tensor(ids) for ids, _ in rows]
        input_ids = padded(read, batch_first=True, padding_value=pad)
        labels = torch.full_like(input_ids, -100)
        for line, (_, tags) in zip(labels, rows, strict=True):
            line[: len(tags)] = torch.tensor(decoder_input(tags) if self.has_decoder else tags)
        mask = padded([torch.ones_like(ids) for ids in read], batch_first=True)
        batch = {"input_ids": input_ids, "attention_mask": mask, "labels": labels}
        if self.has_decoder:
            decoder = [torch.tensor(decoder_input(ids, self.codec.start)) for ids, _ in rows]
            batch["decoder_input_ids"] = padded(decoder, batch_first=True, padding_value=pad)
        return batch


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
    """The head's output for each word of all rows, in their order (words × tags), in float32."""
    network.eval()
    found: list[torch.Tensor] = [torch.empty(0)] * len(rows)
    for chosen in by_length([len(ids) for ids, _ in rows], tokens or tokens_at_once(network.device)):
        batch = {name: tensor.to(network.device) for name, tensor in reader.collate([rows[i] for i in chosen]).items()}
        wanted = batch.pop("labels") >= 0
        with reading_in(precision, network.device):
            logits = network(**batch).logits
        for i, row, places in zip(chosen, logits, wanted, strict=True):
            found[i] = row[places].float().cpu()
    return torch.cat(found)


if __name__ == "__main__":
    launch("workflow_scripts.tasks.labelling", "finetune")
    run({"finetune": finetune, "predict": predict, "compare": compare_arms})
