"""Sample reports: packed runs of the repository, of which `make docs` makes pages; and the command that adds one.

    python -m docs.site.samples --pack PACK --name NAME --about "What was asked, of which models, in a sentence or two."

copies what ``report.pack write --without-pages --licences …`` wrote to `docs/samples/NAME.zip`, and writes the part about it in
`docs/samples/README.md`, or writes it anew.
"""

import argparse
import contextlib
import csv
import json
import re
import shutil
import sys
import tempfile
import zipfile
from datetime import datetime
from pathlib import Path
from typing import Any

from workflow_scripts.errors import InputError
from workflow_scripts.run import lines
from workflow_scripts.run.outcomes import signed

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = ROOT / "docs/samples"
LIST = SAMPLES / "README.md"
MOST_BYTES = 1_000_000
"""How large a sample may be."""
MOST_OF_PAGES = 5_000_000
"""How large the pages with all sentences of a sample may be together; the site leaves out larger ones."""


OF_A_MACHINE = re.compile(rb"(?<![\w.:/])/(?:home|root|tmp|work|mnt|srv|Users|data|opt|var)/[\w.-]+/")
"""A folder of somebody's machine, in which a sample has no business."""


def packs() -> list[Path]:
    """The samples of the repository."""
    return sorted(SAMPLES.glob("*.zip"))


def add(pack: Path, name: str, about: str) -> None:
    """Add a pack to the samples, or put it in the place of an older one.

    Raises `InputError` for a pack that is too large, or does not say the licences of its texts. It does so, too, where a pack names a
    folder of a machine, or no page can be made of it.
    """
    if not re.fullmatch(r"[a-z0-9-]+", name):
        raise InputError(f"--name: {name!r} must be small letters, digits and - only, since it becomes a part of an address")
    manifest = about_pack(pack)
    if (size := pack.stat().st_size) > MOST_BYTES:
        raise InputError(f"{pack}: has {size:,} bytes, a sample at most {MOST_BYTES:,}; pack it --without-pages, or a run with fewer arms")
    if not manifest.get("licences"):
        raise InputError(f"{pack}: does not say whose the texts are that it quotes; pack it anew with --licences")
    for name_in_it, found in of_a_machine(pack).items():
        raise InputError(f"{pack}: {name_in_it} names a folder of a machine ({found}); make the run with paths relative to its folder")
    with tempfile.TemporaryDirectory() as folder:
        render(pack, Path(folder) / "page")
    SAMPLES.mkdir(exist_ok=True)
    if pack.resolve() != (SAMPLES / f"{name}.zip").resolve():
        shutil.copyfile(pack, SAMPLES / f"{name}.zip")
    text, new = LIST.read_text(encoding="utf-8"), part(SAMPLES / f"{name}.zip", about)
    older = re.search(rf"(?<=\n\n)## {name}\n.*?(?=\n## |\Z)", text, flags=re.DOTALL)
    LIST.write_text(f"{text[: older.start()]}{new}{text[older.end() :]}" if older else f"{text.rstrip()}\n\n{new}", encoding="utf-8")
    print(f"{SAMPLES / name}.zip: {size / 1e6:.1f} MB, with its part of {LIST}")


def about_pack(pack: Path) -> dict[str, Any]:
    """What a pack says of itself. Raises `InputError` where it is none."""
    try:
        with zipfile.ZipFile(pack) as file:
            return json.loads(file.read("pack.json"))
    except (OSError, KeyError, zipfile.BadZipFile) as error:
        raise InputError(f"{pack}: is no pack of a run ({error}); python -m workflow_scripts.report.pack write makes one") from None


def of_a_machine(pack: Path) -> dict[str, str]:
    """File of a pack → the first folder of a machine that it names. Texts and models' outputs may say anything, and are not looked at."""
    with zipfile.ZipFile(pack) as file:
        about = [name for name in file.namelist() if name.endswith((".json", ".log")) or re.fullmatch(r"results/\w+\.tsv", name)]
        found = {name: OF_A_MACHINE.search(file.read(name)) for name in about}
    return {name: match[0].decode() for name, match in found.items() if match}


def part(pack: Path, about: str) -> str:
    """The part about a sample in the list of samples, in Markdown."""
    with zipfile.ZipFile(pack) as file:
        rows = list(csv.DictReader(file.read("results/comparisons.tsv").decode("utf-8").splitlines(), delimiter="\t"))
        records = [json.loads(file.read(name)) for name in file.namelist() if name.endswith(("/training.json", ".scores.json"))]
        changed = max(info.date_time for info in file.infolist())
    first = {row["experiment"]: (row["metric"], row["other"]) for row in reversed(rows)}
    shown = [turned(row, first[row["experiment"]][1]) for row in rows if row["metric"] == first[row["experiment"]][0] and row["difference"]]
    seeds = max((int(row["seeds"]) for row in rows), default=1)
    commits = dict.fromkeys(each["provenance"]["commit"] for each in records)
    machines = dict.fromkeys(each["machine"] for each in records if "machine" in each)
    facts = [f"{datetime(*changed):%d %B %Y}", f"commit {', '.join(commits)}", *machines, f"{seeds} seed{'s' * (seeds > 1)}"]
    text = [f"## {pack.stem}", "", about, "", f"[The report]({pack.name}) · {' · '.join(facts)}", ""]
    if shown:
        by_seeds = any(row["seeds_low"] for row in shown)
        heads = ["experiment", "test set", "compared", "difference", "95 % interval", "p", *["by the seeds alone"] * by_seeds]
        text += [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
        text += [f"| {' | '.join(cells(row, by_seeds))} |" for row in shown] + [""]
    return "\n".join([*text, f"Texts: {about_pack(pack)['licences']}", ""])


def turned(row: dict[str, str], baseline: str) -> dict[str, str]:
    """A row of `comparisons.tsv` as it is where it is of the baseline, else in the direction in which the difference is not negative."""
    return lines.turned(row) if row["other"] != baseline and float(row["difference"]) < 0 else row


def cells(row: dict[str, str], by_seeds: bool = False) -> tuple[str, ...]:
    """A row of `comparisons.tsv` as one of the list of samples, with Student's interval of the seeds' differences if that is asked for."""
    low, high, p = (float(row[name]) if row[name] else None for name in ("low", "high", "p"))
    interval = f"{signed(float(row['seeds_low']))} to {signed(float(row['seeds_high']))}" if row["seeds_low"] else ""
    return (
        row["experiment"],
        row["testset"],
        f"{row['arm']} − {row['other']}",
        f"{signed(float(row['difference']))} {row['metric']}",
        "" if low is None or high is None else f"{signed(low)} to {signed(high)}",
        "" if p is None else "< 0.001" if p < 0.001 else f"{p:.3f}",
        *[interval] * by_seeds,
    )


def render(pack: Path, output: Path) -> None:
    """Make the pages of a pack in a folder: `report.html`, and beside it those with all sentences if they are not too large."""
    from workflow_scripts.report.__main__ import write_report
    from workflow_scripts.report.pack import unpack
    from workflow_scripts.run.config import read
    from workflow_scripts.tasks.plan import Plans

    output.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as folder:
        unpacked, made = Path(folder) / "pack", output.resolve()
        unpack(pack, unpacked)
        with contextlib.chdir(unpacked):
            results, configuration = Path("results"), Path("results/configuration.json")
            if json.loads(configuration.read_text(encoding="utf-8")).get("plugins"):
                raise InputError(f"{pack}: brings plugins, which are code; a sample has none")
            plans = Plans(read(configuration))
            write_report(results, made / "report.html", None, plans, translations=made / "translations")
            if sum(path.stat().st_size for path in made.glob("translations/*")) > MOST_OF_PAGES:
                shutil.rmtree(made / "translations")
                write_report(results, made / "report.html", None, plans)


if __name__ == "__main__":
    command = argparse.ArgumentParser(prog="python -m docs.site.samples", description="Add a packed run to the sample reports.")
    command.add_argument("--pack", type=Path, required=True, help="what `report.pack write --without-pages --licences …` wrote")
    command.add_argument("--name", required=True, help="what the sample is called")
    command.add_argument("--about", required=True, help="what was asked, of which models, in a sentence or two")
    try:
        add(**vars(command.parse_args()))
    except InputError as reason:
        sys.exit(f"error: {reason}")
