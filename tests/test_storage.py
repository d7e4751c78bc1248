"""Files that the system refuses: one line with the folder, what lies there and what moves it; and what is looked at before Snakemake."""

import errno
import os
import pwd
import re
import subprocess
from pathlib import Path

import pytest
import warm

from workflow_scripts import start
from workflow_scripts.stage import InputError, atomic
from workflow_scripts.storage import check_writable, lies_in, refused_file
from workflow_scripts.text.fetching import cache_folder

ROOT = Path(__file__).resolve().parent.parent


def refused(number: int, path: Path | None) -> str:
    return refused_file(OSError(number, os.strerror(number), *([str(path)] if path else [])))


@pytest.mark.parametrize(
    "variable, about",
    [
        ("CROSSGAP_CACHE", "downloaded text"),
        ("HF_HOME", "what is kept of the Hugging Face hub"),
        ("HF_HUB_CACHE", "models and datasets of the Hugging Face hub"),
        ("SACREBLEU", "sacreBLEU's test sets and tokenisers"),
    ],
)
def test_a_cache_is_named_with_what_lies_there_and_the_variable_that_moves_it(variable, about, tmp_path, monkeypatch):
    for name in ("HF_HOME", "HF_HUB_CACHE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(variable, str(tmp_path / "cache"))
    path = tmp_path / "cache/some/file"
    said = refused(errno.EROFS, path)
    assert said == (
        f"{path}: cannot be written: Read-only file system; make {tmp_path / 'cache'} ({about}) writable, "
        f"or set {variable} to another folder"
    )
    full = refused(errno.ENOSPC, path)
    assert f"{tmp_path / 'cache'} ({about}) has " in full and " MB free; make room, or set " in full


def test_a_user_without_a_home_folder_reads_what_was_refused(tmp_path, monkeypatch):
    for name in ("HOME", "XDG_CACHE_HOME", "CROSSGAP_CACHE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(pwd, "getpwuid", {}.__getitem__)
    assert refused(errno.EACCES, tmp_path / "x").startswith(f"{tmp_path / 'x'}: cannot be written: Permission denied")
    with pytest.raises(InputError, match=r"there is no home folder .*; set HOME, or CROSSGAP_CACHE to another folder"):
        cache_folder()


def test_a_place_that_cannot_be_written_to_is_known_before(tmp_path, monkeypatch):
    check_writable(tmp_path / "new/folder/file")
    (tmp_path / "file").touch()
    with pytest.raises(OSError) as error:
        check_writable(tmp_path / "file/in/it")
    assert refused_file(error.value) == f"{tmp_path}/file/in/it: a part of this path is a file where a folder should be"
    monkeypatch.setattr(os, "access", lambda folder, _: folder != tmp_path)
    with pytest.raises(PermissionError, match="Permission denied"):
        check_writable(tmp_path / "x")


def test_the_folders_of_a_run_and_of_temporary_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert lies_in(Path("results/x")) == (tmp_path, " (the folder of the run)", "run in another one (snakemake --directory FOLDER)")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert lies_in(tmp_path / "temporary/tmpabc/x") == (tmp_path / "temporary", " (temporary files)", "set TMPDIR to another folder")
    assert lies_in(tmp_path / "other/x") == (tmp_path, "", "name another place")
    assert "TMPDIR" in refused_file(FileNotFoundError(errno.ENOENT, "No usable temporary directory found in ['/x']"))


def test_a_disk_that_is_full_is_reported_with_the_file_that_was_written(tmp_path):
    """The system names no file then; `/dev/full` is a disk without room."""
    with pytest.raises(OSError) as full, atomic(tmp_path / "scores.json") as file, open("/dev/full", "w") as disk:
        file.write("x")
        disk.write("x")
        disk.flush()
    assert full.value.filename == str(tmp_path / "scores.json") and os.listdir(tmp_path) == []
    assert re.match(
        rf"{tmp_path}/scores\.json: cannot be written: No space left on device; .* has [\d,.]+ MB free", refused_file(full.value)
    )


@pytest.mark.parametrize(
    "stage, given, said",
    [
        ("lexicon.embeddings", ("--text", "gone"), "gone: no such file"),
        ("lexicon.embeddings", ("--text", "."), ": is a folder"),
        ("lexicon.embeddings", ("--language", "iw"), "unknown language 'iw': did you mean 'he'?"),
        ("evidence.scores", ("--output", "folder"), "folder: is a folder; name a file"),
        ("evidence.scores", ("--output", "text/x.json"), "text: is a file where a folder should be"),
        ("evidence.scores", ("--output", "x" * 300), "is too long for the name of a file"),
    ],
)
def test_a_stage_by_hand_answers_a_wrong_path_in_one_line(stage, given, said, tmp_path):
    (tmp_path / "text").write_text("ein Satz und noch ein Satz\n" * 5, encoding="utf-8")
    (tmp_path / "folder").mkdir()
    usual = {
        "lexicon.embeddings": {"--text": "text", "--vectors": "x.vec", "--language": "de"},
        "evidence.scores": {"--hypotheses": "text", "--references": "text", "--output": "x.json", "--language": "de"},
    }
    flags = usual[stage] | {given[0]: given[1]}
    line = [warm.python(), "-m", f"workflow_scripts.{stage}", *(part for pair in flags.items() for part in pair)]
    done = warm.run(line, cwd=tmp_path)
    assert done.returncode == 1 and re.fullmatch(rf"error: .*{re.escape(said)}.*\n", done.stderr), done.stderr


def test_errors_of_other_kinds_stay_what_they_are():
    assert refused_file(ConnectionResetError(errno.ECONNRESET, "reset")) == "" and refused_file(OSError("odd")) == ""


def test_a_folder_of_the_run_that_cannot_be_is_reported_before_snakemake_begins(tmp_path):
    (tmp_path / "file").write_text("")
    line = [warm.python(), "-m", "snakemake", "-s", str(ROOT / "Snakefile"), "--directory", str(tmp_path / "file"), "--cores", "1", "-n"]
    done = subprocess.run(line, cwd=ROOT, env={**warm.environment(), "PATH": warm.path()}, capture_output=True, text=True)
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert f"error: {tmp_path / 'file'}: is a file where the folder of the run should be" in done.stderr


def test_a_folder_that_cannot_be_written_to_and_a_full_temporary_one(tmp_path, monkeypatch):
    # whatever the user may do: root may write everywhere
    monkeypatch.setattr(start.os, "access", lambda path, _: False)
    with pytest.raises(SystemExit, match=rf"error: {tmp_path}: cannot be written to, and the run writes there; name another folder"):
        start.refuse_start(["--directory", str(tmp_path / "run")])
    monkeypatch.undo()
    monkeypatch.setattr(start, "_LEAST", 2**80)
    with pytest.raises(SystemExit, match=r"No space left on device; .* MB free; make room, or set TMPDIR to another folder"):
        start.refuse_start(["--cores", "1"])


def test_a_temporary_folder_that_is_full_is_reported_though_python_writes_elsewhere_then(tmp_path, monkeypatch):
    monkeypatch.setattr(start, "_LEAST", 2**80)
    monkeypatch.setattr("tempfile.tempdir", "/tmp")  # as Python decides where nothing can be written to TMPDIR
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with pytest.raises(SystemExit, match=rf"error: {tmp_path}: .*; {tmp_path} \(temporary files\) has .*; make room, or set TMPDIR"):
        start.refuse_start(["--cores", "1"])
