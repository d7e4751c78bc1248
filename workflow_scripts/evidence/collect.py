"""collect: a table of all scores of a run, to which several machines add their rows.

    python -m workflow_scripts.evidence.collect --results results --table docs/results/study.tsv

Each row has one number: one metric on one test set, for one arm, one seed and one experiment. It also names the machine that trained the
model, with the precision unless that is float32, the commit of the code and the date. Rows of other machines stay as they are; a number
that the same machine made again replaces the one before.
"""

import csv
import datetime
import fnmatch
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from workflow_scripts.stage import InputError, atomic, processor, read_json, run

KEY = ("machine", "setting", "pair", "arm", "seed", "testset", "metric")
"""The columns that identify a number."""
COLUMNS = (*KEY, "value", "commit", "date")


def main(results: Path, table: Path, *, experiments: tuple[str, ...] = ("*",), machine: str = "") -> None:
    """Add the scores in the folder `results` to `table`, a TSV file that is created if it does not exist.

    `experiments` are names or patterns of names. `machine` names all of them in the table instead of what each training says of its own.
    Raises `InputError` where there is no score, or where the table has other columns.
    """
    found = list(rows_of(results, experiments, machine))
    if not found:
        raise InputError(f"{results}/runs: has no scores of {', '.join(experiments)}; run the recipe first")
    known = read_table(table) if table.exists() else []
    merged = {tuple(row[name] for name in KEY): row for row in [*known, *found]}
    with atomic(table) as file:
        writer = csv.DictWriter(file, COLUMNS, delimiter="\t", lineterminator="\n")
        writer.writeheader()
        writer.writerows(merged[key] for key in sorted(merged, key=lambda key: (*key[:4], int(key[4]), *key[5:])))
    print(f"{table}: {len(merged)} numbers, {len(merged) - len(known)} of them new")


def rows_of(results: Path, experiments: tuple[str, ...], machine: str) -> Iterator[dict[str, str]]:
    """One row for each score of a text that a model wrote. Points of a grid, which only serve to choose settings, are left out."""
    for path in sorted(results.glob("runs/*/*/seed*/*.scores.json")):
        seed, arm, setting = (parent.name for parent in list(path.parents)[:3])
        # the trivial baseline has its scores under seed 0
        if ".grid" in arm or seed == "seed0" or not any(fnmatch.fnmatch(setting, pattern) for pattern in experiments):
            continue
        report = read_json(path)
        testset = path.name.removesuffix(".scores.json")
        values = {name: measured["value"] for name, measured in report.get("metrics", {}).items()}
        words = path.with_name(f"{testset}.words.json")
        if words.exists():
            values |= {
                f"word_f_{name}": 100 * bucket["f"] for name, bucket in read_json(words)["buckets"].items() if bucket["f"] is not None
            }
        comet = path.with_name(f"{testset}.comet.json")
        if comet.exists() and (value := read_json(comet)["value"]) is not None:
            values["COMET"] = value
        date = datetime.datetime.fromtimestamp(path.stat().st_mtime, datetime.UTC).date().isoformat()
        trained = read_json(path.parent / "finetune" / "training.json")
        head = {"machine": machine or machine_of(trained), "setting": setting, "pair": "-".join(trained["languages"])}
        for metric, value in values.items():
            yield {
                **head,
                "arm": arm,
                "seed": seed.removeprefix("seed"),
                "testset": testset,
                "metric": metric,
                "value": f"{value:.4f}",
                "commit": trained["provenance"]["commit"],
                "date": date,
            }


def machine_of(trained: dict[str, Any]) -> str:
    """Where a model was trained, by its `training.json`: processor, GPU, and the precision if it rounds otherwise than float32.

    Before November 2026 no training said so: then it is this machine.
    """
    precision = trained.get("precision", "float32")
    return (trained.get("machine") or processor()) + ("" if precision == "float32" else f", {precision}")


def read_table(path: Path) -> list[dict[str, str]]:
    """Read the rows of a table that `main` wrote. Raises `InputError` if its columns differ."""
    with open(path, encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file, delimiter="\t")
        if tuple(reader.fieldnames or ()) != COLUMNS:
            raise InputError(f"{path}, line 1: has the columns {reader.fieldnames}, not {list(COLUMNS)}; name another file")
        return list(reader)


if __name__ == "__main__":
    run(main)
