"""report_inputs: what the report reads, and the files that it writes besides its page and `scores.tsv`."""

from __future__ import annotations

from workflow_scripts.config import paths
from workflow_scripts.config.configuration import Config
from workflow_scripts.run import analyses
from workflow_scripts.run.uses import data_file, data_used
from workflow_scripts.stage import resource
from workflow_scripts.tasks.plan import plans_of_run


def report_inputs(config: Config) -> list[str]:
    """Everything that the report draws from."""
    files = {f"{data_file(config, name)}.json" for name in data_used(config)}
    for plan in plans_of_run(config):
        files |= plan.task.results(plan)
    published = {resource(table) for name in config.run.analyses if (table := config.analyses[name].published)}
    return sorted(files | {*analyses.results(config)} | published)


def report_tables(config: Config) -> list[str]:
    """The report's tables besides `scores.tsv`; the last two where there is something for them."""
    made = {"comparisons": True, "transfer": config.run.transfer, "analyses": config.run.analyses}
    return [paths.report_table(name) for name, asked in made.items() if asked]


def report_pages(config: Config) -> list[str]:
    """A page for each experiment, where they are too many for one page."""
    names = config.run.experiments
    return [paths.report_page(name) for name in names] if len(names) > 10 else []
