"""An experiment as the report sees it: its settings and where its files are; and small statistics."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath
from typing import Any

from scipy import stats

from workflow_scripts.config import paths
from workflow_scripts.config.phases import Phase
from workflow_scripts.evidence.metric import decimals
from workflow_scripts.evidence.scores import leading
from workflow_scripts.stage import InputError, read_json
from workflow_scripts.tasks import crosslingual
from workflow_scripts.tasks.entry import Task
from workflow_scripts.tasks.experiment import phase_training
from workflow_scripts.tasks.plan import Plan
from workflow_scripts.tasks.translation import learnt_sources, lexicon_folder, zero_shot_tests
from workflow_scripts.text.aligned import Aligned
from workflow_scripts.text.labelled import Labelled
from workflow_scripts.text.languages import language

RANDOM = "random weights"
"""What stands for a published model where an arm starts from none."""


@dataclass(kw_only=True)
class Study:
    """One experiment: its part of the configuration, and the folders with its files."""

    name: str
    settings: Any
    """The experiment's block; its class is that of the task, `task.settings`."""
    task: Task
    corpus_name: str
    source: str
    target: str
    languages: Sequence[str]
    arms: dict[str, list[Phase]]
    seeds: list[int]
    testsets: list[str]
    zero_shot: dict[str, str] = field(default_factory=dict)
    """Test sets of other experiments (`{other}@{testset}`), which the models translate as well, and their source language."""
    lowercased: list[str] = field(default_factory=list)
    """Test sets whose corpus is lower-cased."""
    tested_on: dict[str, str]
    """Test set → what it reads: acquired data by their name under `data`, any other text by its files. The key "" is the text of the
    distances."""
    run: Path
    tests: Path
    """The folder of the tests of significance: that of the run."""
    corpus: Path
    lexicon: Path | None = None
    """The folder of the experiment's lexicon, or of the first one that a phase names; of a task with labels, that of all its dictionaries.
    None where no words are switched."""
    backbones: dict[str, str]
    """Of each arm, or model that is looked up: the backbone that it starts from."""
    noised: Path
    other_lexicons: dict[str, Path] = field(default_factory=dict)
    """The other lexicons that phases name."""
    learnt_sources: list[str] = field(default_factory=list)
    """Of a translation: the languages that it is learnt from."""
    labelled: Labelled | Aligned | None = None
    """The text of a task with labels, or of one that looks up translations."""
    generated: Labelled | None = None
    """The text of a task whose answers are texts, learnt in one language and tested in others."""
    dictionaries: dict[str, Path] = field(default_factory=dict)
    """Of a task that is tested in several languages: the folder of each dictionary that words are switched by, by its name."""
    zero_shot_corpora: dict[str, Path] = field(default_factory=dict)
    """The corpora of the test sets of other experiments."""
    pretraining: dict[str, int] = field(default_factory=dict)
    """Of each arm: tokens of the pretraining of its backbone, as far as that is done here, padding included. Epochs are not counted."""
    pretrained_here: list[str] = field(default_factory=list)
    """The arms whose backbones are trained here, at least in part."""
    read: list[Path] = field(default_factory=list)
    """Every JSON file that a number was taken from."""

    @property
    def text(self) -> Any:
        """The text of a task on labelled text, or on sentences whose translations are looked for."""
        if (found := self.generated or self.labelled) is None:
            raise ValueError(f"{self.name} has no labelled text")
        return found

    def sides(self, testset: str) -> list[tuple[str, str]]:
        """Languages of a test set that is answered with text, and its files in its corpus: what is read, and what is to be written."""
        if not self.generated:
            sources = self.zero_shot.get(testset, self.source), self.target
            return [(code, f"test/{testset.rpartition('@')[2]}.{code}") for code in sources]
        block, part = self.generated, f"test/{testset}"
        source, target = block.language_of(part), block.language_of_targets(part)
        return [(code, f"{part}.{source}-{target}.{side}.{code}") for code, side in ((source, "source"), (target, "target"))]

    def answered_in(self, testset: str) -> str:
        """The language in which a test set is to be answered with text."""
        return self.sides(testset)[1][0]

    def test_files(self, testset: str) -> list[Path]:
        """Where the two sides of a test set are that is answered with text: what is read, and what is to be written."""
        return [self.zero_shot_corpora.get(testset, self.corpus) / file for _, file in self.sides(testset)]

    def hypotheses(self, arm: str, testset: str, seed: int | None = None) -> Path:
        """Where the texts are that an arm wrote for a test set, with `seed` or with the first seed."""
        return self.seed(arm, seed) / f"{testset}.hyp"

    def direction(self, testset: str) -> str:
        """Source and target language of a test set, as `de-en`; of no test set, those of the experiment. Nothing for labels."""
        if self.labelled:
            return ""
        return "-".join(code for code, _ in self.sides(testset)) if testset else f"{self.source}-{self.target}"

    @property
    def title(self) -> str:
        """The experiment in a few words: its languages, or what is classified."""
        if isinstance(self.labelled, Aligned):
            return "retrieval of translations"
        if self.labelled or self.generated:
            return f"{self.settings.task}, learnt in {language(self.source).name}"
        sources = [language(code).name for code in self.learnt_sources or [self.source]]
        return f"{' and '.join(sources)} to {language(self.target).name}"

    @property
    def head(self) -> Any:
        """Settings of finetuning of a task with labels."""
        return getattr(self.settings, self.settings.head)

    @property
    def leading(self) -> str:
        """The metric that charts and overview show."""
        return leading(self.settings.scores)

    @property
    def dev_metric(self) -> str:
        """The metric of greedy outputs on the dev set."""
        return self.settings.training.dev_metric

    @property
    def tested(self) -> list[str]:
        """All test sets that the models were scored on, those of other experiments included."""
        return [*self.testsets, *self.zero_shot]

    @property
    def baseline(self) -> str:
        """The arm that the others are compared with."""
        return next(iter(self.arms))

    def of_kind(self, kind: str) -> list[str]:
        """Arms other than the baseline with the noise or objective `kind` in any of their phases; of the kind `task`, those without any."""
        others = {arm: phases for arm, phases in self.arms.items() if arm != self.baseline and phases}
        if kind == "task":
            return [arm for arm, phases in others.items() if not any(phase.bridge for phase in phases)]
        return [arm for arm, phases in others.items() if any(phase.data == kind for phase in phases)]

    @property
    def methods(self) -> list[str]:
        """Arms other than the baseline that learn something before the task which is a control of no other."""
        return [
            arm
            for arm, phases in self.arms.items()
            if arm != self.baseline and any(phase.bridge and not phase.bridge.control_of for phase in phases)
        ]

    @property
    def compared(self) -> str:
        """The arm that examples are chosen and shown for: the first method, or the last arm where there is none."""
        return next(iter([*self.methods, *reversed(self.arms)]))

    def seed(self, arm: str, seed: int | None = None) -> Path:
        """The folder of an arm's run with `seed`, or with the first seed."""
        return self.run / arm / f"seed{self.seeds[0] if seed is None else seed}"

    def backbone(self, arm: str) -> dict[str, Any]:
        """What was said of the backbone that an arm, or a model that is looked up, starts from."""
        return self.json(under(self.run.parents[1], paths.backbone_folder(self.backbones[arm])) / "backbone.json")

    def published_model(self, arm: str) -> str | None:
        """The published model that an arm starts from, also in another form, or `RANDOM`; None if the model was pretrained here."""
        if any(phase.start == "scratch" for phase in self.arms.get(arm, ())):
            return RANDOM
        report = self.backbone(arm)
        while report.get("kind") == "converted":
            report = self.json(under(self.run.parents[1], report["start"]).with_name("backbone.json"))
        return report.get("model")

    def there(self, path: Path) -> Path:
        """`path`; raises `InputError` where it is missing."""
        if not path.exists():
            raise InputError(f"{path} is missing; the report is made of a finished run (snakemake --cores all)")
        return path

    def json(self, path: Path) -> dict[str, Any]:
        """Read a JSON file and note it for the provenance; raises `InputError` where it is missing."""
        if self.there(path) not in self.read:
            self.read.append(path)
        return read_json(path)


@dataclass
class SoFar:
    """What is known of an unfinished run."""

    tests: Path
    """The folder in which tests of the arms that are there lie, as they do under `runs/` in the results."""
    missing: dict[str, list[str]]
    """Experiment → arms that are not on the page yet."""
    doing: list[str] = field(default_factory=list)
    """What is being done, in words."""
    left: float | None = None
    """Seconds that the run still takes; None where that is not known."""
    at: str = ""
    """When all this was so."""

    def of(self, study: Study) -> Study:
        """The experiment with the tests of the arms that are there."""
        return replace(study, tests=self.tests / study.name)


def configured(results: Path, plan: Plan) -> Study:
    """The study of an experiment."""
    return READERS[plan.task.text](results, plan)


def _of_parallel_text(results: Path, plan: Plan) -> Study:
    lexicons = {lexicon: under(results, lexicon_folder(plan, lexicon)) for lexicon in plan.lexicons}
    others = _zero_shot(plan)
    return Study(
        source=plan.settings.source,
        target=plan.settings.target,
        languages=plan.text.languages,
        testsets=list(plan.text.test),
        learnt_sources=learnt_sources(plan),
        zero_shot={test: other.settings.source for test, other in others.items()},
        zero_shot_corpora={test: under(results, paths.corpus_folder(plan.config, other.corpus)) for test, other in others.items()},
        lowercased=[test for test, own in {**dict.fromkeys(plan.text.test, plan), **others}.items() if own.text.lowercase],
        tested_on=_tested_on(plan),
        corpus=under(results, paths.corpus_folder(plan.config, plan.corpus)),
        lexicon=lexicons.pop(plan.lexicons[0]) if plan.lexicons else None,
        other_lexicons=lexicons,
        **_of_any_text(results, plan),
    )


def _of_labelled_text(results: Path, plan: Plan) -> Study:
    labelled, writes = plan.text, plan.task.answers == "text"
    given = crosslingual.given_lexicons(plan)
    return Study(
        source=labelled.language,
        target=labelled.language_of_targets("train") if writes else labelled.language,
        languages=plan.trained_languages,
        testsets=list(labelled.test),
        lowercased=list(labelled.test) if labelled.lowercase else [],
        tested_on={testset: text_of(source if source.file else labelled.train, source) for testset, source in labelled.test.items()},
        corpus=under(results, paths.labelled_folder(plan.corpus)),
        lexicon=results / "lexicons" / plan.corpus if given else None,
        labelled=None if writes else labelled,
        generated=labelled if writes else None,
        dictionaries={_called(used, pair, labelled.language): under(results, folder) for (used, pair), folder in given.items()},
        **_of_any_text(results, plan),
    )


def _of_aligned_text(results: Path, plan: Plan) -> Study:
    aligned = plan.text
    return Study(
        source=aligned.language,
        target=aligned.language,
        languages=plan.languages,
        testsets=list(aligned.test),
        tested_on={testset: text_of(source) for testset, source in aligned.test.items()},
        corpus=under(results, paths.aligned_folder(plan.corpus)),
        labelled=aligned,
        **_of_any_text(results, plan),
    )


def _called(lexicon: str, pair: str, code: str) -> str:
    """A given dictionary's name: its lexicon, and its languages with that of the text first."""
    return f"{lexicon}, {code}-{(set(pair.split('-')) - {code}).pop()}"


def _of_any_text(results: Path, plan: Plan) -> dict[str, Any]:
    return {
        "name": plan.name,
        "settings": plan.settings,
        "task": plan.task,
        "corpus_name": plan.corpus,
        "arms": {arm: plan.phases_of(arm) for arm in plan.arms},
        "seeds": plan.seeds,
        "run": under(results, plan.folder),
        "tests": under(results, plan.folder),
        "backbones": {arm: plan.backbone_of(arm).name for arm in plan.arms},
        "noised": under(results, paths.noised_text(plan.name)),
        "pretraining": {arm: pretraining_tokens(plan, arm) for arm in plan.arms},
        "pretrained_here": [arm for arm in plan.arms if is_pretrained_here(plan, arm)],
    }


def is_pretrained_here(plan: Plan, arm: str) -> bool:
    """Whether any of the backbones that an arm is made from is pretrained here, or is the model of an arm that trains."""
    links = [link.settings for link in plan.backbone_of(arm).chain]
    models = [link.arm for link in links if link.arm]
    trained = any(not phase.untrained for model in models for phase in plan.other(model.experiment).phases_of(model.arm))
    return trained or any(link.pretraining for link in links)


def pretraining_tokens(plan: Plan, arm: str) -> int:
    """Updates × tokens per update of all backbones that an arm is made from, as far as they are trained here."""
    links = [link.settings for link in plan.backbone_of(arm).chain]
    before = sum(block.training.updates * block.training.batch_tokens for link in links if (block := link.pretraining))
    for model in (link.arm for link in links):
        if model:
            other = plan.other(model.experiment)
            phases = other.phases_of(model.arm)
            learnt = phases[: [phase.name for phase in phases].index(model.phase) + 1]
            before += sum(phase.updates * phase_training(other.settings, phase).batch_tokens for phase in learnt if phase.updates)
    return before


READERS = {"corpora": _of_parallel_text, "labelled": _of_labelled_text, "aligned": _of_aligned_text}
"""The section that an experiment's text comes from → what makes its study."""


def folder_of_run(results: Path) -> Path:
    """The folder that a run's paths start from: that of `results`, where Snakemake's record of the run is beside it, else this one."""
    beside = results.absolute().parent
    return beside if (beside / ".snakemake").is_dir() else Path.cwd()


def under(results: Path, path: str) -> Path:
    """A path of the module `paths`, which begins with results/, in the given folder of results."""
    return results / Path(path).relative_to("results")


def _zero_shot(plan: Plan) -> dict[str, Plan]:
    """The test sets of other experiments that its arms translate, each with its experiment."""
    return {test: plan.other(test.partition("@")[0]) for test in zero_shot_tests(plan)}


def _tested_on(plan: Plan) -> dict[str, str]:
    read = {}
    for test, own in {**dict.fromkeys(plan.text.test, plan), **_zero_shot(plan)}.items():
        source = own.text.test[test.rpartition("@")[2]]
        read[test] = text_of(own.text.train, source) if source.held_out else text_of(source)
    return read | {"": joined_names([*plan.settings.representation.text.values()])}


def text_of(source: Any, part: Any = None) -> str:
    """What a source of text reads, as the configuration calls it; `part` is that of a test set that is held out of the source's text."""
    held_out = part is not None and part.held_out
    chosen = [f"{key} {value}" for key, value in getattr(source, "where", {}).items()]
    return ("held out of " if held_out else "") + joined_names(source.paths()) + (f" ({', '.join(chosen)})" if chosen else "")


def joined_names(files: list[str]) -> str:
    """Acquired data by their name under `data`, any other file by its path."""
    acquired = "results/data/"
    names = [PurePath(path).name.partition(".")[0] if path.startswith(acquired) else path for path in files]
    return " and ".join(dict.fromkeys(names))


def summary(values: list[float]) -> dict[str, Any]:
    """`n`, `mean`, `sd`, `min`, `max` and the 95 % `interval` of the mean (t distribution); `sd` and `interval` are None for one value."""
    n, mean = len(values), statistics.fmean(values)
    sd = statistics.stdev(values) if n > 1 else None
    half = None if sd is None else float(stats.t.ppf(0.975, n - 1)) * sd / n**0.5
    interval = None if half is None else (mean - half, mean + half)
    return {"n": n, "mean": mean, "sd": sd, "min": min(values), "max": max(values), "values": values, "interval": interval}


def paired(rows: list[dict[str, Any]], arm: str, other: str, testset: str, metric: str) -> list[tuple[float, float]]:
    """The scores of `arm` and `other` with each seed that both have.

    An arm that is the same for all seeds (`once`) has one score with all seeds of the other. Two such arms are one pair.
    """
    sides = [[r for r in rows if (r["arm"], r["testset"], r["metric"]) == (name, testset, metric)] for name in (arm, other)]
    mine, theirs = ({r["seed"]: r["value"] for r in side} for side in sides)
    mine_once, theirs_once = (any(r.get("once") for r in side) for side in sides)
    if mine_once and not theirs_once:
        mine = dict.fromkeys(theirs, sides[0][0]["value"])
    if theirs_once and not mine_once:
        theirs = dict.fromkeys(mine, sides[1][0]["value"])
    pairs = [(score, theirs[seed]) for seed, score in mine.items() if seed in theirs]
    return pairs[:1] if mine_once and theirs_once else pairs


def digits(metric: str) -> int:
    """Decimals to show: most COMET scores, and cosines, lie between 0 and 1."""
    known = decimals(metric)
    return known if known is not None else 4 if metric in ("COMET", "cosine") else 2


def spread(values: list[float], places: int = 2) -> str:
    """The mean over seeds and, with several seeds, their standard deviation."""
    found = summary(values)
    return f"{found['mean']:.{places}f}" + (f" ± {found['sd']:.{places}f}" if found["n"] > 1 else "")
