"""What was ranked and what was retrieved, side by side: some queries and sentences of each test set, with what is wrong marked."""

from typing import Any, NamedTuple

from workflow_scripts.evidence.ranking_scores import ranked_queries
from workflow_scripts.report.labels import read_answered, read_scores, scored_folder
from workflow_scripts.report.study import Study
from workflow_scripts.text.aligned import read_gold
from workflow_scripts.text.files import evenly, read_lines


def ranked(study: Study, number: int = 5, shown: int = 3) -> dict[str, Any]:
    """For each test set some of its queries, evenly spaced: the documents that each arm ranks first, those of no highest grade marked.

    Where no document is relevant (all grades are 0), all are marked, and `answer` is empty.

    Of documents with the same score the one that stands first in the file comes first here. Of the first seed.
    """
    made = []
    for testset in study.testsets:
        code, table, given = read_answered(study, testset)
        queries = []
        for several in evenly(ranked_queries([example.query for example in table]), number):
            highest = max(float(table[at].label) for at in several)
            arms = {}
            for arm, scores in given.items():
                order = sorted(several, key=[-score for score in scores].__getitem__)
                best = next(rank for rank, at in enumerate(order, 1) if float(table[at].label) == highest)
                top = [
                    {
                        "text": table[at].pair,
                        "grade": table[at].label,
                        "wrong": float(table[at].label) < highest or not highest,
                        "score": scores[at],
                    }
                    for at in order[:shown]
                ]
                arms[arm] = {"top": top, "best": best}
            text = next(table[at].pair for at in several if float(table[at].label) == highest) if highest else ""
            queries.append({"query": table[several[0]].text, "documents": len(several), "answer": text, "arms": arms})
        made.append({"testset": testset, "language": code, "queries": queries})
    return {"testsets": made}


def neighbours(study: Study, number: int = 8) -> dict[str, Any]:
    """For each test set some of its sentences that have a translation, evenly spaced: what each model found, marked where it is wrong."""
    made = []
    for testset in study.testsets:
        read = read_neighbours(study, testset)
        sentences = []
        for i, j in evenly(read.gold, number):
            arms = {}
            for arm, found in read.found.items():
                at, score = found[i]
                arms[arm] = {"text": read.target[at] if at >= 0 else "", "wrong": (i, at) not in read.gold, "score": score}
            sentences.append({"line": i + 1, "text": read.source[i], "right": read.target[j], "arms": arms})
        made.append({"testset": testset, "languages": read.languages, "sentences": sentences})
    return {"testsets": made}


class Neighbours(NamedTuple):
    """Sentences that are looked up, those among which they are looked for, and what the models found."""

    languages: tuple[str, ...]
    source: list[str]
    target: list[str]
    gold: list[tuple[int, int]]
    """Numbers of sentences that translate each other."""
    found: dict[str, list[tuple[int, float]]]
    """Model → for each source sentence the number of its neighbour, −1 for none, and their similarity."""


def read_neighbours(study: Study, testset: str, seed: int | None = None) -> Neighbours:
    """A test set with what each model found, with `seed`, or with the first seed."""
    part = study.corpus / "test" / testset
    source, target = (list(read_lines(part.with_name(f"{testset}.{side}"))) for side in ("source", "target"))
    gold = read_gold(part.with_name(f"{testset}.gold"))
    found = {}
    for arm in study.arms:
        cells = (line.split("\t") for line in read_lines(scored_folder(study, arm, seed) / f"{testset}.hyp"))
        found[arm] = [(int(at), float(score)) for at, score, *_ in cells]
    return Neighbours(tuple(study.text.test[testset].languages), source, target, gold, found)


def what_was_searched(study: Study) -> dict[str, Any]:
    """The data of the part "What was run" of a retrieval: the models, and the sizes of the test sets."""
    models = []
    for arm in study.arms:
        named, first = study.settings.models[arm], read_scores(study, arm, study.testsets[0])
        from_ = f"backbone {named.backbone}" if named.backbone else f"{named.experiment}, {named.arm}, after {named.phase}"
        models.append({"arm": arm, "from": from_, **{key: first[key] for key in ("family", "layer", "width", "settings")}})
    texts = {testset: study.json(study.corpus / "test" / f"{testset}.json") for testset in study.testsets}
    return {"models": models, "texts": texts}


def layers(study: Study) -> dict[str, Any]:
    """What every layer that was measured gets, by test set: a line of points for each model, of the first seed."""
    made = {}
    for testset in study.testsets:
        lines = []
        for colour, arm in enumerate(study.arms):
            found = read_scores(study, arm, testset)["layers"]
            points = [(float(layer), value) for layer, value in found.items()]
            lines.append({"name": arm, "colour": colour, "lines": [points], "dashed": []})
        made[testset] = lines
    others = {(arm, testset): read_scores(study, arm, testset) for arm in study.arms for testset in study.testsets}
    return {"charts": made, "scores": others}
