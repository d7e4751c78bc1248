"""The list of errors: what the code says of bad input, read from its syntax trees, with gaps where a value stands.

Four forms are found: `InputError(…)`, what a function that is called for it returns, a problem of the configuration that a check yields,
and a finding of preflight that is WRONG.
"""

import ast
import itertools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
GAP = "…"
"""What stands in the place of a value."""
CHECKS = ("check", "problem", "undefined", "consistency")
"""A generator whose module or name has one of these yields problems of the configuration."""
SAYS = ("missing_file", "explain", "_without_task", "_nameless")
"""Functions that return a message which others raise."""


Texts = dict[str, list[ast.expr]]


class Message(NamedTuple):
    """One error as the code has it."""

    module: str
    """Path of the module from the repository's root."""
    line: int
    text: str
    """The message, with gaps."""


def messages(root: Path = ROOT) -> list[Message]:
    """All messages, by module and line."""
    found: dict[Message, None] = {}
    for path in sorted([*root.glob("workflow_scripts/**/*.py"), *root.glob("crossgap/**/*.py")]):
        module = path.relative_to(root).as_posix()
        for line, expression, texts in _raised(ast.parse(path.read_text(encoding="utf-8")), module):
            for made in templates(expression, texts):
                text = re.sub(rf"{GAP}(\s*{GAP})+", GAP, made).strip()
                if re.search(r"[a-z]{3}", text):
                    found[Message(module, line, text)] = None
    return sorted(found)


def _raised(tree: ast.Module, module: str) -> Iterator[tuple[int, ast.expr, Texts]]:
    """Line and expression of each message, with the texts that the function around it gives to names."""
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    given = {id(inner): node for node in functions for inner in ast.walk(node) if isinstance(inner, ast.Call)}
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name("InputError") | ast.Attribute(attr="InputError"), args=[said]):
                yield node.lineno, said, _texts(given.get(id(node)))
            case ast.Call(func=ast.Name("Finding"), args=[ast.Constant("WRONG"), _, said]):
                yield node.lineno, said, _texts(given.get(id(node)))
            case ast.FunctionDef(name=name) if name in SAYS:
                for inner in ast.walk(node):
                    if isinstance(inner, ast.Return) and isinstance(inner.value, ast.JoinedStr):
                        yield inner.lineno, inner.value, {}
            case ast.FunctionDef(name=name) if any(word in f"{module} {name}" for word in CHECKS):
                for inner in ast.walk(node):
                    if isinstance(inner, ast.Yield) and isinstance(inner.value, ast.JoinedStr | ast.BinOp):
                        yield inner.lineno, inner.value, {}


def _texts(function: ast.FunctionDef | None) -> Texts:
    """Name → the texts that a function gives to it; nothing outside of functions."""
    found: Texts = {}
    for node in ast.walk(function) if function else ():
        match node:
            case ast.Assign(targets=[ast.Name(name)], value=ast.JoinedStr() | ast.Constant(str()) as text):
                found.setdefault(name, []).append(text)
    return found


def templates(expression: ast.expr, texts: Texts) -> list[str]:
    """An expression that makes a text, as text: constants as they are, and a gap for all that only the run knows.

    A name that is given several texts makes several messages.
    """
    match expression:
        case ast.Constant(str(text)):
            return [text]
        case ast.JoinedStr(values=parts):
            return ["".join(made) for made in itertools.product(*(templates(part, texts) for part in parts))]
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return [a + b for a in templates(left, texts) for b in templates(right, texts)]
        case ast.FormattedValue(value=ast.Name(name)) | ast.Name(name) if name in texts:
            rest = {other: own for other, own in texts.items() if other != name}
            return [made for text in texts[name] for made in templates(text, rest)]
        case _:
            return [GAP]


def page(explained: dict[str, str]) -> str:
    """The page in Markdown: a part for each room, and each message with its place. `explained`: message → the link to its explanation."""
    found = messages()
    out = [
        "# All errors",
        "",
        f"These are Crossgap's {len(found):,} messages about bad input. Each is one line that names the file, the place, the value and the "
        "way out. "
        f"{GAP} stands for a value. Search this page for words of your message. "
        "[Troubleshooting](troubleshooting.md) explains those that people meet most.",
    ]
    room = None
    # modules of the root come between the rooms by their names
    for message in sorted(found, key=lambda each: each.module.rpartition("/")[0]):
        if (here := message.module.rpartition("/")[0]) != room:
            room = here
            out += ["", f"## {room.removeprefix('workflow_scripts').strip('/') or room}", ""]
        more = f" [Explained]({explained[message.text]})." if message.text in explained else ""
        out.append(f"- {as_code(message.text)} ({message.module}, line {message.line}){more}")
    return "\n".join(out) + "\n"


def as_code(text: str) -> str:
    """A text as code in Markdown, on one line, whatever backticks it has."""
    fence = "`" * (max(map(len, re.findall("`+", text)), default=0) + 1)
    pad = " " if fence != "`" or text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{pad}{' '.join(text.split())}{pad}{fence}"


def explained(guide: Path = ROOT / "docs/troubleshooting.md") -> dict[str, str]:
    """Message → the link to its explanation, of the messages that the guide explains: each is a heading, as code."""
    headings = re.findall(r"^### `+ ?(.*?) ?`+$", guide.read_text(encoding="utf-8"), flags=re.M)
    return {heading: f"troubleshooting.md#{anchor(heading)}" for heading in headings}


def anchor(heading: str) -> str:
    """The anchor of a heading, as GitHub and MyST make it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
