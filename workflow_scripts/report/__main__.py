"""report: puts everything that was measured on one page and into one table.

The modules beside this one read result files and return plain data. `headline` and `comparison` are about scores, `curves` about training,
`geometry` about distances, and `labels` about tasks with labels. `exhibits` has texts, `model_analyses` and `transfer_tables` are about
models, and `origins` about cost and provenance. `drawing` turns numbers into SVG. The templates lay everything out on a page that loads
nothing from elsewhere. Where a part of the page cannot be made, the page says why, and has the rest.

`scores.tsv` and `comparisons.tsv` are those of `score_table`. `transfer.tsv` and `analyses.tsv` have the numbers of comparisons of
models and of analyses.
"""

import contextlib
import shlex
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from workflow_scripts.report import labels, model_analyses, transfer_tables
from workflow_scripts.report.about import about, command, time_of_more_seeds
from workflow_scripts.report.explorer import write_explorer
from workflow_scripts.report.measures import score_names
from workflow_scripts.report.origins import acquired, cost, provenances
from workflow_scripts.report.overview import overview
from workflow_scripts.report.predictors import predictors
from workflow_scripts.report.published import published, updates_needed
from workflow_scripts.report.rendering import templates
from workflow_scripts.report.score_table import COMPARISONS_HEADER, SCORES_HEADER, comparison_rows, score_rows, write_table
from workflow_scripts.report.section_parts import parts_of
from workflow_scripts.report.study import SoFar, Study, configured
from workflow_scripts.report.zero_shot import directions, zero_shot
from workflow_scripts.run.config import read
from workflow_scripts.run.more_seeds import with_more_seeds
from workflow_scripts.stage import InputError, atomic, run
from workflow_scripts.tasks.plan import Plans

ON_INDEX: dict[str, Any] = {"overview": {}, "zero_shot": [], "directions": [], "accuracies": [], "transfer": {}, "analyses": []}
"""What the pages of single experiments lack, because the index has it."""


def main(
    results: Path,
    html: Path,
    scores: Path,
    *,
    configuration: Path,
    pages: tuple[Path, ...] = (),
    tables: tuple[Path, ...] = (),
    translations: Path | None = None,
) -> None:
    """Write the page and the table of scores from the files under `results`, for the run that `configuration` describes.

    `pages` has one page per experiment, where there are too many for a single page; `html` is then their index. `tables` are more
    tables to write: `comparisons.tsv`, `transfer.tsv` and `analyses.tsv`. Into the folder `translations` come pages with all sentences.
    Raises `InputError` when no result of the configured experiments exists.
    """
    write_report(results, html, scores, Plans(read(configuration)), pages, tables, translations)


def write_report(
    results: Path,
    html: Path,
    scores: Path | None,
    plans: Plans,
    pages: tuple[Path, ...] = (),
    tables: tuple[Path, ...] = (),
    translations: Path | None = None,
    so_far: SoFar | None = None,
) -> None:
    """Does the work of `main`, for experiments that are planned already.

    Of a run that is not finished, `so_far` says what is there and what is not; parts that lack a file are then awaited, not failed.
    """
    studies = [configured(results, plan) for plan in plans.of_run]
    studies = [so_far.of(each) for each in studies] if so_far else studies
    sections = [section(each) for each in studies]
    if all(part["failed"].keys() == part["titles"].keys() for part in sections):
        failed = sections[0]["failed"]
        raise InputError(f"no part of the report can be made: {failed.get('run') or next(iter(failed.values()))}")
    made = templates(plans.config)
    called = command(results)
    for number, part in enumerate(sections):
        part["explored"] = explored(part["study"], made, translations, "../" if pages else "")
        part["for_more_seeds"] = command_of_more_seeds(part["study"], plans, called)
        render_parts(made, part, first=not number or bool(pages))
    common = of_all(results, plans, sections) | {"command": written(called), "so_far": so_far}
    write_pages(made.get_template("page.html.j2"), results, html, pages, sections, common)
    if scores:
        write_table(scores, SCORES_HEADER, (row for part in sections for row in score_rows(part)))
    own = {
        "comparisons": (COMPARISONS_HEADER, (row for part in sections for row in comparison_rows(part))),
        "transfer": (transfer_tables.HEADER, transfer_tables.rows(common["transfer"])),
        "analyses": (model_analyses.HEADER, model_analyses.rows(common["analyses"])),
    }
    for path in tables:
        write_table(path, *own[path.stem])


def of_all(results: Path, plans: Plans, sections: list[dict[str, Any]]) -> dict[str, Any]:
    """What the page says of all experiments together, of models, cost and provenance."""
    studies = [part["study"] for part in sections]
    analyses = model_analyses.analyses(results, plans.config)
    transferred = transfer_tables.transfer(results, plans)
    read = [path for each in studies for path in each.read] + [path for each in analyses for path in each["read"]]
    read += transferred.get("read", [])
    provenance, costs = provenances(results, [path for path in read if path.is_relative_to(results)]), cost(results)
    return {
        "overview": overview(sections),
        "zero_shot": zero_shot(sections),
        "directions": directions(sections),
        # a comparison of models has these numbers already
        "accuracies": [] if transferred else labels.accuracies(sections),
        "transfer": transferred,
        "predictors": predictors(transferred, analyses),
        "analyses": analyses,
        "titles": model_analyses.titles(),
        "views": model_analyses.views(),
        "cost": costs,
        "more_seeds": time_of_more_seeds(results, costs),
        "data": acquired(results, plans),
        "provenance": provenance,
        "about": about(results, studies, provenance),
    }


def command_of_more_seeds(study: Study, plans: Plans, called: list[str] | None) -> str:
    """The command that trains an experiment with more seeds than the run; empty where it is not known how the run was `called`."""
    seeds = {study.name: getattr(study.settings, "seeds", None)}
    return "" if called is None else written(with_more_seeds(called, plans.config.run.seeds, seeds))


def written(called: list[str] | None) -> str:
    """The command that Snakemake was `called` by, as one line; empty where it is not known."""
    return "" if called is None else shlex.join(["snakemake", *called])


def write_pages(
    page: jinja2.Template, results: Path, html: Path, pages: tuple[Path, ...], sections: list[dict[str, Any]], common: dict[str, Any]
) -> None:
    """Write all experiments to the one page `html`, or with `pages` each to its own, of which `html` is then the index."""
    links: dict[str, str] = {}
    for path, part in zip(pages, sections if pages else [], strict=True):
        inside = path.parent.relative_to(html.parent)
        links[part["study"].name] = f"{inside}/{path.name}"
        back = "../" * len(inside.parts) + html.name
        own = common | ON_INDEX | {"provenance": provenances(results, part["study"].read)}
        with atomic(path) as file:
            file.write(page.render(experiments=[part], linked={}, back=back, **own))
    with atomic(html) as file:
        file.write(page.render(experiments=[] if pages else sections, linked=links, back="", **common))


def explored(study: Study, made: jinja2.Environment, folder: Path | None, up: str) -> dict[str, str]:
    """Page → its address from the experiment's own page, of the pages with all examples of an experiment."""
    if folder is None:
        return {}
    folder.mkdir(parents=True, exist_ok=True)
    names = write_explorer(study, made, folder)
    return {name.removeprefix(f"{study.name}.").removesuffix(".html"): f"{up}{folder.name}/{name}" for name in names}


def section(study: Study) -> dict[str, Any]:
    """The data of all parts of one experiment; `failed` has the parts that could not be made, with the reasons."""
    results, task = study.run.parents[1], study.task
    parts = parts_of(study)
    made: dict[str, Any] = {
        "study": study,
        "paths": {
            key: f"results/{path.relative_to(results)}" for key in ("run", "corpus", "lexicon", "noised") if (path := getattr(study, key))
        },
        "titles": {name: title.format(outputs=task.words["outputs"].capitalize()) for name, (title, _) in parts.items()},
        "failed": {},
    }
    for name, (_, make) in parts.items():
        with marked_if_it_fails(made, name):
            made[name] = make(study)
    made["published"] = []
    if "run" in made:
        rows = [dict(zip(SCORES_HEADER, row, strict=True)) for row in score_rows(made)]
        needed = updates_needed(made.get("curves", {}).get("updates_to_baseline", []))
        with marked_if_it_fails(made, "published"):
            made["published"] = published(study, [*rows, *needed])
    return made


def render_parts(made: jinja2.Environment, part: dict[str, Any], first: bool) -> None:
    """Render an experiment's parts into `html`. Explanations that a page needs once stand with its `first` experiment."""
    study: Study = part["study"]
    context = {"e": part, "s": study, "id": study.name, "pair": study.title, "several": len(study.seeds) > 1, "first": first}
    task = study.task
    context |= {"task": task, "w": task.words, "score_names": score_names()}
    part["html"] = {}
    for name in part["titles"].keys() - part["failed"].keys():
        own = [f"{folder}/{name}.html.j2" for folder in task.templates]
        with marked_if_it_fails(part, name):
            part["html"][name] = Markup(made.select_template([*own, f"{name}.html.j2"]).render(context))


@contextlib.contextmanager
def marked_if_it_fails(part: dict[str, Any], name: str) -> Iterator[None]:
    """Note any error in a part under `failed` instead of raising it, so that the other parts are still made."""
    try:
        yield
    except MemoryError:
        raise  # Snakemake tries again with more memory
    except Exception as error:
        expected = isinstance(error, InputError | ValueError)
        if not expected:
            traceback.print_exc()
        part["failed"][name] = str(error) if expected else f"{type(error).__name__}: {error}"
        print(f"{part['study'].name}, {name}: {part['failed'][name]}", file=sys.stderr)


if __name__ == "__main__":
    run(main)
