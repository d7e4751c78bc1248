"""preflight: finds in seconds, on the login node, what would otherwise fail after hours in a queue.

It looks at all that a run needs before it starts: text, word lists, vectors, models, memory, disk, and
what the profile asks of Slurm (`findings`, `text_findings`, `labelled_findings`, `lexicon_findings`,
`model_findings`, `prompt_findings`, `length_findings`, `reading_findings`, `resources`).
Everything that is wrong is listed at once, each with the way out.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from workflow_scripts.config.configuration import Config
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
from workflow_scripts.run.findings import Finding, Jobs
from workflow_scripts.run.loading import check_files
from workflow_scripts.run.uses import missing_files
from workflow_scripts.stage import InputError, run
from workflow_scripts.text.files import missing_file


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
    tell(look_at(load(merged, files), {}, {}))


def look_at(config: Config, jobs: Jobs, wrong: dict[str, str], at_once: int = 1) -> Iterator[Finding]:
    """Everything that was found, right or wrong.

    `wrong` has the rules of which the profile asks what cannot be, and why. So many jobs use this machine's GPU `at_once`.
    """
    told = []
    for finding in _looks(config, jobs, wrong, at_once):
        told.append(finding.said)
        yield finding
    for where, path in missing_files(config):
        if not any(path in said for said in told):
            yield Finding("WRONG", where, missing_file(path))


def _looks(config: Config, jobs: Jobs, wrong: dict[str, str], at_once: int) -> Iterator[Finding]:
    yield from findings.brought()
    yield from findings.experiments(config)
    yield from findings.left_out(config)
    yield from findings.few_seeds(config)
    yield from findings.few_pairs(config)
    yield from findings.long_warmups(config)
    yield from findings.unread_updates(config)
    yield from findings.short_batches(config)
    yield from findings.high_learning_rates(config)
    yield from text_findings.data(config)
    yield from text_findings.corpora(config)
    yield from labelled_findings.labelled(config)
    yield from text_findings.retrieval_text(config)
    yield from lexicon_findings.lexicons(config)
    yield from lexicon_findings.clauses(config)
    yield from size_findings.text_sizes(config)
    yield from text_findings.unaligned(config)
    yield from text_findings.analysed(config)
    yield from model_findings.backbones(config)
    yield from adapter_findings.adapters(config, resources.phases(config))
    yield from prompt_findings.asked_models(config)
    yield from reading_findings.vocabularies(config)
    yield from length_findings.long_rows(config)
    yield from length_findings.long_sources(config)
    yield from model_findings.layers(config)
    yield from model_findings.comet(config)
    yield from model_findings.tokenisers(config)
    yield from (Finding("WRONG", f"profile: {rule}", why) for rule, why in sorted(wrong.items()))
    yield from model_findings.gpu_build(jobs)
    yield from model_findings.gpu_decoding(config, jobs)
    yield from resources.memory(config, jobs, at_once)
    yield from resources.disk(config)
    yield from resources.slurm(jobs)


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
