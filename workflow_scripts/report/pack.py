"""pack: what a reader needs to check a run, in one file; and its tables made again from that file.

``write`` packs a finished run: its configuration, the lock of the packages, checksums, provenance, the tables, every file that the report
is made of, and the outputs and references of the tests. Models and training text stay out. ``rebuild`` checks the checksums, and
computes the scores of texts and their tests anew from the sentences. It makes the tables and the page, and compares the tables with the
packed ones.

Folders of the machine are left out: where a packed file names a path from the root, the pack has the end of it.
"""

import calendar
import contextlib
import hashlib
import itertools
import json
import os
import re
import shlex
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath
from typing import Any

from workflow_scripts.evidence import scores
from workflow_scripts.evidence.scores import Scores
from workflow_scripts.report.__main__ import write_report
from workflow_scripts.report.about import command
from workflow_scripts.report.exhibits import shown_entries, shown_rows
from workflow_scripts.report.geometry import shown_vectors
from workflow_scripts.report.labels import shown_of_dictionaries
from workflow_scripts.report.study import Study, configured, folder_of_run, under
from workflow_scripts.report.tested import compute_tests
from workflow_scripts.run import report_inputs
from workflow_scripts.run.config import read
from workflow_scripts.run.lines import LOG
from workflow_scripts.stage import ROOT, InputError, atomic, processor, provenance, run
from workflow_scripts.tasks.plan import Plans

MANIFEST = "pack.json"
"""The file of a pack that says what is in it."""
LOCK = "envs/requirements.txt"
KEPT_OF_A_PATH = 2
"""How many parts of a path from the root are packed."""
WITH_PATHS = (".json", ".html")
"""How the files end in which a run names its folders."""


# ---------------------------------------------------------------------------------------------
# write


def write(output: Path, results: Path = Path("results"), *, without_pages: bool = False, licences: str = "") -> None:
    """Pack a finished run. Plugins and tables of papers are looked for from the folder of the run, as it has them.

    Args:
        output: The file to write, a .zip.
        results: The folder of the run's results.
        without_pages: Leave out the report's pages, which can be made again.
        licences: Whose the texts are that the pack quotes, and under which licence; the pack says so.
    """
    if not (results / "scores.tsv").exists():
        raise InputError(f"{results}: has no scores.tsv; a finished run is packed (snakemake --cores all), or name its folder: --results")
    whole = results.absolute()
    with contextlib.chdir(folder_of_run(whole)):
        files, changed, cut = _gathered(whole, without_pages)
    about = {"format": 1, "licences": licences, "processor": processor(), "provenance": provenance()}
    _write(output, files, about, changed, cut)
    print(f"{output}: {len(files)} files, {output.stat().st_size / 1e6:.1f} MB. To make its tables again: {again(output)}")
    if cut:
        print(f"{len(cut)} of the files are packed in part: what the report shows some of, with the checksum of the whole")


def _gathered(results: Path, without_pages: bool) -> tuple[dict[str, bytes], dict[str, float], dict[str, dict[str, Any]]]:
    """What belongs to a pack of the run in this folder, as `_write` wants it: contents, when files were last changed, and what is cut."""
    configuration = results / "configuration.json"
    plans = Plans(read(configuration))
    paths = {
        f"results/{path.relative_to(results).as_posix()}": path for path in [configuration, *of_results(results, plans, not without_pages)]
    }
    paths |= {path.as_posix(): path for path in _beside(plans)} | {LOCK: ROOT / LOCK}
    shortened = shorter_names(json.loads(configuration.read_text(encoding="utf-8")))
    parts = {name: part for name, path in paths.items() if (part := _part(name, path)) is not None}
    parts |= {name: part for name, part in _of_dictionaries(results, plans).items() if name in paths}
    files = {name: parts[name] if name in parts else _packed(name, path, shortened) for name, path in paths.items()}
    if (called := command(results)) is not None:
        line = f"  Command: snakemake {' '.join(called)}\n"
        files[f"results/{LOG.relative_to('results').as_posix()}"] = _shorter(line, shortened).encode()
    cut = {name: checksum(paths[name].read_bytes()) for name in parts}
    return files, {name: path.stat().st_mtime for name, path in paths.items()}, cut


def again(pack: Path) -> str:
    """The command that makes a pack's tables again."""
    return f"python -m workflow_scripts.report.pack rebuild --pack {shlex.quote(str(pack))} --output rebuilt"


def checksum(content: bytes) -> dict[str, Any]:
    """What a pack says of a file."""
    return {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}


def _write(output: Path, files: dict[str, bytes], about: dict[str, Any], changed: dict[str, float], cut: dict[str, dict[str, Any]]) -> None:
    """Write a pack of `files` (name in the pack → content).

    `about` is what the pack says of itself, `changed` when files were last changed, in seconds since the epoch. `cut` has the files that
    are packed in part, each with the checksum of the whole.
    """
    listed = {name: checksum(content) | ({"part_of": cut[name]} if name in cut else {}) for name, content in sorted(files.items())}
    with atomic(output, "wb") as file, zipfile.ZipFile(file, "w") as made:
        made.writestr(_dated(MANIFEST), json.dumps({**about, "files": listed}, indent=1, ensure_ascii=False) + "\n")
        for name, content in sorted(files.items()):
            made.writestr(_dated(name, changed.get(name, 0)), content)


def of_results(results: Path, plans: Plans, pages: bool = True) -> list[Path]:
    """The files under `results` that belong to a pack: what the report opens, what tests read, its tables and its pages."""
    found = {*_read_by_report(results, plans)}
    for study in _of_texts(results, plans):
        for testset in study.tested:
            found |= {study.hypotheses(arm, testset, seed) for arm in study.arms for seed in study.seeds} | {*study.test_files(testset)}
    found |= {*_tables(results, plans)}
    if pages:
        found |= {under(results, page) for page in ("results/report.html", *report_inputs.report_pages(plans.config.run))}
    # links to folders on other disks stay as they are
    paths = {os.path.abspath(path) for path in found if path.exists()}
    return sorted(results / os.path.relpath(path, os.path.abspath(results)) for path in paths)


def _tables(results: Path, plans: Plans) -> list[Path]:
    """The report's own tables that are there; a user may keep others beside them."""
    made = [under(results, path) for path in ("results/scores.tsv", *report_inputs.report_tables(plans.config.run))]
    return sorted(path for path in made if path.exists())


def shorter_names(config: dict[str, Any]) -> dict[str, str]:
    """Each path from the root that a configuration names, and the folder of the run → how a pack calls it; the longest first."""
    found = {f"{folder}/": "" for folder in (Path.cwd(), ROOT) if folder != folder.parent}
    for text in _texts_of(config):
        if text.startswith("/") and len(parts := PurePosixPath(text).parts) > KEPT_OF_A_PATH:
            found[text] = "/".join(parts[-KEPT_OF_A_PATH:])
    return dict(sorted(found.items(), key=lambda pair: -len(pair[0])))


LESS: dict[str, Callable[[Path], bytes]] = {
    "results/codeswitch/*.tsv.zst": shown_rows,
    "results/lexicons/*.tsv": shown_entries,
    "results/runs/*representation.npz": shown_vectors,
}
"""Pattern of files that are large, and of which the page shows a part → what keeps this part."""


def _texts_of(block: Any) -> Iterator[str]:
    """All texts in a block of a configuration, keys included."""
    if isinstance(block, str):
        yield block
    elif isinstance(block, dict | list):
        for part in [*block, *(block.values() if isinstance(block, dict) else ())]:
            yield from _texts_of(part)


def _part(name: str, path: Path) -> bytes | None:
    """The part of a large file of which the page shows some; None for a file that is packed as it is."""
    return next((part_of(path) for pattern, part_of in LESS.items() if fnmatch(name, pattern)), None)


def _of_dictionaries(results: Path, plans: Plans) -> dict[str, bytes]:
    """Name of each given dictionary in the pack → the part of it of which the page shows some."""
    studies = (configured(results, plan) for plan in plans.of_run)
    found = (part for study in studies for part in shown_of_dictionaries(study).items())
    return {f"results/{path.relative_to(results).as_posix()}": content for path, content in found}


def _packed(name: str, path: Path, shortened: dict[str, str]) -> bytes:
    """A file as it is packed: with shorter paths from the root in what the run wrote about itself. Texts and answers stay as they are."""
    content = path.read_bytes()
    if not name.endswith(WITH_PATHS):
        return content
    return _shorter(content.decode("utf-8", "surrogateescape"), shortened).encode("utf-8", "surrogateescape")


def _shorter(text: str, shortened: dict[str, str]) -> str:
    for path, short in shortened.items():
        text = short.join(re.split(rf"(?<![\w./-]){re.escape(path)}", text))  # not in the middle of an address
    return text


def _read_by_report(results: Path, plans: Plans) -> list[Path]:
    """Every file under `results` that the report opens, found by making it once more."""
    with tempfile.TemporaryDirectory() as folder, _opened() as seen:
        made = Path(folder)
        write_report(results, made / "report.html", made / "scores.tsv", plans, translations=made / "translations")
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


def _beside(plans: Plans) -> list[Path]:
    """Files beside the results that the report needs: plugins, and tables of papers. What belongs to the repository stays out."""
    plugins = [Path(name) for name in plans.config.plugins if name.endswith(".py")]
    tables = [Path(path) for path in report_inputs.report_inputs(plans) if not path.startswith("results/")]
    here, found = Path.cwd().resolve(), []
    for path in (*plugins, *tables):
        if path.resolve().is_relative_to(here):
            found.append(path.resolve().relative_to(here))
        elif path in plugins or not path.resolve().is_relative_to(ROOT):
            raise InputError(f"{path}: lies outside of the folder of the run ({here}), where a pack cannot put it; move it there")
    return found


def _dated(name: str, changed: float = 0) -> zipfile.ZipInfo:
    """What a pack says of a file: when it was last changed, as UTC, since a zip knows no time zones. It begins with the year 1980."""
    info = zipfile.ZipInfo(name, max(time.gmtime(changed)[:6], (1980, 1, 1, 0, 0, 0)))
    info.compress_type, info.external_attr = zipfile.ZIP_BZIP2, 0o644 << 16  # a fifth smaller than deflated, for text
    return info


# ---------------------------------------------------------------------------------------------
# rebuild


def rebuild(pack: Path, output: Path, stored: bool = False, trusted: bool = False, meteor_jar: Path | None = None) -> None:
    """Make the tables and the page of a pack again, and compare the tables with the packed ones.

    Args:
        pack: What `write` wrote.
        output: A folder that is not there yet. It gets the files of the pack, and the new tables under `rebuilt`.
        stored: Take the scores and tests as they are stored, instead of computing them from the sentences.
        trusted: Load the plugins that the pack brings. They are code, and run with your rights.
        meteor_jar: The program by which METEOR was computed, if the run names one in `scores.meteor_jar`; packs leave it out.
    """
    meteor_jar = meteor_jar and meteor_jar.resolve()
    info = unpack(pack, output)
    with contextlib.chdir(output):
        results, made = Path("results"), Path("rebuilt")
        if (named := json.loads((results / "configuration.json").read_text(encoding="utf-8")).get("plugins")) and not trusted:
            raise InputError(f"{pack}: brings plugins, which are code ({', '.join(named)}); read them in {output}, then add --trusted")
        plans = Plans(read(results / "configuration.json"))
        packed = {path.name: path.read_text(encoding="utf-8").splitlines() for path in _tables(results, plans)}
        if not stored:
            compute(results, plans, meteor_jar)
        tables = tuple(made / name for name in packed if name != "scores.tsv")
        write_report(results, made / "report.html", made / "scores.tsv", plans, tables=tables, translations=made / "translations")
        wrong = [line for name, rows in packed.items() if (line := difference(name, rows, (made / name).read_text(encoding="utf-8")))]
    print(f"{pack}: made at commit {info['provenance']['commit']}, on {info['processor']}; {len(info['files'])} files have their checksums")
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
            about = json.loads(file.read(MANIFEST))
            names = set(file.namelist()) - {MANIFEST}
            if unsafe := [name for name in names if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts]:
                raise InputError(f"{pack}: has {unsafe[0]!r}, which would lie outside of {output}; this is no pack that `write` wrote")
            if odd := names ^ {*about["files"]}:
                raise InputError(f"{pack}: {sorted(odd)[0]} is in the pack or in its list, and not in both; get the pack anew")
            for name, entry in about["files"].items():
                if hashlib.sha256(file.read(name)).hexdigest() != entry["sha256"]:
                    raise InputError(f"{pack}: {name} has another checksum than {MANIFEST} says; it was changed after it was packed")
            for name in sorted(names):
                changed = calendar.timegm((*file.getinfo(name).date_time, 0, 0, 0))
                os.utime(file.extract(name, output), (changed, changed))
    except FileNotFoundError:
        raise InputError(f"{pack}: no such file") from None
    except (zipfile.BadZipFile, KeyError, TypeError, ValueError) as error:
        raise InputError(f"{pack}: is no pack of a run ({error}); `write` of this command makes one") from None
    return about


def compute(results: Path, plans: Plans, meteor_jar: Path | None = None) -> None:
    """Compute the scores of texts and their tests of significance from the sentences, in place of the stored ones.

    Raises `InputError` where METEOR was computed by a program that is not there.
    """
    studies = [(study, metrics_with(study, meteor_jar)) for study in _of_texts(results, plans)]
    for _, settings in studies:
        if settings.meteor_jar and not Path(settings.meteor_jar).exists():
            raise InputError(
                f"METEOR was computed by {settings.meteor_jar}, which is not here; name the program with --meteor-jar, or add --stored, "
                "which takes the scores as they are"
            )
    for study, settings in studies:
        runs = [study.seed(arm, seed) for arm in study.arms for seed in study.seeds]
        for testset, run_folder in itertools.product(study.tested, runs):
            source, reference = study.test_files(testset)
            written, code = run_folder / f"{testset}.hyp", study.answered_in(testset)
            scores.main(written, reference, written.with_suffix(".scores.json"), language=code, source=source, settings=settings)
        with_comet = runs if getattr(study.settings, "comet", None) else []
        comet = {testset: tuple(folder / f"{testset}.comet.json" for folder in with_comet) for testset in study.tested}
        compute_tests(study, study.run, settings, comet)


def metrics_with(study: Study, meteor_jar: Path | None) -> Scores:
    """The settings of an experiment's scores, with METEOR's program where it is here."""
    settings: Scores = study.settings.scores
    return replace(settings, meteor_jar=str(meteor_jar)) if settings.meteor_jar and meteor_jar else settings


def _of_texts(results: Path, plans: Plans) -> list[Study]:
    """The experiments whose test sets are answered with text."""
    return [configured(results, plan) for plan in plans.of_run if plan.task.answers == "text"]


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
