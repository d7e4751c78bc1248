"""The files of the package import each other in no circle; imports under TYPE_CHECKING and inside functions count."""

import ast
import sys
from graphlib import CycleError, TopologicalSorter
from importlib.machinery import SOURCE_SUFFIXES, PathFinder, SourceFileLoader
from pathlib import Path

import pytest

from workflow_scripts import WithoutData

PACKAGE = Path("workflow_scripts")


def module_of(path, root):
    parts = path.relative_to(root.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(root):
    """Module → the modules of the package that it imports."""
    files = {module_of(path, root): path for path in sorted(root.rglob("*.py"))}
    found = {}
    for name, path in files.items():
        wanted = set()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                wanted |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                inside = {f"{node.module}.{alias.name}" for alias in node.names}
                wanted |= inside & files.keys() or {node.module}
        found[name] = (wanted & files.keys()) - {name}
    return found


def test_no_files_import_each_other_in_a_circle():
    found = imports(PACKAGE)
    assert len(found) > 200 and "workflow_scripts.stage" in found["workflow_scripts.run.config"]
    TopologicalSorter(found).prepare()


@pytest.mark.parametrize("line", ["import p.a", "from p import a", "from p.a import x", "if TYPE_CHECKING:\n    from p.a import x"])
def test_a_circle_is_found(tmp_path, line):
    (tmp_path / "p").mkdir()
    for name, content in {"__init__": "", "a": "def f():\n    import p.b", "b": line}.items():
        (tmp_path / "p" / f"{name}.py").write_text(content, encoding="utf-8")
    with pytest.raises(CycleError):
        TopologicalSorter(imports(tmp_path / "p")).prepare()


def test_a_folder_of_data_is_no_package(tmp_path, monkeypatch):
    """transformers asks for a library `datasets`, and would get the user's folder."""
    assert isinstance(sys.path_importer_cache[str(PACKAGE.resolve().parent)], WithoutData)
    for name in ("datasets/train.tsv", "plain/a.py", "nested/inner/a.py", "usual/__init__.py"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).touch()
    known = {}
    for finds in (None, WithoutData(str(tmp_path), (SourceFileLoader, SOURCE_SUFFIXES))):
        monkeypatch.setitem(sys.path_importer_cache, str(tmp_path), finds)
        if finds is None:
            del sys.path_importer_cache[str(tmp_path)]
        known[finds] = [name for name in ("datasets", "plain", "nested", "usual") if PathFinder.find_spec(name, [str(tmp_path)])]
    assert [*known.values()] == [["datasets", "plain", "nested", "usual"], ["plain", "nested", "usual"]]
