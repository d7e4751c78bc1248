"""lexicon_inputs: what the jobs of lexicons read, and their flags."""

from __future__ import annotations

from workflow_scripts.config import paths
from workflow_scripts.lexicon.lexicon import ALIGNED_PAIRS
from workflow_scripts.run.jobs import Job, as_json
from workflow_scripts.stage import resource
from workflow_scripts.tasks.plan import Plans


def word_list(job: Job, kind: str) -> dict[str, str]:
    """What the lexicon's block names as `gold` or `dictionary` for the pair, if anything."""
    path = getattr(job.lexicon, kind).get(f"{job.w.a}-{job.w.b}")
    return {kind: resource(path)} if path else {}


def mapping_sources(job: Job) -> dict[str, str]:
    """Vectors, learnt or given, and the dictionary that the mapping starts from."""
    block = job.lexicon
    folder = paths.lexicon_folder(job.config, job.w.corpus, job.w.lexicon)
    vectors = {
        side: resource(block.vectors[code]) if code in block.vectors else f"{folder}/{code}.vec"
        for side, code in (("vectors_a", job.w.a), ("vectors_b", job.w.b))
    }
    return vectors | word_list(job, "dictionary")


def lexicon_sources(job: Job) -> dict[str, str]:
    """Mapped vectors, or what takes their place: a dictionary, or (by the flag `--aligned`) the text alone; and the gold lexicon."""
    gold = word_list(job, "gold")
    if not job.lexicon.mapping.maps:
        return word_list(job, "dictionary") | gold
    folder = paths.lexicon_folder(job.config, job.w.corpus, job.w.lexicon)
    return {"mapped_a": f"{folder}/{job.w.a}.mapped.vec", "mapped_b": f"{folder}/{job.w.b}.mapped.vec"} | gold


def aligner_flags(job: Job) -> str:
    """The flags of a lexicon that an aligner makes. The usual number of pairs is not among them: it would make finished lexicons again."""
    block = job.lexicon
    if block.mapping.mode != "aligned":
        return ""
    return "--aligned" if block.aligned_pairs == ALIGNED_PAIRS else f"--aligned --aligned-pairs {block.aligned_pairs}"


def pieces_of(job: Job) -> dict[str, str]:
    """The backbone whose pieces are the lexicon's unit, where they are."""
    block = job.lexicon
    return {"model": paths.backbone_model(block.backbone)} if block.unit == "piece" and block.backbone else {}


def fold_languages(job: Job) -> list[str]:
    """The languages by whose rules given words are lower-cased; pieces keep their case."""
    return [] if pieces_of(job) else ["--languages", job.w.a, job.w.b]


def given_vectors(job: Job) -> list[str]:
    """Both files of given vectors, in the order of the languages: a parameter that no command reads.

    Snakemake sorts the inputs that it records, and would not notice that two files change places. It compares parameters as a set: unless
    both are given, this repeats `fold_languages`, so that what was made before stays.
    """
    found = [resource(job.lexicon.vectors[code]) for code in (job.w.a, job.w.b) if code in job.lexicon.vectors]
    return found if len(found) == 2 else fold_languages(job)


def given_lists(job: Job) -> list[str] | str:
    """The dictionary that is the lexicon, and the gold lexicon, where both are given; else `lexicon_settings`. See `given_vectors`."""
    found = lexicon_sources(job)
    return [found["dictionary"], found["gold"]] if {"dictionary", "gold"} <= found.keys() else lexicon_settings(job)


def lexicon_settings(job: Job) -> str:
    """The settings of the retrieval; a document and its summary are no translations, which an aligner could judge by."""
    block = job.lexicon.lexicon
    return as_json(block, align=block.align and not job.corpus.documents)


def lexicon_reports(plans: Plans) -> list[str]:
    """The reports of all lexicons of the run."""
    return sorted({f"{path}/lexicon.json" for plan in plans.of_run for path in plan.task.lexicons(plan)})
