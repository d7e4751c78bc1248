"""Command lines, atomic files, plain settings."""

import functools
import importlib
import json
import os
import re
import resource
import stat
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple

import pytest
import warm

from workflow_scripts import folder_for_compiled, stage
from workflow_scripts.number_types import Positive, Share
from workflow_scripts.stage import InputError, _plain_flags, atomic, from_plain, output_of, provenance, read_json, write_json
from workflow_scripts.storage import checksum
from workflow_scripts.text import corpus


@dataclass
class Inner:
    rate: float = 0.1


@dataclass
class Outer:
    pair: tuple[str, str] = ("a", "b")
    inner: Inner = field(default_factory=Inner)
    named: dict[str, Inner] = field(default_factory=dict)
    listed: list[Inner] = field(default_factory=list)
    maybe: Inner | None = None


def test_files_that_cannot_be_read_are_named(tmp_path):
    (tmp_path / "cut.json").write_text('{"a": ')
    with pytest.raises(InputError, match=r"cut\.json: is damaged .*delete it"):
        read_json(tmp_path / "cut.json")
    with pytest.raises(InputError, match=f"{tmp_path}: cannot be read: Is a directory"):
        checksum(tmp_path)


def test_plain_values_become_dataclasses_everywhere():
    made = from_plain(Outer, {"pair": ["x", "y"], "named": {"n": {"rate": 2}}, "listed": [{"rate": 3}], "maybe": {"rate": 4}})
    assert made == Outer(("x", "y"), Inner(), {"n": Inner(2)}, [Inner(3)], Inner(4))
    with pytest.raises(InputError, match=r"unknown setting.*rte"):
        from_plain(Outer, {"inner": {"rte": 1}})


@dataclass
class Needy:
    rate: float


def test_settings_are_never_taken_for_another_class_with_the_same_fields():
    with pytest.raises(TypeError, match="union of several dataclasses"):
        from_plain(Inner | Needy, {"rate": 0.5})
    assert from_plain(list[Needy | None], [{"rate": 0.5}, None]) == [Needy(0.5), None]
    with pytest.raises(InputError, match=r"Needy: the setting\(s\) \['rate'\] must be given"):
        from_plain(Needy, {})


@dataclass
class Limited:
    share: Share = 0.5
    most: Positive | Literal["auto"] | None = None
    listed: list[Positive] = field(default_factory=list)
    pair: tuple[Share, Share] = (0.1, 0.2)
    many: tuple[Positive, ...] = ()


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"share": 1.5}, "share: must be ≤ 1, got 1.5"),
        ({"share": float("nan")}, "share: must be ≥ 0, got nan"),
        ({"share": "x"}, "share: must be a number, got 'x'"),
        ({"most": 0}, "most: must be ≥ 1, got 0"),
        ({"listed": [1, -1]}, "listed: must be ≥ 1, got -1"),
        ({"pair": [0.9, 1.5]}, "pair: must be ≤ 1, got 1.5"),
        ({"pair": [0.9, 0.5, 0.5]}, r"pair: must be 2 values, got \[0.9, 0.5, 0.5\]"),
        ({"many": (1, 2, 0)}, "many: must be ≥ 1, got 0"),
        ([], r"Limited: settings are a JSON object, got \[\]"),
    ],
)
def test_numbers_beyond_their_limits_are_refused(settings, said):
    assert from_plain(Limited, {"share": 1, "most": "auto", "listed": [2]}) == Limited(1, "auto", [2])
    assert from_plain(Limited, {"most": None}).most is None
    with pytest.raises(InputError, match=said):
        from_plain(Limited, settings)


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--count", "0"], "count: must be ≥ 1, got 0"),
        (["--share", "-1"], "share: must be ≥ 0, got -1.0"),
        (["--pair", "0.5", "2"], "pair: must be ≤ 1, got 2.0"),
        (["--count", "2"], None),
    ],
)
def test_flags_beyond_their_limits_are_refused(flags, said, monkeypatch):
    called = []

    def main(path: Path, *, count: Positive = 1, settings: Limited = Limited()) -> None:
        """Take numbers."""
        called.append(count)

    monkeypatch.setattr(sys, "argv", ["main", "--path", "x", *flags])
    if said is None:
        stage.run(main)
        assert called == [2]
    else:
        with pytest.raises(SystemExit, match=f"error: {said}"):
            stage.run(main)
        assert not called


def test_a_file_takes_its_name_only_when_it_is_whole(tmp_path):
    (tmp_path / "f").write_text("old")
    with pytest.raises(RuntimeError), atomic(tmp_path / "f") as file:
        file.write("half")
        raise RuntimeError
    assert (tmp_path / "f").read_text() == "old" and len(list(tmp_path.iterdir())) == 1


def test_a_file_is_on_the_disk_before_it_takes_its_name(tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr(os, "fsync", lambda file: seen.append((os.fstat(file).st_size, (tmp_path / "f").exists())))
    with atomic(tmp_path / "f") as file:
        file.write("whole")
    assert seen == [(5, False)]


def test_json_carries_its_provenance(tmp_path):
    write_json(tmp_path / "x.json", {"value": 1})
    assert read_json(tmp_path / "x.json") == {"value": 1, "provenance": provenance()}
    assert provenance()["commit"] and provenance()["versions"]["numpy"]


def test_a_machine_without_git_writes_its_json(tmp_path):
    """In a clone, as on a cluster's compute nodes: the commit is unknown, and nothing else differs."""
    (tmp_path / "nothing").mkdir()
    (tmp_path / "a").write_text("haus house\n")
    outputs = [f"--{name}={tmp_path / name}" for name in ("lexicon-ab", "lexicon-ba", "report")]
    line = [sys.executable, "-m", "workflow_scripts.lexicon.lexicon", *outputs, "--languages", "de", "en", f"--dictionary={tmp_path / 'a'}"]
    done = subprocess.run(line, env={**os.environ, "PATH": str(tmp_path / "nothing")}, capture_output=True, text=True)
    assert done.returncode == 0 and not done.stderr, done.stderr
    found = read_json(tmp_path / "report")
    assert found["provenance"] == {**provenance(), "commit": "unknown"} and found["directions"]["de-en"]["words"] == 1


def test_a_program_that_is_missing_fails_or_hangs_says_nothing(commands):
    commands("here", "yes")
    commands("broken", "no", 1)
    assert (output_of("here"), output_of("broken"), output_of("not-there"), output_of("/etc/passwd")) == ("yes\n", None, None, None)


def command(*arguments):
    return warm.run([warm.python(), "-m", *arguments])


def test_command_lines_read_like_a_manual():
    done = command("workflow_scripts.lexicon.mapping", "--help")
    assert done.returncode == 0 and "--search-cutoff" in done.stdout and "CSLS" in done.stdout


def test_a_mistake_on_the_command_line_names_the_command_that_helps():
    done = command("workflow_scripts.lexicon.mapping", "--seed", "1")
    assert done.returncode and "python -m workflow_scripts.lexicon.mapping --help" in " ".join(done.stderr.replace("│", " ").split())


def stages():
    """Every command of every stage: its module, and the arguments before its flags."""
    for path in sorted(Path("workflow_scripts").rglob("*.py")):
        main = path.read_text(encoding="utf-8").partition('if __name__ == "__main__":')[2]
        if found := re.search(r"^    run\((.*)\)$", main, re.MULTILINE):
            module = ".".join(path.with_suffix("").parts)
            heads = ["finetune", "predict", "compare"] if "commands(" in found[1] else []
            of_a_task = ["--task", "classification"] if "of=" in found[1] else []
            yield from ((module, [name, *of_a_task]) for name in re.findall(r'"([\w-]+)":', found[1]) or heads or [""])


@pytest.mark.parametrize(("module", "subcommand"), stages(), ids=lambda value: "".join(value).rpartition(".")[2])
def test_every_stage_explains_its_settings(module, subcommand, monkeypatch, capsys):
    entry = importlib.import_module(module)
    call = Path(entry.__file__).read_text(encoding="utf-8").rpartition("    run(")[2].strip()
    monkeypatch.setattr(sys, "argv", [module, *filter(None, subcommand), "--help"])
    with pytest.raises(SystemExit) as ended:
        eval(f"run({call}", {**vars(entry), "run": stage.run})  # as the module itself does
    said = capsys.readouterr().out
    assert ended.value.code == 0 and "--" in said


def test_a_stage_with_subcommands_tells_what_each_does(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["corpus.py", "--help"])
    stage.run({"held-out": corpus.held_out, "train": corpus.train})
    usage, *each = capsys.readouterr().out.splitlines()
    assert usage == "usage: corpus {held-out,train} [--help]" and [line.split(":")[0].strip() for line in each] == ["held-out", "train"]
    assert all(line.endswith(".") for line in each)
    monkeypatch.setattr("sys.argv", ["corpus.py", "hold"])
    with pytest.raises(SystemExit, match=r"^usage: corpus"):
        stage.run({"held-out": corpus.held_out, "train": corpus.train})


def test_settings_by_names_of_ones_own_are_given_as_json(tmp_path):
    text = ["Sport\tHeute gewann sie.", "Kultur\tDas Theater öffnet."] * 4
    (tmp_path / "train.tsv").write_text("\n".join(text) + "\n")
    flags = ["--part", "test/de", "--settings.language", "de", "--settings.labels", "Sport", "Kultur"]
    for key in ("train", "dev"):
        flags += [f"--settings.{key}.file", str(tmp_path / "train.tsv"), f"--settings.{key}.columns", "label", "1", "text", "2"]
    tests = {"de": {"file": str(tmp_path / "train.tsv"), "columns": {"label": 1, "text": 2}}}
    outputs = [f"--{name}={tmp_path / name}" for name in ("examples", "sentences", "report")]
    done = command("workflow_scripts.text.labelled", *outputs, *flags, "--settings.test", json.dumps(tests))
    assert done.returncode == 0, done.stderr
    assert read_json(tmp_path / "report")["labels"] == {"Sport": 4, "Kultur": 4}


def test_flags_and_a_settings_block_do_the_same(tmp_path):
    (tmp_path / "t").write_text("eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf\n" * 9)
    shared = ["workflow_scripts.lexicon.embeddings", "--text", str(tmp_path / "t"), "--language", "de"]
    settings = {"dimensions": 5, "negative": 5, "epochs": 1}
    one = command(*shared, "--vectors", str(tmp_path / "a"), "--settings", json.dumps(settings))
    two = command(*shared, "--vectors", str(tmp_path / "b"), *(f"--{key}={value}" for key, value in settings.items()))
    assert one.returncode == two.returncode == 0, one.stderr + two.stderr
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


class Files(NamedTuple):
    source: Path
    seed: int = 1
    codes: tuple[str, ...] = ()
    whole: bool = False


def a_stage(files: Files, *, output: Path, settings: Inner) -> None: ...


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ("--source a --output b", Files(Path("a"))),
        ("--output b --source a --seed 3 --codes de en --whole", Files(Path("a"), 3, ("de", "en"), True)),
    ],
)
def test_the_fields_of_a_named_tuple_are_flags(flags, expected):
    call = functools.partial(a_stage, settings=Inner())
    assert _plain_flags(call, flags.split()) == {"files": expected, "output": Path("b")}


@pytest.mark.parametrize(
    "flags", ["--output b", "--output b --files a", "--source a --output b --seed x", "--source a --output b --more 1"]
)
def test_flags_that_do_not_fit_are_left_to_be_explained(flags):
    assert _plain_flags(functools.partial(a_stage, settings=Inner()), flags.split()) is None


def test_bad_input_is_one_line_not_a_traceback(tmp_path):
    done = command(
        "workflow_scripts.lexicon.embeddings", "--text", str(tmp_path / "absent"), "--vectors", "v", "--language", "de", "--settings", "{}"
    )
    assert done.returncode == 1 and done.stderr.startswith("error: ") and "no such file" in done.stderr and "Traceback" not in done.stderr


def test_a_full_disk_is_reported_and_leaves_nothing_half_written(tmp_path):
    (tmp_path / "t").write_text("".join(f"wort{i} " * 3 + "\n" for i in range(300)))
    line = ["workflow_scripts.lexicon.embeddings", "--text", str(tmp_path / "t"), "--language", "de"]
    command = [sys.executable, "-m", *line, "--settings", '{"min_count": 1, "epochs": 1, "dimensions": 50}', "--vectors"]
    # compiled code is on the disk after this
    assert subprocess.run([*command, str(tmp_path / "v")], capture_output=True).returncode == 0 and (tmp_path / "v").stat().st_size > 9999
    full = subprocess.run(
        [*command, str(tmp_path / "out/v")],
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (9999, 9999)),
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},  # or compiled files would be cut off as well
    )
    said = full.stderr
    assert full.returncode == 1 and said.startswith("error: ") and "out/v: cannot be written: File too large; " in said, said
    assert " MB free; make room, or " in said
    assert not list((tmp_path / "out").iterdir())


def test_a_value_that_is_none_is_explained(tmp_path):
    shared = ["workflow_scripts.noise.codeswitch", "parallel", *(f"--{name}=x" for name in ("text-a", "text-b", "dev-a", "dev-b"))]
    shared += ["--lexicon-ab", "x", "--lexicon-ba", "x", "--output", str(tmp_path), "--languages", "de", "en", "--settings"]
    for wrong, named in (
        (["{}", "--kind", "swap"], "codeswitch"),
        (["{}", "--seed", "one"], "seed"),
        (["{rate: 1}"], "needs one JSON value"),
    ):
        done = command(*shared, *wrong)
        assert done.returncode and named in done.stdout + done.stderr and "Traceback" not in done.stderr


def test_compiled_functions_find_a_folder_where_neither_source_nor_home_can_be_written_to(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert folder_for_compiled(tmp_path / "absent", tmp_path) is None
    folder = folder_for_compiled(tmp_path / "absent")
    assert Path(folder).parent == tmp_path and stat.S_IMODE(Path(folder).stat().st_mode) == 0o700
    assert folder_for_compiled(tmp_path / "absent") == folder
    another = os.getuid() + 1
    monkeypatch.setattr(os, "getuid", lambda: another)
    with pytest.raises(PermissionError, match="belongs to another user; set NUMBA_CACHE_DIR"):
        folder_for_compiled(tmp_path / "absent")


@pytest.mark.parametrize("rank, said", [("0", "error: a bad file"), ("3", "process 3 on ")])
def test_each_of_several_processes_tells_its_own_error(rank, said):
    """The others may all be well: on one machine a file is missing, or its GPU is broken."""
    code = "from workflow_scripts import stage\ndef main():\n    raise stage.InputError('a bad file')\nstage.run(main)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, "RANK": rank})
    assert done.returncode == 1 and done.stderr.startswith(said) and done.stderr.endswith("error: a bad file\n")


@pytest.mark.parametrize("lines, buffered", [(1, ""), (100_000, ""), (1, "1")])
def test_a_command_whose_reader_has_enough_ends_in_silence(lines, buffered):
    program = f"from workflow_scripts.stage import run\ndef main(): print('word\\n' * {lines})\nrun(main)"
    # the reader leaves at once, whether much is written or little
    piped = ["bash", "-c", 'set -o pipefail; { sleep 0.2; "$0" -c "$1"; } | true', sys.executable, program]
    done = subprocess.run(piped, capture_output=True, text=True, env={**os.environ, "PYTHONUNBUFFERED": buffered})
    assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.parametrize("stage", ["lexicon.mapping", "evidence.word_accuracy"])
def test_help_whose_reader_has_gone_ends_in_silence(stage):
    help_of = f"{sys.executable} -m workflow_scripts.{stage} --help"
    # the reader leaves at once, before the help is written
    done = subprocess.run(f"{help_of} | true", shell=True, capture_output=True, text=True)
    assert done.returncode == 0 and done.stderr == ""
