"""inputs: what the jobs of data, text, lexicons, backbones and the report read, and what they are told.

`arms` has this for an experiment's arms, `searches` for retrieval, `analyses` for analyses. Functions take the configuration and a job's
wildcards; the rules call them through `of` (rules/common.smk). Paths come from `paths`, and what depends on an experiment's task from the
table of tasks.
"""

from __future__ import annotations

import dataclasses
import json
import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Protocol

from workflow_scripts import plugins, registry
from workflow_scripts.config import paths
from workflow_scripts.config.configuration import Config
from workflow_scripts.config.phases import Phase
from workflow_scripts.evidence.trivial import TRIVIAL
from workflow_scripts.lexicon.lexicon import ALIGNED_PAIRS
from workflow_scripts.models.decoding import Decoding
from workflow_scripts.models.recognition import family_of
from workflow_scripts.models.templates import Templates
from workflow_scripts.names import instead
from workflow_scripts.run import analyses
from workflow_scripts.run.uses import backbones_used, data_file, data_used, translators
from workflow_scripts.stage import InputError, resource
from workflow_scripts.tasks import crosslingual, translation, verbaliser
from workflow_scripts.tasks.entry import task_of
from workflow_scripts.tasks.experiment import (
    arm_phases,
    arms_of,
    backbone_of,
    backbones_of,
    chain,
    encoder_writes,
    experiments_needed,
    lexicon_corpus,
    lexicons_used,
    needs_decoder,
    phases_of,
    seeds_of,
    texts_read,
    trains,
)
from workflow_scripts.text import labelled
from workflow_scripts.training.backbone import Backbone


class Wildcards(Protocol):
    """A job's wildcards, as attributes."""

    def __getattr__(self, name: str) -> str: ...

    def items(self) -> Iterable[tuple[str, str]]:
        """Name and value of each."""
        ...


def as_json(block: Any, **changes: Any) -> str:
    """A settings block as one JSON value for a stage's command line."""
    return json.dumps({**dataclasses.asdict(block), **changes}, ensure_ascii=False)


def flags(inputs: Any, *names: str) -> list[str]:
    """`--name path …` for those of the named inputs that a job has."""
    found = [(name, inputs[name]) for name in names if inputs.get(name)]
    return [part for name, files in found for part in (f"--{name.replace('_', '-')}", *([files] if isinstance(files, str) else files))]


def check_names(config: Config, w: Wildcards) -> None:
    """Raise `InputError` where a file is asked for by a name that the configuration does not define."""
    asked = dict(w.items())
    known: dict[str, Iterable[str]] = {
        "data": config.data,
        "corpus": config.corpora,
        "labelled": config.labelled,
        "aligned": config.aligned,
        "lexicon": config.lexicons,
        "backbone": config.backbones,
        "experiment": config.experiments,
        "analysis": config.analyses,
    }
    if experiment := config.experiments.get(asked.get("experiment", "")):
        known["arm"] = [*getattr(experiment, "models", config.arms), TRIVIAL.partition("/")[0]]
    for wildcard, names in known.items():
        # an arm's name may be followed by the number of a point of its grid
        name = asked.get(wildcard, "").partition(".grid")[0]
        if name and name not in names:
            raise InputError(f"a file of {wildcard} {name!r} is asked for, which is not defined{instead(name, names)}")
    arm = asked.get("arm", "").partition(".grid")[0]
    phases = {
        "phase": [phase.name for phase in config.arms.get(arm, [])],
        "noise": [phase.noised for every in config.arms.values() for phase in every if phase.restores],
    }
    for wildcard, there in phases.items():
        name = asked.get(wildcard, "")
        if name and there and name not in there:
            of = f" of arm {arm!r}" if wildcard == "phase" else ""
            raise InputError(f"a file of {wildcard} {name!r}{of} is asked for, which is not defined{instead(name, dict.fromkeys(there))}")


# ---------------------------------------------------------------------------------------------
# data and text


def data_sources(config: Config, w: Wildcards) -> dict[str, Any]:
    """What data are made of besides the network: other data, and the environment of mtdata, whose date does not count."""
    block = config.data[w.data]
    joined = {"joined": [data_file(config, name) for name in block.join]} if block.join else {}
    return joined | ({"environment": "results/environments/mtdata.json"} if block.mtdata else {})


def corpus_sources(config: Config, w: Wildcards) -> list[str]:
    """The files that a corpus, or one held-out part of it, is read from."""
    corpus = config.corpora[w.corpus]
    part = getattr(w, "part", "train")
    every = [corpus.train, corpus.dev, *corpus.test.values()]
    # dev leaves out what the test sets have; corpus.json has the checksums of all
    sources = {"train": every, "dev": every[1:]}.get(part) or [corpus.test[part.removeprefix("test/")]]
    return list(dict.fromkeys(resource(path) for source in sources for path in (source.paths() or corpus.train.paths())))


def corpus_settings(config: Config, w: Wildcards) -> str:
    """The corpus's block, with the embedded files where they really are."""
    return as_json(config.corpora[w.corpus].at_hand())


def held_out(config: Config, w: Wildcards, side: str) -> list[str]:
    """One side (the wildcard `a` or `b`) of all parts of a corpus that nothing is trained on."""
    return [paths.corpus_text(config, w.corpus, part, getattr(w, side)) for part in paths.held_out_parts(config, w.corpus)]


def others_held_out(config: Config, w: Wildcards, side: str) -> list[str]:
    """What the training text must not have although other text holds it out: references that the corpus's models translate zero-shot, and
    the dev and test sets of experiments that start from the model of an arm that was trained on it, that look into such a model, that read
    it in a phase before the task, or that switch words by a lexicon that was aligned in it."""
    own, arms = paths.corpus_folder(config, w.corpus), {name: config.backbones[name].arm for name in backbones_used(config)}
    trained = {name: config.experiments[arm.experiment] for name, arm in arms.items() if arm}
    learnt = [name for name, e in trained.items() if w.corpus in _corpora_learnt(config, e)]
    held_out = {path for name in learnt for path in of_users(config, name, "held_out_text")}
    for name in config.run.experiments:
        if w.corpus in _corpora_known(config, config.experiments[name]):
            held_out |= {*task_of(config.experiments[name]).held_out_text(config, name)}
    others = {path for path in held_out if not path.startswith(f"{own}/")}
    return sorted({*translation.zero_shot_references(config, w.corpus, getattr(w, side)), *others})


def _corpora_learnt(config: Config, experiment: Any) -> set[str]:
    """The texts that an experiment's arms are trained on, and those in which its lexicons were aligned."""
    more = (*getattr(experiment, "together_with", ()), *texts_read(config, experiment))
    return {experiment.corpus, *more, *_corpora_aligned(config, experiment)}


def _corpora_aligned(config: Config, experiment: Any) -> set[str]:
    """The corpora whose pairs an experiment's lexicons are made of; other lexicons do not know which sentences belong together."""
    aligned = [name for name in lexicons_used(config, experiment) if config.lexicons[name].mapping.mode == "aligned"]
    return {lexicon_corpus(config, experiment, name) for name in aligned}


def _corpora_known(config: Config, experiment: Any) -> set[str]:
    """The corpora besides its own that an experiment knows from elsewhere: by its lexicons and the phases before its task, or by the models
    that it looks into."""
    if trains(experiment):
        return {*texts_read(config, experiment), *_corpora_aligned(config, experiment)}
    models = [config.experiments[model.experiment] for model in experiment.models.values() if model.experiment]
    return {corpus for model in models for corpus in _corpora_learnt(config, model)}


def labelled_sources(config: Config, w: Wildcards) -> list[str]:
    """The files of all parts. Each part's job reads all of them, as examples of one part are left out of the others."""
    return list(dict.fromkeys(map(resource, labelled.paths(config.labelled[w.labelled]))))


def labelled_settings(config: Config, w: Wildcards) -> str:
    """The labelled text's block, with the embedded files where they really are."""
    return as_json(config.labelled[w.labelled].at_hand())


def translated_targets(config: Config, w: Wildcards) -> str:
    """The flag with the languages of targets, before and after a model has translated the training text; none without targets."""
    block = config.labelled[w.labelled]
    if block.unit != "target":
        return ""
    return f"--target-languages {block.language_of_targets('train')} {block.language_of_targets(f'translated/{w.name}')}"


def translated_before(config: Config, w: Wildcards) -> list[str]:
    """The tables of dev and test sets in the language into which a model translates the training text."""
    before = labelled.parts_before(config.labelled[w.labelled], f"translated/{w.name}")
    return [paths.labelled_file(config, w.labelled, part, ".tsv") for part in before]


def translating_model(config: Config, w: Wildcards) -> str:
    """The model that translates the training text of a labelled text, see `LabelledSource.by`."""
    by = config.labelled[w.labelled].translations[w.name].by
    if "backbone" in by:
        return paths.backbone_model(by["backbone"])
    seed = seeds_of(config, config.experiments[by["experiment"]])[0]
    return paths.trained_model(by["experiment"], by["arm"], seed, "finetune")


def translating_settings(config: Config, w: Wildcards) -> str:
    """How that model decodes, as JSON: as in its experiment; a backbone has none, and decodes by default."""
    by = config.labelled[w.labelled].translations[w.name].by
    settings = config.experiments[by["experiment"]].decoding if "experiment" in by else Decoding()
    return json.dumps(dataclasses.asdict(settings))


def translating_plugin(config: Config, w: Wildcards) -> dict[str, list[str]]:
    """The files of the plugins that this decoding uses: of the generator, and of the engine unless the generator writes itself."""
    by = config.labelled[w.labelled].translations[w.name].by
    experiment = config.experiments[by["experiment"]] if "experiment" in by else None
    phases = arm_phases(config, experiment, by["arm"]) if experiment else []
    return writing_plugins(experiment.decoding if experiment else Decoding(), phases)


def writing_plugins(decoding: Decoding, phases: list[Phase]) -> dict[str, list[str]]:
    """The files of the plugins that decode what the last of `phases` has trained; what comes from none reads none."""
    generator = phases[-1].writes if phases else None
    engine = None if generator and generator.write else registry.entry("engine", decoding.engine)
    return plugin_inputs(generator, engine)


def plugin_inputs(*used: registry.Entry | None) -> dict[str, list[str]]:
    """The files of the plugins that these entries come from, as an input of a job; what comes from none reads none."""
    files = plugins.files_of(*used)
    return {"plugin": files} if files else {}


# ---------------------------------------------------------------------------------------------
# lexicons


def word_list(config: Config, w: Wildcards, kind: str) -> dict[str, str]:
    """What the lexicon's block names as `gold` or `dictionary` for the pair, if anything."""
    path = getattr(config.lexicons[w.lexicon], kind).get(f"{w.a}-{w.b}")
    return {kind: resource(path)} if path else {}


def mapping_sources(config: Config, w: Wildcards) -> dict[str, str]:
    """Vectors, learnt or given, and the dictionary that the mapping starts from."""
    block = config.lexicons[w.lexicon]
    folder = paths.lexicon_folder(config, w.corpus, w.lexicon)
    vectors = {
        side: resource(block.vectors[code]) if code in block.vectors else f"{folder}/{code}.vec"
        for side, code in (("vectors_a", w.a), ("vectors_b", w.b))
    }
    return vectors | word_list(config, w, "dictionary")


def lexicon_sources(config: Config, w: Wildcards) -> dict[str, str]:
    """Mapped vectors, or what takes their place: a dictionary, or (by the flag `--aligned`) the text alone; and the gold lexicon."""
    gold = word_list(config, w, "gold")
    if not config.lexicons[w.lexicon].mapping.maps:
        return word_list(config, w, "dictionary") | gold
    folder = paths.lexicon_folder(config, w.corpus, w.lexicon)
    return {"mapped_a": f"{folder}/{w.a}.mapped.vec", "mapped_b": f"{folder}/{w.b}.mapped.vec"} | gold


def aligner_flags(config: Config, w: Wildcards) -> str:
    """The flags of a lexicon that an aligner makes. The usual number of pairs is not among them: it would make finished lexicons again."""
    block = config.lexicons[w.lexicon]
    if block.mapping.mode != "aligned":
        return ""
    return "--aligned" if block.aligned_pairs == ALIGNED_PAIRS else f"--aligned --aligned-pairs {block.aligned_pairs}"


def pieces_of(config: Config, w: Wildcards) -> dict[str, str]:
    """The backbone whose pieces are the lexicon's unit, where they are."""
    block = config.lexicons[w.lexicon]
    return {"model": paths.backbone_model(block.backbone)} if block.unit == "piece" and block.backbone else {}


def fold_languages(config: Config, w: Wildcards) -> list[str]:
    """The languages by whose rules given words are lower-cased; pieces keep their case."""
    return [] if pieces_of(config, w) else ["--languages", w.a, w.b]


def lexicon_settings(config: Config, w: Wildcards) -> str:
    """The settings of the retrieval; a document and its summary are no translations, which an aligner could judge by."""
    block = config.lexicons[w.lexicon].lexicon
    return as_json(block, align=block.align and not config.corpora[w.corpus].documents)


def lexicon_reports(config: Config) -> list[str]:
    """The reports of all lexicons of the run."""
    return sorted(
        {f"{path}/lexicon.json" for name in config.run.experiments for path in task_of(config.experiments[name]).lexicons(config, name)}
    )


# ---------------------------------------------------------------------------------------------
# backbones


def backbone_users(config: Config, backbone: str) -> list[str]:
    """The names of the experiments that start from the backbone, or from one that is made from it, and of those whose test sets their
    arms translate without having learnt to."""
    users = experiments_from(config, backbone)
    trained = [name for name in users if name in translation.translations(config)]
    tested = (other for name in trained for other in translation.zero_shot_experiments(config, name))
    return list(dict.fromkeys([*users, *tested]))


def experiments_from(config: Config, backbone: str) -> list[str]:
    """The names of the experiments that start from the backbone, or from one that is made from it."""
    used = experiments_needed(config)
    starts = {name: backbones_of(config, config.experiments[name]) for name in used}
    return [name for name in used if any(backbone in chain(config, own) for own in starts[name])]


def of_users(config: Config, backbone: str, ask: str) -> list[str]:
    """What the tasks of the backbone's experiments answer, each once, sorted."""
    return answers_of(config, backbone_users(config, backbone), ask)


def answers_of(config: Config, experiments: list[str], ask: str) -> list[str]:
    """What the tasks of experiments answer, each once, sorted."""
    return sorted({found for name in experiments for found in getattr(task_of(config.experiments[name]), ask)(config, name)})


def backbone_languages(config: Config, w: Wildcards) -> list[str]:
    """The languages that the backbone must know."""
    return languages_known(config, w.backbone)


def languages_known(config: Config, backbone: str) -> list[str]:
    """The languages that a backbone must know: of the experiments that start from it, or if there are none, of the analyses; and of
    the bitext that it, or one that is made from it, is pretrained on.

    A published model need not know the languages that its models translate without having learnt to: these are read under the tag of
    the language that they learnt from.
    """
    users = (experiments_from if config.backbones[backbone].kind == "hub" else backbone_users)(config, backbone)
    asked = answers_of(config, users, "languages") or analyses.languages_for(config, backbone)
    made = [name for name in backbones_used(config) if backbone in chain(config, name)]
    blocks = [config.backbones[name].pretraining for name in made]
    read = {code for block in blocks if block for name in block.bitext for code in config.corpora[name].languages}
    translated = {code for name, codes in translators(config).items() if name in made for code in codes}
    return sorted({*asked, *read, *translated})


def encoder_will_do(config: Config, w: Wildcards) -> str:
    """The flag for a backbone that has no text to write: it may be an encoder alone."""
    return "" if writes_text(config, w.backbone) else "--encoder-will-do"


def writes_text(config: Config, backbone: str) -> bool:
    """Whether an experiment has the backbone write text: as its task's answer, or to restore it."""
    names = backbone_users(config, backbone)
    if any(backbone in chain(config, translator) for translator in translators(config)):
        return True
    if not names:
        return not analyses.analyses_of(config, backbone)
    # the arms of a task start from this backbone itself, or from one that is made from it; in another form it may write text, though itself
    # it need not
    users = [config.experiments[name] for name in names]
    arms = [(e, arm) for e in users for arm in arms_of(config, e) if _becomes(config, e, arm, backbone)]
    restores = any(needs_decoder(phase) for e, arm in arms for phase in arm_phases(config, e, arm))
    restores |= any(_writes_before(config, name, backbone) for name in backbones_used(config))
    return restores or any(task_of(e).answers == "text" and not encoder_writes(config, e, arm) for e, arm in arms)


def _writes_before(config: Config, name: str, backbone: str) -> bool:
    """Whether a backbone `name` is the model of an arm that has written text, made from this backbone without a conversion on the way."""
    model, links = config.backbones[name].arm, chain(config, name)
    if model is None or backbone not in links or any(config.backbones[one].kind == "converted" for one in links[: links.index(backbone)]):
        return False
    experiment = config.experiments[model.experiment]
    if any(needs_decoder(phase) for phase in arm_phases(config, experiment, model.arm)):
        return True
    return task_of(experiment).answers == "text" and not encoder_writes(config, experiment, model.arm)


def _becomes(config: Config, experiment: Any, arm: str, backbone: str) -> bool:
    """Whether an arm starts from the backbone, or from one that is made from it and is not converted on the way."""
    if not trains(experiment):
        return True
    links = chain(config, backbone_of(config, experiment, arm))
    before = links[: links.index(backbone)] if backbone in links else links
    return backbone in links and all(config.backbones[link].kind != "converted" for link in before)


def _is_made_from(config: Config, experiment: Any, arm: str, backbone: str) -> bool:
    """Whether an arm starts from the backbone, or from one that is made from it; models that others trained count by the experiment."""
    return not trains(experiment) or backbone in chain(config, backbone_of(config, experiment, arm))


def _reads_text(config: Config, backbone: str) -> bool:
    """Whether the backbone is made of, or trimmed to, the experiments' text."""
    block = config.backbones[backbone]
    return block.kind not in ("hub", "converted") or block.trim


def backbone_task_text(config: Config, w: Wildcards) -> list[str]:
    """The experiments' training text, or of an arm's model that of the arm.

    Where the vocabulary is cut down to it, lexicons with words from elsewhere belong to it as well, since switched words need their pieces,
    and so does all text of the models that are made from it.
    """
    if not _reads_text(config, w.backbone):
        return []
    if of_arm := config.backbones[w.backbone].arm:
        return sorted(task_of(config.experiments[of_arm.experiment]).training_text(config, of_arm.experiment))
    read = set(of_users(config, w.backbone, "training_text"))
    if config.backbones[w.backbone].trim:
        read |= {path for name in backbone_users(config, w.backbone) for path in _words_from_elsewhere(config, name)}
        read |= {path for name in backbones_used(config) if w.backbone in chain(config, name) for path in _pretrained_on(config, name)}
        read |= {path for name in backbone_users(config, w.backbone) for path in _text_from_elsewhere(config, name)}
    return sorted(read)


def _pretrained_on(config: Config, backbone: str) -> set[str]:
    """The files that a backbone is pretrained on here, but for the experiments' own."""
    block = config.backbones[backbone].pretraining
    if block is None:
        return set()
    sides = [(name, code) for name in block.bitext for code in config.corpora[name].languages]
    pairs = {paths.corpus_text(config, name, part, code) for name, code in sides for part in ("train", "dev")}
    return {resource(path) for path in block.text.values() if path != "task"} | pairs


def _words_from_elsewhere(config: Config, name: str) -> list[str]:
    """The files of an experiment's lexicons whose words its own text need not have: given ones, and those of another corpus."""
    experiment = config.experiments[name]
    if task_of(experiment).text == "labelled":
        return crosslingual.lexicon_files(config, name)
    files: list[str] = []
    for used in lexicons_used(config, experiment):
        block, corpus = config.lexicons[used], lexicon_corpus(config, experiment, used)
        given = block.vectors or block.mapping.mode == "dictionary" or corpus != experiment.corpus
        # pieces are the backbone's own
        if given and block.unit == "word":
            files += translation.lexicon_files(config, name, used)
    return files


def _text_from_elsewhere(config: Config, name: str) -> list[str]:
    """The training text, in the experiment's languages, that its phases read besides that of its own corpus."""
    known = task_of(config.experiments[name]).languages(config, name)
    corpora = texts_read(config, config.experiments[name])
    return [paths.corpus_text(config, each, "train", code) for each in corpora for code in config.corpora[each].languages if code in known]


def backbone_held_out(config: Config, w: Wildcards) -> list[str]:
    """Dev and test sets, whose sentences the backbone must not be trained on."""
    return of_users(config, w.backbone, "held_out_text") if _reads_text(config, w.backbone) else []


def backbone_text(config: Config, w: Wildcards) -> list[str]:
    """The text that a backbone is pretrained on, besides the task's own, and its ready-made copy; or the files of a model in a folder."""
    named = config.backbones[w.backbone]
    # what a run has made is a folder as a whole, of which Snakemake takes no single file
    if named.kind == "hub" and named.model and (folder := Path(named.model)).is_dir() and folder.parts[:1] != ("results",):
        return sorted(str(path) for path in folder.iterdir() if path.is_file() and not path.name.startswith("."))
    block = named.pretraining
    ready = [f"{resource(block.ready)}/ready.json"] if block and block.ready else []
    return [*(resource(path) for path in block.text.values() if path != "task"), *ready] if block else []


def backbone_bitext(config: Config, w: Wildcards, part: str) -> list[str]:
    """Both sides of a part of each corpus that a backbone is pretrained on."""
    block = config.backbones[w.backbone].pretraining
    named = block.bitext if block else []
    return [paths.corpus_text(config, name, part, code) for name in named for code in config.corpora[name].languages]


def backbone_start(config: Config, w: Wildcards) -> dict[str, Any]:
    """The model of the backbone that a continued one is made from, and the plugins that its objective and its family come from."""
    block, found = config.backbones[w.backbone], dict[str, Any]()
    if block.arm:
        found["start"] = paths.trained_model(block.arm.experiment, block.arm.arm, block.arm.seed, block.arm.phase)
    elif block.kind in ("continued", "converted") and block.from_:
        found["start"] = paths.backbone_model(block.from_)
    objective = registry.entry("objective", block.objective) if block.objective else None
    if files := plugins.files_of(objective, _family_of(block)):
        found["plugin"] = files
    return found


def _family_of(block: Backbone) -> registry.Entry | None:
    """The family of a backbone, where it is named or stands in a folder that is there."""
    if block.family:
        return registry.entry("family", block.family)
    try:
        return family_of(block.model) if block.kind == "hub" and block.model and Path(block.model).is_dir() else None
    except InputError:
        return None  # preflight says why


def loaded_for(config: Config, w: Wildcards) -> str:
    """The flags, as words of the shell, of what a backbone is loaded for: one that keeps the head of its pretraining, and one whose
    vocabulary is cut down and that experiments ask by templates of their own."""
    given = ["--keep-head"] if keeps_head(config, w.backbone) else []
    users = [config.experiments[name] for name in backbone_users(config, w.backbone)] if config.backbones[w.backbone].trim else []
    own = {template for each in users if (used := templates_of(each)) for template in used.texts}
    own |= {
        text
        for each in users
        if asks_for_labels(config, each)
        for text in verbaliser.texts(each.verbaliser, config.labelled[each.corpus].labels)
    }
    if found := sorted(own - {"", Templates.restore}):
        given += ["--templates", *found]
    return shlex.join(given)


def asks_for_labels(config: Config, experiment: Any) -> bool:
    """Whether an arm of an experiment asks a decoder for labels without training it."""
    return any(phase.untrained for _, phase in phases_of(config, experiment)) and hasattr(experiment, "verbaliser")


def templates_of(experiment: Any) -> Templates | None:
    """How an experiment asks a model: by its own templates, and that of its task; None of one that writes no text."""
    own = getattr(experiment, "templates", None)
    return own and dataclasses.replace(own, task=own.task or task_of(experiment).template)


def keeps_head(config: Config, backbone: str) -> bool:
    """Whether a backbone keeps the head of its pretraining: another is made from it, it writes at once, or guesses masked words first."""
    users = [config.experiments[name] for name in backbone_users(config, backbone)]
    arms = [(e, arm) for e in users for arm in arms_of(config, e) if _is_made_from(config, e, arm, backbone)]
    if any(encoder_writes(config, e, arm) or _guesses(arm_phases(config, e, arm)) for e, arm in arms):
        return True
    return backbone in {config.backbones[name].from_ for name in backbones_used(config)}


def _guesses(phases: list[Phase]) -> bool:
    """Whether a phase before the task learns by an objective for encoders."""
    return any(phase.learns and phase.learns.decoder is False for phase in phases)


def backbone_settings(config: Config, w: Wildcards) -> str:
    """The backbone's block, with the embedded files where they really are."""
    block = dataclasses.asdict(config.backbones[w.backbone])
    for part in filter(None, (block["small"], block["continued"])):
        part["text"] = {code: path if path == "task" else resource(path) for code, path in part["text"].items()}
        if part.get("ready"):
            part["ready"] = resource(part["ready"])
    # settings that came later are told where they are used, so that no backbone of before is made anew
    later = ("encoder_layers", "with_head")
    return json.dumps({key: value for key, value in block.items() if value or key not in later}, ensure_ascii=False)


# ---------------------------------------------------------------------------------------------
# the report


def report_inputs(config: Config) -> list[str]:
    """Everything that the report draws from."""
    files = {f"{data_file(config, name)}.json" for name in data_used(config)}
    for name in config.run.experiments:
        files |= task_of(config.experiments[name]).results(config, name)
    published = {resource(table) for name in config.run.analyses if (table := config.analyses[name].published)}
    return sorted(files | {*analyses.results(config)} | published)


def report_tables(config: Config) -> list[str]:
    """The report's tables besides `scores.tsv`; the last two where there is something for them."""
    made = {"comparisons": True, "transfer": config.run.transfer, "analyses": config.run.analyses}
    return [paths.report_table(name) for name, asked in made.items() if asked]


def report_pages(config: Config) -> list[str]:
    """A page for each experiment, where they are too many for one page."""
    names = config.run.experiments
    return [paths.report_page(name) for name in names] if len(names) > 10 else []
