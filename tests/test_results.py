"""The pages of results: intervals and p that they quote are those of the tables beside them."""

import csv
import re
from pathlib import Path

RESULTS = Path(__file__).resolve().parent.parent / "docs/results"
QUOTED = re.compile(r"([+−]?\d+\.\d\d)[^()|\n]{0,8}\(([+−]?\d+\.\d\d) to ([+−]?\d+\.\d\d)\)?, p (=|<) ([\d.]*\d)")


def number(text):
    return float(text.replace("−", "-"))


def effects():
    """Effect, ends of the interval and p of every test in the tables, in both directions."""
    for path in sorted(RESULTS.glob("*.tsv")):
        with open(path, encoding="utf-8") as file:
            for row in csv.DictReader(file, delimiter="\t"):
                for low, high, p in (("t_low", "t_high", "t_p"), ("low", "high", "p")):
                    if row.get("effect") and row.get(p):
                        effect, ends = float(row["effect"]), (float(row[low]), float(row[high]))
                        yield (effect, *ends), float(row[p])
                        yield (-effect, -ends[1], -ends[0]), float(row[p])


def test_quoted_p_are_those_of_the_tables():
    known, wrong, right = list(effects()), [], 0
    for page in sorted(RESULTS.glob("*.md")):
        for found in QUOTED.finditer(page.read_text(encoding="utf-8")):
            quoted, places = tuple(map(number, found.group(1, 2, 3))), len(found[5].partition(".")[2])
            p = [p for numbers, p in known if all(abs(a - b) < 0.00501 for a, b in zip(numbers, quoted, strict=True))]
            fits = [one for one in p if (one < float(found[5]) if found[4] == "<" else abs(one - float(found[5])) <= 0.5001 / 10**places)]
            right += bool(fits)
            if p and not fits:
                wrong.append((page.name, found[0], p))
    assert right > 60 and wrong == []


def test_comparisons_with_one_seed_have_no_p():
    """Theirs counted one side, and their sentences are not there to compute it again."""
    for name in ("zero-shot.md", "other-tasks.md", "pretraining.md"):
        assert not re.search(r"p [=<] [\d.]", (RESULTS / name).read_text(encoding="utf-8")), name
