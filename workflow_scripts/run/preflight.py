"""preflight: what would go wrong, told in seconds on the login node instead of after hours in a queue.

It looks at all that a run needs before it starts: text, word lists, vectors, models, memory, disk, and
what the profile asks of Slurm. Long files are read at their beginning only, and nothing is written but a
tokeniser that sacreBLEU has to fetch.
Everything that is wrong is listed at once, each with the way out.
"""

import dataclasses
import functools
import itertools
import json
import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from workflow_scripts.evidence.scores import Scores, leading, metrics
from workflow_scripts.lexicon.vectors import read_vectors
from workflow_scripts.models.decoding import why_not_on_gpu
from workflow_scripts.run.config import (
    ClassificationExperiment,
    Config,
    Experiment,
    arms_of,
    data_file,
    data_used,
    given_dictionary,
    grid_points,
    is_classification,
    labelled_languages,
    lexicon_corpus,
    lexicons_used,
    load,
    phase_training,
    sources_of,
    switched_into,
    translations,
)
from workflow_scripts.run.estimates import MBART_LARGE, Shape, gpu_gigabytes, host_memory, training_disk, training_memory, vectors_disk
from workflow_scripts.run.loading import check_files
from workflow_scripts.run.partitions import Nodes, check_job, gpus_of, read_accounts, read_partitions, said
from workflow_scripts.stage import InputError, resource, run, told
from workflow_scripts.tasks.classification import ENCODERS
from workflow_scripts.text.acquisition import Data, needed
from workflow_scripts.text.corpus import Corpus, Source, check_languages, read_pairs
from workflow_scripts.text.fetching import Unreachable, cache_folder, size_of
from workflow_scripts.text.files import read_lines
from workflow_scripts.text.labelled import LabelledSource, read_examples
from workflow_scripts.text.languages import language
from workflow_scripts.text.word_lists import read_dictionary
from workflow_scripts.training.backbone import Backbone, Small
from workflow_scripts.training.training import Training

Jobs = dict[str, dict[str, Any]]
"""Rule → threads and resources of a job's first attempt, as Snakemake and its Slurm plugin call them.

`last_mem_mb` is the memory of its last attempt, `group` the pattern of the name under which it is submitted with other rules.
"""


class Finding(NamedTuple):
    """One thing that was looked at."""

    verdict: str
    """`ok`, `note` (nothing is wrong, but read it) or `WRONG`."""
    about: str
    """A key of the configuration or the profile, or a part of the machine."""
    said: str

    def __str__(self) -> str:
        return f"{self.verdict:<5}  {self.about}: {self.said}"


def main(*configfiles: Path) -> None:
    """Look at what a run with these settings needs; the recipes are laid over the first file.

    Args:
        configfiles: The configuration, and recipes; config.yaml where none is named.

    Raises:
        InputError: Something is wrong.
    """
    from snakemake.common.configfile import load_configfile
    from snakemake.utils import update_config

    files = configfiles or (Path("config.yaml"),)
    check_files(files)
    merged: dict[str, Any] = {}
    for file in files:
        update_config(merged, load_configfile(str(file)))
    tell(look_at(load(merged), {}))


def look_at(config: Config, jobs: Jobs) -> Iterator[Finding]:
    """Everything that was found, right or wrong."""
    yield from data(config)
    yield from corpora(config)
    yield from labelled(config)
    yield from lexicons(config)
    yield from unaligned(config)
    yield from backbones(config)
    yield from comet(config)
    yield from tokenisers(config)
    yield from gpu_decoding(config, jobs)
    yield from memory(config, jobs)
    yield from disk(config)
    yield from slurm(jobs)


def tell(findings: Iterable[Finding]) -> None:
    """Print what was found; raises `InputError` when something is wrong."""
    wrong = 0
    for finding in findings:
        print(finding, flush=True)
        wrong += finding.verdict == "WRONG"
    if wrong:
        raise InputError(f"{wrong} {'things are' if wrong > 1 else 'thing is'} wrong, see above; mend that before you start the run")


def judged(about: str, look: Callable[..., str], *arguments: Any, verdict: str = "ok") -> Finding:
    """What `look` says, or the `InputError` that it raises."""
    try:
        return Finding(verdict, about, look(*arguments))
    except InputError as error:
        return Finding("WRONG", about, str(error))


# ---------------------------------------------------------------------------------------------
# what the run uses


def experiments(config: Config) -> list[Experiment]:
    """The experiments of the run that are no classification."""
    return [each for name, each in translations(config).items() if name in config.run.experiments]


def classifications(config: Config) -> dict[str, ClassificationExperiment]:
    """The classifications of the run, by name."""
    return {name: config.experiments[name] for name in config.run.experiments if is_classification(config.experiments[name])}


def used_lexicons(config: Config) -> list[tuple[str, str]]:
    """Corpus and lexicon, each pair once."""
    used = ((each, name) for each in experiments(config) for name in lexicons_used(config, each))
    return list(dict.fromkeys((lexicon_corpus(config, each, name), name) for each, name in used))


def used_corpora(config: Config) -> list[str]:
    """The experiments' corpora, and those that lexicons are learnt from."""
    return list(dict.fromkeys([*(each.corpus for each in experiments(config)), *(corpus for corpus, _ in used_lexicons(config))]))


def used_backbones(config: Config) -> dict[str, list[str]]:
    """Backbone → languages that it must know."""
    used: dict[str, set[str]] = {}
    for each in experiments(config):
        used.setdefault(each.backbone, set()).update((each.source, each.target))
    for each in classifications(config).values():
        used.setdefault(each.backbone, set()).update(labelled_languages(config, each))
    return {name: sorted(codes) for name, codes in used.items()}


class Phase(NamedTuple):
    """A phase of training."""

    rule: str
    where: str
    """The key of the configuration that its settings stand under."""
    backbone: Backbone
    training: Training
    times: float
    """How often it is trained: for each seed, and each point of a grid."""


def phases(config: Config) -> Iterator[Phase]:
    """Every phase that is trained."""
    for name in used_backbones(config):
        if small := config.backbones[name].small:
            yield Phase("backbone", f"backbones.{name}.small.training", config.backbones[name], small.training, 1)
    seeds = len(config.run.seeds)
    for name, each in ((name, each) for name, each in translations(config).items() if name in config.run.experiments):
        points = grid_points(each)
        for arm, point in itertools.product(arms_of(config, each), points or [None]):
            for phase in config.arms[arm]:
                rule = "finetune" if phase.data == "task" else "pretext"
                # each point once, then the chosen one with every seed
                times = 1 + seeds / len(points) if points else seeds
                training = phase_training(each, phase, point)
                yield Phase(rule, f"experiments.{name}.training", config.backbones[each.backbone], training, times)
    for name, each in classifications(config).items():
        chosen, backbone = each.classification, config.backbones[each.backbone]
        for phase in itertools.chain.from_iterable(config.arms[arm] for arm in arms_of(config, each)):
            if phase.name == "pretext":
                yield Phase("pretext", f"experiments.{name}.training", backbone, phase_training(each, phase), seeds)
                continue
            training = Training(
                updates=phase.epochs * chosen.looks,
                evaluate_every=1,
                batch_tokens=chosen.batch_size * chosen.max_length,
                micro_batch_tokens=chosen.micro_batch and chosen.micro_batch * chosen.max_length,
                precision=chosen.precision,
                device=chosen.device,
            )
            yield Phase("classification_finetune", f"experiments.{name}.classification", backbone, training, seeds)


# ---------------------------------------------------------------------------------------------
# data


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
    if not missing:
        return f"is to be had from mtdata: {block.mtdata}" if block.mtdata else "is to be made of what is there"
    if block.lines or not block.url:
        return f"is to be had from {', '.join(missing)}"
    folder = next(folder for folder in (cache_folder(), *cache_folder().absolute().parents) if folder.exists())
    if size > (free := shutil.disk_usage(folder).free):
        raise InputError(f"{', '.join(missing)}: {_gigabytes(size)}, but {cache_folder()} has {_gigabytes(free)} free; set CROSSGAP_CACHE")
    return f"is to be downloaded: {', '.join(missing)}, {size / 1e6:,.1f} MB"


def _is_awaited(*paths: str) -> bool:
    """Whether one of these is acquired only when the run begins."""
    return any(path.startswith("results/data/") and not Path(path).exists() for path in paths)


# ---------------------------------------------------------------------------------------------
# text, word lists, vectors

_HEAD = 100_000
"""So many pairs of a corpus are read."""


def corpora(config: Config) -> Iterator[Finding]:
    """Whether the text is what the configuration says: files, columns, encoding, alignment, languages."""
    for name in used_corpora(config):
        corpus = config.corpora[name]
        for part, source in sources_of(corpus).items():
            if source.held_out is None and not _is_awaited(*source.paths()):
                yield judged(f"corpora.{name}.{part}", _parallel_text, source, corpus)


def _parallel_text(source: Source, corpus: Corpus) -> str:
    files = {code: resource(path) for code, path in source.files.items()}
    source = replace(source, file=source.file and resource(source.file), files=files)
    where = " + ".join(source.paths())
    pairs = list(itertools.islice(read_pairs(source, corpus.languages, corpus.documents), _HEAD))
    if not (whole := [pair for pair in pairs if pair.a and pair.b]):
        raise InputError(f"{where}: no pair with text on both sides in {len(pairs):,} lines; give another file, or other columns")
    check_languages(whole[:2000], corpus.languages, where)
    return f"{where}, {'the first ' if len(pairs) == _HEAD else ''}{len(pairs):,} pairs"


def labelled(config: Config) -> Iterator[Finding]:
    """Whether labelled text is what the configuration says: files, columns, labels."""
    for name in dict.fromkeys(each.corpus for each in classifications(config).values()):
        block = config.labelled[name]
        for part, source in sources_of(block).items():
            if source.file and not _is_awaited(source.file):
                yield judged(f"labelled.{name}.{part}", _labelled_text, source, block.labels)


def _labelled_text(source: LabelledSource, labels: list[str]) -> str:
    source = dataclasses.replace(source, file=resource(source.file))
    counts = Counter(example.label for example in itertools.islice(read_examples(source, labels, Counter()), _HEAD))
    if not counts:
        raise InputError(f"{source.file}: has no example; give another file, or see `where` and `label_pattern`")
    told = ", ".join(f"{counts[label]:,} {label}" for label in labels)
    return f"{source.file}, {'the first ' if counts.total() == _HEAD else ''}{counts.total():,} examples: {told}"


def lexicons(config: Config) -> Iterator[Finding]:
    """Whether word lists and vectors are there and in their formats."""
    for corpus, name in used_lexicons(config):
        block, codes = config.lexicons[name], config.corpora[corpus].languages
        for kind in ("dictionary", "gold"):
            if (path := getattr(block, kind).get("-".join(codes))) and not _is_awaited(path):
                yield judged(f"lexicons.{name}.{kind}", _word_list, resource(path))
        for code in codes:
            if (path := block.vectors.get(code)) and not _is_awaited(path):
                yield judged(f"lexicons.{name}.vectors.{code}", _vectors, resource(path))
    given = {
        (name, given_dictionary(config.lexicons[name], config.labelled[each.corpus].language, other))
        for each in classifications(config).values()
        for name in lexicons_used(config, each)
        for other in switched_into(config, each)
    }
    for name, pair in sorted((name, pair) for name, pair in given if pair):
        if not _is_awaited(path := config.lexicons[name].dictionary[pair]):
            yield judged(f"lexicons.{name}.dictionary.{pair}", _word_list, resource(path))


def unaligned(config: Config) -> Iterator[Finding]:
    """Whether the text that the distance of the languages is measured on, beside the test set, is there."""
    for name, each in translations(config).items():
        for code, path in each.representation.text.items() if name in config.run.experiments else ():
            if not _is_awaited(path):
                yield judged(f"experiments.{name}.representation.text.{code}", _plain_text, resource(path))


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
        if block.kind == "small":
            for code in (code for code in codes if not _is_awaited(block.small.text[code])):
                yield judged(f"backbones.{name}.small.text.{code}", _monolingual_text, block.small, code)
        elif folder := located(block.model, block.revision):
            yield judged(f"backbones.{name}.model", _model_in, folder, codes, not _writes(config, name))
        else:
            yield judged(f"backbones.{name}.model", _model_on_the_hub, block.model, block.revision, codes, verdict="note")


def _monolingual_text(small: Small, code: str) -> str:
    if small.text[code] == "task":
        return "the task's own training text"
    path = resource(small.text[code])
    wanted = 4 * small.dev_lines * (len(small.text) if small.disjoint else 1)
    if (found := sum(1 for _ in itertools.islice(read_lines(Path(path)), wanted))) < wanted:
        raise InputError(f"{path}: has {found} lines, at least {wanted} are needed; give more text, or lower dev_lines")
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


def _writes(config: Config, backbone: str) -> bool:
    """Whether the backbone is to write text: to translate, or to restore it."""
    users = [config.experiments[name] for name in config.run.experiments if config.experiments[name].backbone == backbone]
    return any(not is_classification(each) or any(len(config.arms[arm]) > 1 for arm in arms_of(config, each)) for each in users)


def _model_in(folder: Path, codes: list[str], encoder_will_do: bool = False) -> str:
    for what, patterns in (
        ("config.json", ["config.json"]),
        ("weights (model.safetensors or pytorch_model.bin)", ["*.safetensors", "pytorch_model*.bin"]),
        ("tokenizer (tokenizer.json or sentencepiece.bpe.model)", ["tokenizer.json", "sentencepiece.bpe.model", "vocab.txt"]),
    ):
        if not any(path.stat().st_size for pattern in patterns for path in folder.glob(pattern)):
            raise InputError(f"{folder}: no {what} is there; download or copy the model again")
    kind = _read_model_config(folder).get("model_type")
    if encoder_will_do and kind in ENCODERS:
        return f"{folder}, an encoder ({kind})"
    if kind != "mbart":
        raise InputError(f"{folder}: is a model of type {kind!r}; an mBART is needed")
    from workflow_scripts.models.tokenisation import load_codec

    try:
        codec = load_codec(folder)
    except Exception as error:  # transformers raises what it meets: OSError, ValueError, KeyError, errors of its Rust part
        raise InputError(f"{folder}: its tokenizer cannot be loaded ({type(error).__name__}: {error}); copy the model again") from None
    for code in codes:
        codec.tag(code)
    return f"{folder}, its tokenizer knows {' and '.join(codes)}"


def _read_model_config(folder: Path) -> dict[str, Any]:
    try:
        return json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{folder / 'config.json'}: cannot be read ({error}); download or copy the model again") from None


def _model_on_the_hub(model: str, revision: str | None, codes: list[str]) -> str:
    from huggingface_hub import HfApi, constants
    from huggingface_hub.errors import HFValidationError, RepositoryNotFoundError, RevisionNotFoundError

    # the published models' languages are known without their files
    if "cc25" in model and (unknown := [code for code in codes if not language(code).in_cc25]):
        raise InputError(f"{model} does not know {' and '.join(unknown)}; facebook/mbart-large-50 knows twice as many languages")
    download = f"run `hf download {model}{f' --revision {revision}' if revision else ''}`"
    if constants.HF_HUB_OFFLINE:
        raise InputError(
            f"{model} is no folder and not in the Hugging Face cache (HF_HUB_OFFLINE is set); {download} where there is network"
        )
    try:
        HfApi().model_info(model, revision=revision, timeout=5)
    except HFValidationError:
        raise InputError(f"{model!r} is neither a folder that is there nor a model's id (owner/name)") from None
    except (RepositoryNotFoundError, RevisionNotFoundError):
        raise InputError(f"the hub has no {model} {revision or ''} that you may read; check the name, or run `hf auth login`") from None
    except Exception as error:  # the hub's client raises a dozen kinds for: no network, a proxy, a server that is busy
        raise InputError(
            f"{model} is no folder and not in the Hugging Face cache, and the hub cannot be reached ({type(error).__name__}); "
            f"{download} where there is network, with the same HF_HOME"
        ) from None
    return f"{model} is to be downloaded; compute nodes often have no network: {download} here first"


def comet(config: Config) -> Iterator[Finding]:
    """Whether COMET's models are there; a run goes on without."""
    for settings in {each.comet.model: each.comet for each in experiments(config) if each.comet}.values():
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
    wanted = {(each.target, each.scores.tokenize) for each in experiments(config) if leading(each.scores) == "BLEU"}
    for code, tokenize in sorted(wanted, key=str):
        name = tokenize or language(code).bleu_tokenizer
        try:
            metrics(code, Scores(tokenize=tokenize))["BLEU"]()
        except Exception as error:  # no network, a package that is not installed
            yield Finding("note", f"BLEU's tokeniser {name}", f"is not to be had ({told(error)}); the report will have no BLEU for {code}")
        else:
            yield Finding("ok", f"BLEU's tokeniser {name}", f"is there for {code}")


def gpu_decoding(config: Config, jobs: Jobs) -> Iterator[Finding]:
    """Whether CTranslate2 finds its library, where decoding asks for a GPU."""
    wanted = {each.decoding.engine for each in experiments(config) if each.decoding.device != "cpu"}
    if jobs.get("decoding", {}).get("gpu") and "ctranslate2" in wanted:
        reason = why_not_on_gpu()
        yield Finding("note" if reason else "ok", "decoding on a GPU", reason or "CTranslate2 finds CUDA's library")


def shape_of(backbone: Backbone) -> Shape | None:
    """The size of a backbone; None where neither its files nor its name tell."""
    if small := backbone.small:
        return Shape(small.vocabulary, small.d_model, small.ffn, small.layers, small.layers, small.max_positions)
    if folder := located(backbone.model, backbone.revision):
        try:
            return Shape(*(_read_model_config(folder)[name] for name in Shape._fields))
        except (InputError, KeyError):
            return None
    return MBART_LARGE if "mbart-large" in backbone.model else None


# ---------------------------------------------------------------------------------------------
# memory and disk


class Given(NamedTuple):
    """The memory that training has."""

    where: str
    size: float | None
    gpus: int
    """0 on a CPU."""


def memory(config: Config, jobs: Jobs) -> Iterator[Finding]:
    """What training needs, against what its jobs ask for or this machine has."""
    largest: dict[str, tuple[float, Phase, Given]] = {}
    host: dict[str, float] = {}
    partitions = read_partitions() if any("slurm_partition" in job for job in jobs.values()) else None
    jobs = {rule: {**job, **_only_model(job, partitions)} for rule, job in jobs.items()}
    for phase in phases(config):
        if shape := shape_of(phase.backbone):
            given = given_memory(jobs.get(phase.rule, {}), phase.training.device)
            used = given.gpus if phase.rule in ("pretext", "finetune") else min(1, given.gpus)
            need = training_memory(shape, phase.training, used)
            if used:
                host[phase.rule] = max(host.get(phase.rule, 0), host_memory(shape, used))
            if need > largest.get(phase.rule, (0.0,))[0]:
                largest[phase.rule] = need, phase, given
    for rule, (need, phase, given) in largest.items():
        about, needed = f"memory of {rule}", f"about {_gigabytes(need)} for {phase.where}"
        if phase.training.device == "cuda" and not given.gpus:
            yield Finding(
                "WRONG", about, f"{phase.where}.device is cuda, but there is no GPU; ask for one in the profile, or set auto or cpu"
            )
        elif given.size is None:
            yield Finding("note", about, f"{needed}; {given.where}")
        elif need > given.size:
            smaller = f"{phase.where}.micro_batch_tokens to less than {phase.training.micro_batch_tokens or phase.training.batch_tokens}"
            if rule == "classification_finetune":
                smaller = f"{phase.where}.micro_batch to less than batch_size"
            way = f"set {smaller}, or ask for more"
            yield Finding("WRONG", about, f"{needed}, but {given.where} {_gigabytes(given.size)}; {way}")
        else:
            yield Finding("ok", about, f"{needed}; {given.where} {_gigabytes(given.size)}")
    for rule, need in host.items():
        given_mb = jobs.get(rule, {}).get("mem_mb")
        if given_mb and need > given_mb * 1e6:
            told = f"about {_gigabytes(need)} beside its GPUs, but the profile's mem_mb is {_gigabytes(given_mb * 1e6)}; ask for more"
            yield Finding("WRONG", f"node memory of {rule}", told)


def _only_model(job: dict[str, Any], partitions: dict[str, list[Nodes]] | None) -> dict[str, str]:
    """The model of the GPUs that a job gets without having named one, where its partition has one model alone."""
    if not job.get("gpu") or job.get("gpu_model") or "slurm_partition" not in job:
        return {}
    named = str(job["slurm_partition"]).split(",")
    models = {model for name in named for nodes in (partitions or {}).get(name, []) for model in nodes.gpus}
    return {"gpu_model": models.pop()} if len(models) == 1 else {}


def given_memory(job: dict[str, Any], device: str) -> Given:
    """The memory of the GPU that a job asks for or this machine has; else that of the job or the machine."""
    gpus, model = gpus_of(job)
    if device != "cpu" and gpus:
        if size := gpu_gigabytes(model):
            return Given(f"a GPU {model} has", size * 1e9, gpus)
        return Given(f"see that a GPU {model or 'of the partition'} has as much, or name a gpu_model in the profile", None, gpus)
    if device != "cpu" and "slurm_partition" not in job and (size := _this_gpu()):
        return Given("the GPU here has", size, 1)
    if "mem_mb" in job:
        return Given("the profile's mem_mb is", job["mem_mb"] * 1e6, 0)
    return Given("this machine has", os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"), 0)


@functools.cache
def _this_gpu() -> float:
    answer = said("nvidia-smi", "--query-gpu=memory.total", "--format=csv,noheader,nounits") or ""
    return min((float(line) * 2**20 for line in answer.splitlines() if line.strip().isdigit()), default=0.0)


def disk(config: Config) -> Iterator[Finding]:
    """What a run writes, against what is free under ``results/``."""
    folder = Path("results")
    there = sum(path.stat().st_size for part in own_folders(config) for path in part.rglob("*") if path.is_file())
    need, free = needed_disk(config), shutil.disk_usage(folder if folder.is_dir() else ".").free
    told = f"about {_gigabytes(need)} for a whole run, of which {_gigabytes(there)} are there; {_gigabytes(free)} free"
    if need - min(there, need) > free:
        yield Finding("WRONG", "disk", f"{told}; make room, or run in a folder on a larger disk (snakemake --directory)")
    else:
        yield Finding("ok", "disk", told)


def own_folders(config: Config) -> Iterator[Path]:
    """The folders of what is trained, noised and learnt in this run; other experiments' models do not make room for it."""
    results = Path("results")
    yield from (results / "backbones" / name for name in used_backbones(config))
    for name in used_corpora(config):
        yield from results.glob(f"corpora/{name}.*")
    for corpus, name in used_lexicons(config):
        yield from results.glob(f"lexicons/{corpus}.*/{name}")
    for name in config.run.experiments:
        for seed in config.run.seeds:
            yield from results.glob(f"codeswitch/{name}/*/seed{seed}")
            for arm in arms_of(config, config.experiments[name]):
                yield from (each for pattern in (arm, f"{arm}.grid*") for each in results.glob(f"runs/{name}/{pattern}/seed{seed}"))


def needed_disk(config: Config) -> float:
    """Bytes that a whole run writes, roughly: models and checkpoints, vectors, text and its noised copies."""
    trained = sum(phase.times * training_disk(shape, phase.training) for phase in phases(config) if (shape := shape_of(phase.backbone)))
    hub = [shape_of(config.backbones[name]) for name in used_backbones(config) if config.backbones[name].kind == "hub"]
    text = {name: _text_bytes(config.corpora[name]) for name in used_corpora(config)}
    vectors = sum(vectors_disk(text[corpus], config.lexicons[name].embeddings.dimensions) for corpus, name in used_lexicons(config))
    noises = {phase.noise for arm in config.run.arms for phase in config.arms[arm] if phase.data != "task"}
    copies = 1 + len(noises) * len(config.run.seeds)
    return (
        trained + sum(4 * shape.parameters for shape in hub if shape) + vectors + copies * sum(text[e.corpus] for e in experiments(config))
    )


def _text_bytes(corpus: Corpus) -> float:
    """Bytes of a corpus, unpacked."""
    files = [Path(resource(path)) for source in (corpus.train, corpus.dev, *corpus.test.values()) for path in source.paths()]
    return sum(path.stat().st_size * (4 if path.suffix in (".gz", ".xz", ".zst") else 1) for path in files if path.is_file())


def _gigabytes(size: float) -> str:
    return f"{size / 1e9:.{0 if size >= 1e10 else 1}f} GB"


# ---------------------------------------------------------------------------------------------
# Slurm


def slurm(jobs: Jobs) -> Iterator[Finding]:
    """Whether partitions and account are there, and nodes for what the jobs ask for."""
    jobs = {rule: job for rule, job in jobs.items() if any(name.startswith("slurm_") for name in job)}
    if not jobs:
        return
    if (partitions := read_partitions()) is None:
        yield Finding("WRONG", "Slurm", "sinfo is not to be found or does not answer; give this command on a login node of the cluster")
        return
    placed: dict[str, list[str]] = {}
    for rule, job in jobs.items():
        try:
            placed.setdefault(check_job(rule, job, partitions), []).append(rule)
        except InputError as error:
            yield Finding("WRONG", f"Slurm job {rule}", str(error))
    for where, rules in placed.items():
        yield from later({rule: jobs[rule] for rule in rules}, partitions)
        yield Finding("ok", "Slurm", f"{where} can take {', '.join(rules)}")
    accounts = read_accounts()
    for account in sorted({str(job["slurm_account"]) for job in jobs.values() if job.get("slurm_account")}):
        if accounts is None:
            yield Finding("note", "slurm_account", f"{account}: this cluster has no accounting (sacctmgr does not answer)")
        elif account.lower() not in accounts:
            yield Finding("WRONG", "slurm_account", f"{account} is not yours; sacctmgr knows {', '.join(sorted(accounts)) or 'none'}")
        else:
            yield Finding("ok", "slurm_account", account)


def later(jobs: Jobs, partitions: dict[str, list[Nodes]]) -> Iterator[Finding]:
    """What fits where it is asked for once, and not with the memory of the last attempt, or with the time of its whole group."""
    together: dict[str, list[str]] = {}
    refused: dict[str, list[str]] = {}
    for rule, job in jobs.items():
        if job.get("group"):
            together.setdefault(job["group"], []).append(rule)
        try:
            check_job(rule, {**job, "mem_mb": job.get("last_mem_mb", 0)}, partitions)
        except InputError as error:
            refused.setdefault(str(error).partition(";")[0], []).append(rule)
    for why, rules in refused.items():
        yield Finding("note", "Slurm", f"the last attempt will be refused, as {why}, of {', '.join(rules)}")
    for group, rules in together.items():
        # a job's time is the sum over what waits for each other in it; this is the most that it can be
        minutes = sum(int(jobs[rule].get("runtime") or 0) for rule in rules)
        try:
            check_job(" and ".join(rules), {"slurm_partition": jobs[rules[0]].get("slurm_partition", ""), "runtime": minutes}, partitions)
        except InputError as error:
            yield Finding("note", f"Slurm group {group.partition('.')[0]}", f"its rules one after the other: {error}")


if __name__ == "__main__":
    run(main)
