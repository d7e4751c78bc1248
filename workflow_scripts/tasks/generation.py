"""generation: the tasks whose answer is another text: questions of passages, titles of articles, stories of their openings.

A model is finetuned on texts with their targets, in one language or from one into another. It is tested on texts that may be in other
languages: the decoder gets the tag of the language to write in, of which it has seen no target. Text, lexicons and pretext phase are those
of the tasks that learn in one language (`crosslingual`). Training and scores are those of translation.

Two commands of its own:

``sides``
    writes the texts and the targets of a part into two files, parallel line by line, as training reads them
``decode``
    writes the answers to all test sets, with the model loaded once
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from workflow_scripts.config import paths
from workflow_scripts.config.phases import Phase
from workflow_scripts.evidence.scores import Scores
from workflow_scripts.evidence.speed import Speed
from workflow_scripts.models.decoding import Decoding, one_line, translator
from workflow_scripts.models.sga import BLOCK, SGA
from workflow_scripts.models.templates import Templates
from workflow_scripts.models.tokenisation import load_codec
from workflow_scripts.stage import InputError, atomic, run, write_json
from workflow_scripts.tasks import crosslingual, translation
from workflow_scripts.tasks.crosslingual import CrossLingual
from workflow_scripts.tasks.entry import MoreText, Parts, Task, register_task
from workflow_scripts.tasks.experiment import shared_problems
from workflow_scripts.tasks.plan import Plan
from workflow_scripts.tasks.writing_checks import decoding_problems, grid_problems
from workflow_scripts.text.examples import read_table
from workflow_scripts.text.files import read_lines, write_pairs
from workflow_scripts.text.labelled import Labelled
from workflow_scripts.text.words import is_blank
from workflow_scripts.training.choice import Choice


@dataclass(kw_only=True)
class Generation(CrossLingual):
    """Text generation: texts with targets, test sets in the same and in other languages, and a backbone that writes."""

    task: Literal["questions", "titles", "stories"]
    """What the model writes: questions on passages or sentences, titles of articles, or stories from titles or first pages."""
    grid: dict[str, list[Any]] = field(default_factory=dict)
    """Lists of values for `training`. Every arm is trained with each combination, and the best on the dev set is chosen."""
    choice: Choice = field(default_factory=Choice)
    """What chooses the best combination of a grid."""
    decoding: Decoding = field(default_factory=Decoding)
    """Settings of beam search."""
    templates: Templates = field(default_factory=Templates)
    """How a decoder-only backbone is prompted."""
    scores: Scores = field(default_factory=Scores)
    """Metrics and significance. By default BLEU, also of lower-cased text, ROUGE-L and METEOR."""
    speed: Speed | None = None
    """Speed and quality of the arms on the first test set. `{}` measures them with defaults. No other job runs on the machine
    meanwhile."""
    sga: SGA = field(default_factory=SGA)
    """For arms with a non-autoregressive `generator`. These texts have many possible answers, so `alignment` is mask_predict by
    default."""


GenerationPlan = Plan[Generation, Labelled]

# ---------------------------------------------------------------------------------------------
# commands


def sides(examples: Path, source: Path, target: Path) -> None:
    """Write the texts of a part of `labelled` text into `source` and their targets into `target`."""
    write_pairs(source, target, ((example.text, example.label) for example in read_table(examples)))


def decode(
    model: Path,
    sources: tuple[Path, ...],
    folder: Path,
    *,
    testsets: tuple[str, ...],
    languages: tuple[str, ...],
    target_languages: tuple[str, ...],
    threads: int = 0,
    seed: int = 1,
    settings: Decoding = Decoding(),
) -> None:
    """Write `{testset}.hyp` into `folder` for each of the `sources`, one answer a line, and `{testset}.decoding.json` about its texts.

    `testsets`, `languages` (of the sources) and `target_languages` (to write in) are in the order of the sources.
    What an engine draws comes from the `seed`. Raises `InputError` as `decoding.main` does.
    """
    codec = load_codec(model)
    texts = [list(read_lines(path)) for path in sources]
    for path, lines in zip(sources, texts, strict=True):
        if not lines:
            raise InputError(f"{path}: is empty, there is nothing to answer")
    with translator(model, codec, threads, settings, seed=seed) as translate:
        directions = zip(languages, target_languages, strict=True)
        for path, name, lines, pair in zip(sources, testsets, texts, directions, strict=True):
            with atomic(folder / f"{name}.hyp") as file:
                file.writelines(f"{one_line(ranked[0].text)}\n" for ranked in translate(lines, pair, 1))
            translate.warn(path)
            empty = sum(map(is_blank, lines))
            write_json(folder / f"{name}.decoding.json", {"sentences": len(lines), "empty_sources": empty, **translate.about})
    print({"testsets": testsets, "sentences": list(map(len, texts)), "empty_sources": [sum(map(is_blank, lines)) for lines in texts]})


# ---------------------------------------------------------------------------------------------
# what an experiment means


def sides_of(plan: GenerationPlan, part: str) -> list[tuple[str, str]]:
    """Texts and targets of a part, each with its language."""
    return paths.labelled_sides(plan.config, plan.corpus, part)


def more_text(plan: GenerationPlan, phase: Phase) -> list[MoreText]:
    """The translations of the training text, and of its targets unless these are in one language, if the phase learns from them."""
    found = [sides_of(plan, part) for part in crosslingual.translated_parts(plan, phase)]
    return [MoreText(source, target, (code, target_code)) for (source, code), (target, target_code) in found]


def languages(plan: GenerationPlan) -> list[str]:
    """The languages of all texts and targets, that of the training text first."""
    parts = [*paths.labelled_parts(plan.config, plan.corpus), *paths.more_parts(plan.config, plan.corpus, "translations")]
    return list(dict.fromkeys(code for part in parts for _, code in sides_of(plan, part)))


def training_text(plan: GenerationPlan) -> list[str]:
    """Texts and targets of the training text, and of its translations that are learnt from."""
    more = [path for _, phase in plan.phases for text in more_text(plan, phase) for path in (text.source, text.target)]
    return list(dict.fromkeys([*(path for path, _ in sides_of(plan, "train")), *more]))


def held_out_text(plan: GenerationPlan) -> list[str]:
    """Texts and targets of dev and test sets."""
    return [path for part in paths.labelled_parts(plan.config, plan.corpus)[1:] for path, _ in sides_of(plan, part)]


def results(plan: GenerationPlan) -> set[str]:
    """All files that the report reads: text, scores of every test set, curves, tests of significance, noised text."""
    files = {paths.labelled_file(plan.config, plan.corpus, part, ".json") for part in paths.labelled_parts(plan.config, plan.corpus)}
    files |= {f"{folder}/lexicon.json" for folder in crosslingual.lexicons(plan)}
    return files | translation.written_results(plan, list(plan.text.test))


def problems(plan: GenerationPlan) -> Iterator[str]:
    """What is wrong with an experiment's block and types cannot tell."""
    yield from shared_problems(plan)
    yield from grid_problems(plan)
    yield from decoding_problems(plan)
    for arm, phase in plan.phases:
        if phase.epochs is not None:
            yield f"arms.{arm}: {plan.where}, whose task is {plan.settings.task}, counts updates; epochs are for tasks with labels"
        if phase.data == "task" and phase.lexicon:
            yield f"arms.{arm}.lexicon: the task itself takes none"
    yield from crosslingual.translations_problems(plan)
    yield from crosslingual.text_problems(plan, "target", {}, [])


PARTS: Parts = {
    "run": ("What was run", "generated"),
    "scores": ("Scores", "scores"),
    "speed": ("Speed", "speed"),
    "curves": ("Learning curves", "curves"),
    "lexicon": ("Dictionaries", "dictionaries"),
    "switched": ("Switched sentences", "switched"),
    "translations": ("{outputs} side by side", "translations"),
}
"""The parts of the report: those of translation that make sense here."""


def _register(name: str, label: str, answer: str, words: dict[str, str]) -> None:
    register_task(
        Task(
            name=name,
            label=label,
            settings=Generation,
            text="labelled",
            answers="text",
            length="updates",
            languages=languages,
            trained_languages=crosslingual.trained_languages,
            training_text=training_text,
            held_out_text=held_out_text,
            lexicons=crosslingual.lexicons,
            results=results,
            problems=problems,
            phases=translation.phases,
            rules={
                "pretext": "training.micro_batch_tokens",
                "finetune": "training.micro_batch_tokens",
                "generation_decoding": "decoding.batch_tokens",
                "speed": "speed.batch_tokens",
            },
            defaults={
                "scores": {"metrics": ["BLEU", "ROUGE-L", "METEOR"], "lowercase": True},
                "training": {"dev_metric": "ROUGE-L", "too_long": "cut"},
                "choice": {"by": "dev_rouge"},
                BLOCK: {"alignment": "mask_predict"},
            },
            sides=sides_of,
            more_text=more_text,
            grid="training",
            words=words,
            parts=PARTS,
            templates=("generation",),
            template=f"{{source_language}}: {{source}}\n{answer} in {{target_language}}:",
        )
    )


_register(
    "questions",
    "question generation",
    "Question",
    {
        "learns": "ask questions that a text answers",
        "rows": "texts to ask a question about",
        "pairs": "texts with questions",
        "pair": "a text and a question",
        "input": "text",
        "inputs": "texts",
        "output": "a question",
        "outputs": "questions",
    },
)
_register(
    "titles",
    "title generation",
    "Title",
    {
        "learns": "give articles a title",
        "rows": "articles to give a title",
        "pairs": "articles with titles",
        "pair": "an article and its title",
        "input": "article",
        "inputs": "articles",
        "output": "a title",
        "outputs": "titles",
    },
)
_register(
    "stories",
    "story generation",
    "Story",
    {
        "learns": "tell a story from its opening",
        "rows": "openings to continue",
        "pairs": "openings with stories",
        "pair": "an opening and its story",
        "input": "opening",
        "inputs": "openings",
        "output": "a story",
        "outputs": "stories",
    },
)


if __name__ == "__main__":
    run({"sides": sides, "decode": decode})
