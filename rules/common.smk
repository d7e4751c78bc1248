"""The configuration, checked, and the few functions that turn it into paths, inputs and settings."""

import dataclasses
import json
import sys

from snakemake.exceptions import WorkflowError
from snakemake.iocontainers import InputFiles, Wildcards
from snakemake.settings.types import DeploymentMethod

# rules call `python -m workflow_scripts.<stage>` from whatever working directory
sys.path.insert(0, str(workflow.basedir))
shell.prefix(f'export PYTHONPATH="{workflow.basedir}:${{{{PYTHONPATH:-}}}}" TOKENIZERS_PARALLELISM=false; ')

from workflow_scripts.evidence.comet import Comet
from workflow_scripts.run.config import (
    arms_of,
    data_file,
    data_used,
    documents_of,
    given_dictionary,
    grid_points,
    is_classification,
    labelled_languages,
    lexicon_corpus,
    lexicons_used,
    load,
    phase_training,
    switched_into,
    zero_shot_tests,
)
from workflow_scripts.run.loading import check_files
from workflow_scripts.run.digest import digest
from workflow_scripts.stage import InputError, atomic, resource

try:
    check_files(workflow.configfiles)
    CONFIG = load(config)
except InputError as error:
    raise WorkflowError(str(error)) from None


CLASSIFICATIONS = [name for name in CONFIG.run.experiments if is_classification(CONFIG.experiments[name])]
TRANSLATIONS = [name for name in CONFIG.run.experiments if name not in CLASSIFICATIONS]
# patterns of names, for rules that make files of the same name; nothing matches where there are none
CLASSIFIED = "|".join(name for name, e in CONFIG.experiments.items() if is_classification(e)) or "(?!)"
TRANSLATED = "|".join(name for name, e in CONFIG.experiments.items() if not is_classification(e)) or "(?!)"


wildcard_constraints:
    data=r"[\w-]+",
    suffix=r"\.(txt|tsv|jsonl)(\.(gz|xz|zst))?",
    corpus=r"[\w-]+",
    labelled=r"[\w-]+",
    lexicon=r"[\w-]+",
    backbone=r"[\w-]+",
    experiment=r"[\w-]+",
    arm=r"[\w-]+(\.grid\d+)?",
    testset=r"[\w-]+(@[\w-]+)?",
    seed=r"\d+",
    lang=r"[a-z]{2,3}",
    a=r"[a-z]{2,3}",
    b=r"[a-z]{2,3}",
    part=r"dev|test/[\w-]+",
    labelled_part=r"train|dev|test/[\w-]+",
    noise=r"(codeswitch|mask|random|released)(\.[\w-]+)?",
    phase="pretext|finetune",


def settings(block, **changes):
    """A settings block as one JSON value for a stage's command line."""
    return json.dumps({**dataclasses.asdict(block), **changes}, ensure_ascii=False)


# data and corpora, lexicons


def data_sources(wildcards):
    """What data are made of besides the network: other data, and the environment of mtdata."""
    block = CONFIG.data.get(wildcards.data)
    if block is None:
        raise WorkflowError(
            f"results/data/{wildcards.data}{wildcards.suffix} is asked for, but the configuration has no data.{wildcards.data}"
        )
    joined = {"joined": [data_file(CONFIG, name) for name in block.join]} if block.join else {}
    return joined | ({"environment": ancient("results/environments/mtdata.json")} if block.mtdata else {})


def corpus_folder(name):
    a, b = CONFIG.corpora[name].languages
    return f"{name}.{a}-{b}"


def text(corpus, part, lang):
    """One side of a part (train, dev, test/…) of a corpus."""
    return f"results/corpora/{corpus_folder(corpus)}/{part}.{lang}"


def held_out_parts(corpus):
    return ["dev", *(f"test/{name}" for name in CONFIG.corpora[corpus].test)]


def zero_shot_references(corpus, lang):
    """References in `lang` that models trained on this corpus are measured by elsewhere: no training text may have them."""
    users = [name for name in TRANSLATIONS if CONFIG.experiments[name].corpus == corpus]
    tests = [test.split("@") for name in users if CONFIG.experiments[name].target == lang for test in zero_shot_tests(CONFIG, name)]
    corpora = {(CONFIG.experiments[other].corpus, testset) for other, testset in tests} - {(corpus, testset) for _, testset in tests}
    return sorted(text(other, f"test/{testset}", lang) for other, testset in corpora)


def corpus_sources(wildcards):
    """The files that a corpus, or one held-out part of it, is read from."""
    corpus = CONFIG.corpora[wildcards.corpus]
    part = getattr(wildcards, "part", "train")
    every = [corpus.train, corpus.dev, *corpus.test.values()]
    # dev leaves out what the test sets have; corpus.json has the checksums of all
    sources = {"train": every, "dev": every[1:]}.get(part) or [corpus.test[part.removeprefix("test/")]]
    return list(dict.fromkeys(resource(path) for source in sources for path in (source.paths() or corpus.train.paths())))


def corpus_settings(wildcards):
    """The corpus block, with the embedded files where they really are."""
    block = dataclasses.asdict(CONFIG.corpora[wildcards.corpus])
    for source in (block["train"], block["dev"], *block["test"].values()):
        source["file"] = source["file"] and resource(source["file"])
        source["files"] = {lang: resource(path) for lang, path in source["files"].items()}
    return json.dumps(block, ensure_ascii=False)


def word_list(wildcards, kind):
    """What the lexicon's configuration names as `gold` or `dictionary` for the pair, if anything."""
    path = getattr(CONFIG.lexicons[wildcards.lexicon], kind).get(f"{wildcards.a}-{wildcards.b}")
    return {kind: resource(path)} if path else {}


def mapping_sources(wildcards):
    """Vectors, learnt or given, and the dictionary that the mapping starts from."""
    block = CONFIG.lexicons[wildcards.lexicon]
    folder = f"results/lexicons/{wildcards.corpus}.{wildcards.a}-{wildcards.b}/{wildcards.lexicon}"
    vectors = {
        side: resource(block.vectors[code]) if code in block.vectors else f"{folder}/{code}.vec"
        for side, code in (("vectors_a", wildcards.a), ("vectors_b", wildcards.b))
    }
    return vectors | word_list(wildcards, "dictionary")


def has_mapping(lexicon):
    """Whether a lexicon is made of vectors that are mapped into one space."""
    return CONFIG.lexicons[lexicon].mapping.mode not in ("dictionary", "aligned")


def lexicon_sources(wildcards):
    """Mapped vectors, or what takes their place: a dictionary, or (by the flag `--aligned`) the text alone; and the gold lexicon."""
    gold = word_list(wildcards, "gold")
    if not has_mapping(wildcards.lexicon):
        return word_list(wildcards, "dictionary") | gold
    folder = f"results/lexicons/{wildcards.corpus}.{wildcards.a}-{wildcards.b}/{wildcards.lexicon}"
    return {"mapped_a": f"{folder}/{wildcards.a}.mapped.vec", "mapped_b": f"{folder}/{wildcards.b}.mapped.vec"} | gold


def flags(inputs, *names):
    """`--name path …` for those of the named inputs that a rule has."""
    found = [(name, inputs[name]) for name in names if inputs.get(name)]
    return [part for name, paths in found for part in (f"--{name.replace('_', '-')}", *([paths] if isinstance(paths, str) else paths))]


def pieces_of(wildcards):
    """The backbone whose pieces are the lexicon's unit, where they are."""
    block = CONFIG.lexicons[wildcards.lexicon]
    return {"model": f"results/backbones/{block.backbone}/model"} if block.unit == "piece" else {}


def fold_languages(wildcards):
    """The languages by whose rules given words are lower-cased; pieces keep their case."""
    return [] if pieces_of(wildcards) else ["--languages", wildcards.a, wildcards.b]


def lexicon_file(experiment, name, lexicon=None):
    """A file of the experiment's lexicon, or of another; {0} and {1} in `name` are the corpus's languages."""
    chosen = CONFIG.experiments[experiment]
    used = lexicon or chosen.lexicon
    file = name.format(*CONFIG.corpora[chosen.corpus].languages)
    return f"results/lexicons/{corpus_folder(lexicon_corpus(CONFIG, chosen, used))}/{used}/{file}"


def lexicon_settings(wildcards):
    """The settings of the retrieval; a document and its summary are no translations, which an aligner could judge by."""
    block = CONFIG.lexicons[wildcards.lexicon].lexicon
    return settings(block, align=block.align and not CONFIG.corpora[wildcards.corpus].documents)


def lexicon_reports():
    learnt = {lexicon_file(name, "lexicon.json", used) for name in TRANSLATIONS for used in lexicons_used(CONFIG, CONFIG.experiments[name])}
    return sorted(learnt | {path for name in CLASSIFICATIONS for path in given_lexicons(name, "lexicon.json")})


# backbones


def backbone_users(backbone):
    return [e for name, e in CONFIG.experiments.items() if name in CONFIG.run.experiments and e.backbone == backbone]


def languages_of(experiment):
    """The languages of an experiment's text."""
    return labelled_languages(CONFIG, experiment) if is_classification(experiment) else [experiment.source, experiment.target]


def backbone_languages(backbone):
    return sorted({code for e in backbone_users(backbone) for code in languages_of(e)})


def encoder_will_do(wildcards):
    """A model without a decoder can only be finetuned to classify."""
    users = backbone_users(wildcards.backbone)
    pretext = any(has_pretext(arm) for e in users for arm in arms_of(CONFIG, e))
    return "" if pretext or not all(map(is_classification, users)) else "--encoder-will-do"


def reads_text(wildcards):
    """Whether the backbone is made of, or trimmed to, the experiments' text."""
    block = CONFIG.backbones[wildcards.backbone]
    return block.kind == "small" or block.trim


def backbone_task_text(wildcards):
    if not reads_text(wildcards):
        return []
    users = backbone_users(wildcards.backbone)
    read = {text(e.corpus, "train", code) for e in users if not is_classification(e) for code in (e.source, e.target)}
    read |= {labelled_file(e.corpus, "train") for e in users if is_classification(e)}
    if CONFIG.backbones[wildcards.backbone].trim:
        # switched words need their pieces, and no other text has them
        read |= {path for name in CLASSIFICATIONS if CONFIG.experiments[name] in users for path in given_lexicons(name)}
    return sorted(read)


def backbone_held_out(wildcards):
    if not reads_text(wildcards):
        return []
    users = backbone_users(wildcards.backbone)
    return sorted(
        {
            text(e.corpus, part, code)
            for e in users
            if not is_classification(e)
            for part in held_out_parts(e.corpus)
            for code in (e.source, e.target)
        }
        | {labelled_file(e.corpus, part) for e in users if is_classification(e) for part in labelled_parts(e.corpus)[1:]}
    )


def backbone_text(wildcards):
    small = CONFIG.backbones[wildcards.backbone].small
    return [resource(path) for path in small.text.values() if path != "task"] if small else []


def backbone_settings(wildcards):
    block = dataclasses.asdict(CONFIG.backbones[wildcards.backbone])
    if block["small"]:
        block["small"]["text"] = {code: path if path == "task" else resource(path) for code, path in block["small"]["text"].items()}
    return json.dumps(block, ensure_ascii=False)


# experiments, arms, phases


def direction(wildcards):
    """Source and target; of a classification the language of its training text."""
    experiment = CONFIG.experiments[wildcards.experiment]
    return languages_of(experiment)[:1] if is_classification(experiment) else languages_of(experiment)


def documents(wildcards):
    """The flag that tells a stage that its text is documents."""
    return "--documents" if documents_of(CONFIG, wildcards.experiment) else ""


def experiment_corpus(wildcards):
    return CONFIG.experiments[wildcards.experiment].corpus


def experiment_languages(wildcards):
    return CONFIG.corpora[experiment_corpus(wildcards)].languages


def testsets(experiment):
    """The experiment's own test sets."""
    chosen = CONFIG.experiments[experiment]
    return list((CONFIG.labelled if is_classification(chosen) else CONFIG.corpora)[chosen.corpus].test)


def arms(wildcards):
    """The arms that an experiment takes."""
    return arms_of(CONFIG, CONFIG.experiments[wildcards.experiment])


def phases_of(wildcards):
    """The phases of an arm, or of a point of its grid (`csr.grid0`)."""
    return CONFIG.arms[wildcards.arm.partition(".grid")[0]]


def phase(wildcards, name):
    return next(p for p in phases_of(wildcards) if p.name == name)


def grid_point(wildcards):
    """The point of the grid that an arm like `csr.grid0` is trained with; None for an arm itself."""
    number = wildcards.arm.partition(".grid")[2]
    return grid_points(CONFIG.experiments[wildcards.experiment])[int(number)] if number else None


def phase_settings(name):
    """The training settings of a phase, as JSON; what is chosen from a grid comes with `--choice`."""
    return lambda wildcards: settings(
        phase_training(CONFIG.experiments[wildcards.experiment], phase(wildcards, name), grid_point(wildcards))
    )


def grid_choice(wildcards):
    """What was chosen for an arm, where there is a grid."""
    if grid_point(wildcards) is not None or not CONFIG.experiments[wildcards.experiment].grid:
        return {}
    return {"choice": f"results/runs/{wildcards.experiment}/{wildcards.arm}/choice.json"}


def keep_diverged(wildcards):
    """A point of a grid may fail; an arm may not."""
    return "--keep-diverged" if grid_point(wildcards) is not None else ""


def grid_reports(wildcards):
    """What the training of each point says."""
    points = range(len(grid_points(CONFIG.experiments[wildcards.experiment])))
    run = f"results/runs/{wildcards.experiment}/{wildcards.arm}"
    return [f"{run}.grid{point}/seed{CONFIG.run.seeds[0]}/finetune/training.json" for point in points]


def phase_start(name):
    """The model that a phase starts from: the phase before, or the backbone."""

    def start(wildcards):
        experiment = CONFIG.experiments[wildcards.experiment]
        phases = phases_of(wildcards)
        if name == "finetune" and len(phases) > 1 and phases[-1].start == "previous":
            arm = wildcards.arm
            if (own := grid_point(wildcards)) is not None:
                # points that differ in the finetune phase alone share their pretext phase
                wanted = phase_training(experiment, phases[0], own)
                same = (phase_training(experiment, phases[0], point) == wanted for point in grid_points(experiment))
                arm = f"{arm.partition('.grid')[0]}.grid{list(same).index(True)}"
            return f"results/runs/{wildcards.experiment}/{arm}/seed{wildcards.seed}/pretext/model"
        return f"results/backbones/{experiment.backbone}/model"

    return start


def from_scratch(name):
    return lambda wildcards: "--from-scratch" if phase(wildcards, name).start == "scratch" else ""


def noised_folder(wildcards):
    return f"results/codeswitch/{wildcards.experiment}/{phase(wildcards, 'pretext').noise}/seed{wildcards.seed}"


def codeswitch_sources(wildcards):
    """Both directions of the lexicon; and the backbone, where its pieces are switched."""
    kind, _, lexicon = wildcards.noise.partition(".")
    files = {side: lexicon_file(wildcards.experiment, name, lexicon) for side, name in (("ab", "{0}-{1}.tsv"), ("ba", "{1}-{0}.tsv"))}
    if kind == "released":
        files["model"] = f"results/backbones/{CONFIG.experiments[wildcards.experiment].backbone}/model"
    return files


def pretext_tokens(wildcards):
    """What the longest pretext phase on this noise reads: updates × tokens per batch."""
    experiment = CONFIG.experiments[wildcards.experiment]
    return max(
        p.updates * phase_training(experiment, p, point).batch_tokens
        for name, phases in CONFIG.arms.items()
        if experiment.arms is None or name in experiment.arms
        for p in phases
        if p.noise == wildcards.noise
        for point in grid_points(experiment) or [None]
    )


def experiment_text(part, side):
    """Source (0) or target (1) side of a part of the experiment's corpus."""
    return lambda wildcards: text(experiment_corpus(wildcards), part.format(**dict(wildcards)), direction(wildcards)[side])


def tested(wildcards):
    """The experiment that a test set is of: `{other}@{testset}` is another's, translated without training for it."""
    other, _, name = wildcards.testset.rpartition("@")
    return CONFIG.experiments[other or wildcards.experiment], name


def test_direction(wildcards):
    """Languages of a test set: its own source, the experiment's target."""
    experiment, _ = tested(wildcards)
    return [experiment.source, experiment.target]


def test_text(side):
    """Source (0) or target (1) side of a test set."""

    def find(wildcards):
        experiment, name = tested(wildcards)
        return text(experiment.corpus, f"test/{name}", test_direction(wildcards)[side])

    return find


def corpus_text(part, side):
    """First (0) or second (1) language's side of a part of the experiment's corpus."""
    return lambda wildcards: text(experiment_corpus(wildcards), part, experiment_languages(wildcards)[side])


def representation_text(side):
    """Parallel text to measure distances on: the first test set."""
    return lambda wildcards: text(experiment_corpus(wildcards), f"test/{testsets(wildcards.experiment)[0]}", direction(wildcards)[side])


def unaligned_text(wildcards):
    """More text in the two languages, not parallel, to measure the distance of the language means on."""
    experiment = CONFIG.experiments[wildcards.experiment]
    return [resource(experiment.representation.text[code]) for code in direction(wildcards)] if experiment.representation.text else []


def own_environment(wildcards):
    """COMET's environment; with `--sdm conda` the rule runs in one that Snakemake has made."""
    by_snakemake = DeploymentMethod.CONDA in workflow.deployment_settings.deployment_method
    return {} if by_snakemake else {"environment": "results/environments/comet.json"}


# labelled text and classification


def labelled_sources(wildcards):
    """The files of all parts: what one has, others leave out."""
    labelled = CONFIG.labelled[wildcards.labelled]
    return list(dict.fromkeys(resource(s.file) for s in (labelled.train, labelled.dev, *labelled.test.values()) if s.file))


def labelled_settings(wildcards):
    """The labelled text's block, with the embedded files where they really are."""
    block = dataclasses.asdict(CONFIG.labelled[wildcards.labelled])
    for source in (block["train"], block["dev"], *block["test"].values()):
        source["file"] = source["file"] and resource(source["file"])
    return json.dumps(block, ensure_ascii=False)


def labelled_parts(labelled):
    return ["train", "dev", *(f"test/{name}" for name in CONFIG.labelled[labelled].test)]


def labelled_language(labelled, part):
    block = CONFIG.labelled[labelled]
    return (block.test[part.removeprefix("test/")].language if part.startswith("test/") else None) or block.language


def labelled_file(labelled, part, suffix=""):
    """A part's sentences, or with `.tsv` its examples and with `.json` its report."""
    return f"results/labelled/{labelled}/{part}.{labelled_language(labelled, part)}{suffix}"


def test_examples(wildcards):
    return labelled_file(experiment_corpus(wildcards), f"test/{wildcards.testset}", ".tsv")


def given_lexicons(name, file=None, lexicon=None):
    """For each language that is switched into, the lexicon made of a given dictionary (or another `file` beside it)."""
    experiment = CONFIG.experiments[name]
    code = CONFIG.labelled[experiment.corpus].language
    return [
        f"results/lexicons/{experiment.corpus}/{used}/{given_dictionary(CONFIG.lexicons[used], code, other)}/{file or f'{code}-{other}.tsv'}"
        for used in ([lexicon] if lexicon else lexicons_used(CONFIG, experiment))
        for other in switched_into(CONFIG, experiment)
        if given_dictionary(CONFIG.lexicons[used], code, other)
    ]


def switched_while_finetuning(wildcards):
    """The lexicons by which the finetuning text is switched, if it is."""
    experiment = CONFIG.experiments[wildcards.experiment]
    if not experiment.classification.switch_while_finetuning:
        return {}
    return {"lexicons": given_lexicons(wildcards.experiment, lexicon=experiment.lexicon)}


def finetuning_settings(wildcards):
    experiment = CONFIG.experiments[wildcards.experiment]
    labelled, chosen = CONFIG.labelled[experiment.corpus], experiment.classification
    noise = dataclasses.asdict(experiment.codeswitch) if chosen.switch_while_finetuning else None
    block = {"language": labelled.language, "labels": labelled.labels, "epochs": phase(wildcards, "finetune").epochs}
    return json.dumps({**block, "classification": dataclasses.asdict(chosen), "codeswitch": noise}, ensure_ascii=False)


def predicted_labels(wildcards):
    """What all arms answer on all test sets with all seeds, in this order."""
    return [
        f"results/runs/{wildcards.experiment}/{arm}/seed{seed}/{testset}.hyp"
        for arm in arms_of(CONFIG, CONFIG.experiments[wildcards.experiment])
        for testset in testsets(wildcards.experiment)
        for seed in CONFIG.run.seeds
    ]


def classification_reports(name):
    """What the report draws from, of a classification."""
    experiment = CONFIG.experiments[name]
    inputs = {f"results/runs/{name}/significance.json", f"results/backbones/{experiment.backbone}/backbone.json"}
    inputs |= {labelled_file(experiment.corpus, part, ".json") for part in labelled_parts(experiment.corpus)}
    for arm in arms_of(CONFIG, experiment):
        for seed in CONFIG.run.seeds:
            run = f"results/runs/{name}/{arm}/seed{seed}"
            inputs |= {f"{run}/{t}.scores.json" for t in testsets(name)} | {f"{run}/{p.name}/curve.tsv" for p in CONFIG.arms[arm]}
            if has_pretext(arm):
                inputs.add(f"results/codeswitch/{name}/{CONFIG.arms[arm][0].noise}/seed{seed}")
    return inputs


# the report


def has_pretext(arm):
    return len(CONFIG.arms[arm]) > 1


def report_inputs():
    """Everything that the report draws from."""
    inputs = {*lexicon_reports(), *(path for name in CLASSIFICATIONS for path in classification_reports(name))}
    inputs.update(f"{data_file(CONFIG, name)}.json" for name in data_used(CONFIG))
    for name in TRANSLATIONS:
        experiment = CONFIG.experiments[name]
        inputs.add(f"results/corpora/{corpus_folder(experiment.corpus)}/corpus.json")
        for used in lexicons_used(CONFIG, experiment):
            if has_mapping(used):
                inputs.add(lexicon_file(name, "mapping.json", used))
        inputs.add(f"results/backbones/{experiment.backbone}/backbone.json")
        inputs.add(f"results/runs/{name}/backbone.representation.json")
        inputs.add(f"results/runs/{name}/frequencies.tsv")
        all_tests = testsets(name) + zero_shot_tests(CONFIG, name)
        inputs.update(f"results/runs/{name}/significance/{t}.json" for t in all_tests)
        if experiment.grid:
            inputs.update(f"results/runs/{name}/{arm}/choice.json" for arm in arms_of(CONFIG, experiment))
        for seed in CONFIG.run.seeds:
            inputs.update(f"results/runs/{name}/significance/{t}.seed{seed}.json" for t in all_tests)
            for arm in arms_of(CONFIG, experiment):
                run = f"results/runs/{name}/{arm}/seed{seed}"
                inputs.update(f"{run}/{t}.words.json" for t in testsets(name))
                inputs.update(f"{run}/{t}.scores.json" for t in all_tests)
                if experiment.comet:
                    inputs.update(f"{run}/{t}.comet.json" for t in all_tests)
                inputs.update(f"{run}/{p.name}/curve.tsv" for p in CONFIG.arms[arm])
                inputs.update(f"{run}/{p.name}/representation.json" for p in CONFIG.arms[arm])
                if has_pretext(arm):
                    inputs.add(f"results/codeswitch/{name}/{CONFIG.arms[arm][0].noise}/seed{seed}")
    return sorted(inputs)


def report_pages():
    """A page for each experiment, where they are too many for one page."""
    names = CONFIG.run.experiments
    return [f"results/report/{name}.html" for name in names] if len(names) > 10 else []


# what is looked at before a run


def requested():
    """For each rule threads and resources of a job's first attempt, memory of its last, and its group, as the profile has them.

    None where all runs here.
    """
    jobs = {}
    for one in workflow.rules:
        if one.norun or workflow.is_local(one):
            continue
        try:
            asked, last = (
                dict(one.expand_resources(Wildcards(), InputFiles(), attempt).items()) for attempt in (1, 1 + (one.restart_times or 0))
            )
        except WorkflowError:  # asks for what only a job's own wildcards tell
            continue
        plain = {name: value for name, value in asked.items() if not name.startswith("_")}
        jobs[one.name] = {"threads": asked["_cores"], **plain, "last_mem_mb": last.get("mem_mb", 0), "group": one.group}
    return jobs


def preflight():
    """Say what is right and wrong with the run; end Snakemake if something is."""
    from workflow_scripts.run.preflight import look_at, tell

    try:
        tell(look_at(CONFIG, requested()))
    except InputError as error:
        sys.exit(f"error: {error}")
