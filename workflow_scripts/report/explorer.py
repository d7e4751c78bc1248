"""explorer: every sentence of the test sets with what each arm made of it, on a page of its own, to search, sort and filter.

The page opens from disk without a server. The data stand in it as JSON; `explorer.js` shows them. A test set too large for one page is cut
to its first sentences, and the page says so.
"""

import json
from pathlib import Path
from typing import Any

import jinja2
import sacrebleu
from markupsafe import Markup

from workflow_scripts.evidence.scores import parallel_lines
from workflow_scripts.report.exhibits import underlining
from workflow_scripts.report.study import Study
from workflow_scripts.stage import InputError, atomic
from workflow_scripts.text.words import segment

MOST_BYTES = 4_500_000
"""How large the data of a page may be."""
NGRAMS = 15
"""How many n-grams are listed each way."""


def write_explorer(study: Study, made: jinja2.Environment, folder: Path) -> list[str]:
    """Write a page for each test set that is answered with text into `folder`; returns their names.

    Test sets whose outputs cannot be read have none; the report says why.
    """
    names = []
    for testset in study.tested:
        try:
            shown = sentences(study, testset)
        except (InputError, OSError):
            continue
        names.append(f"{study.name}.{testset.replace('@', '-')}.html")
        data = json.dumps(shown["data"], ensure_ascii=False).replace("<", "\\u003c")
        with atomic(folder / names[-1]) as file:
            file.write(made.get_template("explorer.html.j2").render(s=study, testset=testset, **shown | {"data": Markup(data)}))
    return names


def sentences(study: Study, testset: str) -> dict[str, Any]:
    """What the page of a test set shows: a row for each sentence, of the first seed; and n-grams that one of two arms gets right more.

    A row has the source, the reference, and how many of its words are rare; for each arm the hypothesis and sentence chrF, times 10.
    """
    source, reference = (study.corpus / file for _, file in study.sides(testset))
    sources, references = parallel_lines(source, reference)
    hypotheses = {arm: parallel_lines(hypothesis_file(study, arm, testset), reference)[0] for arm in study.arms}
    compared = next(iter([*study.methods, *reversed(study.arms)]))
    low, underline = underlining(study, references)
    rows: list[list[Any]] = []
    size = 0
    for i, (text, wanted) in enumerate(zip(sources, references, strict=True)):
        written = [lines[i] for lines in hypotheses.values()]
        scores = [round(10 * sacrebleu.sentence_chrf(line, [wanted]).score) for line in written]
        rows.append([i + 1, text, wanted, sum(rare for _, rare in underline(i, wanted)), written, scores])
        size += len(json.dumps(rows[-1], ensure_ascii=False).encode())
        if size > MOST_BYTES:
            break
    codes = [code for code, _ in study.sides(testset)]
    pairs = [(compared, study.baseline), (study.baseline, compared)] if compared != study.baseline else []
    return {
        "data": {"arms": list(study.arms), "compared": compared, "baseline": study.baseline, "rows": rows},
        "first": compared,
        "languages": codes,
        "ngrams": {arm: ngrams(references, hypotheses[arm], hypotheses[other], codes[1]) for arm, other in pairs},
        "left_out": len(sources) - len(rows),
        "low": low,
    }


def hypothesis_file(study: Study, arm: str, testset: str, seed: int | None = None) -> Path:
    """Where an arm's outputs for a test set are, with `seed` or with the first seed."""
    folder = study.seed(arm, seed)
    return (folder / "predictions" if study.generated else folder) / f"{testset}.hyp"


def ngrams(references: list[str], mine: list[str], theirs: list[str], code: str) -> list[tuple[str, int, int]]:
    """The n-grams of one to four words that the outputs `mine` get right more often than `theirs`, and how often each does.

    compare-mt counts them (Neubig et al. 2019); those whose difference is greatest come first.
    """
    from compare_mt.ngram_utils import compare_ngrams

    wanted, first, second = ([line.split() for line in segment(lines, code)] for lines in (references, mine, theirs))
    right, others = (compare_ngrams(wanted, lines)[1] for lines in (first, second))
    gained = [(others[gram] - count, gram) for gram, count in right.items() if count > others[gram]]
    return [(" ".join(gram), right[gram], others[gram]) for _, gram in sorted(gained)[:NGRAMS]]
