"""resources: compares the memory, disk and Slurm jobs that a run needs with what there is."""

import itertools
import math
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from workflow_scripts.device import multiplies_in_bfloat16
from workflow_scripts.run.adapter_findings import rounded_weights, trained_weights
from workflow_scripts.run.arms import trained_arms
from workflow_scripts.run.estimates import (
    gpu_gigabytes,
    host_memory,
    is_without_bfloat16,
    moments_disk,
    training_disk,
    training_memory,
    vectors_disk,
)
from workflow_scripts.run.findings import Finding, Requested, gigabytes, on_slurm, translated, used_corpora, used_lexicons
from workflow_scripts.run.model_findings import shape_of
from workflow_scripts.run.partitions import (
    Nodes,
    check_job,
    gpu_here,
    gpus_of,
    machine_memory,
    megabytes_of,
    read_accounts,
    read_partitions,
)
from workflow_scripts.run.submission import refusal
from workflow_scripts.stage import InputError, resource
from workflow_scripts.storage import lost_link
from workflow_scripts.tasks.experiment import Trained, of_training
from workflow_scripts.tasks.plan import BackbonePlan, Plans
from workflow_scripts.text.corpus import Corpus
from workflow_scripts.text.files import packing
from workflow_scripts.training.settings import SHARDED_TOKENS

# ---------------------------------------------------------------------------------------------
# memory and disk


def phases(plans: Plans) -> Iterator[Trained]:
    """Every phase that the run trains: of its backbones, of its experiments, and of those of which only an arm becomes a backbone."""
    for backbone in plans.backbones_used:
        if block := backbone.settings.pretraining:
            yield of_training("backbone", f"{backbone.where_made}.training", backbone, block.training, 1)
    for plan in plans.needed:
        yield from plan.task.phases(plan, trained_arms(plan))


_FEW_ROWS = 1024
"""Tokens that a GPU should hold at once even where `micro_batch_tokens: auto` takes as few as must be."""


class Memory(NamedTuple):
    """The memory that training has."""

    where: str
    size: float | None
    gpus: int
    """0 on a CPU."""
    without_bfloat16: bool = False
    """Whether these are GPUs on which `precision: auto` is float32."""


_HERE = "the GPU here has"
_MACHINE = "this machine has"


class Need(NamedTuple):
    """What a phase needs, in bytes, beside what its job has."""

    phase: Trained
    given: Memory
    at_once: float
    """For an update whose tokens are all read at once."""
    least: float
    """For one that goes through in parts, where the phase may do so."""
    of_node: float
    """Of the node's memory, beside its GPUs; 0 on a CPU."""


def memory(plans: Plans, jobs: Requested, at_once: int = 1) -> Iterator[Finding]:
    """Compare the memory that training needs with what its jobs ask for or this machine has, which takes so many jobs `at_once`."""
    by_rule = _needs(plans, jobs)
    for needs in by_rule.values():
        # one line a rule: of its phases with the worst verdict the one that needs the most
        looked_at = [(_fits(need), need.at_once) for need in needs]
        yield max(looked_at, key=lambda one: (_WORSE.index(one[0].verdict), one[1]))[0]
    for rule, needs in by_rule.items():
        here = [need.at_once for need in needs if need.given.where == _HERE]
        if here and at_once > 1:
            yield _shared(rule, max(here), at_once)
        if not jobs and (on_processors := [need for need in needs if need.given.where == _MACHINE]):
            yield from _together(rule, on_processors, at_once)
    for rule, needs in by_rule.items():
        of_node, (given_mb, key) = max(need.of_node for need in needs), megabytes_of(jobs.get(rule, {}))
        if given_mb and of_node > given_mb * 1e6:
            said = f"about {gigabytes(of_node)} beside its GPUs, but the profile's {key} is {gigabytes(given_mb * 1e6)}; ask for more"
            yield Finding("WRONG", f"node memory of {rule}", said)


def _needs(plans: Plans, jobs: Requested) -> dict[str, list[Need]]:
    """Rule → what each of its phases needs, of models whose size is known."""
    # each process holds the text of its phase; which phase reads which corpus does not matter for the largest
    text = max((_text_bytes(plans.config.corpora[name]) for name in used_corpora(plans)), default=0.0)
    partitions = read_partitions() if on_slurm(jobs) else None
    found: dict[str, list[Need]] = {}
    for phase in phases(plans):
        if shape := shape_of(phase.backbone):
            job = jobs.get(phase.rule, {})
            given = given_memory({**job, **_only_model(job, partitions)}, phase.device)
            trained, rounded = _known(trained_weights, phase), _known(rounded_weights, phase) or 0
            if given.without_bfloat16 and phase.precision == "auto":
                phase = phase._replace(precision="float32")
            if phase.sharded and given.gpus > 1 and phase.micro_batch_tokens == "auto":
                phase = phase._replace(micro_batch_tokens=SHARDED_TOKENS)  # where `auto` tries nothing
            # all rules that train share an update among their GPUs
            at_once = least = training_memory(shape, phase, given.gpus, trained, rounded)
            if given.gpus and phase.micro_batch_tokens == "auto":
                least = training_memory(shape, phase._replace(micro_batch_tokens=_FEW_ROWS), given.gpus, trained, rounded)
            of_node = 0.0
            if given.gpus:
                on_a_node = -(-given.gpus // int(job.get("nodes", 1)))
                read = _pretraining_bytes(phase.backbone) if phase.rule == "backbone" else text
                of_node = host_memory(shape, on_a_node, read)
            found.setdefault(phase.rule, []).append(Need(phase, given, at_once, least, of_node))
    return found


_USABLE = 0.8
"""The share of a GPU that several trainings may need together: memory that one of them keeps and does not use is no other's."""


def _shared(rule: str, need: float, at_once: int) -> Finding:
    """Whether so many trainings find room in the GPU here `at_once`, each with the memory that the largest needs."""
    size = gpu_here()
    said = f"{at_once} at once need about {gigabytes(at_once * need)}; {_HERE} {gigabytes(size)}, of which a fifth stays free"
    if at_once * need <= _USABLE * size:
        return Finding("ok", f"shared GPU, {rule}", said)
    room = int(_USABLE * size // need)
    way_out = f"set --resources gpu={room}" if room > 1 else "leave --resources gpu out"
    return Finding("WRONG", f"shared GPU, {rule}", f"{said}; {way_out}, or lower training.batch_tokens")


def _together(rule: str, needs: list[Need], at_once: int) -> Iterator[Finding]:
    """How many trainings find room in the machine's memory together, where more could run; a note where more run `at_once`."""
    each = sorted((need.at_once for need in needs for _ in range(math.ceil(need.phase.times))), reverse=True)
    size, running = machine_memory(), min(at_once, len(each))
    room = sum(total <= size for total in itertools.accumulate(each))
    # preflight may have fewer cores than the run will; a GPU limits its trainings itself
    most = running if gpu_here() else min(len(each), max(at_once, os.cpu_count() or 1))
    if not 0 < room < most:  # what does not even fit alone has a line already
        return
    about, has = f"trainings at once, {rule}", f"{_MACHINE} {gigabytes(size)}"
    if room < running:
        said = f"{running} at once need about {gigabytes(sum(each[:running]))}; {has}; set --cores {room}"
        yield Finding("note", about, said)
    else:
        yield Finding("ok", about, f"about {gigabytes(each[0])} each; {has}, so run with --cores {room} at most")


def _known(count: Callable[[Trained], int | None], phase: Trained) -> int | None:
    """How many weights `count` finds in a phase; None where that is not known. What does not fit is said elsewhere."""
    try:
        return count(phase)
    except InputError:
        return None


_WORSE = ("ok", "note", "WRONG")


def _fits(need: Need) -> Finding:
    """Whether a phase has the memory that it needs at once, or the least with which it goes on in parts."""
    phase, given = need.phase, need.given
    about, needed = f"memory of {phase.rule}", f"about {gigabytes(need.at_once)} for {phase.where}"
    if phase.device == "cuda" and not given.gpus:
        return Finding("WRONG", about, f"{phase.where}.device is cuda, but there is no GPU; ask for one in the profile, or set auto or cpu")
    if given.size is None:
        return Finding("note", about, f"{needed}; {given.where}")
    if need.at_once > given.size > need.least:
        return Finding("ok", about, f"{needed} at once, {given.where} {gigabytes(given.size)}; so it goes through it in parts")
    if need.at_once > given.size:
        return Finding("WRONG", about, f"{needed}, but {given.where} {gigabytes(given.size)}; set {phase.lowers_memory}, or ask for more")
    return Finding("ok", about, f"{needed}; {given.where} {gigabytes(given.size)}")


def _only_model(job: dict[str, Any], partitions: dict[str, list[Nodes]] | None) -> dict[str, int | str]:
    """Number and model of the GPUs that a job gets without having named a model, where its partition has one model alone."""
    number, model = gpus_of(job)
    if not number or model or "slurm_partition" not in job:
        return {}
    named = str(job["slurm_partition"]).split(",")
    models = {model for name in named for nodes in (partitions or {}).get(name, []) for model in nodes.gpus}
    return {"gpu": number, "gpu_model": models.pop()} if len(models) == 1 else {}


def given_memory(job: dict[str, Any], device: str) -> Memory:
    """The memory of the GPU that a job asks for or this machine has; else that of the job or the machine."""
    gpus, model = gpus_of(job)
    if device != "cpu" and gpus:
        if size := gpu_gigabytes(model):
            return Memory(f"a GPU {model} has", size * 1e9, gpus, is_without_bfloat16(model))
        return Memory(f"see that a GPU {model or 'of the partition'} has as much, or name a gpu_model in the profile", None, gpus)
    if device != "cpu" and "slurm_partition" not in job and (here := gpu_here()):
        return Memory(_HERE, here, 1)
    megabytes, key = megabytes_of(job)
    if megabytes:
        return Memory(f"the profile's {key} is", megabytes * 1e6, 0)
    return Memory(_MACHINE, machine_memory(), 0)


_LARGE = 30_000_000
"""Number of weights of a model whose updates are products for the most part."""


def precision(plans: Plans, jobs: Requested) -> Iterator[Finding]:
    """Large models that learn in float32 here, though the processor multiplies several times as fast in bfloat16."""
    if not multiplies_in_bfloat16() or on_slurm(jobs):
        return
    slow = dict.fromkeys(
        phase.where
        for phase in phases(plans)
        if phase.precision == "auto" and not given_memory(jobs.get(phase.rule, {}), phase.device).gpus
        if (shape := shape_of(phase.backbone)) and shape.parameters >= _LARGE
    )
    if slow:
        said = (
            "this processor multiplies in bfloat16; `precision: bfloat16` takes a third to a half of their time off (docs/performance.md)"
        )
        yield Finding("note", ", ".join(slow), said)


def disk(plans: Plans, at_once: int = 1) -> Iterator[Finding]:
    """Compare the disk space that a run needs, of which so many trainings run `at_once`, with what is free under ``results/``."""
    folder = Path("results")
    if said := lost_link(folder):
        yield Finding("WRONG", "disk", said)
        return
    if not os.access(folder if folder.exists() else ".", os.W_OK):
        yield Finding("WRONG", "disk", "results cannot be written to; run elsewhere (snakemake --directory FOLDER), or mount it writable")
        return
    there = sum(path.stat().st_size for part in own_folders(plans) for path in part.rglob("*") if path.is_file())
    need, free = needed_disk(plans, at_once), shutil.disk_usage(folder if folder.is_dir() else ".").free
    unknown = [backbone.name for backbone in plans.backbones_used if not shape_of(backbone)]
    counted = f"about {gigabytes(need)} for a whole run"
    if unknown:
        counted += f" without the models of {', '.join(unknown)}, of unknown size"
    said = f"{counted}, of which {gigabytes(min(there, need))} are there; {gigabytes(free)} free"
    if need - min(there, need) > free:
        yield Finding(
            "WRONG",
            "disk",
            f"{said}; make room, or run where there is more (snakemake --directory FOLDER; files of your own are then looked for there)",
        )
    else:
        yield Finding("note" if unknown else "ok", "disk", said)


def own_folders(plans: Plans) -> Iterator[Path]:
    """The folders of what is trained, noised and learnt in this run; other experiments' models do not make room for it."""
    results = Path("results")
    yield from (results / "backbones" / backbone.name for backbone in plans.backbones_used)
    for name in used_corpora(plans):
        yield from results.glob(f"corpora/{name}.*")
    for corpus, name in used_lexicons(plans):
        yield from results.glob(f"lexicons/{corpus}.*/{name}")
    for plan in plans.of_run:
        for seed in plan.seeds:
            yield from results.glob(f"codeswitch/{plan.name}/*/seed{seed}")
            for arm in plan.arms:
                yield from (each for pattern in (arm, f"{arm}.grid*") for each in results.glob(f"runs/{plan.name}/{pattern}/seed{seed}"))


def trainings_at_once(plans: Plans, jobs: Requested, places: int, gpus: int | None) -> int:
    """How many trainings may run at once where there are so many `places`: jobs of a cluster, or cores of this machine.

    `gpus` is how many GPUs all jobs may use together; None if that is not limited. A training that has no entry in `jobs` asks for one.
    """
    each = [int(jobs.get(phase.rule, {"gpu": 1}).get("gpu") or 0) for phase in phases(plans)]
    return places if gpus is None or not all(each) else max(1, min(places, gpus // min(each, default=1)))


def needed_disk(plans: Plans, at_once: int) -> float:
    """Bytes that a whole run writes, roughly: models and checkpoints, vectors, text and its noised copies.

    So many phases are trained `at_once`, of which the checkpoints have Adam's moments.
    """
    config, shapes = plans.config, {backbone: shape_of(backbone) for backbone in plans.backbones_used}
    known = [(phase, shape, _known(trained_weights, phase)) for phase in phases(plans) if (shape := shapes[phase.backbone])]
    trained = sum(phase.times * training_disk(shape, phase, weights) for phase, shape, weights in known)
    moments = [each for phase, shape, weights in known for each in math.ceil(phase.times) * [moments_disk(shape, phase, weights)]]
    hub = [shape for backbone, shape in shapes.items() if backbone.settings.published]
    text = {name: _text_bytes(config.corpora[name]) for name in used_corpora(plans)}
    vectors = sum(vectors_disk(text[corpus], config.lexicons[name].embeddings.dimensions) for corpus, name in used_lexicons(plans))
    noises = {phase.noised for arm in config.run.arms for phase in config.arms[arm] if phase.restores}
    copies = 1 + len(noises) * len(config.run.seeds)
    return (
        trained
        + sum(sorted(moments, reverse=True)[:at_once])
        + sum(4 * shape.parameters for shape in hub if shape)
        + vectors
        + copies * sum(text[plan.corpus] for plan in translated(plans))
    )


def _text_bytes(corpus: Corpus) -> float:
    """Bytes of a corpus, unpacked."""
    return _unpacked(path for source in (corpus.train, corpus.dev, *corpus.test.values()) for path in source.paths())


def _pretraining_bytes(backbone: BackbonePlan) -> float:
    """Bytes of what a backbone is pretrained on, its own text and its bitext, as far as it is there."""
    block, corpora = backbone.settings.pretraining, backbone.plans.config.corpora
    assert block
    own = _unpacked(path for path in block.text.values() if path != "task")
    return own + sum(_text_bytes(corpora[name]) for name in block.bitext)


def _unpacked(paths: Iterable[str]) -> float:
    """Bytes of the files that are there, unpacked."""
    files = [Path(resource(path)) for path in paths]
    return sum(path.stat().st_size * (4 if packing(path) else 1) for path in files if path.is_file())


# ---------------------------------------------------------------------------------------------
# Slurm


def slurm(jobs: Requested) -> Iterator[Finding]:
    """Whether partitions and account are there, and nodes for what the jobs ask for."""
    jobs = {rule: job for rule, job in jobs.items() if any(name.startswith("slurm_") for name in job)}
    if not jobs:
        return
    refused = {rule: said for rule, job in jobs.items() if (said := refusal(rule, job))}
    for rule, said in refused.items():
        yield Finding("WRONG", f"Slurm job {rule}", said)
    if (partitions := read_partitions()) is None:
        yield Finding("WRONG", "Slurm", "sinfo is not to be found or does not answer; give this command on a login node of the cluster")
        return
    placed: dict[str, list[str]] = {}
    for rule, job in jobs.items():
        if rule in refused:
            continue
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


def later(jobs: Requested, partitions: dict[str, list[Nodes]]) -> Iterator[Finding]:
    """What fits where it is asked for once, and not with the memory of the last attempt, or with the time of its whole group."""
    together: dict[str, list[str]] = {}
    refused: dict[str, list[str]] = {}
    for rule, job in jobs.items():
        if job.get("group"):
            together.setdefault(job["group"], []).append(rule)
        try:
            check_job(rule, {**job, **{name: job.get(f"last_{name}", 0) for name in ("mem_mb", "mem_mb_per_cpu")}}, partitions)
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
