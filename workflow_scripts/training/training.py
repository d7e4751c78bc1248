"""training: one phase of an arm, pretext or finetune, with Hugging Face's Trainer.

A phase starts from a model (the backbone, or the phase before), reads rows (source, target) and
makes a fixed number of updates of a fixed number of tokens. Optimiser and learning rate start anew in each
phase. The commands are

``restore``
    the pretext phase: sentences are restored from a folder of rounds (`codeswitch`), both languages mixed, each
    row with its own language tag
``learn``
    a phase before the task that learns by an objective, as backbones do (`pretraining`): continued pretraining as a part of an arm
``translate``
    the task phase: one side of parallel text is written from the other

The settings of Zan et al. (section IV-A): label smoothing 0.2, dropout 0.3, a learning rate of 3e-5 after 2,500 updates of warm-up. Where
the paper is silent, their published code is followed: Adam (0.9, 0.98) with eps 1e-6, polynomial decay, no gradient clipping.
"""

import json
import tempfile
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from workflow_scripts import plugins, registry
from workflow_scripts.models.reading import check_read
from workflow_scripts.models.recognition import family_of
from workflow_scripts.models.templates import Templates
from workflow_scripts.models.tokenisation import Codec
from workflow_scripts.noise.codeswitch import CodeSwitch
from workflow_scripts.noise.masking import Masking
from workflow_scripts.noise.rounds import read_form, read_meaning
from workflow_scripts.stage import InputError, from_plain, is_first_process, own_settings, run
from workflow_scripts.text.files import read_lines
from workflow_scripts.text.words import is_blank
from workflow_scripts.training.bitext import read_bitext
from workflow_scripts.training.choice import chosen_for
from workflow_scripts.training.few_shot import ask
from workflow_scripts.training.generator import AUTOREGRESSIVE, Generator
from workflow_scripts.training.job import TrainingJob
from workflow_scripts.training.launching import launch
from workflow_scripts.training.method import Method, of_plugin
from workflow_scripts.training.objective import Objective, Text
from workflow_scripts.training.phase import train_phase
from workflow_scripts.training.pretraining import objective_block, objective_for, with_sides
from workflow_scripts.training.ragged import same_choice
from workflow_scripts.training.rows import Dev, Joined, MaskedRounds, NoisedRounds, ParallelText, Rounds, SwitchedText, aligned_dev
from workflow_scripts.training.settings import Training
from workflow_scripts.training.too_long import Room


def restore(
    job: TrainingJob,
    *,
    languages: tuple[str, ...],
    noised: Path,
    documents: bool = False,
    phase: str = "pretext",
    templates: str = "{}",
    settings: Training = Training(),
) -> None:
    """Train a model to restore the sentences in `noised`, a folder of rounds; see `TrainingJob`.

    `languages` are those of the text. In that of `documents`, `</s>` stands between sentences. Of a noise whose text is read as it stands,
    an encoder guesses masked pieces. `phase` is what `job.choice` calls the phase. `templates` says how a decoder is asked, one JSON value
    of `Templates`.

    Raises `Stopped` when it ended before its last update. Raises `InputError` for bad input, a folder of checkpoints that is in use, an
    attempt that would only repeat the one before, and training that has diverged.
    """
    job, settings = _with_choice(job, settings, phase)

    guessed = read_form(noised).as_text and not family_of(job.start).writes
    room = Room.of(settings, leave_out=not (documents or guessed))

    def read(codec: Codec) -> tuple[Rounds, list[Dev]]:
        rounds: NoisedRounds | MaskedRounds
        if guessed:
            rounds = MaskedRounds(noised, languages, codec, room, Masking(), job.seed)
        else:
            rounds = NoisedRounds(noised, languages, codec, room)
        return rounds, [rounds.dev(code) for code in languages]

    text = {path.name: path for path in sorted(noised.glob("*.tsv.zst"))}
    asked = from_plain(Templates, json.loads(templates))
    method = Method(about=read_meaning(noised))
    train_phase(job, settings, text, read, room, method, templates=asked, languages=languages, documents=documents)


def learn(
    job: TrainingJob,
    *,
    objective: str,
    languages: tuple[str, ...],
    train: tuple[Path, ...],
    dev: tuple[Path, ...],
    objective_settings: str = "{}",
    documents: bool = False,
    phase: str = "pretext",
    templates: str = "{}",
    settings: Training = Training(),
) -> None:
    """Train a model by an objective of the registry; see `TrainingJob`. Raises as `restore` does.

    `train` and `dev` have a file for each of the `languages`, whose suffix it is; two are parallel line by line. `objective_settings` is
    one JSON value. In the text of `documents`, `</s>` stands between sentences. `phase` is what `job.choice` calls the phase,
    and `templates` says how a decoder is asked, as in `restore`.
    """
    job, settings = _with_choice(job, settings, phase)
    entry: Objective = registry.entry("objective", objective_for(objective, family_of(job.start)))
    # documents are cut, by an objective too that leaves long sentences out
    cut = replace(settings, too_long="cut") if documents and settings.too_long is None else settings
    block = objective_block(entry, json.loads(objective_settings), cut)
    with tempfile.TemporaryDirectory(prefix="crossgap-") as folder:
        prepare = partial(entry.prepare, block, _text_of(train, entry.reads), _text_of(dev, entry.reads), job.seed, Path(folder) / "text")
        material = plugins.call_if_theirs(entry, prepare, {}, lambda: f"settings {block.objective_settings}")
        method = material.method() if material.method else Method()
        method = of_plugin(entry, method._replace(about={"objective": entry.name, **method.about}), block.objective_settings)
        room, unknown = Room.of(settings, leave_out=entry.leaves_out and not documents), dict[str, Any]()

        def read(codec: Codec) -> tuple[Rounds, list[Dev]]:
            unknown.update(check_read(codec, ((str(path), code, read_lines(path)) for path, code in zip(train, languages, strict=True))))
            return material.read(codec)

        asked = from_plain(Templates, json.loads(templates))
        about: dict[str, Any] = {"templates": asked, "languages": languages, "documents": documents, "about_text": {"unknown": unknown}}
        train_phase(job, settings, material.text, read, room, method, **about)
        if material.finish and is_first_process():
            material.finish(job.model)


def _text_of(files: tuple[Path, ...], reads: str) -> Text:
    """The text of a part, as an objective that `reads` lines or pairs gets it."""
    if len(files) == 1:
        lines = dict.fromkeys(" ".join(line.split()) for line in read_lines(files[0]) if line.strip())
        return Text({files[0].suffix[1:]: [*lines]})
    pairs = Text({}, read_bitext(files, set()))
    return with_sides(pairs) if reads == "lines" else pairs


def translate(
    job: TrainingJob,
    *,
    languages: tuple[str, str],
    train_source: Path,
    train_target: Path,
    dev_source: Path,
    dev_target: Path,
    generator: str = AUTOREGRESSIVE,
    generator_settings: str = "{}",
    lexicon: Path | None = None,
    switch: str = "",
    more_sources: tuple[Path, ...] = (),
    more_targets: tuple[Path, ...] = (),
    more_languages: tuple[str, ...] = (),
    more_target_languages: tuple[str, ...] = (),
    documents: bool = False,
    templates: str = "{}",
    shots: int = -1,
    targets_from: str = "",
    settings: Training = Training(),
) -> None:
    """Train a model to write the target of the training text from its source; see `TrainingJob`. Raises as `restore` does.

    `languages` are those of source and target. In the text of `documents`, `</s>` stands between sentences.
    A `generator` other than `autoregressive` learns and writes as its entry says (`writing`), by `generator_settings`, one JSON value.
    Words of the source are switched by a `lexicon`, anew in each epoch, where there are settings of `CodeSwitch`, `switch`, one JSON value
    as well. `templates` says how a decoder is asked, one JSON value of `Templates`. With `shots`, 0 or more, nothing is trained: the model
    is asked as it is, with so many pairs of the training text before the source. `more_sources` (in `more_languages`) and `more_targets`
    (in `more_target_languages`) are learnt together with this text. `targets_from` names the arm that has written the targets, for the
    report, which then also counts those that are empty.
    """
    if bool(switch) != bool(lexicon):
        raise InputError("give both --switch and --lexicon, or neither: the settings of switching, and the words to switch to")
    job, settings = _with_choice(job, settings, "finetune")
    switching = from_plain(CodeSwitch, json.loads(switch)) if switch else None
    further = zip(more_sources, more_targets, zip(more_languages, more_target_languages, strict=True), strict=True)
    first, *more = parts = [_Pairs(train_source, train_target, languages), *(_Pairs(*one) for one in further)]

    unknown: dict[str, Any] = {}
    room = Room.of(settings, leave_out=not documents)

    def read(codec: Codec) -> tuple[Rounds, list[Dev]]:
        sides = [side for part in parts for side in zip((part.source, part.target), part.languages, strict=True)]
        unknown.update(check_read(codec, ((str(path), code, read_lines(path)) for path, code in sides)))
        dev = [aligned_dev(dev_source, dev_target, languages, codec, room)]
        learnt: list[Rounds] = []
        if switching and lexicon:
            learnt += [SwitchedText(*first, codec, settings, lexicon, switching, job.seed, room)]
        else:
            learnt += [ParallelText(*first, codec, settings, room)]
        learnt += [ParallelText(*part, codec, settings, room) for part in more]
        return (learnt[0] if len(learnt) == 1 else Joined(learnt)), dev

    asked = from_plain(Templates, json.loads(templates))
    if shots >= 0:
        return ask(job, settings, read, asked, (train_source, train_target), shots, room=room, languages=languages, documents=documents)
    text = {"train source": train_source, "train target": train_target, "dev source": dev_source, "dev target": dev_target}
    text |= {"lexicon": lexicon} if lexicon else {}
    for number, part in enumerate(more, 1):
        name = f"{number} of {'-'.join(part.languages)}"
        text |= {f"source {name}": part.source, f"target {name}": part.target}
    method = _method_of(registry.entry("generator", generator), generator_settings)
    about: dict[str, Any] = {"switch": asdict(switching)} if switching else {}
    if targets_from:
        about |= {"targets_from": targets_from, "empty_targets": _empty(train_target, settings.pairs)}
    method = method._replace(about={**method.about, **about})
    described: dict[str, Any] = {"languages": languages, "documents": documents, "about_text": {"unknown": unknown}}
    train_phase(job, settings, text, read, room, method, templates=asked, **described)


class _Pairs(NamedTuple):
    """Files of parallel text, and their languages."""

    source: Path
    target: Path
    languages: tuple[str, str]


def _empty(file: Path, pairs: int | None) -> int:
    """How many lines are blank, of the `pairs` that are learnt."""
    lines = list(read_lines(file))
    return sum(is_blank(lines[place]) for place in same_choice(len(lines), pairs))


def _method_of(entry: Generator, given: str) -> Method:
    """How a generator is trained by settings that are `given` as JSON."""
    settings = entry.effective(own_settings(entry, given))
    learn = entry.learn or (lambda settings: Method())
    method = plugins.call_if_theirs(entry, lambda: learn(settings), {}, lambda: f"settings {settings}")
    if not isinstance(method, Method):
        raise InputError(f"generator {entry.name!r} returned {method!r}; it returns a crossgap.Method")
    if entry.name == AUTOREGRESSIVE:
        return method
    about: dict[str, Any] = {"generator": entry.name} | ({entry.key: asdict(settings)} if settings else {})
    about |= plugins.trained_by("generator", entry, settings)
    mark = {} if entry.file else {"generator": entry.name, "plugin": Path(entry.plugin).name}
    return method._replace(about={**about, **method.about}, mark=mark)


def _with_choice(job: TrainingJob, settings: Training, name: str) -> tuple[TrainingJob, Training]:
    chosen, checkpoints = chosen_for(job.choice, name, job.seed, job.checkpoints)
    return job._replace(checkpoints=checkpoints), replace(settings, **chosen)


if __name__ == "__main__":
    launch("workflow_scripts.training.training")
    run({"restore": restore, "learn": learn, "translate": translate})
