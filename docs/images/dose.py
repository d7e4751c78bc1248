"""The picture of the dose in docs/results/dose.md, from docs/results/dose.tsv.

python -m docs.images.dose > docs/images/dose.svg
"""

import csv
from pathlib import Path

from workflow_scripts.report.drawing import line_chart

COLOURS = {"finetune": "#777", "csr": "#1768ac", "mask": "#d1782c"}
STYLE = "svg{background:#fff;font:12px sans-serif}.grid{stroke:#ddd}.axis{stroke:#888}.tick{fill:#333}"


def main() -> str:
    """The chart, as a file of its own: with a namespace, and the colours that a report's page would give it."""
    with open(Path(__file__).parent.parent / "results/dose.tsv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    series = [
        {"name": arm, "colour": number, "lines": [[(float(row["passes"]), float(row["BLEU"])) for row in rows if row["arm"] == arm]]}
        for number, arm in enumerate(COLOURS)
    ]
    chart = line_chart("BLEU after restoring for so many passes", series, "passes over the text of the pretext task", "BLEU")
    colours = "".join(f"--c{number}:{colour};" for number, colour in enumerate(COLOURS.values()))
    return chart.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1).replace(
        "<title>", f"<style>:root{{{colours}}}{STYLE}</style><title>", 1
    )


if __name__ == "__main__":
    print(main())
