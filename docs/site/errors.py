"""The list of errors: what the code says of bad input, read from its syntax trees, with gaps where a value stands.

Three forms are found: `InputError(…)`, a problem of the configuration that a check yields, and a finding of preflight that is WRONG.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
GAP = "…"
"""What stands in the place of a value."""
CHECKS = ("check", "problem")
"""A generator whose module or name has one of these yields problems of the configuration."""


class Message(NamedTuple):
    """One error as the code has it."""

    module: str
    """Path of the module from the repository's root."""
    line: int
    text: str
    """The message, with gaps."""


def messages(root: Path = ROOT) -> list[Message]:
    """All messages, by module and line."""
    found = []
    for path in sorted([*root.glob("workflow_scripts/**/*.py"), *root.glob("crossgap/**/*.py")]):
        module = path.relative_to(root).as_posix()
        for line, expression in _told(ast.parse(path.read_text(encoding="utf-8")), module):
            text = re.sub(rf"{GAP}(\s*{GAP})+", GAP, template(expression)).strip()
            if re.search(r"[a-z]{3}", text):
                found.append(Message(module, line, text))
    return found


def _told(tree: ast.Module, module: str) -> Iterator[tuple[int, ast.expr]]:
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name("InputError") | ast.Attribute(attr="InputError"), args=[said]):
                yield node.lineno, said
            case ast.Call(func=ast.Name("Finding"), args=[ast.Constant("WRONG"), _, said]):
                yield node.lineno, said
            case ast.FunctionDef(name=name) if any(word in f"{module} {name}" for word in CHECKS):
                for inner in ast.walk(node):
                    if isinstance(inner, ast.Yield) and isinstance(inner.value, ast.JoinedStr | ast.BinOp):
                        yield inner.lineno, inner.value


def template(expression: ast.expr) -> str:
    """An expression that makes a text, as text: constants as they are, and a gap for all that only the run knows."""
    match expression:
        case ast.Constant(str(text)):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(template(part) for part in parts)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return template(left) + template(right)
        case _:
            return GAP


def page(explained: dict[str, str]) -> str:
    """The page in Markdown: a part for each room, and each message with its place. `explained`: message → the link to its explanation."""
    found = messages()
    out = [
        "# All errors",
        "",
        f"Crossgap says {len(found)} things about bad input. Each is one line that names the file, the place, the value and the way out. "
        f"{GAP} stands for a value. Search this page for words of your message.",
    ]
    room = None
    for message in found:
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


def anchor(heading: str) -> str:
    """The anchor of a heading, as GitHub and MyST make it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
