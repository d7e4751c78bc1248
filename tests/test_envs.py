"""One environment, written down several times: the lock, conda's files, the project's dependencies, the container."""

import ast
import re
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

ENVS = Path("envs")
CONDA = sorted(ENVS.glob("*.yaml"))
PROJECT = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]


def pins(lines: list[str]) -> dict[str, str]:
    """Package → version of lines like ``name==version``."""
    found = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
    assert all(re.fullmatch(r"[\w.-]+==[\w.+!-]+", line) for line in found), found
    assert len({canonicalize_name(line.split("==")[0]) for line in found}) == len(found)
    return {canonicalize_name(name): version for name, version in (line.split("==") for line in found)}


def lock(conda: Path) -> Path:
    """The lock beside a file of conda's."""
    return ENVS / ("requirements.txt" if conda.stem == "crossgap" else f"{conda.stem}.txt")


def python_of(conda: Path) -> str:
    dependencies = yaml.safe_load(conda.read_text(encoding="utf-8"))["dependencies"]
    return next(each.partition("=")[2] for each in dependencies if str(each).startswith("python "))


def test_every_lock_has_its_conda_file():
    # but those of the browser and of mtdata, which no rule runs in
    assert {lock(conda) for conda in CONDA} == set(ENVS.glob("*.txt")) - {ENVS / "browser.txt", ENVS / "mtdata.txt"}


@pytest.mark.parametrize("conda", CONDA, ids=lambda path: path.stem)
def test_conda_and_the_lock_agree(conda):
    content = yaml.safe_load(conda.read_text(encoding="utf-8"))
    packages = next(each["pip"] for each in content["dependencies"] if isinstance(each, dict))
    assert pins(packages) == pins(lock(conda).read_text(encoding="utf-8").splitlines())
    assert content["channels"] == ["conda-forge", "nodefaults"] and "pip" in content["dependencies"]


def test_the_lock_has_what_the_project_depends_on():
    locked = pins((ENVS / "requirements.txt").read_text(encoding="utf-8").splitlines())
    for requirement in map(Requirement, PROJECT["dependencies"]):
        assert requirement.specifier.contains(locked[canonicalize_name(requirement.name)]), requirement
    minimum = re.search(r'min_version\("([\d.]+)"\)', Path("Snakefile").read_text(encoding="utf-8"))[1]
    assert SpecifierSet(f">={minimum}").contains(locked["snakemake"])


def test_the_project_depends_on_what_it_imports():
    declared = {canonicalize_name(Requirement(each).name) for each in PROJECT["dependencies"]}
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in Path("workflow_scripts").rglob("*.py")]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    imported = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    imported |= {node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module}
    packages = packages_distributions()  # of the libraries that are installed; COMET and mtdata have environments of their own
    needed = {canonicalize_name(name) for module in imported for name in packages.get(module.partition(".")[0], [])[:1]}
    assert len(needed) > 30 and needed - declared == {"ipadic", "mecab-python3"}  # which sacrebleu[ja] brings


def test_all_take_the_same_python():
    python = python_of(ENVS / "crossgap.yaml")
    assert SpecifierSet(PROJECT["requires-python"]).contains(python)
    assert f"PYTHON ?= python{python}\n" in Path("Makefile").read_text(encoding="utf-8")
    assert f"From: python:{python}-slim\n" in (ENVS / "crossgap.def").read_text(encoding="utf-8")


def test_the_container_installs_the_lock():
    recipe = (ENVS / "crossgap.def").read_text(encoding="utf-8")
    sections = dict(re.findall(r"^%(\w+)\n((?:    .*\n)+)", recipe, flags=re.MULTILINE))
    assert {"files", "post", "runscript", "test"} <= set(sections)
    ((source, inside),) = (line.split() for line in sections["files"].splitlines())
    assert Path(source) == ENVS / "requirements.txt" and f"--requirement {inside}\n" in sections["post"]
