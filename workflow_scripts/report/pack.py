"""pack: what a reader needs to check a run, in one file; and its tables made again from that file.

``write`` packs a finished run: its configuration, the lock of the packages, checksums, provenance, the tables, every file that the report
is made of, and the outputs and references of the tests. Models and training text stay out. ``rebuild`` checks the checksums, computes the
scores of texts and their tests anew from the sentences, makes the tables and the page, and compares them with the packed ones.
"""

import contextlib
import hashlib
import itertools
import json
import os
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from workflow_scripts.config.configuration import Config
from workflow_scripts.evidence import scores, significance
from workflow_scripts.report.__main__ import write_report
from workflow_scripts.report.study import Study, configured
from workflow_scripts.run import arms, report_inputs
from workflow_scripts.run.config import read
from workflow_scripts.run.jobs import Job
from workflow_scripts.stage import ROOT, InputError, atomic, checksum, processor, provenance, run
from workflow_scripts.tasks.entry import task_of

MANIFEST = "pack.json"
"""The file of a pack that says what is in it."""
LOCK = "envs/requirements.txt"
LONG_AGO = (1980, 1, 1, 0, 0, 0)
"""The date of all files in a pack: the same run gives the same pack."""


# ---------------------------------------------------------------------------------------------
# write


def write(output: Path, results: Path = Path("results")) -> None:
    """Pack a finished run. Give the command where the run was made: plugins and tables of papers are looked for from there.

    Args:
        output: The file to write, a .zip.
        results: The folder of the run's results.
    """
    configuration = results / "configuration.json"
    if not (results / "scores.tsv").exists():
        raise InputError(f"{results}: has no scores.tsv; a finished run is packed (snakemake --cores all), or name its folder: --results")
    config = read(configuration)
    files = {f"results/{path.relative_to(results).as_posix()}": path for path in [configuration, *of_results(results, config)]}
    files |= {path.as_posix(): path for path in _beside(config)} | {LOCK: ROOT / LOCK}
    said = {
        "format": 1,
        "files": {name: {"sha256": checksum(path), "bytes": path.stat().st_size} for name, path in sorted(files.items())},
        "processor": processor(),
        "provenance": provenance(),
    }
    with atomic(output, "wb") as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr(_dated(MANIFEST), json.dumps(said, indent=1, ensure_ascii=False) + "\n")
        for name, path in sorted(files.items()):
            made.writestr(_dated(name), path.read_bytes())
    print(f"{output}: {len(files)} files, {output.stat().st_size / 1e6:.1f} MB. To make its tables again: {again(output)}")


def again(pack: Path) -> str:
    """The command that makes a pack's tables again."""
    return f"python -m workflow_scripts.report.pack rebuild --pack {pack} --output rebuilt"


def of_results(results: Path, config: Config) -> list[Path]:
    """The files under `results` that belong to a pack: what the report opens, what tests read, the tables and the pages."""
    found = {path.resolve() for path in _read_by_report(results, config)}
    for _, _, _, files in _tested(results, config):
        found |= {path.resolve() for path in files if path.exists()}
    found |= {path.resolve() for pattern in ("*.tsv", "report.html", "report/*.html") for path in results.glob(pattern)}
    return sorted(results / path.relative_to(results.resolve()) for path in found)


def _read_by_report(results: Path, config: Config) -> list[Path]:
    """Every file under `results` that the report opens, found by making it once more."""
    with tempfile.TemporaryDirectory() as folder, _opened() as seen:
        made = Path(folder)
        write_report(results, made / "report.html", made / "scores.tsv", config, translations=made / "translations")
    # listed after it: Python tells of each file that is opened, by the path that was given
    inside = {Path(os.path.abspath(path)) for path in seen}
    return [path for path in inside if path.is_relative_to(os.path.abspath(results)) and path.is_file()]


_SEEN: list[set[str]] = []


@contextlib.contextmanager
def _opened() -> Iterator[set[str]]:
    """The paths of the files that are opened in the block."""
    if not getattr(_notice, "added", False):
        sys.addaudithook(_notice)  # which cannot be taken off again
        _notice.added = True  # type: ignore[attr-defined]
    _SEEN.append(set())
    try:
        yield _SEEN[-1]
    finally:
        _SEEN.pop()


def _notice(event: str, arguments: Any) -> None:
    if event == "open" and _SEEN and isinstance(arguments[0], str | bytes | os.PathLike):
        _SEEN[-1].add(os.fsdecode(arguments[0]))


def _beside(config: Config) -> list[Path]:
    """Files beside the results that the report needs: plugins, and tables of papers. What belongs to the repository stays out."""
    plugins = [Path(name) for name in config.plugins if name.endswith(".py")]
    tables = [Path(path) for path in report_inputs.report_inputs(config) if not path.startswith("results/")]
    here, found = Path.cwd().resolve(), []
    for path in (*plugins, *tables):
        if path.resolve().is_relative_to(here):
            found.append(path.resolve().relative_to(here))
        elif path in plugins or not path.resolve().is_relative_to(ROOT):
            raise InputError(f"{path}: lies outside of the folder of the run ({here}), where a pack cannot put it; move it there")
    return found


def _dated(name: str) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name, LONG_AGO)
    info.compress_type, info.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
    return info


# ---------------------------------------------------------------------------------------------
# rebuild


def rebuild(pack: Path, output: Path, stored: bool = False, trusted: bool = False) -> None:
    """Make the tables and the page of a pack again, and compare the tables with the packed ones.

    Args:
        pack: What `write` wrote.
        output: A folder that is not there yet. It gets the files of the pack, and the new tables under `rebuilt`.
        stored: Take the scores and tests as they are stored, instead of computing them from the sentences.
        trusted: Load the plugins that the pack brings. They are code, and run with your rights.
    """
    said = unpack(pack, output)
    with contextlib.chdir(output):
        results, made = Path("results"), Path("rebuilt")
        if (named := json.loads((results / "configuration.json").read_text(encoding="utf-8")).get("plugins")) and not trusted:
            raise InputError(f"{pack}: brings plugins, which are code ({', '.join(named)}); read them in {output}, then add --trusted")
        config = read(results / "configuration.json")
        packed = {path.name: path.read_text(encoding="utf-8").splitlines() for path in sorted(results.glob("*.tsv"))}
        if not stored:
            compute(results, config)
        tables = tuple(made / name for name in packed if name != "scores.tsv")
        write_report(results, made / "report.html", made / "scores.tsv", config, tables=tables, translations=made / "translations")
        wrong = [line for name, rows in packed.items() if (line := difference(name, rows, (made / name).read_text(encoding="utf-8")))]
    print(f"{pack}: made at commit {said['provenance']['commit']}, on {said['processor']}; {len(said['files'])} files have their checksums")
    print(f"{output}/rebuilt: {', '.join(packed)} {'as stored' if stored else 'from the sentences'}, and report.html")
    if wrong:
        raise InputError("\n".join(wrong))
    print("All tables are the same as the packed ones.")


def unpack(pack: Path, output: Path) -> dict[str, Any]:
    """Unpack into a new folder, and return what the pack says of itself. Raises `InputError` where a file is not what the pack says."""
    if output.exists():
        raise InputError(f"{output}: is there already; name a new folder")
    try:
        with zipfile.ZipFile(pack) as file:
            said = json.loads(file.read(MANIFEST))
            names = set(file.namelist()) - {MANIFEST}
            if unsafe := [name for name in names if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts]:
                raise InputError(f"{pack}: has {unsafe[0]!r}, which would lie outside of {output}; this is no pack that `write` wrote")
            if odd := names ^ {*said["files"]}:
                raise InputError(f"{pack}: {sorted(odd)[0]} is in the pack or in its list, and not in both; get the pack anew")
            for name, about in said["files"].items():
                if hashlib.sha256(file.read(name)).hexdigest() != about["sha256"]:
                    raise InputError(f"{pack}: {name} has another checksum than {MANIFEST} says; it was changed after it was packed")
            file.extractall(output, sorted(names))
    except FileNotFoundError:
        raise InputError(f"{pack}: no such file") from None
    except (zipfile.BadZipFile, KeyError, TypeError, ValueError) as error:
        raise InputError(f"{pack}: is no pack of a run ({error}); `write` of this command makes one") from None
    return said


def compute(results: Path, config: Config) -> None:
    """Compute the scores of texts and their tests of significance from the sentences, in place of the stored ones."""
    for study, testset, job, _ in _tested(results, config):
        language, settings = arms.target(job), study.settings.scores
        reference, source = (Path(arms.test_text(job, side)) for side in (1, 0))
        of_runs = [Path(path) for path in arms.of_runs(job, "{testset}.hyp")]
        for path in of_runs:
            scores.main(path, reference, path.with_suffix(".scores.json"), language=language, source=source, settings=settings)
        tests, names = study.run / "significance", tuple(study.arms)
        for number, seed in enumerate(study.seeds):
            systems = tuple(of_runs[number :: len(study.seeds)])
            one = tests / f"{testset}.seed{seed}.json"
            significance.per_seed(systems, reference, one, names=names, language=language, seed=seed, settings=settings)
        comet = tuple(map(Path, arms.comet_scores(job)))
        whole, seeds = tests / f"{testset}.json", tuple(study.seeds)
        significance.over_seeds(
            tuple(of_runs), reference, whole, names=names, seeds=seeds, language=language, comet=comet, settings=settings
        )


def _tested(results: Path, config: Config) -> Iterator[tuple[Study, str, Job, list[Path]]]:
    """Each test set that is answered with text: its study, its name, what its jobs are about, and the files that they read."""
    from snakemake.iocontainers import Wildcards

    for name in config.run.experiments:
        if task_of(config.experiments[name]).answers == "text":
            study = configured(results, name, config)
            for testset in study.tested:
                job = Job(config, Wildcards(fromdict={"experiment": name, "testset": testset}))
                files = [*arms.of_runs(job, "{testset}.hyp"), *(arms.test_text(job, side) for side in (0, 1))]
                yield study, testset, job, [results / Path(path).relative_to("results") for path in files]


def difference(name: str, packed: list[str], made: str) -> str:
    """In one line, how a table differs from the packed one; empty where it does not."""
    pairs = list(itertools.zip_longest(packed, made.splitlines(), fillvalue="nothing"))
    other = [(number, *pair) for number, pair in enumerate(pairs, 1) if pair[0] != pair[1]]
    if not other:
        return ""
    number, was, now = other[0]
    return f"{name}: {len(other)} of {len(pairs)} lines differ; line {number} was {was!r} and is {now!r}"


if __name__ == "__main__":
    run({"write": write, "rebuild": rebuild})
