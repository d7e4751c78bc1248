"""Files that are no configuration: one line each, with file, line and what mends it; the same where Snakemake would read them first."""

import re
import subprocess
from pathlib import Path

import pytest
import warm

from workflow_scripts.run.config_files import at_home, check_files
from workflow_scripts.stage import InputError
from workflow_scripts.yaml_text import composed, configfiles

ROOT = Path(__file__).resolve().parent.parent

BROKEN = {
    "open bracket": (
        b"run:\n  seeds: [1\n",
        r", line 3, column 1: is no YAML: .*line 2; a bracket or quotation mark that opens must close",
    ),
    "tab": (b"run:\n\tseeds: [1]\n", r", line 2, column 1: .*; line 2 begins with a tab; write blanks"),
    "Latin-1": (b"# f\xfcr\nrun: {seeds: [1]}\n", r", line 1: can't decode byte 0xfc.* iconv -f latin1 -t utf-8 .*c\.yaml > new\.yaml"),
    "UTF-16": ("run: {}\n".encode("utf-16"), r": is UTF-16; save it as UTF-8: iconv"),
    "binary": (b"\x7fELF\0\0\1", r": is no text"),
    "empty": (b"", r": has no keys at its top level, such as `run:`, as it is empty"),
    "list": (b"- a\n", r": has no keys at its top level"),
    "text": (b"just text\n", r": has no keys at its top level"),
    "colon": (b"a: b: c\n", r", line 1, column 5: is no YAML: .*; a text with a colon stands in quotes"),
    "star": (b"file: *.tsv\n", r", line 1, column \d: is no YAML: .*; a text that begins with \* stands in quotes"),
    "at": (b"file: @x\n", r", line 1, column 7: is no YAML: .*; a text that begins with such a character stands in quotes"),
    "tag": (b"a: !own 5\n", r", line 1: the tag !own is not read"),
    "Python": (b"a:\n  b: !!python/object/apply:os.system [id]\n", r", line 2: the tag !!python/object/apply:os.system is not read"),
    "two documents": (b"run: {}\n---\nrun: {}\n", r", line 2, column 1: is no YAML: .*; leave out the line ---"),
    "indentation": (b"run:\n  seeds: [1]\n arms: [x]\n", r", line 3, column 2: is no YAML: .*; the keys of a block begin in one column"),
    "quote": (b'a: "x\nb: 1\n', r", line \d, column \d+: is no YAML: .*must close"),
    "no-break space": ("run:\n  a: 1\n \u00a0b: [\n".encode(), r"the character no-break space \(U\+00A0\) stands in line 3; write a blank"),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_file_that_is_no_configuration_is_refused_in_one_line(kind, tmp_path):
    content, said = BROKEN[kind]
    (tmp_path / "c.yaml").write_bytes(content)
    with pytest.raises(InputError) as refused:
        composed(tmp_path / "c.yaml")
    assert re.search(rf"^\S+c\.yaml{said}", str(refused.value)) or re.search(rf"c\.yaml, line 3.*{said}", str(refused.value)), refused.value
    assert "\n" not in str(refused.value)


def test_no_file_and_a_folder(tmp_path):
    with pytest.raises(InputError, match=r"gone\.yaml: no such file$"):
        composed(tmp_path / "gone.yaml")
    with pytest.raises(InputError, match=r": is a folder; name a file in it$"):
        composed(tmp_path)


def test_what_yaml_reads_is_read(tmp_path):
    (tmp_path / "c.yaml").write_bytes(b"\xef\xbb\xbfa: &x {b: 1, c: 2024-01-01}\nd: {<<: *x}\ne: !!str 5\n")
    assert [key.value for key, _ in composed(tmp_path / "c.yaml").value] == ["a", "d", "e"]


@pytest.mark.parametrize(
    "text, said",
    [
        ("run:\n\u00a0 seeds: [1]\n", "line 2: the character no-break space (U+00A0) stands before 'seeds'; write a plain blank"),
        ("run:\n  arms\u00a0: [x]\n", "line 2: the character no-break space (U+00A0) stands behind 'arms'; write a plain blank"),
        ("a:\n  b: \u00a04\n", "line 2: the character no-break space (U+00A0) stands before '4'"),
        ("a: [b,\u20034]\n", "line 1: the character em space (U+2003) stands before '4'"),
        ("a\u200b: 1\n", "line 1: the character zero width space (U+200B) stands behind"),
    ],
)
def test_a_blank_that_is_none_is_refused_with_its_line(text, said, tmp_path):
    (tmp_path / "c.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as refused:
        check_files([tmp_path / "c.yaml"])
    assert said in str(refused.value)


def test_a_blank_of_that_kind_inside_a_text_or_in_quotes_is_text(tmp_path):
    (tmp_path / "c.yaml").write_text('a: "\u00a0"\nb: 10\u00a0km\nc: |\n  \u00a0x\n', encoding="utf-8")
    check_files([tmp_path / "c.yaml"])


def test_the_configuration_files_of_a_command_line():
    arguments = ["preflight", "--configfile", "a.yaml", "b.yaml", "--cores", "1", "--configfiles=c.yaml", "d.yaml", "-n", "x"]
    assert [*configfiles(arguments)] == ["a.yaml", "b.yaml", "c.yaml", "d.yaml"]


@pytest.mark.parametrize("kind", ["open bracket", "Latin-1"])
def test_snakemake_says_the_same_of_its_configfile(kind, tmp_path):
    (tmp_path / "c.yaml").write_bytes(BROKEN[kind][0])
    done = snakemake(tmp_path, "preflight", "--configfile", str(ROOT / "config.yaml"), str(tmp_path / "c.yaml"))
    assert done.returncode == 1 and re.search(rf"(?m)^error: \S+c\.yaml{BROKEN[kind][1]}", done.stderr), done.stderr[-3000:]
    assert "Traceback" not in done.stderr and "usage:" not in done.stderr


def test_a_broken_config_yaml_of_the_folder_is_reported_as_well(tmp_path):
    (tmp_path / "config.yaml").write_bytes(BROKEN["tab"][0])
    done = snakemake(tmp_path, "-n")
    assert done.returncode == 1 and re.search(rf"(?m)^error: config\.yaml{BROKEN['tab'][1]}", done.stderr), done.stderr[-3000:]


def snakemake(folder: Path, *arguments: str) -> subprocess.CompletedProcess:
    line = [warm.python(), "-m", "snakemake", "-s", str(ROOT / "Snakefile"), "--directory", str(folder), "--cores", "1", *arguments]
    return subprocess.run(line, cwd=ROOT, env={**warm.environment(), "PATH": warm.path()}, capture_output=True, text=True)


def test_a_path_may_begin_with_the_home_folder_or_a_variable(monkeypatch):
    monkeypatch.setenv("HOME", "/home/me")
    monkeypatch.setenv("SCRATCH", "/scratch/me")
    raw = {"a": {"file": "~/x.tsv", "files": {"de": "$SCRATCH/d", "en": "${SCRATCH}/e"}}, "b": ["$HOME/f", "a~/g", "$(touch h)/i", "~", 5]}
    assert at_home(raw) == {
        "a": {"file": "/home/me/x.tsv", "files": {"de": "/scratch/me/d", "en": "/scratch/me/e"}},
        "b": ["/home/me/f", "a~/g", "$(touch h)/i", "~", 5],
    }


@pytest.mark.parametrize("path", ["~nobody-of-this-name/x", "$NOT_SET_ANYWHERE/x"])
def test_a_home_or_variable_that_is_not_there_is_refused(path):
    with pytest.raises(InputError, match=r"corpora\.x\.train\.file: '.*/x': there is no [~$]\w.* on this machine; write the path in full"):
        at_home({"corpora": {"x": {"train": {"file": path}}}})
