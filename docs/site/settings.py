"""The reference of the configuration: a page for each block of settings, and a table of all places, made of the schema.

The schema comes from the dataclasses and the registry (`workflow_scripts.run.config.schema`). Examples are the values that the recipes
of this repository have at the same place; where none has one, the default or a value that the schema allows.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from docs.site.errors import anchor, as_code
from workflow_scripts.run import config

ROOT = Path(__file__).resolve().parents[2]
NAME = "NAME"
"""What stands in a path for a name of the user's own."""
SHOWN = 100
"""The longest example in characters; of longer ones the place is named alone."""
Schema = Mapping[str, Any]


class Place(NamedTuple):
    """One place of the configuration where a setting may stand."""

    path: str
    """Keys from the top, `corpora.NAME.train.file`."""
    block: str
    """The block whose key it is, as the schema calls it; empty at the top."""
    key: str
    says: Schema
    """What the schema says of the value."""
    required: str
    """That it must be given, in words; empty where there is a default."""


class Example(NamedTuple):
    """A value of a recipe."""

    value: Any
    where: str
    """The file and the line."""


# ---------------------------------------------------------------------------------------------
# places


def places(schema: Schema) -> list[Place]:
    """All places, each as often as a path leads to it; a block that stands inside of itself is entered once."""
    return list(_places(schema, schema, "", "", ()))


def _places(schema: Schema, block: Schema, name: str, path: str, above: tuple[str, ...]) -> Iterator[Place]:
    required = {key: "it must be given" for key in block.get("required", ())}
    for choice in block.get("anyOf", ()):
        required |= {key: "it must be given, here or by `like`" for key in choice.get("required", ()) if key != "like"}
    for key, says in block.get("properties", {}).items():
        here = f"{path}.{key}" if path else key
        yield Place(here, name, key, says, required.get(key, ""))
        for more, inner in inside(says):
            ours = block_of(inner)
            if ours and ours in above:
                continue
            resolved = schema["$defs"][inner["$ref"].rpartition("/")[2]] if ours else inner
            yield from _places(schema, resolved, ours or f"{name}.{key}", here + more, (*above, ours))


def inside(says: Schema) -> Iterator[tuple[str, Schema]]:
    """The blocks that a value may be or hold, each with what leads to it in a path: nothing, a name, or a list's brackets."""
    if "$ref" in says or "properties" in says:
        yield "", says
    for choice in (*says.get("anyOf", ()), *says.get("oneOf", ())):
        yield from inside(choice)
    if isinstance(says.get("additionalProperties"), dict):
        yield from ((f".{NAME}{more}", inner) for more, inner in inside(says["additionalProperties"]))
    if isinstance(says.get("items"), dict):
        yield from ((f"[]{more}", inner) for more, inner in inside(says["items"]))


GRID = "Grid"
"""The end of a block's name of which each value may be a list; it stands on the page of the block itself."""


def block_of(says: Schema) -> str:
    """The name of the block that a value refers to; empty where it refers to none."""
    return says.get("$ref", "").rpartition("/")[2].removesuffix(GRID)


# ---------------------------------------------------------------------------------------------
# what is said of a value


WORDS = {
    "integer": "a whole number",
    "number": "a number",
    "string": "a text",
    "boolean": "true or false",
    "null": "null",
    "object": "a block",
}


def kind(says: Schema) -> str:
    """The type of a value in words."""
    if "$ref" in says:
        link = f"a block: [{title(block_of(says))}]({page_name(block_of(says))}.md)"
        return link + (", in which lists of values make a grid" if says["$ref"].endswith(GRID) else "")
    if "const" in says:
        return as_code(str(says["const"]))
    if "enum" in says:
        return "one of " + ", ".join(as_code(str(each)) for each in says["enum"])
    if choices := [*says.get("anyOf", ()), *says.get("oneOf", ())]:
        return " or ".join(dict.fromkeys(map(kind, choices)))
    match says.get("type"):
        case "array" if "prefixItems" in says:
            return "a list: " + ", ".join(map(kind, says["prefixItems"]))
        case "array":
            return f"a list, each {kind(says['items'])}" if says.get("items") else "a list"
        case "object" if isinstance(says.get("additionalProperties"), dict):
            return f"names of your own, each {kind(says['additionalProperties'])}"
        case "object" if "kind" in says.get("properties", {}):
            return f"a block of `kind: {says['properties']['kind'].get('const', '…')}`"
        case str(known):
            return WORDS.get(known, known)
        case _:
            return "any value"


LIMITS = {
    "minimum": "at least {}",
    "exclusiveMinimum": "more than {}",
    "maximum": "at most {}",
    "exclusiveMaximum": "less than {}",
    "minItems": "at least {} of them",
    "maxItems": "at most {} of them",
    "minLength": "at least {} characters",
    "pattern": "matching `{}`",
}


def limits(says: Schema) -> str:
    """The range of a value in words; empty where there is none."""
    exact = says.get("minItems") == says.get("maxItems") is not None
    own = [f"{says['minItems']} of them"] if exact else [words.format(says[key]) for key, words in LIMITS.items() if key in says]
    within = [limits(each) for each in (*says.get("anyOf", ()), *says.get("oneOf", ()))]
    parts = [limits(says[key]) for key in ("items", "additionalProperties") if isinstance(says.get(key), dict)]
    every = [" and ".join(own), *within, *(f"each {found}" for found in parts if found)]
    return "; ".join(dict.fromkeys(filter(None, every)))


def defaults() -> dict[tuple[str, str], Any]:
    """(Block, key) → default of the dataclasses, of those that the schema leaves out because they are made anew for each block."""
    found = {}
    for block in config._dataclasses(config.Config):
        for field in fields(block):
            if field.default_factory is not MISSING:
                made = field.default_factory()
                found[block.__name__, field.name] = None if is_dataclass(made) else made
    return found


def default(place: Place, known: Mapping[tuple[str, str], Any]) -> str:
    """The default of a setting in words."""
    if place.required:
        return f"none: {place.required}"
    value = place.says.get("default", known.get((place.block, place.key), MISSING))
    if value is MISSING or (value is None and any(inner for _, inner in inside(place.says)) and "default" not in place.says):
        return "the block's own defaults" if any(True for _ in inside(place.says)) else "none"
    return as_code(inline(value))


def inline(value: Any) -> str:
    """A value as YAML on one line."""
    shown = yaml.dump(value, Dumper=yaml.CSafeDumper, default_flow_style=True, allow_unicode=True, width=10**6, sort_keys=False).strip()
    return shown.removesuffix("...").strip()


# ---------------------------------------------------------------------------------------------
# examples


def examples(schema: Schema, root: Path = ROOT) -> dict[str, Example]:
    """Path → the first value that a configuration of this repository has there; config.yaml goes first."""
    found: dict[str, Example] = {}
    for path in [root / "config.yaml", *sorted(root.glob("config/*.yaml"))]:
        tree = yaml.compose(path.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
        for where, node in _set(schema, schema, tree, ""):
            value = yaml.SafeLoader("").construct_document(node)
            known = found.get(where)
            if known is None or len(inline(known.value)) > SHOWN >= len(inline(value)):
                found[where] = Example(value, f"{path.relative_to(root)}, line {node.start_mark.line + 1}")
    return found


def _set(schema: Schema, says: Schema, node: yaml.Node, path: str) -> Iterator[tuple[str, yaml.Node]]:
    """The path of each value that stands below a node, as the schema has it."""
    if "$ref" in says:
        yield from _set(schema, schema["$defs"][says["$ref"].rpartition("/")[2]], node, path)
    for choice in _fitting(schema, says, node):
        yield from _set(schema, choice, node, path)
    if isinstance(node, yaml.MappingNode):
        for key, value in ((each.value, inner) for each, inner in node.value):
            if key in says.get("properties", {}):
                here = f"{path}.{key}" if path else key
                yield here, value
                yield from _set(schema, says["properties"][key], value, here)
            elif isinstance(says.get("additionalProperties"), dict):
                yield from _set(schema, says["additionalProperties"], value, f"{path}.{NAME}")
    elif isinstance(node, yaml.SequenceNode) and isinstance(says.get("items"), dict):
        for each in node.value:
            yield from _set(schema, says["items"], each, f"{path}[]")


def _fitting(schema: Schema, says: Schema, node: yaml.Node) -> Iterator[Schema]:
    """The choices that a node may be: of the experiments those of its task, else all."""
    given = {key.value: value.value for key, value in node.value} if isinstance(node, yaml.MappingNode) else {}
    for choice in (*says.get("anyOf", ()), *says.get("oneOf", ())):
        block = schema["$defs"][choice["$ref"].rpartition("/")[2]] if "$ref" in choice else choice
        named = {key: each["const"] for key, each in block.get("properties", {}).items() if "const" in each}
        if all(given.get(key, "translation" if key == "task" and "like" not in given else value) == value for key, value in named.items()):
            yield choice


def made_up(says: Schema, schema: Schema) -> Any:
    """A value that the schema allows, for a setting that no recipe has: not the default where there is another."""
    if "$ref" in says:
        block = schema["$defs"][says["$ref"].rpartition("/")[2]]
        return {key: made_up(block["properties"][key], schema) for key in list(block.get("required", block.get("properties", {})))[:2]}
    if "const" in says:
        return says["const"]
    if "enum" in says:
        return next((each for each in says["enum"] if each != says.get("default")), says["enum"][0])
    if choices := [*says.get("anyOf", ()), *says.get("oneOf", ())]:
        return made_up(next(each for each in choices if each.get("type") != "null"), schema)
    match says.get("type"):
        case "boolean":
            return not says.get("default", False)
        case "integer":
            return says.get("default") or says.get("minimum", 0) + 1
        case "number":
            low = says.get("minimum", says.get("exclusiveMinimum", 0))
            high = says.get("maximum", says.get("exclusiveMaximum", low + 1))
            return says.get("default") or (low + high) / 2
        case "array" if "prefixItems" in says:
            return [made_up(each, schema) for each in says["prefixItems"]]
        case "array":
            return says.get("default") or [made_up(says.get("items", {}), schema)] * max(1, says.get("minItems", 1))
        case "object" if isinstance(says.get("additionalProperties"), dict):
            return {NAME: made_up(says["additionalProperties"], schema)}
        case "object":
            required = says.get("required", ())
            return {key: made_up(says["properties"][key], schema) for key in required if key in says.get("properties", {})}
        case _:
            return says.get("default") or "some-name"


# ---------------------------------------------------------------------------------------------
# pages


def title(block: str) -> str:
    """What a block is called: LexiconStages → Lexicon stages."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", block).capitalize()


def page_name(block: str) -> str:
    """The name of a block's page, without its suffix."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "-", block).lower()


def heading(place: Place) -> str:
    """What a setting is called on its block's page: its key, below those of a part that is no block of its own."""
    return ".".join(filter(None, (place.block.partition(".")[2], place.key)))


def pages() -> dict[str, str]:
    """Name of a file → content in Markdown, of all pages of the reference."""
    schema = config.schema()
    every, set_in, known = places(schema), examples(schema), defaults()
    made = {"index.md": _index(schema, every, set_in, known), "all.md": _all(every, set_in, known, schema)}
    for block in dict.fromkeys(place.block.partition(".")[0] for place in every if place.block):
        mine = [place for place in every if place.block.partition(".")[0] == block]
        made[f"{page_name(block)}.md"] = _block(block, schema, mine, set_in, known)
    return made


def _index(schema: Schema, every: list[Place], set_in: Mapping[str, Example], known: Mapping) -> str:
    blocks = sorted({place.block.partition(".")[0] for place in every if place.block})
    top = [place for place in every if not place.block]
    return "\n".join(
        [
            "# Configuration",
            "",
            f"[All settings](all.md) lists the {len(every):,} places where a setting may stand, with a field to filter them. The other "
            f"pages have a block of settings each. `{NAME}` in a path is a name of your own, `[]` is each part of a list.",
            "",
            "This part is made from the code, so it is complete. A plugin adds settings of its own. Your editor completes and checks keys "
            "with `config/schema.json`.",
            "",
            "## At the top",
            "",
            *(line for place in top for line in _setting(place, [place.path], set_in, known, schema, "###")),
            "",
            "```{toctree}",
            ":hidden:",
            "",
            "all",
            *map(page_name, blocks),
            "```",
        ]
    )


def _block(block: str, schema: Schema, mine: list[Place], set_in: Mapping[str, Example], known: Mapping) -> str:
    where = list(dict.fromkeys(place.path.removesuffix(f".{place.key}") for place in mine if place.block == block))
    out = [
        f"# {title(block)}",
        "",
        schema["$defs"][block].get("description", ""),
        "",
        "Where it may stand: " + ", ".join(map(as_code, where)),
        "",
    ]
    for own, key in dict.fromkeys((place.block, place.key) for place in mine):
        same = [place for place in mine if (place.block, place.key) == (own, key)]
        out += _setting(same[0], [place.path for place in same], set_in, known, schema, "##")
    return "\n".join(out) + "\n"


def _setting(place: Place, paths: list[str], set_in: Mapping[str, Example], known: Mapping, schema: Schema, depth: str) -> list[str]:
    rows = [f"- **Type:** {kind(place.says)}", f"- **Default:** {default(place, known)}"]
    rows += [f"- **Range:** {found}"] if (found := limits(place.says)) else []
    value, origin = example(place, paths, set_in, schema)
    shown = inline({place.key: value}).removeprefix("{").removesuffix("}")
    rows.append(
        f"- **Example:** {as_code(shown)}" + f" ({origin})" * bool(origin)
        if len(shown) <= SHOWN or not origin
        else f"- **Example:** see {origin}"
    )
    return [f"{depth} `{heading(place)}`", "", in_markdown(place.says.get("description", "")), "", *rows, ""]


def example(place: Place, paths: list[str], set_in: Mapping[str, Example], schema: Schema) -> tuple[Any, str]:
    """A value of a setting and where it stands, or a made-up one that stands nowhere."""
    found = [set_in[path] for path in paths if path in set_in]
    short = sorted(found, key=lambda each: len(inline(each.value)) > SHOWN)
    return short[0] if short else (made_up(place.says, schema), "")


def _all(every: list[Place], set_in: Mapping[str, Example], known: Mapping, schema: Schema) -> str:
    rows = []
    for place in every:
        block = place.block.partition(".")[0]
        value, _ = example(place, [place.path], set_in, schema)
        shown = inline(value)
        cells = (
            f"[`{place.path}`]({page_name(block) if block else 'index'}.md#{anchor(heading(place))})",
            " ".join(in_markdown(place.says.get("description", "")).split()),
            kind(place.says),
            default(place, known),
            limits(place.says),
            as_code(shown) if len(shown) <= SHOWN else "",
        )
        rows.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(
        [
            "---",
            "hide-toc: true",
            "---",
            "# All settings",
            "",
            "Every place of the configuration where a setting may stand. To see some, write a part of a name, or a word of the meaning.",
            "",
            "```{raw} html",
            '<input type="search" id="filter" placeholder="such as max_length" aria-label="Show the settings that have these words">',
            "```",
            "",
            "| place | meaning | type | default | range | example |",
            "|---|---|---|---|---|---|",
            *rows,
        ]
    )


def in_markdown(text: str) -> str:
    """A docstring as Markdown: what stands in angle brackets outside of code is no HTML."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(part if part.startswith("`") else part.replace("<", "\\<") for part in parts)
