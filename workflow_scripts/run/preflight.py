"""preflight: finds in seconds, on the login node, what would otherwise fail after hours in a queue.

It looks at all that a run needs before it starts: text, word lists, vectors, models, memory, disk, and
what the profile asks of Slurm (`findings`, `text_findings`, `labelled_findings`, `lexicon_findings`,
`model_findings`, `prompt_findings`, `length_findings`, `reading_findings`, `resources`).
Everything that is wrong is listed at once, each with the way out.
"""

import os
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from workflow_scripts.run import (
    adapter_findings,
    findings,
    labelled_findings,
    length_findings,
    lexicon_findings,
    model_findings,
    prompt_findings,
    reading_findings,
    resources,
    size_findings,
    text_findings,
)
from workflow_scripts.run.config import load
from workflow_scripts.run.config_files import check_files
from workflow_scripts.run.findings import Finding, Requested
from workflow_scripts.run.partitions import gpu_here
from workflow_scripts.run.uses import missing_files
from workflow_scripts.stage import InputError, run
from workflow_scripts.tasks.plan import Plans
from workflow_scripts.tasks.translation import translations_of_run
from workflow_scripts.text.files import missing_file

T = TypeVar("T")


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
    tell(look_at(Plans(load(merged, files)), {}, {}, at_once=1 if gpu_here() else os.cpu_count() or 1))


def look_at(plans: Plans, jobs: Requested, wrong: dict[str, str], unread: Collection[str] = (), at_once: int = 1) -> Iterator[Finding]:
    """Everything that was found, right or wrong.

    `wrong` has the rules of which the profile asks what cannot be, and why. What jobs of the rules `unread` ask for is not known yet. So
    many trainings may run `at_once`.
    """
    said = []
    for finding in _looks(plans, jobs, wrong, unread, at_once):
        said.append(finding.said)
        yield finding
    for where, path in missing_files(plans):
        if not any(path in sentence for sentence in said):
            yield Finding("WRONG", where, missing_file(path))


def _looks(plans: Plans, jobs: Requested, wrong: dict[str, str], unread: Collection[str], at_once: int) -> Iterator[Finding]:
    yield from findings.brought()
    yield from findings.not_trained(plans)
    yield from findings.experiments(plans.config)
    yield from findings.left_out(plans)
    yield from of_each(findings.few_seeds, plans.of_run)
    yield from of_each(findings.few_pairs, findings.translated(plans))
    yield from of_each(findings.long_warmups, plans.of_run)
    yield from of_each(findings.unread_updates, plans.of_run)
    yield from findings.short_batches(plans)
    yield from findings.high_learning_rates(plans)
    yield from text_findings.data(plans)
    yield from text_findings.corpora(plans)
    yield from labelled_findings.labelled(plans)
    yield from text_findings.retrieval_text(plans)
    yield from lexicon_findings.lexicons(plans)
    yield from lexicon_findings.clauses(plans)
    yield from size_findings.text_sizes(plans)
    yield from of_each(text_findings.unaligned, translations_of_run(plans))
    yield from text_findings.analysed(plans)
    yield from of_each(model_findings.of_backbone, plans.backbones_used)
    yield from adapter_findings.adapters(resources.phases(plans))
    yield from prompt_findings.asked_models(plans)
    yield from reading_findings.vocabularies(plans)
    yield from of_each(length_findings.long_rows, plans.of_run)
    yield from of_each(length_findings.long_sources, plans.of_run)
    yield from of_each(model_findings.layers, plans.of_run)
    yield from model_findings.comet(plans)
    yield from model_findings.tokenisers(plans)
    yield from (Finding("WRONG", f"profile: {rule}", why) for rule, why in sorted(wrong.items()))
    yield from (Finding("note", f"profile: {rule}", _UNREAD) for rule in sorted(unread))
    yield from model_findings.gpu_build(jobs)
    yield from model_findings.gpu_decoding(plans, jobs)
    yield from resources.memory(plans, jobs, 1 if jobs else at_once)  # jobs of a cluster do not share the GPU here
    yield from resources.precision(plans, jobs)
    yield from resources.disk(plans, at_once)
    yield from resources.slurm(jobs)


_UNREAD = "what a job asks for depends on its wildcards, so it is not checked; see that a node of its partition has as much"


def of_each(look: Callable[[T], Iterator[Finding]], things: Iterable[T]) -> Iterator[Finding]:
    """What a look at each of these experiments, or backbones, has to say."""
    return (finding for thing in things for finding in look(thing))


def tell(found: Iterable[Finding]) -> None:
    """Print what was found; raises `InputError` when something is wrong."""
    wrong = 0
    for finding in found:
        print(finding, flush=True)
        wrong += finding.verdict == "WRONG"
    if wrong:
        raise InputError(f"{wrong} {'things are' if wrong > 1 else 'thing is'} wrong, see above; mend that before you start the run")


if __name__ == "__main__":
    run(main)
