"""Tasks of plugins whose labels are numbers: any grade is learnt, and one of a list is learnt alike."""

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch

from workflow_scripts import plugins, registry
from workflow_scripts.evidence.average import Significance
from workflow_scripts.stage import InputError, read_json
from workflow_scripts.tasks import head, own
from workflow_scripts.tasks.head_model import Part
from workflow_scripts.tasks.head_task import About
from workflow_scripts.text.examples import read_table
from workflow_scripts.text.files import read_lines
from workflow_scripts.text.labelled import Labelled, main
from workflow_scripts.text.labelled_source import LabelledSource
from workflow_scripts.training.job import TrainingJob

WORDS = ["menu", "cell", "page", "row", "font"]
TRAIN = ["3.27", "2.30", "2.3", "0", "5", "4.81", "1.66", "-0.5"] * 5
TEST = ["3.33", "2.3", "0.07", "4.99", "1.2"] * 4
DISCRETE = ["0", "1", "2"]


@pytest.fixture(autouse=True)
def similarity():
    plugins.load(["examples/plugins/similarity.py"])
    yield registry.entry("task", "similarity")
    plugins.forget()


def written(path: Path, grades: list[str], start: int) -> LabelledSource:
    """A table of pairs with these grades; no pair is in the table of another `start`."""
    names = ["".join(map("abcdefghij".__getitem__, map(int, str(n + start)))) for n in range(len(grades))]
    pairs = [f"{WORDS[n % 5]} {WORDS[n % 3]} {name}\tthe {WORDS[n % 4]} {name}" for n, name in enumerate(names)]
    path.write_text("".join(f"{pair}\t{grade}\n" for pair, grade in zip(pairs, grades, strict=True)), "utf-8")
    return LabelledSource(str(path), {"text": 1, "pair": 2, "label": 3})


@pytest.mark.parametrize("labels", [[], DISCRETE])
def test_numbers_are_learnt_answered_and_compared(models, tmp_path, similarity, labels):
    graded = {"train": TRAIN, "dev": TEST, "test": TEST} if not labels else {part: DISCRETE * 9 for part in ("train", "dev", "test")}
    given = {part: written(tmp_path / f"{part}.in", grades, 1000 * at) for at, (part, grades) in enumerate(graded.items())}
    text = Labelled(language="en", labels=labels, train=given["train"], dev=given["dev"], test={"en": given["test"]})
    for part, name in (("train", "train"), ("dev", "dev"), ("test/en", "test")):
        main(tmp_path / f"{name}.tsv", tmp_path / name, tmp_path / f"{name}.json", part=part, settings=text)
    kept = read_json(tmp_path / "train.json")
    assert kept["labels"] == dict.fromkeys(labels, 9) and kept["examples"] == len(graded["train"])
    if not labels:
        assert kept["numbers"] == {"least": -0.5, "mean": pytest.approx(np.mean([*map(float, TRAIN)])), "greatest": 5}
        assert Counter(one.label for one in read_table(tmp_path / "train.tsv"))["2.3"] == 10  # 2.30 is the same number
    made = {"model": tmp_path / "model", "curve": tmp_path / "curve.tsv", "report": tmp_path / "training.json"}
    job = TrainingJob(models["xlm-roberta"], **made, checkpoints=tmp_path / "checkpoints", threads=1)
    chosen = similarity.finetuning(batch_size=8, learning_rate=3e-3, max_length=32)
    settings = similarity.finetune_settings(language="en", labels=labels, epochs=2, similarity=chosen)
    tables = {part: (tmp_path / f"{part}.tsv",) for part in ("train", "dev")}
    head.finetune(similarity, job, **tables, settings=settings)
    table, options = (tmp_path / "test.tsv",), {"testsets": ("en",), "languages": ("en",)}
    listed = {"labels": '["0", "1", "2"]'} if labels else {}
    head.predict(similarity, tmp_path / "model", table, tmp_path, **options, **listed)
    answers = [float(line) for line in read_lines(tmp_path / "en.hyp")]
    truth = [float(grade) for grade in graded["test"]]
    scores = read_json(tmp_path / "en.scores.json")
    assert scores["pearson"] == pytest.approx(100 * np.corrcoef(truth, answers)[0, 1], abs=0.1) and scores["examples"] == len(truth)
    more = {"names": ("a", "b"), "seeds": (1,), **options, **listed}
    head.compare_arms(similarity, (tmp_path, tmp_path), table, tmp_path / "tests.json", **more, settings=Significance(samples=20))
    assert {row["testset"] for row in read_json(tmp_path / "tests.json")["pairs"]} == {"en"}


@pytest.mark.parametrize("chosen", [False, True])
def test_a_file_that_the_settings_name_decides_what_is_trained(similarity, tmp_path, monkeypatch, chosen):
    """Also where a grid has chosen it."""
    found, words, choice = [], tmp_path / "words.txt", tmp_path / "choice.json"
    monkeypatch.setattr(head, "finetune_head", lambda *given: found.append(given[-1]))
    point = {"settings": {"prefix": str(words)}, "checkpoints": str(tmp_path)}
    choice.write_text(json.dumps({"seed": 1, "phases": {"finetune": point}}), encoding="utf-8")
    own = similarity.finetuning(**({} if chosen else point["settings"]))
    settings = similarity.finetune_settings(language="en", labels=[], epochs=1, similarity=own)
    job = TrainingJob(*(tmp_path / name for name in "abcde"), choice=choice if chosen else None)
    for content in (None, "a", "b"):
        if content:
            words.write_text(content)
        head.finetune(similarity, job, train=(words,), dev=(words,), settings=settings)
    assert found[1] != found[2] and found[0].keys() == {"task_plugin"} and found[1].keys() == {"task_plugin", "task_files"}


@pytest.mark.parametrize("labels", [[], ["0", "2.5", "3.27"]])
def test_the_loss_is_that_of_the_grades_themselves(similarity, tmp_path, labels):
    (tmp_path / "x.tsv").write_text("3.27\ta\tb\n0\tc\td\n2.50\te\tf\n".replace("2.50", "2.5" if labels else "2.50"))
    table = similarity.read(tmp_path / "x.tsv", labels)
    about = About(similarity.finetuning(), labels, numbers=similarity.numbers_in([table], labels))
    assert about.numbered == ["0", "2.5", "3.27"] and about.numbers == ([] if labels else about.numbered)
    outputs = type("", (), {"logits": torch.tensor([[3.0], [1.0], [2.0]])})
    numbers = torch.tensor([about.numbered.index(example.label) for example in table])
    assert similarity.loss(about)(outputs, numbers).item() == pytest.approx((0.27**2 + 1 + 0.5**2) / 3)
    (tmp_path / "x.tsv").write_text("3.27\ta\tb\nhigh\tc\td\n")
    with pytest.raises(InputError, match=r"x\.tsv, line 2: the label 'high' is no(ne of '0'| number; correct it or delete)"):
        similarity.read(tmp_path / "x.tsv", labels)


def test_a_task_has_a_score():
    said = dict.fromkeys(("label", "learns", "outputs", "trivially"), "something")
    functions = {"loss": lambda outputs: 0, "answer": lambda outputs: [], "counts": lambda truth: [], "trivial": lambda truth: []}
    with pytest.raises(InputError, match=r"task 'unscored': `scores` is empty; name a score"):
        own.task("unscored", **said, **functions, scores={})
    with pytest.raises(InputError, match=r"task 'lost': the first of `scores` is loss, which means another dev result .*; rename it"):
        own.task("lost", **said, **functions, scores={"loss": lambda sums: sums[0]})


def own_functions(answer):
    functions = {
        "loss": lambda outputs: outputs.square().mean(dim=1),
        "answer": answer,
        "counts": lambda given: [(each, 1) for each in given],
    }
    asked = {"loss": ("outputs",), "answer": ("outputs",), "counts": ("given",)}
    return own.OwnFunctions("t", functions, asked, {"mean": lambda sums: sums[0] / sums[1]}, float, 1, "texts", "nothing")


def part_of(table: Path):
    table.write_text("1\ta\t\n2\tb\t\n")
    examples = list(read_table(table))
    return Part(examples, "en", [([1], [0]), ([1], [1])], [])


def test_a_tensor_of_answers_is_read_and_what_is_no_number_is_refused(tmp_path):
    part, about = part_of(tmp_path / "x.tsv"), About(None, ["1", "2"])
    tensor = own_functions(lambda outputs: outputs[:, 0])
    answers = tensor.answered(part, torch.tensor([[1.5], [2.0]]), about).answers
    assert answers == [1.5, 2.0] and tensor.counted(part.examples, answers, "en", about).tolist() == [[1.5, 1], [2, 1]]
    words = own_functions(lambda outputs: ["one", "two"])
    answers = words.answered(part, torch.tensor([[1.5], [2.0]]), about).answers
    with pytest.raises(InputError, match="task 't': `answer` returned 'one', which is no float; return a list or a tensor"):
        words.counted(part.examples, answers, "en", about)


def test_a_training_that_diverges_is_known_by_its_loss_before_a_plugin_counts(tmp_path):
    lost = own_functions(lambda outputs: outputs[:, 0].tolist()).answered(
        part_of(tmp_path / "x.tsv"), torch.tensor([[np.nan], [2.0]]), About(None, ["1", "2"])
    )
    assert np.isnan(lost.loss()) and lost.error is not None and np.isnan(lost.error())
