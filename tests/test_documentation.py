"""Every command that the documentation shows is tried here, or is listed with the reason why it cannot be.

Snakemake's are planned (`-n`) in a folder that looks like a fresh clone, targets of make are looked at (`make -n`), modules are
asked for the options that they are given, and benchmarks for the arguments.
"""

import contextlib
import importlib
import importlib.util
import inspect
import io
import itertools
import os
import re
import runpy
import shlex
import subprocess
import sys
from pathlib import Path
from unittest import mock

import pytest
import warm
from brought import bring
from snakemake.cli import main as snakemake_main
from test_recipes import RECIPES

from workflow_scripts import plugins
from workflow_scripts.evidence import analysis, metric
from workflow_scripts.models import engine
from workflow_scripts.noise import entry as noise_entry
from workflow_scripts.text.files import read_lines
from workflow_scripts.training import objective

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), ROOT / "resources/README.md"])
PAGES.remove(ROOT / "docs/tutorial.md")  # whose commands are run, in tests/workflow/test_tutorial.py
CONFIGURATIONS = sorted([ROOT / "config.yaml", *ROOT.glob("config/*.yaml"), ROOT / "slurm/config.yaml", ROOT / "Makefile"])

NO_COMMANDS = ("raw text", "module crossgap:", "ok     corpora", "──── 1 job failed", "rules/scores.smk", "root ←", "tests/<room>")
"""Beginnings of the blocks without a language that show something else: pictures, output, files."""

PROGRAMS = re.split(
    r"\s+",
    "snakemake make python python3 pip hf tensorboard git wget curl bash sh sudo apt apt-get conda apptainer docker pytest ruff pre-commit "
    "srun sbatch squeue sinfo sacctmgr sacct scancel scontrol module export . source cd cp mv rm cmp tail tmux pgrep kill",
)
"""What inline code begins with if it is a command."""

NOT_TRIED = {
    "python -m workflow_scripts.training.adapter --adapter FOLDER": "is run in tests/training/test_adapter.py",
    "python -m workflow_scripts.models.fairseq --model FOLDER": "is run in tests/models/test_fairseq.py",
    "xz -dc resources/bible": "is done by the test of the page that has it",
    "pip install -e .": "changes this environment",
    ". .venv/bin/activate": "`make setup` makes it; every target of make begins with it",
    "tensorboard --logdir": "is a server",
    "wget ": "is a download",
    "git clone https://github.com/artetxem/vecmap": "is a download",
    "module load": "is of a cluster",
    "apt-get install": "changes the machine",
    "sudo apt install": "changes the machine",
    "debootstrap": "changes the machine",
    "git clone .": "is for another system",
    "git checkout COMMIT": "changes the code",
    "git pull": "changes the code",
    "git worktree add": "makes a folder beside this one",
    "for at in": "changes the machine",
    "chroot ": "is for another system",
    "cd /root/crossgap": "is for another system",
    "docker run": "is for another system",
    "uv ": "is a program of its own",
    "pip install uv": "is a download",
    "pip install trl": "is a download",
    "pip install vllm": "is a download",
    "pip install bitsandbytes": "is a download",
    "sbatch ": "is of a cluster",
    "srun ": "is of a cluster",
    "squeue ": "is of a cluster",
    "scancel ": "is of a cluster",
    "scontrol ": "is of a cluster",
    "sinfo ": "is of a cluster",
    "sacctmgr ": "is of a cluster",
    "pip install nvidia-cublas-cu12": "is for a GPU",
    "export HF_H": "only sets a variable",
    "hf download": "is a download",
    "tail -f": "never ends",
    "pgrep -af": "looks at other processes",
    "snakemake --cores all --configfile config/real-encoder.yaml": "needs data by hand; tests/workflow/test_recipes.py plans it",
    "apptainer build": "is a download",
    "apptainer run": "needs the container",
    "conda env create": "is a download",
    "pytest ": "is a test itself",
    "pip install pre-commit": "is for who wants it",
    "pre-commit install": "is for who wants it",
    "cp results/scores.tsv": "is about a finished demo",
    "cmp before.tsv": "is about a finished demo",
    "rm -rf results": "is about a finished demo",
    "python -m workflow_scripts.<": "is a pattern, not a command",
    "python -m workflow_scripts.evidence.lengths": "is about a stage that the reader is to write",
    "snakemake results/…": "has a gap",
}
"""Beginnings of commands → why they are not tried."""


def blocks(text: str) -> list[tuple[str, str]]:
    """Language and content of the fenced blocks."""
    return re.findall(r"^ *```(\w*)\n(.*?)^ *```", text, flags=re.M | re.S)


def commands_of_page(text: str) -> list[str]:
    """Command lines in a page's blocks and in its running text."""
    found = []
    for language, content in blocks(text):
        if language in ("", "bash", "sh", "console") and not content.strip().startswith(NO_COMMANDS):
            found += content.replace("\\\n", " ").splitlines()
    inline = re.findall(r"`([^`\n]+)`", re.sub(r"^ *```.*?^ *```", "", text, flags=re.M | re.S))
    found += [code for code in inline if " " in code.strip() and code.split()[0] in PROGRAMS]
    parts = [part for line in found for part in re.sub(r"\s+#.*", "", line).split(" && ")]
    return [part.strip().removeprefix("$ ") for part in parts if part.strip()]


def commands_of_comments(text: str) -> list[str]:
    """Command lines in comments: behind a colon, or a line of their own."""
    found = []
    for line in re.findall(r"^# ?(.*)", text, flags=re.M):
        for command in re.findall(r"(?:^ *|: |\()((?:snakemake|make|python -m) .+)", re.sub(r"\s{2,}#.*", "", line)):
            # up to a bracket, a comma or a full stop that ends the command in a sentence
            command = re.match(r"(?:\"[^\"]*\"|'[^']*'|[^\"';,)])+", command)[0].rstrip(". ")
            found.append(command.partition(": ")[0] if command.startswith("make ") else command)
    return found


COMMANDS = {
    command: path
    for path, commands in [
        *((path, commands_of_page(path.read_text(encoding="utf-8"))) for path in PAGES),
        *((path, commands_of_comments(path.read_text(encoding="utf-8"))) for path in CONFIGURATIONS),
    ]
    for command in commands
}
"""Command → a file in which it stands."""
TRIED = [command for command in COMMANDS if not command.startswith(tuple(NOT_TRIED))]


def yaml_of(page: str) -> list[str]:
    """The YAML blocks of a page."""
    return [content for language, content in blocks((ROOT / page).read_text(encoding="utf-8")) if language == "yaml"]


def first_bridge() -> dict[str, str]:
    """The files that docs/extend.md has its reader write."""
    found = blocks((ROOT / "docs/extend.md").read_text(encoding="utf-8"))
    plugin, recipe = (next(content for each, content in found if each == language) for language in ("python", "yaml"))
    return {"word_order.py": plugin, "order.yaml": recipe}


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    """A folder like a fresh clone, with what readers bring themselves: the example's two files, and what a form is needed for."""
    folder = tmp_path_factory.mktemp("clone")
    for name in (
        *("Snakefile", "config.yaml", "config", "rules", "workflow_scripts", "profiles", "slurm", "envs", "docs"),
        "resources",
        "crossgap",
    ):
        (folder / name).symlink_to(ROOT / name)
    (small,) = yaml_of("README.md")
    large = yaml_of("docs/howto.md")[1]
    for name, example in {"captions.yaml": small, "my.yaml": small, "large.yaml": large}.items():
        (folder / name).write_text(example, encoding="utf-8")
    (folder / "mine").mkdir()
    for name, content in first_bridge().items():
        (folder / "mine" / name).write_text(content, encoding="utf-8")
    for recipe in sorted(ROOT.glob("config/*.yaml")):
        if re.search(r"\bdata/[A-Z]", recipe.read_text(encoding="utf-8")):
            bring(folder, *(ROOT / f"config/{part}.yaml" for part in RECIPES[recipe.stem]))
    for path in re.findall(r"\b(data/[\w./-]+)", small + large):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).touch()
    return folder


@pytest.mark.parametrize("command", TRIED)
def test_a_command_of_the_documentation_works(command, clone):
    words = shlex.split(command)
    environment = dict(word.split("=", 1) for word in words if re.match(r"[A-Z]+=", word))
    program, *arguments = [word for word in words if not re.match(r"[A-Z]+=", word) or words[0] == "make"]
    if program == "snakemake":
        # what test_recipes.py plans, which takes up to a minute, is only loaded
        recipes = [["--configfile", *(f"config/{part}.yaml" for part in parts)] for parts in RECIPES.values()]
        planned = [[*where, *recipe] for where in (["--profile", "slurm"], ["--cores", "all"]) for recipe in recipes]
        option = "--list-rules" if arguments in planned else "-n"
        # before the others: an option that takes several values must not take it for one of them
        status, said = called(snakemake_main, [option, *arguments], clone, environment)
        assert status == 0, said[-3000:]
    elif program == "make":
        done = subprocess.run(["make", "-n", *arguments], cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 0 and done.stdout, done.stderr
    elif (program, arguments[0]) == ("python", "-c"):
        done = subprocess.run([sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    else:
        assert program == "python" and arguments[0] == "-m", f"{COMMANDS[command]}: try it here, or say in NOT_TRIED why not"
        try_module(arguments[1], arguments[2:])


def test_the_first_bridge_does_what_the_page_says(clone, capsys):
    """docs/extend.md, from the file to the plan; tests/workflow/test_plugin_run.py runs such a bridge to its report."""
    text = list(itertools.islice(read_lines(ROOT / "resources/bible/de.txt.xz"), 200))
    (clone / "mine/text.de").write_text("".join(f"{line}\n" for line in text), encoding="utf-8")
    (show,) = [command for command in COMMANDS if "codeswitch show --" in command]
    done = subprocess.run([sys.executable, *shlex.split(show)[1:]], cwd=clone, capture_output=True, text=True)
    shown = done.stdout.split("\n\n")[:-1]
    assert done.returncode == 0 and len(shown) == 20, done.stderr
    assert all(sorted(re.findall(r"\w+", old)) == sorted(re.findall(r"\w+", new)) for old, new in (pair.split("\n") for pair in shown))
    preflight, run = [command for command in COMMANDS if "mine/order.yaml" in command]
    status, said = called(snakemake_main, ["-n", *shlex.split(run)[1:]], clone, {})
    # csr and order, each with text of its own
    assert status == 0 and re.search(r"^codeswitch +2$", said, flags=re.M) and re.search(r"^pretext +2$", said, flags=re.M)
    chain = next(content for language, content in blocks((ROOT / "docs/extend.md").read_text(encoding="utf-8")) if "curriculum" in content)
    (clone / "mine/chain.yaml").write_text(f"plugins: [word_order.py]\nrun: {{arms: [finetune, curriculum]}}\n{chain}", encoding="utf-8")
    status, said = called(snakemake_main, ["-n", "--cores", "all", "--configfile", "mine/chain.yaml", "--directory", "mine"], clone, {})
    assert status == 0 and re.search(r"^finetune +2$", said, flags=re.M) and re.search(r"^pretext +2$", said, flags=re.M)


def test_the_page_says_what_functions_may_ask_for():
    page = (ROOT / "docs/extend.md").read_text(encoding="utf-8")
    kinds = {"noise": noise_entry, "metric": metric, "engine": engine, "rows_objective": objective, "analysis": analysis}
    for decorator, module in kinds.items():
        (asked,) = re.findall(rf"^\| [^|]* \| `{decorator}` \| ([^|]*) \|", page, flags=re.M)
        assert re.findall(r"`(\w+)`", asked) == [*module.PARAMETERS]


def test_own_text_is_laid_over_the_papers_recipe(clone):
    """As in docs/howto.md, with the two files of the README's example."""
    example = yaml_of("docs/howto.md")[0]
    (clone / "over.yaml").write_text(example, encoding="utf-8")
    line = ["-n", "--cores", "1", "--configfile", "config/translation.yaml", "over.yaml"]
    status, said = called(snakemake_main, line, clone, {})
    assert status == 0 and "finetune" in said, said[-3000:]


def try_module(name: str, arguments: list[str]) -> None:
    """Whether a module takes these arguments."""
    if ">" in arguments:  # writes a file of the repository to standard output
        done = warm.run([warm.python(), "-m", name], cwd=ROOT)
        assert done.stdout == Path(arguments[-1]).read_text(encoding="utf-8"), done.stderr
    elif name.startswith("benchmarks.") and not any(argument.startswith("--") for argument in arguments):
        folder = importlib.util.find_spec(name).submodule_search_locations
        main = inspect.signature(importlib.import_module(f"{name}.__main__" if folder else name).main)
        if [*main.parameters] == ["sizes"]:
            assert all(argument.isdigit() for argument in arguments)
        elif arguments:
            main.bind(*arguments)
    else:
        subcommand = [argument for argument in arguments[:1] if not argument.startswith("--")]
        line = [*subcommand, "--help"]
        status, said = called(lambda _: runpy.run_module(name, run_name="__main__", alter_sys=True), line, ROOT, {"COLUMNS": "200"}, name)
        assert status == 0
        options = {argument.strip("[") for argument in arguments if argument.strip("[").startswith("--")} - {"--help", "--plugins"}
        assert all(re.search(rf"{option}\b", said) for option in options), said


def called(main, line: list[str], folder: Path, environment: dict[str, str], program: str = "snakemake") -> tuple[int, str]:
    """Status and words of a command line in this process, which saves seconds."""
    said = io.StringIO()
    with (
        contextlib.chdir(folder),
        mock.patch.dict(os.environ, {"COLUMNS": "200", **environment}),
        mock.patch.object(sys, "path", [*sys.path]),
        mock.patch.object(sys, "argv", [program, *line]),
        # half of a dry run's time; test_recipes.py reads what is printed of each job
        mock.patch("snakemake.executors.dryrun.Executor.printjob"),
        contextlib.redirect_stdout(said),
        contextlib.redirect_stderr(said),
        pytest.raises(SystemExit) as end,
    ):
        main(line)
    plugins.forget()
    return end.value.code or 0, said.getvalue()


def test_every_reason_not_to_try_a_command_is_needed():
    assert {start for start in NOT_TRIED if not any(command.startswith(start) for command in COMMANDS)} == set()


def test_commands_are_found():
    assert commands_of_page(
        "```\nmake demo && make test   # all\nsnakemake \\\n  -n\n```\n`make` and `make test` and `x y`\n```\nroot ← text\n```"
    ) == [
        "make demo",
        "make test",
        "snakemake    -n",
        "make test",
    ]
    comment = '# Here: snakemake --cores all -n\n# (as in: make resume ARGS="-n, -p").\n# make demo: runs all\n# a snakemake that waits\nx: y # snakemake'
    assert commands_of_comments(comment) == ["snakemake --cores all -n", 'make resume ARGS="-n, -p"', "make demo"]


def test_no_command_has_a_word_that_snakemake_takes_for_a_configuration_file():
    """The order of words that does not work is shown nowhere."""
    wrong = [command for command in COMMANDS if re.search(r"--configfile (?:(?!-)\S+ +)*(?!-)(?!\S*\.ya?ml\b)\S+", command)]
    assert wrong == []
