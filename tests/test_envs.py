"""One environment, written down several times: the lock, conda's files, the project's dependencies, the container."""

import ast
import re
import sys
import tomllib
from importlib import metadata
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from workflow_scripts import environment
from workflow_scripts.stage import read_json

ENVS = Path("envs")
CONDA = sorted(ENVS.glob("*.yaml"))
CONFIGURATION = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))
PROJECT = CONFIGURATION["project"]
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
LINUX = {"sys_platform": "linux", "platform_system": "Linux", "platform_machine": "x86_64", "implementation_name": "cpython"}


def pins(lines: list[str], python: str = "3.11") -> dict[str, str]:
    """Package → version of lines like ``name==version ; marker``, of which the markers are true for this Python on Linux."""
    surroundings = {**LINUX, "python_version": python, "python_full_version": f"{python}.1"}
    found = [Requirement(line) for line in lines if line.strip() and not line.startswith("#")]
    assert all(re.fullmatch(r"==[\w.+!-]+", str(each.specifier)) and not each.url and not each.extras for each in found)
    here = [each for each in found if each.marker is None or each.marker.evaluate(surroundings)]
    assert len({canonicalize_name(each.name) for each in here}) == len(here)
    return {canonicalize_name(each.name): str(each.specifier)[2:] for each in here}


def lock(conda: Path) -> Path:
    """The lock beside a file of conda's."""
    return ENVS / ("requirements.txt" if conda.stem == "crossgap" else f"{conda.stem}.txt")


def python_of(conda: Path) -> str:
    dependencies = yaml.safe_load(conda.read_text(encoding="utf-8"))["dependencies"]
    return next(each.partition("=")[2] for each in dependencies if str(each).startswith("python "))


def test_every_lock_has_its_conda_file():
    # but those of the browser, the documentation and mtdata, which no rule runs in
    others = {ENVS / f"{name}.txt" for name in ("browser", "docs", "mtdata")}
    assert {lock(conda) for conda in CONDA} == set(ENVS.glob("*.txt")) - others


@pytest.mark.parametrize("conda", CONDA, ids=lambda path: path.stem)
def test_conda_and_the_lock_agree(conda):
    content = yaml.safe_load(conda.read_text(encoding="utf-8"))
    packages = next(each["pip"] for each in content["dependencies"] if isinstance(each, dict))
    locked = lock(conda).read_text(encoding="utf-8").splitlines()
    assert packages == [line for line in locked if not line.startswith("#")] and pins(packages)
    assert content["channels"] == ["conda-forge", "nodefaults"] and "pip" in content["dependencies"]


@pytest.mark.parametrize("python", PYTHONS)
def test_the_lock_has_what_the_project_depends_on(python):
    assert SpecifierSet(PROJECT["requires-python"]).contains(python)
    locked = pins((ENVS / "requirements.txt").read_text(encoding="utf-8").splitlines(), python)
    for requirement in map(Requirement, [*PROJECT["dependencies"], *CONFIGURATION["dependency-groups"]["dev"]]):
        if requirement.marker is None or requirement.marker.evaluate({"python_version": python}):
            assert requirement.specifier.contains(locked[canonicalize_name(requirement.name)]), requirement
    minimum = re.search(r'min_version\("([\d.]+)"\)', Path("Snakefile").read_text(encoding="utf-8"))[1]
    assert SpecifierSet(f">={minimum}").contains(locked["snakemake"])


def test_the_lock_has_what_its_packages_need():
    """By what they say themselves, in the environment that the tests run in; torch pins what only its build for CUDA needs."""
    here = f"{sys.version_info[0]}.{sys.version_info[1]}"
    locked = pins((ENVS / "requirements.txt").read_text(encoding="utf-8").splitlines(), here)
    left_out = {*CONFIGURATION["tool"]["uv"]["pip"]["no-emit-package"]}
    for name, version in locked.items():
        if metadata.version(name) != version:
            continue  # another environment than the lock's
        for needed in map(Requirement, metadata.requires(name) or []):
            if needed.marker is None or needed.marker.evaluate({"extra": ""}):
                package = canonicalize_name(needed.name)
                assert package in left_out or needed.specifier.contains(locked[package]), f"{name} needs {needed}"
    assert not left_out & {*locked}


def test_the_locks_name_no_registry():
    for path in [*ENVS.glob("*.txt"), *CONDA]:
        assert not re.search(r"https?:|--\w*(index|find-links|trusted)", path.read_text(encoding="utf-8")), path


def test_the_project_depends_on_what_it_imports():
    declared = {canonicalize_name(Requirement(each).name) for each in PROJECT["dependencies"]}
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in Path("workflow_scripts").rglob("*.py")]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    imported = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    imported |= {node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module}
    packages = packages_distributions()  # of the libraries that are installed; COMET and mtdata have environments of their own
    needed = {canonicalize_name(name) for module in imported for name in packages.get(module.partition(".")[0], [])[:1]}
    assert len(needed) > 30 and needed - declared == {"ipadic", "mecab-python3"}  # which sacrebleu[ja] brings


def test_conda_and_the_container_take_a_python_that_the_lock_is_for():
    python = python_of(ENVS / "crossgap.yaml")
    assert python in PYTHONS and f"From: python:{python}-slim\n" in (ENVS / "crossgap.def").read_text(encoding="utf-8")
    assert python_of(ENVS / "comet.yaml") <= ".".join(map(str, environment.NEWEST["comet"]))
    workflow = yaml.safe_load(Path(".github/workflows/ci.yml").read_text(encoding="utf-8"))
    assert workflow["jobs"]["check"]["strategy"]["matrix"]["python"] == [*PYTHONS]


def test_a_tool_of_older_pythons_takes_one_that_is_there_or_says_which_it_needs(tmp_path, monkeypatch, commands):
    here = sys.version_info[:2]
    monkeypatch.setitem(environment.NEWEST, "comet", here)
    assert environment.suitable("comet") == sys.executable == environment.suitable("mtdata")
    monkeypatch.setattr(sys, "version_info", (3, 99, 0))
    monkeypatch.setitem(environment.NEWEST, "comet", (3, 12))
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "comet.txt").write_text("unbabel-comet==2.2.7\n")
    environment.main(tmp_path / "comet.txt", tmp_path / "comet.json")
    said = read_json(tmp_path / "comet.json")
    assert (
        said["python"] is None
        and "comet.txt is for Python 3.12 and older, and this is 3.99; put a python3.12 on the PATH" in said["reason"]
    )
    commands("python3.11", "")
    assert environment.suitable("comet") == str(tmp_path / "python3.11")


def test_the_container_installs_the_lock():
    recipe = (ENVS / "crossgap.def").read_text(encoding="utf-8")
    sections = dict(re.findall(r"^%(\w+)\n((?:    .*\n)+)", recipe, flags=re.MULTILINE))
    assert {"files", "post", "runscript", "test"} <= set(sections)
    ((source, inside),) = (line.split() for line in sections["files"].splitlines())
    assert Path(source) == ENVS / "requirements.txt" and f"--requirement {inside}\n" in sections["post"]
