"""A stranger's task: a plugin in a folder outside the repository, from labelled text to its table of significance in the report."""

import shutil
from html import unescape
from itertools import pairwise

import numpy as np
import pytest
from test_workflow import ROOT, TINY, lay_out, planned, snakemake, write_config

from workflow_scripts import plugins
from workflow_scripts.stage import InputError, read_json, read_rows
from workflow_scripts.text.files import read_lines

ARMS = {"tune": [{"data": "task", "epochs": 2}], "blank": [{"data": "task", "epochs": 2, "start": "scratch"}]}
PAIRS = {"file": "pairs.tsv", "columns": {"label": 1, "text": 2, "pair": 3, "document": 6}}
CONTENT = {
    "plugins": ["similarity.py"],
    "run": {"experiments": ["alike"], "arms": list(ARMS), "seeds": [1, 2]},
    "labelled": {
        "pairs": {
            "language": "en",
            "train": PAIRS,
            "dev": {"held_out": 0.2},
            "test": {
                "en": {"held_out": 0.2},
                "de": {**PAIRS, "language": "de", "columns": {"label": 1, "text": 4, "pair": 5, "document": 6}},
            },
        }
    },
    "backbones": {"encoder": {**TINY["backbones"]["tiny"], "family": "xlmr", "objective": "mlm"}},
    "arms": ARMS,
    "experiments": {
        "alike": {
            "task": "similarity",
            "corpus": "pairs",
            "backbone": "encoder",
            "similarity": {"batch_size": 32, "learning_rate": 0.001, "max_length": 48},
            "scores": {"samples": 40},
        }
    },
}


def pairs_of_paragraphs() -> list[str]:
    """Pairs of the manual's paragraphs in two languages with grades: of one page (2 and more), of one application (1), or of two (0)."""
    rows = [line.split("\t") for line in read_lines(ROOT / "resources/libreoffice-help/en-de.tsv.xz")]
    rows = [row for row in rows if 4 <= len(row[2].split()) <= 12 and row[0].startswith(("swriter/", "scalc/"))]
    other = {start: next(row for row in rows if row[0].startswith(start)) for start in ("swriter/", "scalc/")}
    near = [(one, two) for one, two in pairwise(rows) if one[0] == two[0]][::12]
    same = [(one, two) for one, two in pairwise(rows[::20]) if one[0] != two[0]]
    far = [(one, other["scalc/" if one[0].startswith("swriter/") else "swriter/"]) for one in rows[7::20]]
    labelled = zip("210", (near[:120], same[:120], far[:120]), strict=True)
    return ["\t".join([f"{label}.{n % 70:02}", a[2], b[2], a[3], b[3], a[0]]) for label, some in labelled for n, (a, b) in enumerate(some)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with text, a configuration and the plugin, and the results of a finished run."""
    folder = lay_out(tmp_path_factory.mktemp("own"))
    shutil.copy(ROOT / "examples/plugins/similarity.py", folder)
    (folder / "pairs.tsv").write_text("".join(f"{line}\n" for line in pairs_of_paragraphs()), encoding="utf-8")
    snakemake(folder, *arguments(folder), "--cores", "2")
    return folder


def arguments(folder):
    return "--configfile", str(ROOT / "config.yaml"), write_config(folder, CONTENT)


def test_the_task_of_a_plugin_is_scored_by_its_own_measure(folder):
    predictions = folder / "results/runs/alike/tune/seed1/predictions"
    for name in ("en", "de"):
        table = [line.split("\t") for line in read_lines(folder / f"results/labelled/pairs/test/{name}.{name}.tsv")]
        given = [float(line) for line in read_lines(predictions / f"{name}.hyp")]
        scores = read_json(predictions / f"{name}.scores.json")
        truth = [float(row[0]) for row in table]
        assert scores["examples"] == len(given) == len(truth) and len({*truth}) > 20
        assert scores["pearson"] == pytest.approx(100 * np.corrcoef(truth, given)[0, 1], abs=0.1)  # of answers that hardly differ
        words = [({*row[1].lower().split()}, {*row[2].lower().split()}) for row in table]
        shared = [len(one & other) / len(one | other) for one, other in words]
        assert scores["chance"] == pytest.approx(100 * np.corrcoef(truth, shared)[0, 1], abs=1e-6)
    training = read_json(folder / "results/runs/alike/tune/seed1/finetune/training.json")
    assert -1 <= training["handed_on"]["dev_pearson"] <= 1 and list(training["provenance"]["plugins"]) == [str(folder / "similarity.py")]


def test_it_has_its_table_of_significance_in_the_report(folder):
    tested = read_json(folder / "results/runs/alike/significance.json")["pairs"]
    assert {(row["testset"], row["seed"]) for row in tested} == {(name, seed) for name in ("en", "de", "average") for seed in (1, 2, None)}
    page = unescape((folder / "results/report.html").read_text(encoding="utf-8"))
    assert "This part could not be made" not in page
    for words in (
        "finetuned to say how similar two texts are",
        "Pearson's r, times 100",
        "the share of words that are in both texts",
        '<th scope="col" class="n">mean</th>',
    ):
        assert words in page
    rows = {(row["arm"], row["testset"], row["seed"], row["metric"]): row for row in read_rows(folder / "results/scores.tsv")}
    assert rows["blank", "de", "2", "pearson"]["task"] == "similarity" and rows["tune", "average", "1", "pearson"]["p"] == ""


def test_a_changed_task_makes_its_own_jobs_anew_alone(folder):
    assert not planned(snakemake(folder, *arguments(folder), "-n"))
    plugin = folder / "similarity.py"
    before = plugin.read_text(encoding="utf-8")
    plugin.write_text(before.replace("** 2", "** 4"), encoding="utf-8")
    jobs = planned(snakemake(folder, *arguments(folder), "-n"))
    plugin.write_text(before, encoding="utf-8")
    assert {"head_finetune", "head_prediction", "head_significance", "report"} <= jobs and not {"labelled", "backbone"} & jobs


@pytest.mark.parametrize(
    "change, said",
    [
        (("    loss=squared_error", "    loss=lambda sums: sums"), "`loss` asks for `sums`; it can ask for outputs, labels, settings"),
        (('"similarity",', '"ranking",'), "task 'ranking': the name is taken by Crossgap itself"),
        (('"similarity",', '"../x",'), "names are letters, digits"),
    ],
)
def test_a_task_that_cannot_be_is_refused(tmp_path, change, said):
    text = (ROOT / "examples/plugins/similarity.py").read_text(encoding="utf-8")
    assert change[0] in text
    (tmp_path / "bad.py").write_text(text.replace(*change), encoding="utf-8")
    with pytest.raises(InputError, match=said):
        plugins.load([str(tmp_path / "bad.py")])
