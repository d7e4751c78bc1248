"""predictions: every example of a task that answers no text, with what each arm answered, for pages to search, sort and filter.

What an example is, and what an answer to it, hangs on the task: a text and its label, words and their tags, a question and a span of its
passage, a query and the order of its documents, a sentence and the one that was found. Each has a function here that returns rows, and a
function in `predictions.js` that shows one. Scores of single examples are made of the counts that the task's scores are made of.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from workflow_scripts.errors import InputError
from workflow_scripts.evidence.counted import finite
from workflow_scripts.evidence.ranking_scores import ranked_queries
from workflow_scripts.evidence.tag_scores import accuracy
from workflow_scripts.report.answer_examples import true_answers
from workflow_scripts.report.labels import Answered, read_answered
from workflow_scripts.report.measures import measure
from workflow_scripts.report.search_results import Neighbours, read_neighbours
from workflow_scripts.report.study import Study
from workflow_scripts.tasks.answering import text_of
from workflow_scripts.tasks.head_task import About
from workflow_scripts.text.tagged import split_words

TOP = 3
"""How many documents of a query are shown as an arm ranks them."""


class Shown(NamedTuple):
    """What the page of a test set shows, as `predictions.js` reads it."""

    kind: str
    """Which function of the page shows a row."""
    languages: tuple[str, ...]
    """Languages of the texts of a row."""
    scored: str
    """What the score of an example is, in words."""
    rows: list[list[Any]]
    """Per example: line, texts, the right answer, the answer of each arm, the score of each arm; all arms with a seed, then the next."""
    marked: str = "answers that are wrong"
    """What is marked; nothing where no answer is right or wrong."""
    best: float = 100.0
    """The score of a right answer."""
    labels: tuple[str, ...] = ()
    """All labels, where answers are labels or tags: what a confusion matrix is made of."""
    passages: tuple[str, ...] = ()
    """What questions are asked about, in the order in which rows first ask about it; a row has its number."""


def shown(study: Study, testset: str, seeds: Sequence[int]) -> Shown:
    """What the page of a test set shows, of these seeds. Raises `InputError` or `OSError` where answers cannot be read."""
    parts = study.task.parts
    if "neighbours" in parts:
        looked_up = [read_neighbours(study, testset, seed) for seed in seeds]
        return _neighbours(looked_up[0]._replace(found=_of_all([one.found for one in looked_up])))
    answered = [read_answered(study, testset, seed) for seed in seeds]
    found = answered[0]._replace(answers=_of_all([one.answers for one in answered]))
    make = next((ROWS[part] for part in parts if part in ROWS), _labels)
    return make(study, found, scores_of(study, found))


def _of_all(by_arm: list[dict[str, Any]]) -> dict[str, Any]:
    """What the arms answered with each seed, as if each seed had arms of its own."""
    return {f"{place}.{arm}": found for place, each in enumerate(by_arm) for arm, found in each.items()}


def scores_of(study: Study, given: Answered) -> list[list[float]]:
    """The score of each example with each arm, in per cent: examples × arms, of a ranking queries × arms.

    An example's tags are scored by their accuracy, since most sentences have no span, or one. A score that a single example does not have,
    as the correlation of one answer, is 0.
    """
    task: Any = study.task
    about = About(getattr(study.settings, task.key), study.text.labels)
    score = accuracy if task.answers == "tags" else task.scores[measure(study).metric]
    counted = [task.counts(given.examples, answers, given.language, about) for answers in given.answers.values()]
    return [[_of_one(score, counts[i]) for counts in counted] for i in range(len(counted[0]))]


def _of_one(score: Callable[[Any], float], counts: Any) -> float:
    """The score of one example in per cent; 0 where it has none."""
    try:
        return round(100 * finite(score)(counts), 2)
    except InputError:
        return 0.0


def _labels(study: Study, given: Answered, scores: list[list[float]]) -> Shown:
    """Rows of texts, or pairs of texts, with a label. Of a plugin's task it may be a number; then an answer's distance from it counts."""
    answers = [*given.answers.values()]
    rows: list[list[Any]] = [
        [one.line, one.texts, one.label, [str(mine[i]) for mine in answers], scores[i]] for i, one in enumerate(given.examples)
    ]
    shown = Shown("labels", (given.language,), f"{measure(study).name}, 100 for a right answer", rows)
    if study.task.answers == "labels":
        return shown._replace(labels=tuple(study.text.labels))
    if not all(map(_is_number, [*study.text.labels, *(answer for row in rows for answer in row[3])])):
        # a score such as macro F1 says nothing of one answer
        for row in rows:
            row[4] = [100.0 * (answer == row[2]) for answer in row[3]]
        return shown._replace(scored="100 for a right answer, else 0")
    for row in rows:
        row[4] = [-abs(float(answer) - float(row[2])) for answer in row[3]]
        row[3] = [f"{float(answer):.4g}" for answer in row[3]]
    return shown._replace(scored="minus the distance of an answer from the right number", marked="", best=0.0)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _tags(study: Study, given: Answered, scores: list[list[float]]) -> Shown:
    """Rows of words with their tags; an arm's tags are joined by blanks."""
    answers = [*given.answers.values()]
    rows = [
        [one.line, split_words(one.text), one.label, [" ".join(mine[i]) for mine in answers], scores[i]]
        for i, one in enumerate(given.examples)
    ]
    labels = tuple(study.text.labels)
    return Shown(
        "tags", (given.language,), "the share of right tags in a sentence, in per cent", rows, "tags that are wrong", labels=labels
    )


def _spans(study: Study, given: Answered, scores: list[list[float]]) -> Shown:
    """Rows of questions; the right answer is its texts with the first span, an arm's answer is a span of the passage."""
    numbers: dict[str, int] = {}
    rows: list[list[Any]] = []
    for i, one in enumerate(given.examples):
        right = true_answers(one)
        place = numbers.setdefault(one.pair, len(numbers))
        spans = [[*mine[i]] for mine in given.answers.values()]
        written = [text_of(one, mine[i]) for mine in given.answers.values()]
        rows.append([one.line, [one.text, place], [right["truth"], right["span"]], [*zip(spans, written, strict=True)], scores[i]])
    scored = f"{measure(study).name} of an answer, in per cent"
    return Shown("spans", (given.language,), scored, rows, "the answers", passages=tuple(numbers))


def _ranks(study: Study, given: Answered, scores: list[list[float]]) -> Shown:
    """Rows of queries; the right answer is the documents that are shown with their grades.

    An arm's answer is the rank of the first document of the highest grade, and the numbers of the documents that it ranks first.
    """
    rows = []
    for several, values in zip(ranked_queries([one.query for one in given.examples]), scores, strict=True):
        grades = [float(given.examples[at].label) for at in several]
        best = grades.index(max(grades))
        orders = [sorted(range(len(several)), key=lambda i: -mine[several[i]]) for mine in given.answers.values()]
        kept = sorted({best, *(i for order in orders for i in order[:TOP])})
        documents = [[given.examples[several[i]].pair, grades[i]] for i in kept]
        ranks = [next(rank for rank, i in enumerate(order, 1) if grades[i] == max(grades)) for order in orders]
        answers = [[rank, [kept.index(i) for i in order[:TOP]]] for rank, order in zip(ranks, orders, strict=True)]
        first = given.examples[several[0]]
        rows.append([first.line, [first.text], [len(several), documents], answers, values])
    scored = f"{measure(study).name} of a query, times 100"
    return Shown("ranks", (given.language,), scored, rows, "documents whose grade is not the query's highest")


def _neighbours(found: Neighbours) -> Shown:
    """Rows of sentences that are looked up and have a translation; an arm's answer is what it found, with its similarity."""
    right: dict[int, list[int]] = {}
    for i, j in found.gold:
        right.setdefault(i, []).append(j)
    rows = []
    for i, wanted in right.items():
        at = [mine[i] for mine in found.found.values()]
        answers = [[found.target[number] if number >= 0 else "", similarity] for number, similarity in at]
        scores = [100.0 if number in wanted else 0.0 for number, _ in at]
        rows.append([i + 1, [found.source[i]], found.target[wanted[0]], answers, scores])
    scored = "100 where the translation was found, else 0"
    return Shown("neighbours", found.languages, scored, rows, "what is not the translation")


ROWS: dict[str, Callable[[Study, Answered, list[list[float]]], Shown]] = {"tagged": _tags, "answered": _spans, "ranked": _ranks}
"""Part of the report → what makes the rows of all examples, of tasks that have this part. The others have texts with labels."""
