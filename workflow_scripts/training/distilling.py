"""distilling: a trained arm writes the targets of training text anew, for arms that learn from them (`targets_from`)."""

import tempfile
from pathlib import Path

from workflow_scripts.models import decoding
from workflow_scripts.models.decoding import Decoding
from workflow_scripts.number_types import Natural
from workflow_scripts.stage import read_json, run, write_json
from workflow_scripts.text.files import read_lines, write_lines
from workflow_scripts.text.words import is_blank
from workflow_scripts.training.ragged import same_choice


def main(
    model: Path,
    source: Path,
    targets: Path,
    report: Path,
    *,
    languages: tuple[str, str],
    pairs: Natural = 0,
    documents: bool = False,
    threads: int = 0,
    seed: int = 1,
    settings: Decoding = Decoding(),
) -> None:
    """Write what `model` makes of the lines of `source`, a line each.

    Where only so many `pairs` are learnt from (`training.pairs`), the targets of all other lines stay empty; 0 stands for all pairs. All
    else is as in `decoding.main`, which raises as well.
    """
    lines = list(read_lines(source))
    learnt = same_choice(len(lines), pairs or None)
    asked = [""] * len(lines)
    for place in learnt:
        asked[place] = lines[place]
    with tempfile.TemporaryDirectory(prefix="crossgap-") as folder:
        path = Path(folder) / source.name
        write_lines(path, asked)
        decoding.main(
            model,
            path,
            targets,
            report=report,
            languages=languages,
            documents=documents,
            threads=threads,
            seed=seed,
            settings=settings,
        )
    empty = sum(is_blank(lines[place]) for place in learnt)
    write_json(report, {**read_json(report), "sentences": len(learnt), "empty_sources": empty})


if __name__ == "__main__":
    run(main)
