"""head: the three commands of the tasks for which a head is finetuned on text with labels (`head_task`).

``finetune``
    some epochs with the labels, with early stopping; goes on from checkpoints like `training`
``predict``
    an answer for each example of all test sets, whatever their languages, in one process; the scores of each test set, with their
    interval and those of a trivial baseline
``compare``
    tests of the arms' differences, on each test set and on average over them

``python -m workflow_scripts.tasks.head finetune --task NAME …`` is that of any task.
"""

from __future__ import annotations

import functools
import inspect
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import numpy as np
import torch

from workflow_scripts import plugins, registry
from workflow_scripts.device import pick_device, pick_precision
from workflow_scripts.entry_names import Named
from workflow_scripts.errors import InputError
from workflow_scripts.evidence import label_metric
from workflow_scripts.evidence.average import Significance, compare_folders
from workflow_scripts.models.batches import Row
from workflow_scripts.models.networks import check_head
from workflow_scripts.models.recognition import family_of
from workflow_scripts.noise.switching import with_shares
from workflow_scripts.stage import from_plain, run, write_json
from workflow_scripts.tasks.finetuning import Batches, FinetuneSettings, Prepared, finetune_head, mean_of, with_choice
from workflow_scripts.tasks.head_model import Part, part_of
from workflow_scripts.tasks.head_task import About, Answered, HeadTask
from workflow_scripts.tasks.switched import switching
from workflow_scripts.tasks.verbaliser import Asked, ask, asked_in, opened, scored, shortened, ties
from workflow_scripts.text.examples import Example, read_table
from workflow_scripts.text.files import write_lines
from workflow_scripts.training.job import TrainingJob
from workflow_scripts.training.launching import launch

Metric = Annotated[str, Named("label_metric")]


def commands(task: HeadTask) -> dict[str, Callable[..., None]]:
    """The commands of a task, as `stage.run` takes them. Raises `InputError` for a task without a head."""
    if not task.has_head:
        known = ", ".join(name for name, each in registry.entries("task").items() if each.has_head)
        raise InputError(f"--task: {task.name} finetunes no head; those that do: {known}")
    return {
        "finetune": _of(finetune, task, settings=task.finetune_settings),
        "predict": _of(predict, task, settings=task.finetuning),
        "compare": _of(compare_arms, task),
    }


def _of(function: Callable[..., None], task: HeadTask, **types: Any) -> Callable[..., None]:
    """`function` for one task, whose settings have `types` of their own."""
    hints = {**get_type_hints(function, include_extras=True), **types}

    def command(*given: Any, **named: Any) -> None:
        function(task, *given, **named)

    _, *parameters = inspect.signature(function).parameters.values()
    own = [each.replace(annotation=hints[each.name]) for each in parameters]
    own = [each.replace(default=types[each.name]()) if each.default is None and each.name in types else each for each in own]
    command.__signature__ = inspect.Signature(own)  # type: ignore[attr-defined]
    command.__annotations__ = {name: hint for name, hint in hints.items() if name != "task"}
    command.__doc__ = function.__doc__
    return command


def finetune(
    task: HeadTask,
    job: TrainingJob,
    *,
    train: tuple[Path, ...],
    dev: tuple[Path, ...],
    lexicons: tuple[Path, ...] = (),
    into: tuple[str, ...] = (),
    settings: FinetuneSettings,
) -> None:
    """Finetune a model for a task; see `TrainingJob` and `finetune_head`.

    `lexicons`, one for each language of `into`, switch words of the first table where `settings` has a `codeswitch`. Where it has `shots`,
    nothing is trained, and a decoder is asked as it is (`verbaliser`).
    """
    if getattr(settings, "shots", None) is not None:
        labels = task.labels_in(settings)
        tables = [(task.read(path, labels), code) for path, code in zip(dev, settings.dev_languages, strict=True)]
        chosen = getattr(settings, task.key)
        return ask(job, task.read(train[0], labels, chosen.examples), tables, labels, settings, chosen)

    def prepared(job: TrainingJob, train: tuple[Path, ...], dev: tuple[Path, ...], settings: FinetuneSettings) -> Prepared:
        return prepare(task, job, train, dev, settings, lexicons, into)

    files = {path.name: path for path in lexicons}
    also = plugins.trained_by("task", task, with_choice(getattr(settings, task.key), job.choice))
    # an earlier way switched fewer words, and parts of them; what it trained is not gone on from
    also |= {"switched": "given words"} if settings.codeswitch and task.unit == "word" else {}
    # nor from what learnt a word's tag at its first piece, where a decoder has not read the word
    also |= {"tagged": "last piece"} if task.unit == "word" and family_of(job.start).causal else {}
    finetune_head(job, train, dev, settings, task.key, prepared, files, also)


def prepare(
    task: HeadTask,
    job: TrainingJob,
    train: tuple[Path, ...],
    dev: tuple[Path, ...],
    settings: Any,
    lexicons: tuple[Path, ...] = (),
    into: tuple[str, ...] = (),
) -> Prepared:
    """The model with its head, the text as rows, and how a look at the dev sets is made."""
    chosen, labels = getattr(settings, task.key), task.labels_in(settings)
    check_head(job.start, family_of(job.start), task.head, f"encoder_{task.head}")
    reader = task.reader(job.start, chosen, settings.language)
    tables = [task.read(path, labels, chosen.examples) for path in train]
    looked_at = [task.read(path, labels) for path in dev]
    about = About(chosen, labels, numbers=task.numbers_in([*tables, *looked_at], labels))
    # where words are switched, the first table is another one in each epoch
    switch_epoch = switching(tables[0], settings, lexicons, into, job.seed, task.unit)
    by_language = [*zip(tables, settings.train_languages, strict=True)]
    fixed_tables = by_language[1:] if switch_epoch else by_language
    fixed = [row for examples, code in fixed_tables for row in part_of(reader, examples, code, about.numbered).rows]

    def rows(epoch: int) -> list[Row]:
        if not switch_epoch:
            return fixed
        switched, _ = switch_epoch(epoch)
        return [*part_of(reader, switched, settings.language, about.numbered).rows, *fixed]

    dev_tables = [*zip(looked_at, settings.dev_languages, strict=True)]
    held_out = [part_of(reader, table, code, about.numbered) for table, code in dev_tables]
    network = task.network(job.start, labels, chosen, job.seed, job.from_scratch)

    def look(most: int | None = None) -> dict[str, float]:
        some = held_out if most is None else [part_of(reader, table[:most], code, about.numbered) for table, code in dev_tables]
        return look_at(task, network, reader, some, about)

    whole = len(part_of(reader, tables[0], settings.language, about.numbered).rows) if switch_epoch else 0
    batches = Batches(rows, whole + len(fixed), settings.epochs, chosen, job.seed)
    shares = with_shares(switch_epoch(0)[1]) if switch_epoch else None
    return Prepared(network, reader, batches, look, task.leading(chosen, labels), task.head, task.loss(about), shares)


def look_at(task: HeadTask, network: Any, reader: Any, parts: list[Part], about: About) -> dict[str, float]:
    """Loss and error of a model on dev sets, the mean over them. The error is what the answers have, or what the leading score lacks."""
    precision = pick_precision(about.settings.precision, pick_device(about.settings.device))
    metric = task.leading(about.settings, about.labels)

    def look_at_part(part: Part) -> dict[str, float]:
        (answered,) = task.predictions(network, reader, [part], precision, about)
        if answered.error:
            return {"eval_loss": answered.loss(), "eval_error": answered.error()}
        counted = task.counts(part.examples, answered.answers, part.language, about).sum(axis=0)
        return {"eval_loss": answered.loss(), "eval_error": 1 - task.scores[metric](counted)}

    return mean_of([look_at_part(part) for part in parts])


def predict(
    task: HeadTask,
    model: Path,
    examples: tuple[Path, ...],
    folder: Path,
    *,
    testsets: tuple[str, ...],
    languages: tuple[str, ...],
    labels: str = "[]",
    metrics: tuple[Metric, ...] = (),
    train: Path | None = None,
    choice: Path | None = None,
    threads: int = 0,
    settings: Any = None,
) -> None:
    """Answer the examples of all test sets; write into `folder` each one's answers, a line each (``NAME.hyp``), and ``NAME.scores.json``.

    `examples`, `testsets` and `languages` are of one order; a model may read a language as a tag. `labels` is a JSON list of those that
    were learnt, by default the model's own; `metrics` are measured besides the task's scores; `choice` is what a grid chose
    (`with_choice`). The trivial baseline of some tasks is learnt from the table `train`. The model is loaded once, and the rows of all are
    batched by length. Raises `InputError` for a true label that is none of `labels`, where there is no `train` for such a baseline, and for
    `labels` that are not the model's, in their order.
    """
    settings, given = with_choice(settings or task.finetuning(), choice), labels_of(labels)
    if task.baseline_learns and train is None:
        raise InputError(f"--train: is missing; the trivial baseline of {task.name} is learnt from the table of the training text")
    if threads:
        torch.set_num_threads(threads)
    if asked := asked_in(model):
        known, reader = asked.labels, None
        parts = [Part(task.read(path, known), code, [], []) for path, code in zip(examples, languages, strict=True)]
        about = About(settings, known)
        all_answered = in_words(model, asked, parts, settings)
    else:
        reader = task.reader(model, settings, "")
        network = task.network(model, None, settings, 0, False).to(pick_device(settings.device))
        known = named_by(network, model, given) if task.named and not task.any_number else given
        tables = [task.read(path, known) for path in examples]
        learnt = task.read(train, known, settings.examples) if train else []
        about = About(settings, known, learnt, task.numbers_in(tables, known))
        parts = [part_of(reader, table, code, about.numbered) for table, code in zip(tables, languages, strict=True)]
        all_answered = task.predictions(network, reader, parts, pick_precision(settings.precision, network.device), about)
    for name, part, answered in zip(testsets, parts, all_answered, strict=True):
        path = folder / f"{name}.hyp"
        write_lines(path, map(task.line, part.examples, answered.answers))
        more = {**task.beside(folder / name, part, answered, reader, about), **answered.notes}
        if reader and not task.cut:
            more["cut_examples"] = reader.cut(part.examples, part.language)
        scores = task.score(part.examples, answered.answers, part.language, about)
        for metric in [registry.entry("label_metric", each) for each in metrics]:
            counts = counts_of(task, metric, part.examples, answered.answers, part.language, known)
            scores[metric.name] = label_metric.in_per_cent(metric, counts)
        write_json(folder / f"{name}.scores.json", {**scores, **more})


_NUMBERED = re.compile(r"(LABEL_|output )\d+")
"""What outputs are called that have no name of their own."""


def named_by(network: Any, model: Path, given: list[str]) -> list[str]:
    """The labels of a head's outputs, as the model's configuration names them, or as they are `given` where it names none.

    A head with one output has no labels, but a number. Raises `InputError` where both name them, and differ: each output would be called by
    another one's name.
    """
    learnt = [network.config.id2label[number] for number in range(network.config.num_labels)] if hasattr(network, "config") else []
    if not given:
        return learnt
    # outputs of plugins' tasks need not be labels
    has_names = len(learnt) > 1 and not any(_NUMBERED.fullmatch(name) for name in learnt)
    if has_names and given != learnt:
        raise InputError(f"--labels: {given} are not the labels of {model}, in their order: {learnt}; leave --labels out")
    return given


def compare_arms(
    task: HeadTask,
    systems: tuple[Path, ...],
    examples: tuple[Path, ...],
    output: Path,
    *,
    names: tuple[str, ...],
    testsets: tuple[str, ...],
    languages: tuple[str, ...],
    seeds: tuple[int, ...],
    labels: str = "[]",
    metrics: tuple[Metric, ...] = (),
    head: str = "{}",
    settings: Significance = Significance(),
) -> None:
    """Test the differences between every two arms, on each test set and on average: by seed, and over the seeds.

    `systems` are the folders of predictions, ordered by arm, then by seed; `examples` and `languages` are ordered like `testsets`. `head`
    are the settings of finetuning, as JSON. With the `labels`, a JSON list, they decide which score compares arms. Each of `metrics` does,
    too.
    """
    about = About(from_plain(task.finetuning, json.loads(head)), labels_of(labels))
    tables = {name: (read_table(path), code) for name, path, code in zip(testsets, examples, languages, strict=True)}

    def compared(count: Callable[..., np.ndarray], score: Any) -> dict[str, Any]:
        def counts_in(hypotheses: Path, testset: str) -> np.ndarray:
            table, code = tables[testset]
            return count(table, task.read_answers(hypotheses, table), code)

        return compare_folders(systems, counts_in, score, names, testsets, seeds, settings)

    metric = task.leading(*about[:2])
    tests = compared(lambda table, answers, code: task.counts(table, answers, code, about), task.scores[metric])
    more = {}
    for entry in [registry.entry("label_metric", each) for each in metrics]:
        count = functools.partial(counts_of, task, entry, labels=about.labels)
        more[entry.name] = compared(count, label_metric.score_of(entry))["pairs"]
    tests |= {"more": more} if more else {}
    write_json(output, {"metric": metric, **tests} if len(task.scores) > 1 else tests)


def labels_of(given: str) -> list[str]:
    """The labels in a JSON list, since one that begins with - would be taken for a flag. Raises `InputError` for other text."""
    try:
        if isinstance(labels := json.loads(given), list):
            return labels
        raise ValueError("it is no list")
    except ValueError as error:
        raise InputError(f'--labels: give one JSON list, such as \'["yes", "no"]\'; got {given!r} ({error})') from None


def counts_of(
    task: HeadTask, metric: label_metric.LabelMetric, examples: list[Example], answers: list[Any], code: str, labels: list[str]
) -> np.ndarray:
    """What a metric counts in each of the examples (examples × counts)."""
    both = [task.compared(example, answer) for example, answer in zip(examples, answers, strict=True)]
    return label_metric.counted(metric, [truth for truth, _ in both], [answer for _, answer in both], labels, code)


def in_words(model: Path, asked: Asked, parts: list[Part], settings: Any) -> list[Answered]:
    """The labels of all parts by the likelihood of their words (`verbaliser`)."""
    codec, network = opened(model, settings)

    def answered(part: Part) -> Answered:
        likelihoods = scored(network, codec, asked, part.examples, part.language, settings.precision)
        truth = torch.tensor([asked.labels.index(example.label) for example in part.examples])
        answers = [asked.labels[number] for number in likelihoods.argmax(dim=1).tolist()]
        cut = sum(shortened(codec, example, asked.max_length) != example for example in part.examples)
        notes = {"ties": ties(likelihoods), "normalised": asked.verbaliser.normalised, "cut_examples": cut}
        return Answered(answers, lambda: float(torch.nn.functional.cross_entropy(likelihoods, truth)), likelihoods, notes=notes)

    return [*map(answered, parts)]


if __name__ == "__main__":
    launch("workflow_scripts.tasks.head", "finetune")
    run(lambda name: commands(registry.entry("task", name)), of="task")
