"""rendering: the templates of the report, with the functions and values that they use."""

import functools
import hashlib
import json
from dataclasses import asdict
from pathlib import Path

import jinja2
from markupsafe import Markup

from workflow_scripts.config.configuration import Config
from workflow_scripts.report import drawing
from workflow_scripts.report.about import meanings
from workflow_scripts.report.experimental_setup import too_long
from workflow_scripts.report.headline import bridges
from workflow_scripts.report.study import digits
from workflow_scripts.run.outcomes import signed
from workflow_scripts.text.languages import language


class Compiled(jinja2.BytecodeCache):
    """The compiled templates, for processes that make several reports: to compile them takes a second."""

    def __init__(self) -> None:
        self.code: dict[str, bytes] = {}

    def load_bytecode(self, bucket: jinja2.bccache.Bucket) -> None:
        """Take the code of a template, if it is there; what it was made of is compared by its checksum."""
        if code := self.code.get(bucket.key):
            bucket.bytecode_from_string(code)

    def dump_bytecode(self, bucket: jinja2.bccache.Bucket) -> None:
        """Keep the code of a template."""
        self.code[bucket.key] = bucket.bytecode_to_string()


_COMPILED = Compiled()


def bare_templates() -> jinja2.Environment:
    """The templates beside this module, without the functions and values that they use."""
    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
        bytecode_cache=_COMPILED,
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["signed"] = signed
    return made


def templates(settings: Config) -> jinja2.Environment:
    """The templates with the functions and values that they use."""
    made = bare_templates()
    for draw in (drawing.line_chart, drawing.dot_chart, drawing.forest, drawing.histogram, drawing.scatter, drawing.heat_map):
        made.globals[draw.__name__] = functools.partial(lambda draw, *data, **size: Markup(draw(*data, **size)), draw)
    config = json.dumps(asdict(settings), indent=1, ensure_ascii=False)
    made.globals |= {
        "language": language,
        # kind of a phase's data → what the page says that the phase trains on
        "trains_on": {"task": "TASK, PAIR"} | {name: entry.label for name, entry in bridges().items()},
        "digits": digits,
        "too_long": too_long,
        "colour_of": drawing.colour_of,
        "config": config,
        "meanings": meanings(),
        "config_hash": hashlib.sha256(config.encode()).hexdigest()[:16],
    }
    return made
