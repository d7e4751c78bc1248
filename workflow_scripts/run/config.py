"""config: the typed configuration, assembled from the settings of all stages.

Snakemake reads `config.yaml` and merges each `--configfile` into it. `loading` expands its shorthand, and here keys and types are
checked; for an unknown key the message names the nearest known one. `consistency` checks what types cannot express. The JSON schema
in `config/schema.json`, with which editors complete keys, is generated from the same dataclasses:
``python -m workflow_scripts.run.config > config/schema.json``.
"""

import copy
import dataclasses
import functools
import inspect
import itertools
import json
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args, get_type_hints

from pydantic import TypeAdapter, ValidationError

from workflow_scripts import plugins, registry
from workflow_scripts.config.configuration import Config
from workflow_scripts.config.experiments import OfItsTask
from workflow_scripts.entry_names import typed
from workflow_scripts.run.config_files import located, plugins_of, stands_alone
from workflow_scripts.run.explanations import explained
from workflow_scripts.run.loading import ALIKE, DEFINITIONS, written_out
from workflow_scripts.run.uses import data_file, sources_of
from workflow_scripts.stage import InputError, read_json
from workflow_scripts.tasks.entry import Task
from workflow_scripts.text.acquisition import columns_of
from workflow_scripts.training.pretraining_settings import Pretraining

# ---------------------------------------------------------------------------------------------
# reading


def load(raw: dict[str, Any], files: Sequence[Path | str] = (), ours: Any = ()) -> Config:
    """The typed configuration; raises one `InputError` that lists everything that is wrong.

    `files` are those that `raw` was read from, and `ours` is what the command line has set. Where it is wrong, one of the files that is
    laid over a file that is not named may be why.
    """
    try:
        named = plugins_of(raw, files, ours)
        plugins.load(named)
        return _load({**raw, "plugins": named} if named else raw)
    except InputError as error:
        raise InputError("\n".join((located(str(error), files, ours), *stands_alone(files)))) from None


def _load(raw: dict[str, Any]) -> Config:
    whole = written_out(raw)
    try:
        config = _adapter().validate_python(whole)
    except ValidationError as error:
        raise InputError("config:\n" + "\n".join(f"  {line}" for line in explained(error.errors(), whole, Config))) from None
    from workflow_scripts.run.consistency import problems  # these two know the types above
    from workflow_scripts.run.data_checks import data_problems

    found = list(data_problems(config))
    if not found:
        _find_data(config)
        _read_values(config)
        found = list(dict.fromkeys(problems(config)))  # an arm's stand in each experiment that has it
    if found:
        raise InputError("config:\n" + "\n".join(f"  {problem}" for problem in found))
    return config


def dumped(config: Config) -> str:
    """A checked configuration as JSON, for `read`."""
    return json.dumps(dataclasses.asdict(config), indent=1, ensure_ascii=False)


def check_folder(results: Path = Path("results")) -> None:
    """Raise `InputError` where a file stands in the place of the results' folder."""
    if results.exists() and not results.is_dir():
        raise InputError(
            f"{results}: is a file where the folder of the results belongs; move it away, or take another folder (--directory)"
        )


def check_record(
    config: Config,
    made: Path = Path("results/configuration.json"),
    record: Path = Path(".snakemake/metadata"),
    goes_on: bool = False,
) -> None:
    """Raise `InputError` where there are results of another configuration without Snakemake's record of how they were made.

    Without it Snakemake takes every file that is there for what is wanted, whatever its settings were. A run that goes on beside such files
    has a record of its own jobs alone: if it `goes_on`, the configuration of the others is kept in ``unrecorded.json``.
    """
    unrecorded = made.with_name(UNRECORDED)
    # one file for each output, or a database (--persistence-backend db)
    recorded = (record.is_dir() and any(record.iterdir())) or record.with_suffix(".db").is_file()
    of_what_is_there = unrecorded if recorded else made
    if of_what_is_there.exists() and of_what_is_there.read_text(encoding="utf-8").strip() != dumped(config):
        raise InputError(
            "results/ was made with another configuration, and Snakemake's record of it (.snakemake) is not here, so that nothing tells "
            "what must be made again; bring .snakemake from where the run was, take another folder (--directory), or make all anew "
            f"(--forceall). To keep what is there as it is, delete {made} and {unrecorded}"
        )
    if goes_on and not recorded and made.exists():
        shutil.copyfile(made, unrecorded)


UNRECORDED = "unrecorded.json"
"""The file among the results with the configuration of those that Snakemake has no record of."""


def read(path: Path) -> Config:
    """A configuration that was checked before and written out as JSON (`results/configuration.json`), with the plugins that it names."""
    plain = read_json(path)
    plugins.load(plain.get("plugins", ()))
    return _adapter().validate_python(plain)


def _adapter(documented: bool = False) -> TypeAdapter:
    return _adapter_with(registry.version(), documented)


@functools.lru_cache(2)
def _adapter_with(registered: object, documented: bool) -> TypeAdapter:
    """What checks a configuration, as long as nothing more is `registered`. Only a schema that is `documented` reads the docstrings."""
    kind: Any
    for kind in _dataclasses(Config):
        kind.__pydantic_config__ = {"extra": "forbid", "allow_inf_nan": False, "populate_by_name": True}
        kind.__pydantic_config__ |= {"use_attribute_docstrings": documented}
    return TypeAdapter(Config)


def _dataclasses(kind: Any) -> list[type]:
    """`kind` and every dataclass that its fields lead to, innermost first."""
    found: dict[type, None] = {}

    def visit(t: Any) -> None:
        if isinstance(t, type) and dataclasses.is_dataclass(t) and t not in found:
            for hint in get_type_hints(t, include_extras=True).values():
                visit(hint)
            found[t] = None
        for part in t.kinds() if isinstance(t, OfItsTask) else get_args(t):
            visit(part)

    visit(kind)
    return list(found)


def _find_data(config: Config) -> None:
    """Put the file and columns of acquired data in place of their names."""
    for corpus in config.corpora.values():
        for source in sources_of(corpus).values():
            if source.data:
                source.file = data_file(config, source.data)
                source.columns = columns_of(config.data[source.data]) or source.columns


def _read_values(config: Config) -> None:
    """Read the values of entries' own settings as their types say: 1e-3 is a text in YAML. What does not fit is reported elsewhere."""
    for phase in itertools.chain(*config.arms.values()):
        if phase.restores:
            phase.noise = _read(phase.restores.settings, phase.noise)
        elif phase.learns:
            phase.objective = _read(phase.learns.settings or Pretraining, phase.objective)
    for experiment in config.experiments.values():
        if decoding := getattr(experiment, "decoding", None):
            decoding.engine_settings = _read(registry.entry("engine", decoding.engine).settings, decoding.engine_settings)
    for backbone in config.backbones.values():
        if backbone.pretraining and backbone.objective:
            entry = registry.entry("objective", backbone.objective)
            backbone.pretraining.objective_settings = _read(entry.settings, backbone.pretraining.objective_settings)


def _read(settings: type | None, given: dict[str, Any]) -> dict[str, Any]:
    if settings is None or not given:
        return given
    try:
        return typed(settings, given)
    except ValidationError:
        return given


LIKE = "Name of another definition in {}. Settings not given here are copied from it."


def schema() -> dict[str, Any]:
    """The JSON schema of `config.yaml`."""
    made = {"$schema": "https://json-schema.org/draft/2020-12/schema", **_adapter(documented=True).json_schema()}
    for block in _dataclasses(Config):
        _describe_inherited(block, made["$defs"].get(block.__name__, {}).get("properties", {}))
    # the values of an experiment that chooses from a grid may be lists
    task: Task
    for task in registry.entries("task").values():
        properties = made["$defs"][task.settings.__name__]["properties"]
        if task.grid and not (kind := properties[task.grid]["$ref"].rpartition("/")[2]).endswith("Grid"):
            made["$defs"].setdefault(f"{kind}Grid", lists := _with_lists(made["$defs"][kind]))
            if task.length == "epochs":
                often = "Numbers of passes over all examples, of which one is chosen. Without a grid the arms have the number."
                lists["properties"]["epochs"] = {"description": often, "type": "array", "items": {"type": "integer"}}
            properties[task.grid]["$ref"] = f"#/$defs/{kind}Grid"
        if "anyOf" not in (numbers := properties["published"]):
            about = {key: numbers.pop(key) for key in ("title", "description", "default") if key in numbers}
            properties["published"] = {**about, "anyOf": [numbers, {"type": "string"}]}
    each = {
        "description": "Lists of values by name. Each combination makes a definition, in which the values replace their names in braces. "
        "A list gives the combinations themselves.",
        "anyOf": [
            {"type": "object", "additionalProperties": {"type": "array", "minItems": 1}},
            {"type": "array", "items": {"type": "object"}, "minItems": 1},
        ],
    }
    for name in ("Source", "LabelledSource", "AlignedSource"):
        made["$defs"][name]["properties"]["each"] = each  # of test sets
    for section in DEFINITIONS:
        values = made["properties"][section]["additionalProperties"]
        for kind in values.get("oneOf", [values]):
            definition = made["$defs"][kind["$ref"].rpartition("/")[2]]
            definition["properties"]["each"] = each
            if section in ALIKE:
                definition["properties"]["like"] = {"type": "string", "description": LIKE.format(section)}
                if required := definition.pop("required", None):
                    definition["anyOf"] = [{"required": ["like"]}, {"required": required}]
    return _cleaned(made)


def _describe_inherited(kind: Any, properties: dict[str, Any]) -> None:
    """Give the properties of a class the docstrings of those fields that it has from the classes above it, which pydantic passes over."""
    for above in kind.__mro__[1:]:
        if dataclasses.is_dataclass(above) and any("description" not in about for about in properties.values()):
            above.__pydantic_config__ = {"use_attribute_docstrings": True}  # type: ignore[union-attr]
            for name, about in TypeAdapter(above).json_schema()["properties"].items():
                if "description" in about and name in properties:
                    properties[name].setdefault("description", about["description"])


def _cleaned(part: Any) -> Any:
    """A part of the schema whose descriptions have no indentation, which only Python before 3.13 leaves in docstrings."""
    if isinstance(part, dict):
        return {
            key: inspect.cleandoc(each) if key == "description" and isinstance(each, str) else _cleaned(each) for key, each in part.items()
        }
    return [_cleaned(each) for each in part] if isinstance(part, list) else part


def _with_lists(block: dict[str, Any]) -> dict[str, Any]:
    """A block of settings in each of whose places a list of values may stand."""
    made = copy.deepcopy(block)
    for name, value in made["properties"].items():
        about = {key: value.pop(key) for key in ("title", "description", "default") if key in value}
        made["properties"][name] = {**about, "anyOf": [value, {"type": "array", "items": value}]}
    return made


if __name__ == "__main__":
    json.dump(schema(), sys.stdout, indent=1)
    sys.stdout.write("\n")
