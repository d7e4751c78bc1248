"""Ranking: finetuning by grades and by regression with all families, prediction of all test sets, comparison, and configuration."""

import json
import math
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from configurations import with_recipes, with_value

from workflow_scripts.evidence import ranking_scores
from workflow_scripts.evidence.average import AVERAGE, Significance
from workflow_scripts.run.config import load
from workflow_scripts.stage import InputError, read_json
from workflow_scripts.tasks import head
from workflow_scripts.tasks.head_model import Reader, label_scores
from workflow_scripts.tasks.ranking import RANKING, Ranking, counts_of, document_scores, load_ranker, loss_of, measure
from workflow_scripts.text.examples import read_table
from workflow_scripts.text.labelled import Labelled, main
from workflow_scripts.text.labelled_source import LabelledSource
from workflow_scripts.training.job import TrainingJob

GRADES = ["0", "1", "2"]
XQUADR = Path("resources/xquad-r")
FAMILIES = ["mbart", "mbart50", "nllb", "bert", "xlm-roberta"]


def source(code: str, **more) -> LabelledSource:
    files = {"queries": f"{code}.questions.tsv.xz", "documents": f"{code}.sentences.tsv.xz", "file": "answers.tsv.xz"}
    return LabelledSource(**{key: str(XQUADR / name) for key, name in files.items()}, header=True, language=code, **more)


@pytest.fixture(scope="module")
def text(tmp_path_factory) -> Path:
    """The parts of XQuAD-R as `labelled` writes them, each cut to some whole queries."""
    folder = tmp_path_factory.mktemp("text")
    tests = {"en": LabelledSource(held_out=0.2), "de": source("de", held_out=0.2)}
    dev = LabelledSource(held_out=0.1)
    settings = Labelled(language="en", labels=GRADES, unit="query", train=source("en"), dev=dev, test=tests)
    for part in ("train", "dev", "test/en", "test/de"):
        name = part.removeprefix("test/")
        main(folder / name, folder / f"{name}.text", folder / f"{name}.json", part=part, settings=settings)
        table = read_table(folder / name)
        kept = list(dict.fromkeys(example.query for example in table))[:4]
        rows = zip(table, (folder / name).read_text("utf-8").splitlines(), strict=True)
        lines = [line for example, line in rows if example.query in kept]
        (folder / f"{name}.tsv").write_text("\n".join(lines) + "\n", "utf-8")
    return folder


def finetuned(models, text, folder: Path, family: str, **changes) -> Path:
    settings = RANKING.finetune_settings(
        language="en", grades=GRADES, epochs=1, ranking=Ranking(batch_size=32, learning_rate=1e-3, max_length=48, **changes)
    )
    files = {"train": (text / "train.tsv",), "dev": (text / "dev.tsv",)}
    made = {"model": folder / "model", "curve": folder / "curve.tsv", "report": folder / "training.json"}
    head.finetune(RANKING, TrainingJob(models[family], **made, checkpoints=folder / "checkpoints"), **files, settings=settings)
    head.predict(
        RANKING,
        folder / "model",
        (text / "en.tsv", text / "de.tsv"),
        folder / "predictions",
        testsets=("en", "de"),
        languages=("en", "de"),
        labels=json.dumps(GRADES),
        settings=settings.ranking,
    )
    return folder


@pytest.mark.parametrize(
    "family, changes",
    [
        ("xlm-roberta", {}),
        ("bert", {"loss": "regression", "metric": "mrr"}),
        ("mbart", {"micro_batch": 8}),
        ("mbart50", {"choose_by": "loss", "metric": "ndcg_10"}),
        ("nllb", {}),
        ("mbart", {"parts": "encoder"}),
        ("nllb", {"parts": "encoder", "reads": "mean", "loss": "regression"}),
    ],
)
def test_finetuning_and_prediction(models, text, tmp_path, family, changes):
    folder = finetuned(models, text, tmp_path, family, **changes)
    report, metric = read_json(folder / "training.json"), changes.get("metric", "ndcg")
    assert report["updates"]["made"] == math.ceil(report["rows"] / 32) and 0 <= report["handed_on"][f"dev_{metric}"] <= 1
    for name in ("en", "de"):
        table = read_table(text / f"{name}.tsv")
        given = [float(line) for line in (folder / "predictions" / f"{name}.hyp").read_text().splitlines()]
        scores = read_json(folder / "predictions" / f"{name}.scores.json")
        counts = counts_of(table, given, 1.0)
        assert scores["metric"] == metric and scores["queries"] == len(counts) == 4 and scores["queries_left_out"] == 0
        for called, of in ranking_scores.SCORES.items():
            assert scores[called] == pytest.approx(100 * of(counts.sum(axis=0)))
        assert scores["low"] <= scores[metric] <= scores["high"] and 0 < scores["chance"] < 100
        assert len(set(given)) > 1


@pytest.mark.parametrize("family", FAMILIES)
def test_scores_are_of_the_documents_in_order_whatever_the_batch(models, text, family):
    reader = Reader(models[family], 64)
    network = load_ranker(models[family], GRADES, Ranking(), seed=1)
    rows = reader.rows(read_table(text / "dev.tsv"), "en", GRADES)
    together, alone = (label_scores(network, reader, rows, "float32", tokens) for tokens in (700, 1))
    assert together.shape == (len(rows), 3)
    torch.testing.assert_close(together, alone, atol=1e-5, rtol=1e-4)


def test_scores_are_no_shares():
    assert measure(SimpleNamespace(ranking=Ranking()), None).axis == "nDCG, times 100"


def test_a_documents_score_is_the_expected_grade():
    logits = torch.tensor([[0.0, 0.0, 0.0], [-50.0, -50.0, 50.0]])
    assert document_scores(logits, ["0", "1", "4"]).tolist() == pytest.approx([5 / 3, 4])
    assert document_scores(torch.tensor([[0.25]]), GRADES).tolist() == [0.25]
    # a model that is very sure still ranks
    sure = document_scores(torch.tensor([[0.0, 14.0], [0.0, 14.5], [0.0, 18.0]]), ["0", "1"]).tolist()
    assert sure[0] < sure[1] < sure[2] < 1 and [float(str(each)) for each in sure] == sure


def test_the_error_of_a_regression_is_that_of_the_grades():
    class Output:
        logits = torch.tensor([[1.0], [3.0]])

    loss = loss_of(["0", "1", "4"], "regression")
    assert float(loss(Output, torch.tensor([0, 2]))) == pytest.approx((1 + 1) / 2)
    assert float(loss(Output, torch.tensor([0, 2]), 4)) == pytest.approx(2 / 4)
    # rows that fill up a part of an update have no grade
    assert float(loss(Output, torch.tensor([0, -100]))) == pytest.approx(1)
    assert float(loss(Output, torch.tensor([-100, -100]), 4)) == 0


def test_scores_that_are_no_numbers_are_a_loss_that_stops_the_training(models, text, tmp_path):
    settings = RANKING.finetune_settings(language="en", grades=GRADES, epochs=1, ranking=Ranking(max_length=48, examples=8))
    job = TrainingJob(
        models["bert"], tmp_path / "model", tmp_path / "curve.tsv", tmp_path / "training.json", checkpoints=tmp_path / "checkpoints"
    )
    made = head.prepare(RANKING, job, (text / "train.tsv",), (text / "dev.tsv",), settings)
    torch.nn.init.constant_(next(made.network.parameters()), math.nan)
    assert math.isnan(made.look()["eval_loss"])


def test_comparison_of_arms(text, tmp_path):
    tables = {name: read_table(text / f"{name}.tsv") for name in ("en", "de")}
    for arm in ("base", "better"):
        for name, table in tables.items():
            path = tmp_path / arm / f"{name}.hyp"
            path.parent.mkdir(exist_ok=True)
            good = [float(example.label) for example in table]
            path.write_text("".join(f"{grade if arm == 'better' else -grade}\n" for grade in good))
    folders, files = (tmp_path / "base", tmp_path / "better"), (text / "en.tsv", text / "de.tsv")
    names = {
        "names": ("base", "better"),
        "testsets": ("en", "de"),
        "languages": ("en", "de"),
        "seeds": (1,),
        "settings": Significance(samples=50),
    }
    head.compare_arms(RANKING, folders, files, tmp_path / "x.json", **names, head='{"metric": "mrr", "relevant": 2.0}')
    found = {(row["testset"], row["seed"]): row for row in read_json(tmp_path / "x.json")["pairs"]}
    assert set(found) == {(testset, seed) for testset in ("en", "de", AVERAGE) for seed in (1, None)}
    lengths = [sum(example.query == query for example in tables["en"]) for query in dict.fromkeys(e.query for e in tables["en"])]
    assert found["en", 1]["difference"] == pytest.approx(100 - 100 * np.mean([1 / length for length in lengths]))
    for bad, said in (("1.0\n", "has 1 lines with grades for"), ("good\n" * len(tables["en"]), "could not convert string to float")):
        (tmp_path / "base/en.hyp").write_text(bad)
        with pytest.raises(InputError, match=said):
            head.compare_arms(RANKING, folders, files, tmp_path / "x.json", **names)


@pytest.mark.parametrize(
    "path, value, said",
    [
        ("labelled/xquad-r/labels", ["bad", "good"], "labels: 'bad' is no grade; a grade is a number from 0"),
        ("labelled/xquad-r/labels", ["-1", "2"], "labels: '-1' is no grade"),
        ("labelled/xquad-r/unit", "text", "`queries` and `documents` are for `unit: query`"),
        ("labelled/xquad-r/train", {"file": "x.tsv", "columns": {"text": 1, "label": 2}}, "train.columns: say nothing about pair"),
        ("labelled/xquad-r/train", {"file": "x.tsv", "queries": "y.tsv"}, "train: give `file`, `queries` and `documents`"),
        (
            "labelled/xquad-r/train",
            {"file": "x.tsv", "queries": "q.jsonl", "documents": "y.tsv"},
            r"train\.queries: q\.jsonl has JSON lines",
        ),
        ("experiments/answers/ranking/relevant", 0, "relevant"),
        ("experiments/answers/ranking/relevant", 3, r"relevant: 3 must be more than .*, 0, and at most the greatest, 2; otherwise all"),
        ("labelled/xquad-r/labels", ["1", "2"], r"relevant: 1 must be more than the least of the grades, 1"),
    ],
)
def test_mistakes_in_the_configuration(path, value, said):
    load(with_recipes("ranking"))
    with pytest.raises(InputError, match=said):
        load(with_value(with_recipes("ranking"), path, value))
