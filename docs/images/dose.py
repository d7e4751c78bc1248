"""The picture of the dose in docs/results/dose.md, from docs/results/dose.tsv.

python -m docs.images.dose > docs/images/dose.svg
"""

from pathlib import Path

from workflow_scripts.report.drawing import line_chart
from workflow_scripts.stage import read_rows

COLOURS = {"finetune": "#777", "csr": "#1768ac", "mask": "#d1782c"}
STYLE = "svg{background:#fff;font:12px sans-serif}.grid{stroke:#ddd}.axis{stroke:#888}.tick{fill:#333}"


def main() -> str:
    """The chart, as a file of its own: with a namespace, and the colours that a report's page would give it."""
    rows = read_rows(Path(__file__).parent.parent / "results/dose.tsv")
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
