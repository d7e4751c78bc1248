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
import json
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_type_hints

from pydantic import TypeAdapter, ValidationError

from workflow_scripts import registry
from workflow_scripts.lexicon.embeddings import Embeddings
from workflow_scripts.lexicon.lexicon import ALIGNED_PAIRS, Lexicon
from workflow_scripts.lexicon.mapping import Mapping
from workflow_scripts.limits import Positive, Whole
from workflow_scripts.run.analyses import Analysis, sources_read
from workflow_scripts.run.explanations import explained
from workflow_scripts.run.loading import ALIKE, DEFINITIONS, located, plugins_of, stands_alone, written_out
from workflow_scripts.stage import InputError, read_json, resource
from workflow_scripts.tasks.entry import OfItsTask, Task
from workflow_scripts.tasks.experiment import Phase, backbones_of, chain, experiments_needed, lexicons_used, placed, texts_read
from workflow_scripts.tasks.translation import translations
from workflow_scripts.text import labelled as labels
from workflow_scripts.text.acquisition import Data, columns_of, suffix
from workflow_scripts.text.aligned import Aligned
from workflow_scripts.text.corpus import Corpus
from workflow_scripts.text.labelled import Labelled
from workflow_scripts.training.backbone import Backbone


@dataclass
class Run:
    """What is run."""

    experiments: list[str]
    """Names of experiments."""
    arms: list[str]
    """Names of arms; the first is the baseline that the others are compared with."""
    seeds: list[Whole]
    """Training seeds; each arm is trained once per seed."""
    zero_shot: bool | list[str] = False
    """Every experiment's models, or those of the experiments that are named, translate the test sets of the others, too, if target and
    backbone are the same (Table III)."""
    analyses: list[str] = field(default_factory=list)
    """Names of analyses: what is looked into inside the models."""
    transfer: str | None = None
    """Name of a backbone: the report compares the models of experiments that differ by their backbone alone, and tests them against it."""


@dataclass
class LexiconStages:
    """How a lexicon is made: the settings of three stages, and a word list to judge it by."""

    corpus: str | None = None
    """Name of the corpus that it is learnt from; the experiment's if none is named."""
    unit: Literal["word", "piece"] = "word"
    """What has a vector and translations. `piece`: the backbone's SentencePiece pieces, as in the authors' published code."""
    backbone: str | None = None
    """`unit: piece`: the backbone whose pieces they are."""
    embeddings: Embeddings = field(default_factory=Embeddings)
    """word2vec."""
    mapping: Mapping = field(default_factory=Mapping)
    """The mapping into one space."""
    lexicon: Lexicon = field(default_factory=Lexicon)
    """Retrieval."""
    aligned_pairs: Positive = ALIGNED_PAIRS
    """`mapping.mode: aligned`: of the corpus at most so many pairs, evenly spaced, are aligned; the links of more would take all memory."""
    vectors: dict[str, str] = field(default_factory=dict)
    """Language → file of word vectors to take instead of learning them."""
    dictionary: dict[str, str] = field(default_factory=dict)
    """Pair (`de-en`) → word list that the mapping starts from, or that is the lexicon (`mapping.mode`)."""
    gold: dict[str, str] = field(default_factory=dict)
    """Pair (`de-en`) → file of correct translations, a pair a line in that order. Only for judging."""


@dataclass
class Config:
    """The whole configuration."""

    run: Run
    """What is run; a recipe's lists replace these."""
    corpora: dict[str, Corpus]
    """Parallel corpora by name."""
    lexicons: dict[str, LexiconStages]
    """Ways to make a lexicon by name."""
    backbones: dict[str, Backbone]
    """Backbones by name."""
    arms: dict[str, list[Phase]]
    """Ways to train by name: phases, one after the other."""
    experiments: dict[str, Annotated[Any, OfItsTask()]]
    """Experiments by name."""
    data: dict[str, Data] = field(default_factory=dict)
    """Data to acquire by name. `results/data/{name}` with its suffix is the file, which any setting that takes a file may name."""
    labelled: dict[str, Labelled] = field(default_factory=dict)
    """Texts with labels by name, for tasks such as classification."""
    aligned: dict[str, Aligned] = field(default_factory=dict)
    """Sentences whose translations are looked for, by name, for retrieval."""
    analyses: dict[str, Analysis] = field(default_factory=dict)
    """Analyses of models by name: their similarity, the spectra of their weights, how separable languages are."""
    over: str | None = None
    """In a recipe that is laid over another one: that one's path, from the recipe's own folder."""
    plugins: list[str] = field(default_factory=list)
    """Python files beside the configuration, importable modules, or entry points of installed packages, which bring noises and more of
    their own (docs/extend.md). Those of recipes that are laid over each other, and of `--config`, add up."""

    def __post_init__(self) -> None:
        """Phases know their place in their arm."""
        placed(self.arms)


# ---------------------------------------------------------------------------------------------
# reading


def load(raw: dict[str, Any], files: Sequence[Path | str] = (), ours: Any = ()) -> Config:
    """The typed configuration; raises one `InputError` that lists everything that is wrong.

    `files` are those that `raw` was read from, and `ours` is what the command line has set. Where it is wrong, one of the files that is
    laid over a file that is not named may be why.
    """
    try:
        named = plugins_of(raw, files, ours)
        registry.load_plugins(named)
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


def check_record(config: Config, made: Path = Path("results/configuration.json"), record: Path = Path(".snakemake/metadata")) -> None:
    """Raise `InputError` where there are results of another configuration without Snakemake's record of how they were made.

    Without it Snakemake takes every file that is there for what is wanted, whatever its settings were.
    """
    recorded = record.is_dir() and any(record.iterdir())
    if made.exists() and not recorded and made.read_text(encoding="utf-8").strip() != dumped(config):
        raise InputError(
            "results/ was made with another configuration, and Snakemake's record of it (.snakemake) is not here, so that nothing tells "
            "what must be made again; bring .snakemake from where the run was, take another folder (--directory), or make all anew "
            f"(--forceall). To keep what is there as it is, delete {made}"
        )


def read(path: Path) -> Config:
    """A configuration that was checked before and written out as JSON (`results/configuration.json`), with the plugins that it names."""
    plain = read_json(path)
    registry.load_plugins(plain.get("plugins", ()))
    return _adapter().validate_python(plain)


def _adapter() -> TypeAdapter:
    return _adapter_with(registry.version())


@functools.lru_cache(1)
def _adapter_with(registered: object) -> TypeAdapter:
    """What checks a configuration, as long as nothing more is `registered`."""
    kind: Any
    for kind in _dataclasses(Config):
        kind.__pydantic_config__ = {"extra": "forbid", "use_attribute_docstrings": True, "allow_inf_nan": False, "populate_by_name": True}
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


LIKE = "The name of another definition in {}, which has the settings that are not given here."


def schema() -> dict[str, Any]:
    """The JSON schema of `config.yaml`."""
    made = {"$schema": "https://json-schema.org/draft/2020-12/schema", **_adapter().json_schema()}
    for block in _dataclasses(Config):
        _describe_inherited(block, made["$defs"].get(block.__name__, {}).get("properties", {}))
    # the values of an experiment that chooses from a grid may be lists
    task: Task
    for task in registry.entries("task").values():
        properties = made["$defs"][task.settings.__name__]["properties"]
        if task.grid and not (kind := properties[task.grid]["$ref"].rpartition("/")[2]).endswith("Grid"):
            made["$defs"].setdefault(f"{kind}Grid", lists := _with_lists(made["$defs"][kind]))
            if task.length == "epochs":
                often = "How often all examples are seen, of which one is chosen; without a grid the arms say it."
                lists["properties"]["epochs"] = {"description": often, "type": "array", "items": {"type": "integer"}}
            properties[task.grid]["$ref"] = f"#/$defs/{kind}Grid"
        if "anyOf" not in (numbers := properties["published"]):
            about = {key: numbers.pop(key) for key in ("title", "description", "default") if key in numbers}
            properties["published"] = {**about, "anyOf": [numbers, {"type": "string"}]}
    each = {
        "description": "One definition for each combination of these values, which replace their names in braces in all that stands here.",
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


# ---------------------------------------------------------------------------------------------
# what a configuration means


def data_file(config: Config, name: str) -> str:
    """Where acquired data are."""
    return f"results/data/{name}{suffix(config.data[name])}"


def data_used(config: Config) -> list[str]:
    """Names of the data that the run reads, including those that other data are joined from."""
    read = {path for _, path in paths_used(config)}
    used = [name for name in config.data if data_file(config, name) in read]
    return list(dict.fromkeys([*used, *(other for name in used for other in config.data[name].join)]))


def backbones_used(config: Config) -> list[str]:
    """Names of the backbones that the run's experiments and analyses need, with those that they are made from."""
    experiments = [config.experiments[name] for name in config.run.experiments if name in config.experiments]
    named = [backbone for experiment in experiments for backbone in backbones_of(config, experiment)]
    named += [model for name in config.run.analyses if name in config.analyses for model in config.analyses[name].models]
    named += [backbone for backbone in translators(config) if backbone in config.backbones]
    return list(dict.fromkeys(link for own in named for link in chain(config, own)))


def translators(config: Config) -> dict[str, list[str]]:
    """Backbones that translate training text with labels → the languages that they need for it."""
    needed: dict[str, list[str]] = {}
    for corpus in dict.fromkeys(config.experiments[name].corpus for name in config.run.experiments if name in config.experiments):
        block = config.labelled.get(corpus)
        for name, source in block.translations.items() if block else ():
            if block and "backbone" in source.by:
                needed.setdefault(source.by["backbone"], []).extend([block.language, block.language_of(f"translated/{name}")])
    return needed


def bitext_used(config: Config) -> list[str]:
    """Names of the corpora that the run's backbones are pretrained on."""
    blocks = [config.backbones[name].pretraining for name in backbones_used(config)]
    return list(dict.fromkeys(corpus for block in blocks if block for corpus in block.bitext))


def sources_of(text: Corpus | Labelled | Aligned) -> dict[str, Any]:
    """Where the parts of a corpus, of labelled text or of text for retrieval come from."""
    if isinstance(text, Corpus):
        return {"train": text.train, "dev": text.dev, **{f"test.{name}": source for name, source in text.test.items()}}
    parts = labels.sources(text) if isinstance(text, Labelled) else text.parts()
    return {part.replace("/", "."): source for part, source in parts.items()}


def paths_of(config: Config) -> Iterator[tuple[str, str]]:
    """Every file that the configuration names, and where."""
    for section in ("corpora", "labelled", "aligned"):
        for name, text in getattr(config, section).items():
            for part, source in sources_of(text).items():
                yield from ((f"{section}.{name}.{part}", path) for path in source.paths())
    for name, lexicon in config.lexicons.items():
        for kind in ("vectors", "dictionary", "gold"):
            yield from ((f"lexicons.{name}.{kind}", path) for path in getattr(lexicon, kind).values())
    for name, experiment in translations(config).items():
        yield from ((f"experiments.{name}.representation.text", path) for path in experiment.representation.text.values())
    for name, backbone in config.backbones.items():
        texts = backbone.pretraining.text.values() if backbone.pretraining else ()
        yield from ((f"backbones.{name}.{backbone.kind}.text", path) for path in texts)
        if backbone.pretraining and backbone.pretraining.ready:
            yield f"backbones.{name}.{backbone.kind}.ready", f"{backbone.pretraining.ready}/ready.json"
    for name, analysis in config.analyses.items():
        yield from ((f"analyses.{name}.text", path) for path in analysis.text.values())
        if analysis.published:
            yield f"analyses.{name}.published", analysis.published


def paths_used(config: Config) -> Iterator[tuple[str, str]]:
    """Every file that the configuration names and the run reads, and where it is named."""
    experiments = {name: config.experiments[name] for name in experiments_needed(config)}
    lexicons = {name for experiment in experiments.values() for name in lexicons_used(config, experiment)}
    texts = {corpus for experiment in experiments.values() for corpus in (experiment.corpus, *getattr(experiment, "together_with", ()))}
    texts |= {corpus for experiment in experiments.values() for corpus in texts_read(config, experiment)}
    texts |= {config.lexicons[name].corpus for name in lexicons} | {*bitext_used(config)}
    read = {
        **dict.fromkeys(("corpora", "labelled", "aligned"), texts),
        "lexicons": lexicons,
        "experiments": {*config.run.experiments},
        "backbones": {*backbones_used(config)},
        "analyses": {*config.run.analyses},
    }
    analysed = sources_read(config)
    for where, path in paths_of(config):
        section, name = where.split(".")[:2]
        if name in read[section] or where in analysed:
            yield where, path


def missing_files(config: Config) -> list[tuple[str, str]]:
    """Each file that the run reads, nothing makes, and is not there: where the configuration names it, and its path."""
    return [
        (where, path)
        for where, path in paths_used(config)
        if path != "task" and not path.startswith("results/") and not os.path.exists(resource(path))
    ]


if __name__ == "__main__":
    json.dump(schema(), sys.stdout, indent=1)
    sys.stdout.write("\n")
