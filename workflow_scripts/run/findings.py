"""findings: looks at the text, word lists, vectors and models that a run needs, each with what is wrong and the way out.

Long files are read at their beginning only, and nothing is written but a tokeniser that sacreBLEU has to fetch.
"""

import dataclasses
import functools
import itertools
import json
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import torch
import yaml

from workflow_scripts.evidence.scores import Scores, leading, metrics
from workflow_scripts.lexicon.vecmap import find_program
from workflow_scripts.lexicon.vectors import read_vectors
from workflow_scripts.models.decoding import why_not_on_gpu
from workflow_scripts.models.families import FAMILIES, family_of
from workflow_scripts.run.config import Config, backbones_used, bitext_used, data_file, data_used, sources_of
from workflow_scripts.run.estimates import MBART_LARGE, Shape
from workflow_scripts.run.inputs import languages_known, writes_text
from workflow_scripts.stage import ROOT, InputError, in_one_line, read_json, resource
from workflow_scripts.tasks.experiment import (
    arm_phases,
    arms_of,
    backbone_of,
    chain,
    experiments_needed,
    lexicon_corpus,
    lexicons_used,
    phase_training,
    phases_of,
    trains,
)
from workflow_scripts.tasks.table import task_of
from workflow_scripts.tasks.transfer import given_lexicons, is_learnt, transfer_lexicons
from workflow_scripts.tasks.translation import Translation, translations
from workflow_scripts.text import aligned as alignments
from workflow_scripts.text.acquisition import Data, needed
from workflow_scripts.text.aligned import AlignedSource, read_aligned
from workflow_scripts.text.corpus import Corpus
from workflow_scripts.text.entities import as_characters
from workflow_scripts.text.examples import Example, LabelledSource, read_any
from workflow_scripts.text.fetching import Unreachable, cache_folder, size_of
from workflow_scripts.text.files import read_lines
from workflow_scripts.text.identification import check_languages, reads_as
from workflow_scripts.text.labelled import Labelled
from workflow_scripts.text.languages import language
from workflow_scripts.text.parallel import Pair, Source, read_pairs
from workflow_scripts.text.tagged import INNER_BLANK
from workflow_scripts.text.word_lists import read_dictionary
from workflow_scripts.training.pretraining import Pretraining, Texts, known_family, objective_for
from workflow_scripts.training.ready import differences, made_from

Jobs = dict[str, dict[str, Any]]
"""Rule → threads and resources of a job's first attempt, as Snakemake and its Slurm plugin call them.

`last_mem_mb` is the memory of its last attempt, `group` the pattern of the name under which it is submitted with other rules.
"""


class Finding(NamedTuple):
    """The result of one check."""

    verdict: str
    """`ok`, `note` (nothing is wrong, but read it) or `WRONG`."""
    about: str
    """A key of the configuration or the profile, or a part of the machine."""
    said: str

    def __str__(self) -> str:
        return f"{self.verdict:<5}  {self.about}: {self.said}"


def judged(about: str, look: Callable[..., str], *arguments: Any, verdict: str = "ok") -> Finding:
    """What `look` says, or the `InputError` that it raises."""
    try:
        return Finding(verdict, about, look(*arguments))
    except InputError as error:
        return Finding("WRONG", about, str(error))


def gigabytes(size: float) -> str:
    """A number of bytes for people."""
    return f"{size / 1e9:.{0 if size >= 1e10 else 1}f} GB"


# ---------------------------------------------------------------------------------------------
# what the run uses


def translated(config: Config) -> list[Translation]:
    """The experiments of the run whose text is a parallel corpus."""
    return [each for name, each in translations(config).items() if name in config.run.experiments]


def with_labels(config: Config) -> list[str]:
    """The names of the run's experiments whose text has labels."""
    return [name for name in config.run.experiments if task_of(config.experiments[name]).text == "labelled"]


def used_lexicons(config: Config) -> list[tuple[str, str]]:
    """Corpus and lexicon, each pair once."""
    used = [(lexicon_corpus(config, each, name), name) for each in translated(config) for name in lexicons_used(config, each)]
    learnt = {name: config.lexicons[name] for name in transfer_lexicons(config)}
    return list(dict.fromkeys([*used, *((str(block.corpus), name) for name, block in learnt.items() if is_learnt(block))]))


def used_corpora(config: Config) -> list[str]:
    """The experiments' corpora, and those that lexicons are learnt from or backbones are pretrained on."""
    learnt_from = [*(corpus for corpus, _ in used_lexicons(config)), *bitext_used(config)]
    own = [name for each in translated(config) for name in (each.corpus, *each.together_with)]
    return list(dict.fromkeys([*own, *learnt_from]))


def used_backbones(config: Config) -> dict[str, list[str]]:
    """Backbone → languages that it must know."""
    return {name: languages_known(config, name) for name in backbones_used(config)}


def masked_phases(config: Config, backbone: str) -> list[str]:
    """The phases of arms in which the backbone, or one that is made from it, restores text with masks."""
    return [
        f"arms.{arm} ({phase.data})"
        for experiment in map(config.experiments.__getitem__, experiments_needed(config))
        for arm in arms_of(config, experiment)
        if backbone in chain(config, backbone_of(config, experiment, arm))
        for phase in arm_phases(config, experiment, arm)
        if phase.data in ("mask", "released")
    ]


# ---------------------------------------------------------------------------------------------
# data


def experiments(config: Config) -> Iterator[Finding]:
    """What is run; an overlay that defines experiments and asks for none of them would have config.yaml's run, without a word."""
    wanted = config.run.experiments
    shipped = yaml.safe_load((ROOT / "config.yaml").read_text(encoding="utf-8"))["experiments"]
    added = [name for name in config.experiments if name not in shipped]
    if added and not {*added} & {*wanted}:
        names = f"{', '.join(added)} {'are' if len(added) > 1 else 'is'} defined, but not run"
        yield Finding("note", "run.experiments", f"{names}; run {'are' if len(wanted) > 1 else 'is'} {', '.join(wanted)}")
    elif wanted:
        yield Finding("ok", "run.experiments", ", ".join(wanted))


def few_pairs(config: Config) -> Iterator[Finding]:
    """Where finetuning reads a part of the text, which an experiment that is `like` the demo's has from there."""
    for experiment in translated(config):
        if experiment.training.pairs:
            most = f"{experiment.training.pairs:,} pairs at most"
            yield Finding("ok", "training.pairs", f"finetuning on {experiment.corpus} reads {most}; `training: {{pairs: null}}` reads all")


def long_warmups(config: Config) -> Iterator[Finding]:
    """Phases that end before their learning rate has reached its peak, or just then."""
    for name in config.run.experiments:
        experiment: Any = config.experiments.get(name)
        for arm, phase in phases_of(config, experiment) if experiment and trains(experiment) else ():
            if phase.updates and (warmup := phase_training(experiment, phase).warmup_updates) >= phase.updates:
                said = f"the learning rate still rises at the last of {phase.updates:,} updates of arms.{arm} ({phase.data})"
                yield Finding("note", f"experiments.{name}.training.warmup_updates", f"{warmup:,}: {said}; set a smaller one")


def data(config: Config) -> Iterator[Finding]:
    """Whether the data of the run are there, or can be acquired."""
    for name in data_used(config):
        path = data_file(config, name)
        if Path(path).exists():
            yield Finding("ok", f"data.{name}", path)
        else:
            yield judged(f"data.{name}", _to_acquire, config.data[name], verdict="note")


def _to_acquire(block: Data) -> str:
    sums = block.sha256.values() if isinstance(block.sha256, dict) else [block.sha256]
    if block.url and None in sums:
        raise InputError(f"{block.url}: `sha256` is missing; its job downloads the file and says which checksum it found")
    size = 0
    missing = {url: place for url, place in needed(block).items() if not place.exists()}
    for url, place in missing.items():
        try:
            size += size_of(url) or 0
        except Unreachable as reason:
            raise InputError(f"{url} cannot be reached ({reason}); get it where there is network, and put it at {place}") from None
    if not missing and block.debian:  # their index is there, and perhaps they are, too
        return f"is to be made of Debian's packages {', '.join(block.debian.packages.values())}"
    if not missing:
        return f"is to be had from mtdata: {block.mtdata}" if block.mtdata else "is to be made of what is there"
    if block.lines or not block.url:
        return f"is to be had from {', '.join(missing)}"
    folder = next(folder for folder in (cache_folder(), *cache_folder().absolute().parents) if folder.exists())
    if size > (free := shutil.disk_usage(folder).free):
        raise InputError(f"{', '.join(missing)}: {gigabytes(size)}, but {cache_folder()} has {gigabytes(free)} free; set CROSSGAP_CACHE")
    return f"is to be downloaded: {', '.join(missing)}, {size / 1e6:,.1f} MB"


def is_awaited(*paths: str) -> bool:
    """Whether one of these is acquired, or made, only when the run begins."""
    return any(path.startswith(("results/data/", "results/lexicons/", "results/corpora/")) and not Path(path).exists() for path in paths)


# ---------------------------------------------------------------------------------------------
# text, word lists, vectors

T = TypeVar("T")

_HEAD = 100_000
"""Number of pairs that are read from each corpus."""


def corpora(config: Config) -> Iterator[Finding]:
    """Whether the text is what the configuration says: files, columns, encoding, alignment, languages."""
    for name in used_corpora(config):
        corpus = config.corpora[name]
        for part, source in sources_of(corpus).items():
            if source.held_out is None and not is_awaited(*source.paths()):
                yield judged(f"corpora.{name}.{part}", _parallel_text, source, corpus)
                pairs = _beginning(read_pairs, source_at_hand(source), corpus.languages, corpus.documents)
                yield from _odd(f"corpora.{name}.{part}", pairs)
                for side, code in enumerate(corpus.languages):
                    yield from _foreign(f"corpora.{name}.{part}", [(pair.a, pair.b)[side] for pair in pairs], code)


def _odd(about: str, pairs: list[Pair]) -> Iterator[Finding]:
    """Notes where a file was written for another reader: one that takes off quotation marks, reads entities, or ends lines otherwise."""
    cells = [text for pair in pairs for text in (pair.a, pair.b)]
    if sum(text[:1] == text[1:][-1:] == '"' for text in cells) > len(cells) / 2:
        yield Finding("note", about, "most sentences stand in quotation marks, which are read as text; write the table without them")
    if (lag := out_of_step(pairs)) is not None:
        said = f"the sides look out of step: line n of one fits line n {lag:+d} of the other better than line n; see that they are parallel"
        yield Finding("note", about, said)
    escaped = [text for text in cells if as_characters(text) != text]
    if len(escaped) > len(cells) / 100:
        said = f"{len(escaped) / len(cells):.0%} of the sentences have HTML entities, as in {escaped[0][:60]!r}; set `unescape: true`"
        yield Finding("note", about, said)
    if 0 < len(pairs) < 10:
        yield Finding("note", about, f"has {len(pairs)} line(s); if these should be more, end each with a line feed (\\n)")


def out_of_step(pairs: list[Pair]) -> int | None:
    """By how many lines the second side is shifted against the first, if by the lengths of sentences it looks so; else None.

    Translations of long sentences are long, so that the lengths of two sides in step correlate.
    """
    if len(pairs) < 200:
        return None
    a, b = (np.log1p([len(side) for side in sides]) for sides in zip(*((pair.a, pair.b) for pair in pairs), strict=True))
    if not (np.ptp(a[3:-3]) and np.ptp(b[3:-3])):
        return None
    fits = {lag: np.corrcoef(a[3:-3], b[3 + lag : len(b) - 3 + lag])[0, 1] for lag in range(-3, 4)}
    best = max(fits, key=lambda lag: (fits[lag], lag == 0))
    return best if best and fits[best] > fits[0] + 0.3 else None


def at_hand(corpus: Corpus) -> Corpus:
    """The corpus with the files that its paths name, the embedded ones too."""
    tests = {name: source_at_hand(source) for name, source in corpus.test.items()}
    return replace(corpus, train=source_at_hand(corpus.train), dev=source_at_hand(corpus.dev), test=tests)


def source_at_hand(source: Source) -> Source:
    """One part of a corpus with the files that its paths name, the embedded ones too."""
    files = {code: resource(path) for code, path in source.files.items()}
    return replace(source, file=source.file and resource(source.file), files=files)


def _parallel_text(source: Source, corpus: Corpus) -> str:
    source = source_at_hand(source)
    where = " + ".join(source.paths())
    pairs = list(itertools.islice(read_pairs(source, corpus.languages, corpus.documents), _HEAD))
    if not (whole := [pair for pair in pairs if pair.a and pair.b]):
        raise InputError(f"{where}: no pair with text on both sides in {len(pairs):,} lines; give another file, or other columns")
    check_languages(whole[:2000], corpus.languages, where)
    lost = f", of which {len(pairs) - len(whole):,} without text on both sides are left out" if len(whole) < len(pairs) else ""
    return f"{where}, {'the first ' if len(pairs) == _HEAD else ''}{len(pairs):,} pairs{lost}"


def _beginning(read: Callable[..., Iterable[T]], *arguments: Any) -> list[T]:
    """What stands at the beginning of a text; nothing where it cannot be read, which is told elsewhere."""
    try:
        return list(itertools.islice(read(*arguments), 2000))
    except InputError:
        return []


def _foreign(about: str, lines: list[str], code: str) -> Iterator[Finding]:
    """A note where a text does not look like one in its language."""
    if other := reads_as(lines, code):
        said = f"the {language(code).name} text reads as {other}; if it is, name the right file or column, or {code} is the wrong code"
        yield Finding("note", about, said)


def labelled(config: Config) -> Iterator[Finding]:
    """Whether labelled text is what the configuration says: files, columns, labels."""
    for name in dict.fromkeys(config.experiments[each].corpus for each in with_labels(config)):
        block = config.labelled[name]
        for part, source in sources_of(block).items():
            if source.file and not is_awaited(*source.paths()):
                yield judged(f"labelled.{name}.{part}", _labelled_text, source, block)
                examples = _beginning(_examples, source, block)
                lines = [text.replace(INNER_BLANK, " ") for example in examples for text in example.texts]
                yield from _foreign(f"labelled.{name}.{part}", lines, block.language_of(part.replace(".", "/")))


def aligned(config: Config) -> Iterator[Finding]:
    """Whether text for retrieval is what the configuration says: files, columns, ids."""
    for name in dict.fromkeys(e.corpus for each in config.run.experiments if task_of(e := config.experiments[each]).text == "aligned"):
        block = config.aligned[name]
        for part, source in {**{f"test.{k}": v for k, v in block.test.items()}, **{f"dev.{k}": v for k, v in block.dev.items()}}.items():
            if not is_awaited(*source.paths()):
                yield judged(f"aligned.{name}.{part}", _aligned_text, source)


def _aligned_text(source: AlignedSource) -> str:
    sides, pairs = read_aligned(alignments.at_hand(source))
    return f"{' + '.join(source.paths())}, {len(sides[0]):,} and {len(sides[1]):,} sentences, {len(pairs):,} pairs"


def _labelled_text(source: LabelledSource, block: Labelled) -> str:
    learnt = source == block.train and block.unit == "text"
    examples = list(itertools.islice(_examples(source, block), _HEAD))
    if not examples:
        raise InputError(f"{source.file}: has no example; give another file, or see `where` and `label_pattern`")
    counts = Counter(label for example in examples for label in example.labels(block.unit))
    if learnt and len(examples) < _HEAD and (missing := [label for label in block.labels if not counts[label]]):
        raise InputError(f"{source.file}: no example has the label {missing[0]!r}, so no model can learn it; take it out of `labels`")
    counted = ", ".join(f"{counts[label]:,} {label}" for label in block.labels)
    number = f"{'the first ' if len(examples) == _HEAD else ''}{len(examples):,} examples"
    return f"{source.file}, {number}{': ' if counted else ''}{counted}"


def _examples(source: LabelledSource, block: Labelled) -> Iterator[Example]:
    named = {key: getattr(source, key) for key in ("file", "targets", "queries", "documents")}
    files: dict[str, Any] = {key: resource(path) for key, path in named.items() if path}
    source = dataclasses.replace(source, **files, language=source.language or block.language)
    return read_any(block.unit, source, block.labels, Counter(), Counter())


def lexicons(config: Config) -> Iterator[Finding]:
    """Whether word lists and vectors are there and in their formats."""
    for corpus, name in used_lexicons(config):
        block, codes = config.lexicons[name], config.corpora[corpus].languages
        for kind in ("dictionary", "gold"):
            if (path := getattr(block, kind).get("-".join(codes))) and not is_awaited(path):
                yield judged(f"lexicons.{name}.{kind}", _word_list, resource(path))
        for code in codes:
            if (path := block.vectors.get(code)) and not is_awaited(path):
                yield judged(f"lexicons.{name}.vectors.{code}", _vectors, resource(path))
        if block.mapping.engine == "vecmap":
            yield judged(f"lexicons.{name}.mapping.vecmap", lambda clone: str(find_program(clone)), block.mapping.vecmap)
    given = {key for name in with_labels(config) for key in given_lexicons(config, name)}
    for name, pair in sorted(key for key in given if not is_learnt(config.lexicons[key[0]])):
        if not is_awaited(path := config.lexicons[name].dictionary[pair]):
            yield judged(f"lexicons.{name}.dictionary.{pair}", _word_list, resource(path))


def clauses(config: Config) -> Iterator[Finding]:
    """Languages of which the lexicon and the noise know clauses instead of words."""
    for corpus in dict.fromkeys(corpus for corpus, _ in used_lexicons(config)):
        for code in config.corpora[corpus].languages:
            if (known := language(code)).segments_clauses:
                yield Finding(
                    "note",
                    f"corpora.{corpus}.languages",
                    f'{known.name} is written without spaces and there is no segmenter for it: its "words" are whole clauses. Put blanks '
                    "between the words of the text, or compare arms without a lexicon",
                )


def unaligned(config: Config) -> Iterator[Finding]:
    """Whether the text that the distance of the languages is measured on, beside the test set, is there."""
    for name, each in translations(config).items():
        for code, path in each.representation.text.items() if name in config.run.experiments else ():
            if not is_awaited(path):
                yield judged(f"experiments.{name}.representation.text.{code}", _plain_text, resource(path))


def analysed(config: Config) -> Iterator[Finding]:
    """Whether the texts of analyses that are no test sets of the run are there."""
    for name in config.run.analyses:
        for code, path in config.analyses[name].text.items():
            if not path.startswith("results/"):  # which is made when the run begins
                yield judged(f"analyses.{name}.text.{code}", _plain_text, resource(path))


def _plain_text(path: str) -> str:
    if not (found := sum(1 for line in itertools.islice(read_lines(Path(path)), _HEAD) if line.strip())):
        raise InputError(f"{path}: has no text; give another file")
    return f"{path}, {'at least ' if found == _HEAD else ''}{found:,} lines of text"


def _word_list(path: str) -> str:
    if not (pairs := read_dictionary(Path(path))):
        raise InputError(f"{path}: is empty; two words a line are expected, separated by a tab or a blank")
    return f"{path}, {len(pairs):,} pairs of words"


def _vectors(path: str) -> str:
    words, vectors = read_vectors(Path(path), 1000)
    return f"{path}, {vectors.shape[1]} dimensions, the first word is {words[0]!r}"


# ---------------------------------------------------------------------------------------------
# models


def backbones(config: Config) -> Iterator[Finding]:
    """Whether the backbones are there, or can be made or fetched, and know the languages."""
    for name, codes in used_backbones(config).items():
        block = config.backbones[name]
        if block.pretraining:
            text = block.pretraining.text
            for code in (code for code in codes if code in text and not is_awaited(text[code])):
                yield judged(f"backbones.{name}.{block.kind}.text.{code}", _monolingual_text, block.pretraining, code)
                if text[code] != "task":
                    lines = _beginning(read_lines, Path(resource(text[code])))
                    yield from _foreign(f"backbones.{name}.{block.kind}.text.{code}", lines, code)
            if block.kind == "small" and block.pretraining.ready and not any(map(is_awaited, text.values())):
                yield _ready_made(config, name, Path(resource(block.pretraining.ready)))
        elif block.kind == "arm":
            yield Finding("ok", f"backbones.{name}", f"the model of {block.from_}, which the run trains")
        elif not block.model:
            continue  # made of another backbone
        elif folder := located(block.model, block.revision):
            yield judged(f"backbones.{name}.model", _model_in, folder, codes, not writes_text(config, name), masked_phases(config, name))
        else:
            tagged = codes if writes_text(config, name) else []
            yield judged(f"backbones.{name}.model", _model_on_the_hub, block.model, block.revision, tagged, verdict="note")


def _ready_made(config: Config, name: str, folder: Path) -> Finding:
    """Whether a ready-made copy will be taken, as far as settings and languages decide it: the run's own text is not there yet."""
    block = config.backbones[name]
    assert block.small
    text = {code: path if path == "task" else resource(path) for code, path in block.small.text.items()}
    family = block.family or "mbart"
    objective = objective_for(block.objective, known_family(family))
    wanted = made_from(replace(block.small, text=text), family, objective, Texts(tuple(languages_known(config, name))), block.seed)
    differs = [key for key in differences(read_json(folder / "ready.json"), wanted) if key not in ("task_text", "held_out")]
    about = f"backbones.{name}.small.ready"
    if differs:
        return Finding("note", about, f"{folder} was made with other {', '.join(differs)}, so the backbone is pretrained here")
    return Finding("ok", about, f"{folder} has these settings and languages; it is taken if the run's text is that of its pretraining, too")


def _monolingual_text(block: Pretraining, code: str) -> str:
    if block.text[code] == "task":
        return "the task's own training text"
    path = resource(block.text[code])
    wanted = 4 * block.dev_lines * (len(block.text) if block.disjoint else 1)
    if (found := sum(1 for _ in itertools.islice(read_lines(Path(path)), wanted))) < wanted:
        why = ", because each language reads lines of its own (disjoint)" if block.disjoint else ""
        raise InputError(f"{path}: has {found} lines, at least {wanted} are needed{why}; give more text, or lower dev_lines")
    return path


@functools.cache
def located(model: str, revision: str | None) -> Path | None:
    """The folder of a model, its own or in the Hugging Face cache; None where it is not on this machine."""
    if Path(model).is_dir():
        return Path(model)
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError

    try:
        return Path(snapshot_download(model, revision=revision, local_files_only=True))
    except (OSError, HFValidationError):
        return None


def _model_in(folder: Path, codes: list[str], encoder_will_do: bool, masked: list[str]) -> str:
    for what, patterns in (
        ("config.json", ["config.json"]),
        ("weights (model.safetensors or pytorch_model.bin)", ["*.safetensors", "pytorch_model*.bin"]),
        ("tokenizer (tokenizer.json or sentencepiece.bpe.model)", ["tokenizer.json", "sentencepiece.bpe.model", "vocab.txt"]),
    ):
        if not any(path.stat().st_size for pattern in patterns for path in folder.glob(pattern)):
            raise InputError(f"{folder}: no {what} is there; download or copy the model again")
    family = family_of(folder)
    if not family.decoder and not encoder_will_do:
        raise InputError(f"{folder}: is a model of type {family.model_type!r}; an mBART is needed, or an M2M-100 or NLLB")
    _check_weights(folder)
    if not family.decoder:
        return f"{folder}, an encoder ({family.model_type})"
    from workflow_scripts.models.tokenisation import load_codec

    try:
        codec = load_codec(folder)
    except Exception as error:  # transformers raises many kinds of errors: OSError, ValueError, KeyError, errors of its Rust part
        raise InputError(f"{folder}: its tokenizer cannot be loaded ({type(error).__name__}: {error}); copy the model again") from None
    if masked and codec.tokenizer.mask_token is None:
        raise InputError(
            f"{folder}: its vocabulary ({family.title}) has no mask, so it cannot restore the text of {masked[0]}; leave such arms out, "
            "or take an mBART or NLLB"
        )
    unknown = codec.untagged(codes, encoder_will_do)
    lacks = f"; {' and '.join(unknown)} is read under another language's tag" if unknown else ""
    return f"{folder}, its tokenizer knows {' and '.join(code for code in codes if code not in unknown)}{lacks}"


def _check_weights(folder: Path) -> None:
    """Raise `InputError` for files of weights that are cut off, and for parts that are not there; nothing but their beginnings is read."""
    from safetensors import SafetensorError, safe_open

    for path in sorted(folder.glob("*.safetensors")):
        try:
            with safe_open(path, "np"):
                pass
        except SafetensorError as error:
            raise InputError(f"{path}: is no whole file of weights ({error}); download or copy the model again") from None
    for index in sorted(folder.glob("*.safetensors.index.json")):
        parts = {*json.loads(index.read_text(encoding="utf-8"))["weight_map"].values()}
        if lost := sorted(part for part in parts if not (folder / part).exists()):
            raise InputError(f"{index}: {', '.join(lost)} is not there; download or copy the model again")


def _read_model_config(folder: Path) -> dict[str, Any]:
    try:
        return json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{folder / 'config.json'}: cannot be read ({error}); download or copy the model again") from None


def _model_on_the_hub(model: str, revision: str | None, codes: list[str]) -> str:
    from huggingface_hub import HfApi, constants
    from huggingface_hub.errors import HFValidationError, RepositoryNotFoundError, RevisionNotFoundError
    from huggingface_hub.utils import validate_repo_id

    # the published models' languages are known without their files
    known = next((number for name, number in (("mbart-large-cc25", 25), ("mbart-large-50", 50)) if name in model), 0)
    if known and (unknown := [code for code in codes if (language(code).mbart or sys.maxsize) > known]):
        others = "facebook/mbart-large-50 knows twice as many languages, NLLB" if known == 25 else "NLLB"
        raise InputError(f"{model} does not know {' and '.join(unknown)}; {others} knows 200 (facebook/nllb-200-distilled-600M)")
    download = f"run `hf download {model}{f' --revision {revision}' if revision else ''}`"
    try:
        validate_repo_id(model)
    except HFValidationError:
        raise InputError(f"{model!r} is neither a folder that is there nor a model's id (owner/name)") from None
    if constants.HF_HUB_OFFLINE:
        raise InputError(
            f"{model} is no folder and not in the Hugging Face cache (HF_HUB_OFFLINE is set); {download} where there is network"
        )
    try:
        HfApi().model_info(model, revision=revision, timeout=5)
    except (RepositoryNotFoundError, RevisionNotFoundError):
        raise InputError(f"the hub has no {model} {revision or ''} that you may read; check the name, or run `hf auth login`") from None
    except Exception as error:  # the hub's client raises many kinds of errors: no network, a proxy, a busy server
        raise InputError(
            f"{model} is no folder and not in the Hugging Face cache, and the hub cannot be reached ({type(error).__name__}); "
            f"{download} where there is network, with the same HF_HOME"
        ) from None
    return f"{model} is to be downloaded; compute nodes often have no network: {download} here first"


def comet(config: Config) -> Iterator[Finding]:
    """Whether COMET's models are there; a run goes on without."""
    for settings in {each.comet.model: each.comet for each in translated(config) if each.comet}.values():
        about = f"comet.model {settings.model}"
        if Path(settings.model).exists() or located(settings.model, settings.revision):
            yield Finding("ok", about, "is there")
        else:
            yield Finding(
                "note",
                about,
                f"is not on this machine: run `hf download {settings.model}` where there is network, or the report has no COMET",
            )


def tokenisers(config: Config) -> Iterator[Finding]:
    """Whether sacreBLEU's tokenisers are there; those of some languages it fetches when they are first used."""
    wanted = {(each.target, each.scores.tokenize) for each in translated(config) if leading(each.scores) == "BLEU"}
    for code, tokenize in sorted(wanted, key=str):
        name = tokenize or language(code).bleu_tokenizer
        try:
            metrics(code, Scores(tokenize=tokenize))["BLEU"]()
        except Exception as error:  # no network, a package that is not installed
            yield Finding(
                "note", f"BLEU's tokeniser {name}", f"is not to be had ({in_one_line(error)}); the report will have no BLEU for {code}"
            )
        else:
            yield Finding("ok", f"BLEU's tokeniser {name}", f"is there for {code}")


def gpu_build(jobs: Jobs) -> Iterator[Finding]:
    """Whether this environment's PyTorch is one for GPUs, where jobs ask for them: otherwise each would end at its start."""
    if rules := sorted(rule for rule, job in jobs.items() if job.get("gpu")):
        about = "jobs on a GPU"
        if torch.version.cuda or torch.version.hip:
            yield Finding("ok", about, f"torch {torch.__version__} is a build for GPUs")
        else:
            said = f"torch {torch.__version__} of this environment is a build for CPUs, and a GPU is asked for by {', '.join(rules)}"
            yield Finding("note", about, f"{said}; install a CUDA build of torch, or ask for none")


def gpu_decoding(config: Config, jobs: Jobs) -> Iterator[Finding]:
    """Whether CTranslate2 finds its library, where decoding asks for a GPU."""
    decoding = [getattr(config.experiments[name], "decoding", None) for name in config.run.experiments]
    wanted = {each.engine for each in decoding if each and each.device != "cpu"}
    if any(jobs.get(rule, {}).get("gpu") for rule in ("decoding", "generation_decoding")) and "ctranslate2" in wanted:
        reason = why_not_on_gpu()
        yield Finding("note" if reason else "ok", "decoding on a GPU", reason or "CTranslate2 finds CUDA's library")


def shape_of(config: Config, name: str) -> Shape | None:
    """The size of a backbone; None where neither its files nor its name tell."""
    backbone = config.backbones[chain(config, name)[-1]]
    if small := backbone.made_here:
        converted = [config.backbones[link] for link in chain(config, name) if config.backbones[link].to == "encoder-decoder"]
        decoder_layers = small.layers if FAMILIES[backbone.family or "mbart"].decoder else 0
        decoder_layers = (converted[0].decoder_layers or small.layers) if converted else decoder_layers
        return Shape(small.vocabulary, small.d_model, small.ffn, small.layers, decoder_layers, small.max_positions)
    model = backbone.model or ""
    if model and (folder := located(model, backbone.revision)):
        try:
            return Shape(*(_read_model_config(folder)[name] for name in Shape._fields))
        except (InputError, KeyError):
            return None
    return MBART_LARGE if "mbart-large" in model else None
