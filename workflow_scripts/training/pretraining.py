"""pretraining: a backbone learns from text, by one of several objectives.

The demo's text comes from another domain than the task, and no sentence is there in two languages. The gap that Crossgap bridges is
the one between such a model and a bilingual task. Parallel text (`bitext`) closes it in another way. The objectives:

``denoising``
    mBART's (Liu et al. 2020): 35 % of the words of a line are masked in spans, one mask a span, λ = 3.5, and its sentences
    permuted; encoder and decoder restore the line
``mlm``
    BERT's masked language model (Devlin et al. 2019), as XLM-R learns it (Conneau et al. 2020): an encoder guesses single pieces
``translation``
    each side of a pair is written from the other, as mBART-50 goes on from mBART (Tang et al. 2020): the continued pretraining of
    Ji et al. (2024)
``next_piece``
    a decoder alone guesses the piece behind each piece of plain text, as it was pretrained
``veco``
    an encoder and a decoder that share their layers guess masked pieces, of adjacent segments and of translations (Luo et al. 2021);
    `segments` has its text, `veco_losses` its losses

`denoising` and `mlm` read the two sides of bitext as monolingual text: a control that sees the same text without its pairing.
"""

import math
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workflow_scripts import plugins, registry
from workflow_scripts.models.family import Family
from workflow_scripts.models.recognition import family_of
from workflow_scripts.names import instead
from workflow_scripts.noise.rounds import DEV_STREAM, write_rounds
from workflow_scripts.noise.span_noise import SpanNoise, denoise
from workflow_scripts.stage import InputError, checksums, from_plain, is_first_process, own_settings, read_json
from workflow_scripts.text.corpus import forbidden_keys, leak_key, leak_keys
from workflow_scripts.text.files import chunks, plain_lines, read_lines
from workflow_scripts.text.languages import LANGUAGES, language
from workflow_scripts.text.targets import without_marks
from workflow_scripts.text.words import BREAK, lengths, words_of
from workflow_scripts.training import segments
from workflow_scripts.training.bitext import Bitext, SampledPairs, directions, read_bitext, read_pairs, unpaired
from workflow_scripts.training.job import TrainingJob
from workflow_scripts.training.objective import Material, Objective, Part, Text, objective, plan_file, rows_objective
from workflow_scripts.training.pretraining_settings import Pretraining, Texts, direction_problems, veco_problems
from workflow_scripts.training.ready import RAN_ON
from workflow_scripts.training.settings import Training

if TYPE_CHECKING:
    from workflow_scripts.models.tokenisation import Codec
    from workflow_scripts.training.method import Method
    from workflow_scripts.training.rows import Dev, Rounds


# ---------------------------------------------------------------------------------------------
# objectives

_ASKS = "Does more pretraining help?"


@objective("denoising", decoder=True, label="restoring masked spans", asks=_ASKS, keys=("noise",), source="Liu et al. 2020, section 2.2")
def denoising(block: Pretraining, train_text: Text, dev_text: Text, seed: int, folder: Path) -> Material:
    """Rows (noised line, line), noised anew in each round."""
    train, dev = train_text.lines, dev_text.lines
    # enough rounds if every word were one token, as in the codeswitch stage; of a line no more is read than there is room for
    longest = block.training.max_length
    portions = ((code, some) for code, text in train.items() for some in chunks((*dev[code], *text)))
    total = sum(min(words, longest) for code, some in portions for words in lengths(some, code))
    rounds = max(1, -(-block.training.updates * block.training.batch_tokens // total))
    for side, (code, text) in enumerate(train.items()):
        dev_file = {DEV_STREAM + side: folder / f"dev.{code}.tsv.zst"}
        files = {number * len(train) + side: folder / f"round{number}.{code}.tsv.zst" for number in range(rounds)}
        noised = partial(denoised, code=code, noise=block.noise, seed=seed)
        write_rounds(dev_file, partial(iter, dev[code]), noised)
        write_rounds(files, partial(iter, text), noised)

    codes = tuple(train)

    def read(codec: "Codec") -> "tuple[Rounds, list[Dev]]":
        from workflow_scripts.training.rows import NoisedRounds
        from workflow_scripts.training.too_long import Room

        noised = NoisedRounds(folder, codes, codec, Room.of(block.training, leave_out=False))
        return noised, [noised.dev(code) for code in codes]

    return Material({path.name: path for path in sorted(folder.glob("*.tsv.zst"))}, read)


def denoised(lines: list[str], first: int, streams: list[int], code: str, noise: SpanNoise, seed: int) -> Iterator[list[str]]:
    """The lines, of which the first is number `first` in its text, with mBART's noise by each of these random streams."""
    words = words_of(lines, code)
    for stream in streams:
        yield denoise(words, noise, seed, stream, first, spaced=language(code).spaced)


@objective(
    "mlm",
    decoder=False,
    label="guessing masked words",
    asks=_ASKS,
    keys=("masking",),
    source="Devlin et al. 2019, section 3.1; Conneau et al. 2020",
)
def mlm(block: Pretraining, train_text: Text, dev_text: Text, seed: int, folder: Path) -> Material:
    """Rows (masked pieces, the pieces to guess), masked anew in each epoch."""
    train, dev = (Part.write(folder, name, Text(text.lines)) for name, text in (("train", train_text), ("dev", dev_text)))

    def read(codec: "Codec") -> "tuple[Rounds, list[Dev]]":
        from workflow_scripts.training.rows import Dev, MaskedText
        from workflow_scripts.training.too_long import Room

        def masked(files: dict[str, Path]) -> MaskedText:
            text = {code: list(read_lines(path)) for code, path in files.items()}
            return MaskedText(text, codec, Room.of(block.training, leave_out=False), block.masking, seed)

        held_back = {code: masked({code: path}) for code, path in dev.text.items()}
        dev_rows = [Dev(one.epoch(DEV_STREAM + side), code, None, one.too_long) for side, (code, one) in enumerate(held_back.items())]
        return masked(train.text), dev_rows

    return Material({**train.files(), **dev.files(), **plan_file(folder, "masking.json", **asdict(block.masking))}, read)


@rows_objective(
    "next_piece", decoder=None, causal=True, label="guessing the next piece", asks=_ASKS, source="Radford et al. 2018, section 3.1"
)
def next_piece(lines: list[str], language: str, codec: "Codec", max_length: int) -> list[tuple[list[int], list[int]]]:
    """Rows (a text, each piece's follower): plain text, as decoders are pretrained on it. Behind a text that is cut no end is learnt."""
    wholes = codec.pieces(lines)
    read = codec.framed([codec.within(ids, max_length) for ids in wholes], language)
    before, _ = codec.around
    ends = [codec.tokenizer.eos_token_id if len(row) == before + len(ids) else -100 for row, ids in zip(read, wholes, strict=True)]
    return [(row, [*row[1:], end]) for row, end in zip(read, ends, strict=True)]


@objective(
    "translation",
    decoder=True,
    causal=True,
    reads="pairs",
    label="translating (CP)",
    asks="Does it help to learn translating first?",
    against=("denoising", "next_piece"),
    keys=("direction", "pivot"),
    problems=direction_problems,
    source="Ji et al. 2024, section 2",
)
def translation(block: Pretraining, train_text: Text, dev_text: Text, seed: int, folder: Path) -> Material:
    """Rows (source, target), each with its language's tag, or in a decoder's template; corpora are sampled anew in each epoch."""
    pairs = [tuple(one.sides) for one in train_text.bitext]
    ways = directions(pairs, block.direction, block.pivot)
    train, dev = (Part.write(folder, name, Text({}, text.bitext)) for name, text in (("train", train_text), ("dev", dev_text)))
    plan = plan_file(folder, "plan.json", directions=ways, temperature=block.temperature)

    def read(codec: "Codec") -> "tuple[Rounds, list[Dev]]":
        from workflow_scripts.training.rows import Dev, rows_of
        from workflow_scripts.training.too_long import Room

        room = Room.of(block.training)
        learnt, held_back = ([read_pairs(corpus, codec, room) for corpus in part.bitext] for part in (train, dev))
        rows = [
            Dev(rows_of(codec, (one.read[source], one.labels[target]), (source, target)), target, None, [one.about])
            for one, some in zip(held_back, ways, strict=True)
            for source, target in some
        ]
        joins = {way: joined for some in ways for way in some if (joined := codec.joins(way))}
        return SampledPairs(learnt, ways, block.temperature, seed, joins), rows

    return Material({**train.files(), **dev.files(), **plan}, read)


@objective(
    "veco",
    decoder=False,
    reads="both",
    label="VECO's losses",
    asks="Does more pretraining help, with translations side by side?",
    against="mlm",
    keys=("veco", "masking", "temperature"),
    block="veco",
    problems=veco_problems,
    source="Luo et al. 2021, section 2.2",
)
def veco(block: Pretraining, train_text: Text, dev_text: Text, seed: int, folder: Path) -> Material:
    """Rows of two segments (masked pieces, the pieces to guess), masked anew in each epoch, and the losses of VECO on them."""
    if not block.veco.parallel:
        train_text, dev_text = (
            with_sides(text, most)._replace(bitext=[]) for text, most in ((train_text, None), (dev_text, block.dev_lines))
        )
    train, dev = (Part.write(folder, name, text) for name, text in (("train", train_text), ("dev", dev_text)))
    settings = {"veco": asdict(block.veco), "masking": asdict(block.masking), "temperature": block.temperature}

    def read(codec: "Codec") -> Any:
        return segments.read(train, codec, block, seed), segments.held_back(dev, codec, block, seed)

    def method() -> "Method":
        from workflow_scripts.training import veco_losses as losses
        from workflow_scripts.training.method import Method

        return Method(partial(losses.load, veco=block.veco), partial(losses.train, veco=block.veco))

    def measured(network: Any, codec: "Codec", held: list[Any]) -> dict[str, float]:
        from workflow_scripts.training import veco_losses as losses

        return losses.measured(network, codec, held, block.veco)

    def finish(model: Path) -> None:
        from workflow_scripts.models.conversion import add_generator

        if block.veco.cs_mlm:
            add_generator(model)

    return Material({**train.files(), **dev.files(), **plan_file(folder, "plan.json", **settings)}, read, method, measured, finish)


def objective_for(name: str | None, family: Family, small: bool = False) -> str:
    """The name of the objective of a family: `name`, or by default the first that is for such a family, with sentinels where it has some.

    The vocabulary of a `small` model, which is made here, has none.

    Raises `InputError` for one that does not exist, or is for other families.
    """
    marks_spans = bool(family.sentinel or family.sentinels)
    suited = {
        each: found
        for each, found in registry.entries("objective").items()
        if (found.causal if family.causal else found.decoder == family.decoder) and found.sentinels <= marks_spans
    }
    if name is None:
        return next(each for each, found in suited.items() if found.sentinels == (marks_spans and not small))
    if (asked := registry.entry("objective", name)).name not in suited:
        has = "is a decoder alone" if family.causal else "has a decoder" if family.decoder else "has no decoder"
        has = "has no sentinels" if asked.sentinels and family.decoder else has
        raise InputError(f"objective {name} is not for {family.label}, which {has}; set objective: {' or '.join(suited)}")
    return name


def objective_block(entry: Objective, given: Mapping[str, Any], training: Training = Training()) -> Pretraining:
    """The block by which a phase of an arm learns, of the settings that are `given` to its objective; raises `InputError` for others."""
    if entry.settings or not entry.keys:
        own_settings(entry, {**given})
        return Pretraining(training=training, objective_settings={**given})
    if unknown := [key for key in given if key not in entry.keys]:
        raise InputError(f"objective {entry.name} has no setting {unknown[0]!r}{instead(unknown[0], entry.keys)}")
    return replace(from_plain(Pretraining, {**given}), training=training)


# ---------------------------------------------------------------------------------------------
# the stage


def pretrain(
    block: Pretraining,
    objective_name: str | None,
    texts: Texts,
    make_start: Callable[[list[str], Path], Path],
    where: str,
    job: TrainingJob,
) -> dict:
    """Train a model on the block's text; returns what ``backbone.json`` says of it.

    `make_start` makes the first model of all lines of the text, and a folder for its files; a continued backbone has it already.
    `where` is the block's name in the configuration. `start` and `report` of the `job` are replaced, by that first model and by a temporary
    file. The loss on lines that were kept back is measured beside that of a unigram model.

    Raises `InputError` for text that is missing or too short.
    """
    from workflow_scripts.training.method import Method, of_plugin
    from workflow_scripts.training.phase import train_phase
    from workflow_scripts.training.too_long import Room

    with tempfile.TemporaryDirectory(prefix="crossgap-") as name:
        folder = Path(name)
        in_order = objective_name is not None and registry.entry("objective", objective_name).in_order
        train, dev, left_out = read_text(block, texts, in_order)
        # dev lines first, as they stand in the text
        lines = [line for code, text in train.lines.items() for line in (*dev.lines[code], *text)]
        start = make_start([*lines, *(line for one in train.bitext for side in one.sides.values() for line in side)], folder)
        used = objective_for(objective_name, family_of(start), small=where == "small")
        entry: Objective = registry.entry("objective", used)
        if entry.reads == "pairs" and not texts.bitext:
            raise InputError(f"backbone: objective {used} needs parallel text; name corpora in `{where}.bitext`")
        if entry.reads == "lines":
            train, dev = with_sides(train), with_sides(dev, block.dev_lines)
        sentences = {code: len(text) + len(dev.lines[code]) for code, text in train.lines.items()}
        pairs = {"pairs": {one.name: one.pairs for one in train.bitext}} if texts.bitext else {}
        prepare = partial(entry.prepare, block, train, dev, job.seed, folder / "text")
        material = plugins.call_if_theirs(entry, prepare, {}, lambda: f"settings {block.objective_settings}")
        del prepare, lines, train, dev  # the text is in files now, and training has better use of the memory
        job = job._replace(start=start, report=folder / "training.json")
        method = of_plugin(entry, material.method() if material.method else Method(), block.objective_settings)
        room = Room.of(block.training, leave_out=entry.leaves_out)
        train_phase(job, block.training, material.text, material.read, room, method, languages=texts.languages)
        if not is_first_process():
            return {}
        if material.finish:
            material.finish(job.model)
        read = [block.text[code] for code in texts.languages if block.text.get(code, "task") != "task"]
        trained = read_json(job.report)
        return {
            "objective": used,
            **{key: trained[key] for key in RAN_ON},
            "sentences": sentences,
            **left_out,
            **pairs,
            "too_long": trained["too_long"],
            "checksums": checksums([*read, *map(str, texts.bitext)]),
            **measure(job.model, used, material, block.training),
        }


def read_text(block: Pretraining, texts: Texts, in_order: bool = False) -> tuple[Text, Text, dict[str, dict[str, int]]]:
    """Training and dev text of a block, neither with a sentence that the experiments hold out; raises `InputError` where it is short.

    Training has no line that is equal to a dev line. The third of what is returned counts the lines that were left out: `equal_to_dev`,
    by language, and those with a sentence that is `held_out`, by language, or by corpus for pairs.

    A corpus may be an experiment's own: its dev set is then measured on, but no sentence of it is trained on. `in_order` is that of the
    objective.
    """

    others = held_out_keys(path for path in texts.held_out if path not in texts.bitext_dev)
    forbidden = others | held_out_keys(texts.bitext_dev)
    codes = [code for code in texts.languages if code in block.text]
    held_out = Counter(dict.fromkeys(codes, 0))
    found = {code: list(own_documents(block, code, forbidden, texts.task_text, held_out)) for code in codes}
    for code, text in found.items():
        if len(text) < block.lines_per_language:
            source = "the task's own text" if block.text[code] == "task" else block.text[code]
            wanted = f"at least {block.lines_per_language} are needed: give more text, or lower dev_lines"
            raise InputError(f"{source}: {len(text)} lines are left for {code}; {wanted}")
    dev = {code: text[: block.dev_lines] for code, text in found.items()}
    # lines may come again, and the bitext may be of the same text: what is measured on is not learnt from there either
    kept_back = forbidden_keys(line for text in dev.values() for line, _ in text)
    train = {code: without(text[block.dev_lines :], kept_back) for code, text in found.items()}
    equal = {code: len(text) - block.dev_lines - len(train[code]) for code, text in found.items()}
    for code, text in train.items():
        if not text:
            raise InputError(f"{block.text[code]}: all {equal[code]} lines of {code} for training are equal to dev lines; give more text")
    pairs = read_bitext(texts.bitext, forbidden | kept_back, block.bitext_pairs, in_order)
    left_out = {"equal_to_dev": equal, "held_out": {**held_out, **{one.name: one.held_out for one in pairs}}}
    return _of_documents(train, pairs), _of_documents(dev, read_bitext(texts.bitext_dev, others, block.dev_lines, in_order)), left_out


def held_out_keys(files: Iterable[Path]) -> set[str]:
    """The keys of the lines of dev and test sets, and of the longer sentences of passages and articles.

    A file's suffix is its language, but for text in which translations are sought (`source`, `target`).
    Of documents each sentence counts; but in other text `</s>` is no break, and its lines are learnt from as they are. Marks around an
    answer do not count.
    """
    lines = ((line, code if (code := path.suffix[1:]) in LANGUAGES else None) for path in files for line in read_lines(path))
    parts = ((part, code) for line, code in lines for part in {line, without_marks(line), without_marks(line, ""), *line.split(BREAK)})
    return {key for part, code in parts for key in leak_keys(part, code)} - {""}


def without(documents: list[tuple[str, bool]], keys: set[str]) -> list[tuple[str, bool]]:
    """The lines that have none of these keys (`leak_key`), each with whether a document begins with it, or with one left out before it."""
    kept, begins = list[tuple[str, bool]](), False
    for line, first in documents:
        begins |= first
        if leak_key(line) not in keys:
            kept.append((line, begins))
            begins = False
    return kept


def _of_documents(documents: dict[str, list[tuple[str, bool]]], bitext: list[Bitext]) -> Text:
    """Text of lines that come with whether a document begins with them."""
    lines = {code: [line for line, _ in some] for code, some in documents.items()}
    return Text(lines, bitext, {code: [number for number, (_, begins) in enumerate(some) if begins] for code, some in documents.items()})


def with_sides(text: Text, most: int | None = None) -> Text:
    """`text` with the sides of its bitext among its lines; of those at `most` so many in each language."""
    sides = unpaired(text.bitext, most)
    lines = {code: [*text.lines.get(code, []), *sides.get(code, [])] for code in {**text.lines, **sides}}
    # the sides of bitext come after a language's own lines
    ends = {code: [len(text.lines[code])] for code in sides if text.lines.get(code)}
    return Text(lines, text.bitext, {code: [*text.breaks.get(code, []), *ends.get(code, [])] for code in lines})


def own_documents(
    block: Pretraining, code: str, forbidden: set[str], task_text: tuple[Path, ...] = (), held_out: Counter[str] | None = None
) -> Iterator[tuple[str, bool]]:
    """The pretraining lines of one language: its share, without empty lines and those with a dev or test sentence, which `held_out` counts.

    Each comes with whether a document begins with it, as after a blank line and in another file. Lines are shared out among the languages
    that have text, as they stand in their files: a document that is one line stays whole.
    """
    readers = sorted(block.text)
    files = [Path(block.text[code])]
    if block.text[code] == "task":
        files = [path for path in task_text if path.suffix == f".{code}"]
    for path in files:
        begins = True
        for number, line in enumerate(plain_lines(path)):
            for part in line.split(BREAK):
                begins |= not part.strip()
                if block.disjoint and number % len(readers) != readers.index(code):
                    continue
                # tabs separate the noised half of a row from the original
                if not (text := " ".join(part.split())):
                    continue
                if forbidden.isdisjoint(leak_keys(text, code)):
                    yield text, begins
                    begins = False
                elif held_out is not None:
                    held_out[code] += 1


def measure(model: Path, objective_name: str, material: Material, training: Training) -> dict:
    """The loss on lines that were kept back, beside that of a unigram model, in nats per label.

    The unigram model knows how often each piece is a label in the first epoch (add-one).
    """
    from workflow_scripts.device import pick_device
    from workflow_scripts.models.products import quick_products
    from workflow_scripts.models.tokenisation import load_codec
    from workflow_scripts.training.loop import load_model
    from workflow_scripts.training.validation import dev_loss

    codec = load_codec(model)
    load = material.method().load if material.method else load_model
    network: Any = load(model, training, 0, False)
    network.to(pick_device(training.device))
    rounds, dev = material.read(codec)
    counts = Counter(i for _, labels in rounds.epoch(0) for i in labels if i >= 0)
    total = sum(counts.values()) + len(codec.tokenizer)
    labels = [i for part in dev for _, row in part.rows for i in row if i >= 0]
    with quick_products():
        losses = material.losses(network, codec, dev) if material.losses else {f"{objective_name}_loss": dev_loss(network, codec, dev)}
    return {
        "family": family_of(model).reported,
        "parameters": sum(p.numel() for p in network.parameters()),
        "vocabulary": len(codec.tokenizer),
        **losses,
        "unigram_loss": -sum(math.log((counts[i] + 1) / total) for i in labels) / len(labels),
    }
