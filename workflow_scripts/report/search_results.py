"""What was ranked and what was retrieved, side by side: some queries and sentences of each test set, with what is wrong marked."""

from typing import Any

from workflow_scripts.report.labels import found_scores, scored_folder, test_language
from workflow_scripts.report.study import Study, evenly
from workflow_scripts.tasks.ranking import RANKING
from workflow_scripts.text.aligned import read_gold
from workflow_scripts.text.examples import read_table
from workflow_scripts.text.files import read_lines


def ranked(study: Study, number: int = 5, shown: int = 3) -> dict[str, Any]:
    """For each test set some of its queries, evenly spaced: the documents that each arm ranks first, those of no highest grade marked.

    Of documents with the same score the one that stands first in the file comes first here. Of the first seed.
    """
    made = []
    for testset in study.testsets:
        code = test_language(study, testset)
        table = read_table(study.corpus / "test" / f"{testset}.{code}.tsv")
        given = {arm: RANKING.read_answers(scored_folder(study, arm) / f"{testset}.hyp", table) for arm in study.arms}
        rows: dict[str, list[int]] = {}
        for at, example in enumerate(table):
            rows.setdefault(example.query, []).append(at)
        queries = []
        for several in evenly([several for several in rows.values() if len(several) > 1], number):
            highest = max(float(table[at].label) for at in several)
            arms = {}
            for arm, scores in given.items():
                order = sorted(several, key=[-score for score in scores].__getitem__)
                best = next(rank for rank, at in enumerate(order, 1) if float(table[at].label) == highest)
                top = [
                    {"text": table[at].pair, "grade": table[at].label, "wrong": float(table[at].label) < highest, "score": scores[at]}
                    for at in order[:shown]
                ]
                arms[arm] = {"top": top, "best": best}
            text = next(table[at].pair for at in several if float(table[at].label) == highest)
            queries.append({"query": table[several[0]].text, "documents": len(several), "answer": text, "arms": arms})
        made.append({"testset": testset, "language": code, "queries": queries})
    return {"testsets": made}


def neighbours(study: Study, number: int = 8) -> dict[str, Any]:
    """For each test set some of its sentences that have a translation, evenly spaced: what each model found, marked where it is wrong."""
    made = []
    for testset in study.testsets:
        part = study.corpus / "test" / testset
        source, target = (list(read_lines(part.with_name(f"{testset}.{side}"))) for side in ("source", "target"))
        gold = read_gold(part.with_name(f"{testset}.gold"))
        lines = {arm: [line.split("\t") for line in read_lines(scored_folder(study, arm) / f"{testset}.hyp")] for arm in study.arms}
        sentences = []
        for i, j in evenly(gold, number):
            arms = {}
            for arm, found in lines.items():
                at, score = int(found[i][0]), float(found[i][1])
                arms[arm] = {"text": target[at] if at >= 0 else "", "wrong": (i, at) not in gold, "score": score}
            sentences.append({"line": i + 1, "text": source[i], "right": target[j], "arms": arms})
        codes = study.text.test[testset].languages
        made.append({"testset": testset, "languages": codes, "sentences": sentences})
    return {"testsets": made}


def what_was_searched(study: Study) -> dict[str, Any]:
    """The data of the part "What was run" of a retrieval: the models, and the sizes of the test sets."""
    models = []
    for arm in study.arms:
        named, first = study.settings.models[arm], found_scores(study, arm, study.testsets[0])
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
            found = found_scores(study, arm, testset)["layers"]
            points = [(float(layer), value) for layer, value in found.items()]
            lines.append({"name": arm, "colour": colour, "lines": [points], "dashed": []})
        made[testset] = lines
    others = {(arm, testset): found_scores(study, arm, testset) for arm in study.arms for testset in study.testsets}
    return {"charts": made, "scores": others}
