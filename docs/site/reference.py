"""The reference of what a plugin may import from `crossgap`, made of signatures and docstrings."""

import ast
import dataclasses
import inspect
import itertools
import re
import sys
import textwrap
from typing import Any

import crossgap
from docs.site.settings import in_markdown
from workflow_scripts import registry


def page() -> str:
    """The page in Markdown: each public name with its signature and docstring, its module's, and the fields of the entries it makes."""
    out = [
        "# What a plugin may import",
        "",
        f"`from crossgap import …` gives these {len(crossgap.__all__)} names, and they stay from one release to the next. "
        "[extend.md](extend.md) shows each in use.",
        "",
    ]
    for name in sorted(crossgap.__all__, key=str.lower):
        found = getattr(crossgap, name)
        module = sys.modules[found.__module__]
        out += [f"## `{name}`", "", "```python", f"{name}{signature(found)}", "```", "", prose(found), ""]
        if inspect.isclass(found):
            out += fields(found)
            continue
        if about := _about(module):
            out += [f"### How it is used ({name})", "", about, ""]
        asks = decorates(found) or "Raises `InputError` for functions" in prose(found)
        if asks and (asked := _asked(getattr(module, "PARAMETERS", {}))):
            out += [f"### What the function may ask for ({name})", "", *asked, ""]
        for entry in entries(module) if decorates(found) else ():
            out += [f"### What is said of it ({name})", "", *fields(entry)]
    return "\n".join(out) + "\n"


def signature(found: Any) -> str:
    """A signature on one line, without the modules of its types; nothing for an exception."""
    if inspect.isclass(found) and issubclass(found, Exception):
        return "(message)"
    made = str(inspect.signature(found)).replace("= ''", '= ""').replace("'", "")
    made = re.sub(r"<function (\w+) at \w+>", r"\1", made)
    made = re.sub(r"<class (\w+)>", r"\1", made)
    made = re.sub(r"mappingproxy\((.*?)\)", r"\1", made)
    return re.sub(r"\b(?:[a-z_]+\.)+(?=[A-Za-z])", "", made)


def decorates(found: Any) -> bool:
    """Whether a function registers what it decorates."""
    return inspect.isfunction(found) and str(inspect.signature(found)).partition("->")[2].count("Callable") > 1


def prose(found: Any) -> str:
    """A docstring as Markdown; arguments and errors become a list."""
    lines: list[str] = []
    listed = False
    for line in (inspect.getdoc(found) or "").splitlines():
        if line in ("Args:", "Raises:", "Returns:"):
            lines, listed = [*lines, f"**{line[:-1]}**", ""], True
        elif listed and (item := re.match(r"    (\w+): (.*)", line)):
            lines.append(f"- `{item[1]}`: {in_markdown(item[2])}")
        else:
            lines.append(in_markdown(line.strip() if listed else line))
    return "\n".join(lines)


def _about(module: Any) -> str:
    """A module's docstring behind its first line, as the reStructuredText that it is."""
    about = (inspect.getdoc(module) or "").partition("\n")[2].strip()
    return f"````{{eval-rst}}\n{about}\n````" if about else ""


def _asked(parameters: Any) -> list[str]:
    if any(isinstance(each, dict) for each in parameters.values()):
        return [line for name, each in parameters.items() for line in (f"`{name}`:", "", *_asked(each), "")]
    return [f"- `{name}`: {in_markdown(says)}" for name, says in parameters.items()]


def entries(module: Any) -> list[type]:
    """The classes of entries that a module defines."""
    return [
        each
        for each in vars(module).values()
        if inspect.isclass(each) and issubclass(each, registry.Entry) and each.__module__ == module.__name__
    ]


def fields(kind: type) -> list[str]:
    """The fields of a class with their docstrings, those of its parents first; a list in Markdown."""
    docstrings: dict[str, str] = {}
    for each in reversed(kind.__mro__):
        if each.__module__.startswith("workflow_scripts"):
            docstrings |= _docstrings(each)
    own = [field.name for field in dataclasses.fields(kind)] if dataclasses.is_dataclass(kind) else getattr(kind, "_fields", ())
    return [*(f"- `{name}`: {in_markdown(' '.join(docstrings[name].split()))}" for name in own if name in docstrings), ""]


def _docstrings(kind: type) -> dict[str, str]:
    """Attribute → the string that stands below it."""
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    body = tree.body if isinstance(tree, ast.ClassDef) else []
    found = {}
    for line, below in itertools.pairwise(body):
        match line, below:
            case ast.AnnAssign(target=ast.Name(name)), ast.Expr(value=ast.Constant(str(text))):
                found[name] = text
    return found
