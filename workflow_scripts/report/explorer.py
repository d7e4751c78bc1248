"""explorer: every example of the test sets with what each arm made of it, on a page of its own, to search, sort and filter.

The pages open from disk without a server. The data stand in them as JSON; `explorer.js` chooses and sorts rows, `sentences.js` shows those
of texts and `predictions.js` those of `predictions`. A test set too large for one page is cut to its first rows, and the page says so.
"""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import jinja2
import sacrebleu
from markupsafe import Markup

from workflow_scripts.evidence.scores import parallel_lines
from workflow_scripts.report import predictions
from workflow_scripts.report.exhibits import underlining
from workflow_scripts.report.study import Study
from workflow_scripts.stage import InputError, atomic
from workflow_scripts.text.words import segment

MOST_BYTES = 4_500_000
"""How large the data of a page may be."""
NGRAMS = 15
"""How many n-grams are listed each way."""


def write_explorer(study: Study, made: jinja2.Environment, folder: Path) -> list[str]:
    """Write a page for each test set into `folder`; returns their names.

    Test sets whose outputs cannot be read have none; the report says why.
    """
    texts = study.task.answers == "text"
    template = made.get_template("sentences.html.j2" if texts else "predictions.html.j2")
    names = []
    for testset in study.tested:
        try:
            shown = sentences(study, testset) if texts else answers(study, testset)
        except (InputError, OSError):
            continue
        names.append(f"{study.name}.{testset.replace('@', '-')}.html")
        data = json.dumps(shown["data"], ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
        with atomic(folder / names[-1]) as file:
            file.write(template.render(s=study, testset=testset, **shown | {"data": Markup(data)}))
    return names


def that_fit(rows: Iterable[list[Any]], passages: Sequence[str] = ()) -> tuple[list[list[Any]], Sequence[str]]:
    """The first rows, as many as one page may have, and the passages that they ask about; a passage counts once, with its first row."""
    kept, there, size = [], 0, 0
    for row in rows:
        new = passages[there : row[1][1] + 1] if passages else ()
        size += sum(len(json.dumps(part, ensure_ascii=False).encode()) for part in (row, *new))
        if size > MOST_BYTES:
            break
        kept.append(row)
        there += len(new)
    return kept, passages[:there]


def answers(study: Study, testset: str) -> dict[str, Any]:
    """What the page of a test set that is answered with labels, tags, spans, ranks or sentences shows, of the first seed."""
    found = predictions.shown(study, testset)
    rows, passages = that_fit(found.rows, found.passages)
    about = {"arms": list(study.arms), "kind": found.kind, "best": found.best, "passages": passages}
    return {
        "data": {**about, "rows": rows},
        "languages": found.languages,
        "inputs": study.task.words["inputs"],
        "scored": found.scored,
        "marked": found.marked,
        "labels": found.labels,
        "left_out": len(found.rows) - len(rows),
    }


def sentences(study: Study, testset: str) -> dict[str, Any]:
    """What the page of a test set shows: a row for each sentence, of the first seed; and n-grams that one of any two arms gets right more.

    A row has the source, the reference, and how many of its words are rare; for each arm the hypothesis and sentence chrF, times 10.
    """
    source, reference = study.test_files(testset)
    sources, references = parallel_lines(source, reference)
    hypotheses = {arm: parallel_lines(study.hypotheses(arm, testset), reference)[0] for arm in study.arms}
    low, underline = underlining(study, references)

    def row(i: int) -> list[Any]:
        wanted, written = references[i], [lines[i] for lines in hypotheses.values()]
        scores = [round(10 * sacrebleu.sentence_chrf(line, [wanted]).score) for line in written]
        return [i + 1, sources[i], wanted, sum(rare for _, rare in underline(i, wanted)), written, scores]

    rows, _ = that_fit(map(row, range(len(sources))))
    codes = [code for code, _ in study.sides(testset)]
    return {
        "data": {"arms": list(study.arms), "rows": rows, "ngrams": ngrams(references, list(hypotheses.values()), codes[1])},
        "languages": codes,
        "left_out": len(sources) - len(rows),
        "low": low,
    }


def ngrams(references: list[str], outputs: list[list[str]], code: str) -> list[list[list[tuple[str, int, int]]]]:
    """For every two of the `outputs` the n-grams of one to four words that the first gets right more often, with how often each does.

    compare-mt counts them (Neubig et al. 2019); those whose difference is greatest come first.
    """
    from compare_mt.ngram_utils import compare_ngrams

    if len(outputs) < 2:
        return []
    wanted, *written = ([line.split() for line in segment(lines, code)] for lines in (references, *outputs))
    right = [Counter(compare_ngrams(wanted, lines)[1]) for lines in written]
    return [[gained(mine, theirs) for theirs in right] for mine in right]


def gained(mine: Counter[tuple[str, ...]], theirs: Counter[tuple[str, ...]]) -> list[tuple[str, int, int]]:
    """The n-grams that `mine` counts more often than `theirs`, with both counts; the greatest differences, and at most `NGRAMS` of them."""
    more = sorted((theirs[gram] - count, gram) for gram, count in mine.items() if count > theirs[gram])
    return [(" ".join(gram), mine[gram], theirs[gram]) for _, gram in more[:NGRAMS]]
