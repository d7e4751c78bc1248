"""pretraining: a backbone learns from monolingual text, by one of several objectives.

The text comes from another domain than the task, and no sentence is there in two languages. The gap that Crossgap bridges is the
one between such a model and a bilingual task. The objectives:

``denoising``
    mBART's (Liu et al. 2020): 35 % of the words of a line are masked in spans, one mask a span, λ = 3.5, and its sentences
    permuted; encoder and decoder restore the line
``mlm``
    BERT's masked language model (Devlin et al. 2019), as XLM-R learns it (Conneau et al. 2020): an encoder guesses single pieces
"""

import math
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from workflow_scripts.limits import Positive
from workflow_scripts.models.families import FAMILIES, Family, family_of
from workflow_scripts.names import instead
from workflow_scripts.noise.masking import Masking
from workflow_scripts.noise.spans import Noise, denoise
from workflow_scripts.stage import InputError, checksums
from workflow_scripts.text.corpus import leak_key
from workflow_scripts.text.files import write_lines
from workflow_scripts.text.words import read_sentences, words_of
from workflow_scripts.training.settings import Training

if TYPE_CHECKING:
    from workflow_scripts.models.tokenisation import Codec
    from workflow_scripts.training.rows import Dev, Rounds


@dataclass
class Pretraining:
    """What a backbone is pretrained on, and how."""

    text: dict[str, str] = field(default_factory=dict)
    """Language → monolingual text, a line a paragraph or verse; or `task` for the task's own training text."""
    disjoint: bool = True
    """The files are translations of each other line by line: language i of n reads every n-th line from i."""
    dev_lines: Positive = 200
    """Lines a language that are kept back to measure the loss."""
    noise: Noise = field(default_factory=Noise)
    """Objective `denoising`: mBART's span noise."""
    masking: Masking = field(default_factory=Masking)
    """Objective `mlm`: BERT's masks."""
    training: Training = field(default_factory=Training)
    """The pretraining phase."""


class Material(NamedTuple):
    """Training material that an objective makes from monolingual text."""

    text: dict[str, Path]
    """Files that, together with the settings, decide the result."""
    read: "Callable[[Codec], tuple[Rounds, list[Dev]]]"
    """Function that makes training rows, and dev rows of each language, from these files."""


class Objective(NamedTuple):
    """One way to learn from monolingual text."""

    prepare: Callable[[Pretraining, dict[str, list[str]], dict[str, list[str]], int, Path], Material]
    """Settings, training and dev lines of each language, seed and a folder for files → material."""
    decoder: bool
    """Whether it is for families with a decoder, or for those without."""


# ---------------------------------------------------------------------------------------------
# objectives


def denoising(block: Pretraining, train: dict[str, list[str]], dev: dict[str, list[str]], seed: int, folder: Path) -> Material:
    """Rows (noised line, line), noised anew in each round."""
    # enough rounds if every word were one token, as in the codeswitch stage
    total = sum(len(words_of([*dev[code], *text], code).starts) for code, text in train.items())
    rounds = max(1, -(-block.training.updates * block.training.batch_tokens // total))
    for side, (code, text) in enumerate(train.items()):
        write_lines(folder / f"dev.{code}.tsv.zst", denoised(dev[code], code, block.noise, seed, 2**31 + side))
        for number in range(rounds):
            write_lines(folder / f"round{number}.{code}.tsv.zst", denoised(text, code, block.noise, seed, number * len(train) + side))

    def read(codec: "Codec") -> "tuple[Rounds, list[Dev]]":
        from workflow_scripts.training.rows import Dev, NoisedRounds

        noised = NoisedRounds(folder, tuple(train), codec, block.training.max_length)
        return noised, [Dev(noised.read("dev", code), code) for code in train]

    return Material({path.name: path for path in sorted(folder.glob("*.tsv.zst"))}, read)


def denoised(lines: list[str], code: str, noise: Noise, seed: int, stream: int) -> Iterator[str]:
    """Rows ``noised TAB original`` of mBART's noise."""
    for noised, line in zip(denoise(words_of(lines, code), noise, seed, stream), lines, strict=True):
        yield f"{noised}\t{line}"


def mlm(block: Pretraining, train: dict[str, list[str]], dev: dict[str, list[str]], seed: int, folder: Path) -> Material:
    """Rows (masked pieces, the pieces to guess), masked anew in each epoch."""
    files = {(part, code): folder / f"{part}.{code}" for part in ("train", "dev") for code in train}
    for (part, code), path in files.items():
        write_lines(path, (train if part == "train" else dev)[code])

    def read(codec: "Codec") -> "tuple[Rounds, list[Dev]]":
        from workflow_scripts.training.rows import Dev, MaskedText

        def masked(part: str, codes: list[str]) -> MaskedText:
            text = {code: list(read_sentences(files[part, code])) for code in codes}
            return MaskedText(text, codec, block.training.max_length, block.masking, seed)

        # round numbers reserved for dev; training never reaches them
        return masked("train", list(train)), [Dev(masked("dev", [code]).epoch(2**31 + side), code) for side, code in enumerate(train)]

    return Material({path.name: path for path in files.values()}, read)


# translation and veco take their places here
OBJECTIVES: dict[str, Objective] = {"denoising": Objective(denoising, decoder=True), "mlm": Objective(mlm, decoder=False)}


def objective_for(name: str | None, family: Family) -> str:
    """The name of the objective of a family: `name`, or by default the first that is for such a family.

    Raises `InputError` for one that does not exist, or is for other families.
    """
    suited = [each for each, objective in OBJECTIVES.items() if objective.decoder == family.decoder]
    if name is None:
        return suited[0]
    if name not in OBJECTIVES:
        raise InputError(f"there is no objective {name!r}{instead(name, OBJECTIVES)}")
    if name not in suited:
        has = "has a decoder" if family.decoder else "has no decoder"
        raise InputError(f"objective {name} is not for {family.title}, which {has}; set objective: {' or '.join(suited)}")
    return name


# ---------------------------------------------------------------------------------------------
# the stage


def pretrain(
    block: Pretraining,
    objective: str | None,
    languages: tuple[str, ...],
    task_text: tuple[Path, ...],
    held_out: tuple[Path, ...],
    make_start: Callable[[list[str], Path], Path],
    where: str,
    **job: Any,
) -> dict:
    """Train a model on the block's text; returns what ``backbone.json`` says of it.

    `make_start` makes the first model of all lines of the text, and a folder for its files; a continued backbone has it already.
    `where` is the block's name in the configuration, `job` outputs and seed as `training.Phase` has them. The loss on lines that were
    kept back is measured beside that of a unigram model. Raises `InputError` for text that is missing or too short.
    """
    from workflow_scripts.training.training import Phase, train_phase

    if missing := [code for code in languages if code not in block.text]:
        raise InputError(f"backbone: `{where}.text` names no text for {', '.join(missing)}; it has {', '.join(block.text) or 'none'}")
    forbidden = {leak_key(line) for path in held_out for line in read_sentences(path)} - {""}
    with tempfile.TemporaryDirectory(prefix="crossgap-") as name:
        folder = Path(name)
        lines = {code: list(own_lines(block, languages, code, forbidden, task_text)) for code in languages}
        for code, text in lines.items():
            if len(text) < 4 * block.dev_lines:
                source = "the task's own text" if block.text[code] == "task" else block.text[code]
                raise InputError(f"{source}: {len(text)} lines are left for {code}; at least {4 * block.dev_lines} are needed")
        start = make_start([*(line for text in lines.values() for line in text)], folder)
        used = objective_for(objective, family_of(start))
        dev, train = ({code: text[part] for code, text in lines.items()} for part in (slice(block.dev_lines), slice(block.dev_lines, None)))
        material = OBJECTIVES[used].prepare(block, train, dev, job["seed"], folder / "text")
        phase = Phase(start=start, report=folder / "training.json", languages=languages, settings=block.training, **job)
        train_phase(phase, material.text, material.read)
        return {
            "objective": used,
            "sentences": {code: len(text) for code, text in lines.items()},
            "checksums": checksums(block.text[code] for code in languages if block.text[code] != "task"),
            **measure(phase.model, used, material, block.training),
        }


def own_lines(
    block: Pretraining, languages: tuple[str, ...], code: str, forbidden: set[str], task_text: tuple[Path, ...] = ()
) -> Iterator[str]:
    """The pretraining lines of one language: its share, without empty lines and dev or test sentences."""
    place = list(languages).index(code)
    files = [Path(block.text[code])]
    if block.text[code] == "task":
        files = [path for path in task_text if path.suffix == f".{code}"]
    for path in files:
        for number, line in enumerate(read_sentences(path)):
            if block.disjoint and number % len(languages) != place:
                continue
            # tabs separate the noised half of a row from the original
            if (line := " ".join(line.split())) and leak_key(line) not in forbidden:
                yield line


def measure(model: Path, objective: str, material: Material, training: Training) -> dict:
    """The loss on lines that were kept back, beside that of a unigram model, in nats per label.

    The unigram model knows how often each piece is a label in the first epoch (add-one).
    """
    from workflow_scripts.models.tokenisation import load_codec
    from workflow_scripts.training.loop import dev_loss, load_model

    codec = load_codec(model)
    network = load_model(model, training, seed=0)
    rounds, dev = material.read(codec)
    counts = Counter(i for _, labels in rounds.epoch(0) for i in labels if i != -100)
    total = sum(counts.values()) + len(codec.tokenizer)
    labels = [i for part in dev for _, row in part.rows for i in row if i != -100]
    return {
        "family": codec.family if codec.form.decoder else codec.form.model_type,
        "parameters": sum(p.numel() for p in network.parameters()),
        "vocabulary": len(codec.tokenizer),
        f"{objective}_loss": dev_loss(network, codec, dev),
        "unigram_loss": -sum(math.log((counts[i] + 1) / total) for i in labels) / len(labels),
    }


def known_family(name: str) -> Family:
    """The family of this name; raises `InputError` for one that is not in the table."""
    if name not in FAMILIES:
        raise InputError(f"there is no family {name!r}{instead(name, FAMILIES)}")
    return FAMILIES[name]
