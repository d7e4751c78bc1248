"""report_inputs: what the report reads, and the files that it writes besides its page and `scores.tsv`."""

from __future__ import annotations

from workflow_scripts.config import paths
from workflow_scripts.config.configuration import Run
from workflow_scripts.run import analyses
from workflow_scripts.run.uses import data_file, data_used
from workflow_scripts.stage import resource
from workflow_scripts.tasks.plan import Plans


def report_inputs(plans: Plans) -> list[str]:
    """Everything that the report draws from."""
    config = plans.config
    files = {f"{data_file(config, name)}.json" for name in data_used(plans)}
    for plan in plans.of_run:
        files |= plan.task.results(plan)
    published = {resource(table) for name in config.run.analyses if (table := config.analyses[name].published)}
    return sorted(files | {*analyses.results(config)} | published)


def report_tables(run: Run) -> list[str]:
    """The report's tables besides `scores.tsv`; the last two where there is something for them."""
    made = {"comparisons": True, "transfer": run.transfer, "analyses": run.analyses}
    return [paths.report_table(name) for name, asked in made.items() if asked]


def report_pages(run: Run) -> list[str]:
    """A page for each experiment, where they are too many for one page."""
    return [paths.report_page(name) for name in run.experiments] if len(run.experiments) > 10 else []
