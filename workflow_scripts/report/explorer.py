"""explorer: every example of the test sets with what each arm made of it, on a page of its own, to search, sort and filter.

The pages open from disk without a server. The data stand in them as JSON; `explorer.js` chooses and sorts rows, `sentences.js` shows those
of texts and `predictions.js` those of `predictions`. A page has all seeds if they fit, else the first. A test set too large for one page is
cut to its first rows, and the page says so.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import jinja2
import sacrebleu
from markupsafe import Markup

from workflow_scripts.evidence.scores import parallel_lines
from workflow_scripts.report import predictions
from workflow_scripts.report.exhibits import underlining
from workflow_scripts.report.labels import scored_folder
from workflow_scripts.report.measures import seeds_scored
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


def seeds_there(seeds: Sequence[int], files: Callable[[int], Iterable[Path]]) -> list[int]:
    """The seeds of which all `files` are there. The first is always one of them, as without it there is no page."""
    return [seed for seed in seeds if seed == seeds[0] or all(file.exists() for file in files(seed))]


def with_all_seeds_or_one(found: Callable[[Sequence[int]], tuple[int, Any]], seeds: Sequence[int]) -> tuple[Sequence[int], Any]:
    """The seeds that a page has, and what `found` made of them: all, or the first alone if rows had to be left out, which it counts."""
    left_out, made = found(seeds)
    return (seeds, made) if not left_out or len(seeds) == 1 else (seeds[:1], found(seeds[:1])[1])


def answers(study: Study, testset: str) -> dict[str, Any]:
    """What the page of a test set that is answered with labels, tags, spans, ranks or sentences shows, of all seeds that fit on it."""

    def made(seeds: Sequence[int]) -> tuple[int, Any]:
        found = predictions.shown(study, testset, seeds)
        rows, passages = that_fit(found.rows, found.passages)
        return len(found.rows) - len(rows), (found, rows, passages)

    scored = [seed for seed in study.seeds if any(seed in seeds_scored(study, arm) for arm in study.arms)]
    there = seeds_there(scored, lambda seed: [scored_folder(study, arm, seed) / f"{testset}.hyp" for arm in study.arms])
    seeds, (found, rows, passages) = with_all_seeds_or_one(made, there)
    about = {"arms": list(study.arms), "seeds": seeds, "kind": found.kind, "best": found.best, "passages": passages}
    return {
        "data": {**about, "rows": rows},
        "seeds": seeds,
        "all_seeds": scored,
        "seeds_too_large": len(seeds) < len(there),
        "languages": found.languages,
        "inputs": study.task.words["inputs"],
        "scored": found.scored,
        "marked": found.marked,
        "labels": found.labels,
        "left_out": len(found.rows) - len(rows),
    }


def sentences(study: Study, testset: str) -> dict[str, Any]:
    """What the page of a test set shows: a row for each sentence, of all seeds that fit; and n-grams that one of two arms gets right more.

    A row has the source, the reference, and how many of its words are rare. Then come the hypotheses of all arms with the first seed, of
    all with the next, and so on, and their sentence chrF, times 10. The n-grams are those of each seed, and of all seeds together.
    """
    source, reference = study.test_files(testset)
    sources, references = parallel_lines(source, reference)
    low, underline = underlining(study, references)
    there = seeds_there(study.seeds, lambda seed: [study.hypotheses(arm, testset, seed) for arm in study.arms])
    written = {seed: [parallel_lines(study.hypotheses(arm, testset, seed), reference)[0] for arm in study.arms] for seed in there}

    def made(seeds: Sequence[int]) -> tuple[int, list[list[Any]]]:
        def row(i: int) -> list[Any]:
            lines, wanted = [output[i] for seed in seeds for output in written[seed]], references[i]
            scores = [round(10 * sacrebleu.sentence_chrf(line, [wanted]).score) for line in lines]
            return [i + 1, sources[i], wanted, sum(rare for _, rare in underline(i, wanted)), lines, scores]

        rows, _ = that_fit(map(row, range(len(sources))))
        return len(sources) - len(rows), rows

    seeds, rows = with_all_seeds_or_one(made, there)
    codes = [code for code, _ in study.sides(testset)]
    grams = ngrams(references, [written[seed] for seed in seeds], codes[1])
    return {
        "data": {"arms": list(study.arms), "seeds": seeds, "rows": rows, "ngrams": grams},
        "seeds": seeds,
        "all_seeds": study.seeds,
        "seeds_too_large": len(seeds) < len(there),
        "languages": codes,
        "left_out": len(sources) - len(rows),
        "low": low,
    }


Gained = list[tuple[str, int, int]]


def ngrams(references: list[str], outputs: list[list[list[str]]], code: str) -> list[list[list[Gained]]]:
    """For every two arms the n-grams of one to four words that the first gets right more often, with how often each does.

    `outputs` are seeds × arms × lines. There is a list for each seed, and then one for all seeds together. compare-mt counts the n-grams
    (Neubig et al. 2019); those whose difference is greatest come first.
    """
    from compare_mt.ngram_utils import compare_ngrams

    if len(outputs[0]) < 2:
        return []

    def words(lines: list[str]) -> list[list[str]]:
        return [line.split() for line in segment(lines, code)]

    wanted = words(references)
    right = [[Counter(compare_ngrams(wanted, words(lines))[1]) for lines in arms] for arms in outputs]
    together = [sum(each, Counter[tuple[str, ...]]()) for each in zip(*right, strict=True)]
    return [[[gained(mine, theirs) for theirs in arms] for mine in arms] for arms in (*right, together)]


def gained(mine: Counter[tuple[str, ...]], theirs: Counter[tuple[str, ...]]) -> Gained:
    """The n-grams that `mine` counts more often than `theirs`, with both counts; the greatest differences, and at most `NGRAMS` of them."""
    more = sorted((theirs[gram] - count, gram) for gram, count in mine.items() if count > theirs[gram])
    return [(" ".join(gram), mine[gram], theirs[gram]) for _, gram in more[:NGRAMS]]
