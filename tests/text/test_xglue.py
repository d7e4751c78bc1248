"""config/xglue.yaml on small files in the very format of XGLUE's: every part of every task is read."""

import json
from pathlib import Path

import pytest
from test_config import recipe as recipe_of

from workflow_scripts.run.uses import sources_of
from workflow_scripts.stage import read_json
from workflow_scripts.text.examples import read_table
from workflow_scripts.text.labelled import main

HEADED = "premise\thypo\tlabel\n"


def sentences(n: int, key: str) -> list[str]:
    """n different sentences for a file; no two files of a task share one."""
    return [f"Sentence {i} of {key} , which says that it rains & snows ." for i in range(n)]


def words(path: Path, tags: tuple[str, ...]) -> str:
    """Two columns separated by a blank, and after the last sentence no blank line, which XGLUE's public loader loses then."""
    lines = [[f"{word} {tags[at % len(tags)]}" for at, word in enumerate(text.split())] for text in sentences(3, path.name)]
    start = "-DOCSTART- O\n\n" if "NER" in path.parts else ""
    return start + "\n\n".join("\n".join(sentence) for sentence in lines) + "\n"


def columns(path: Path, width: int, labels: tuple[str, ...], header: str = "", first: str = "") -> str:
    """Columns separated by tabs, the label in the last one; no quoting, so that a quotation mark is text."""
    texts = sentences(width * len(labels), str(path))
    rows = [[f'"{text}' for text in texts[at * width : (at + 1) * width]] for at in range(len(labels))]
    return header + "".join("\t".join([*([first] if first else []), *row, label]) + "\n" for row, label in zip(rows, labels, strict=True))


def pages(path: Path) -> str:
    """Web pages of queries that are contiguous, the first of which comes again at the end."""
    grades = [("one", "4 0 1"), ("two", "0 3 2"), ("one", "1 2 0")]
    rows = [
        (f"{query} of {path.name}", f"title {at}", f"snippet {at}", grade) for query, all in grades for at, grade in enumerate(all.split())
    ]
    return "".join("\t".join(row) + "\n" for row in rows)


def squad(path: Path) -> str:
    passage = f"It rains in May , says {path.name} . Then it snows ."
    asked = {"id": f"{path.name} 1", "question": "When does it rain ?", "answers": [{"text": "May", "answer_start": passage.find("May")}]}
    return json.dumps({"version": "1.1", "data": [{"title": "Weather", "paragraphs": [{"context": passage, "qas": [asked]}]}]})


def file_of(path: Path) -> str:
    """A small file in the format that XGLUE has for a path."""
    task, train = path.parts[2], "train" in path.name
    if task == "NER":
        return words(path, ("B-PER", "I-PER", "O", "B-LOC", "B-ORG", "B-MISC", "O"))
    if task == "POS":
        return words(path, ("NOUN", "VERB", "PUNCT"))
    if task == "MLQA":
        return squad(path)
    if task == "XNLI":
        labels = ("neutral", "contradictory" if train else "contradiction", "entailment")
        return columns(path, 2, labels, HEADED if train else "")
    if task == "PAWSX":
        return columns(path, 2, ("0", "1"), "id\tsentence1\tsentence2\tlabel\n", first="7")
    if task in ("QG", "NTG"):
        return "".join(f"{text}\n" for text in sentences(3, path.name))
    if task == "WPR":
        return pages(path)
    news = "foodanddrink sports travel finance lifestyle news entertainment health video autos"
    width, labels = {"NC": (2, tuple(news.split())), "QADSM": (3, ("Good", "Bad")), "QAM": (2, ("0", "1"))}[task]
    return columns(path, width, labels)


@pytest.fixture(scope="module")
def recipe():
    return recipe_of("xglue")


TASKS = {"ner": 3, "pos": 3, "nc": 10, "mlqa": 1, "xnli": 3, "pawsx": 2, "qadsm": 2, "wpr": 9, "qam": 2, "qg": 3, "ntg": 3}
"""Task → examples of each small file."""


@pytest.mark.parametrize("task", TASKS)
def test_every_part_of_a_task_is_read(recipe, tmp_path, monkeypatch, task):
    monkeypatch.chdir(tmp_path)
    settings = recipe.labelled[f"xglue-{task}"]
    for source in sources_of(settings).values():
        for path in map(Path, source.paths()):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(file_of(path), "utf-8")
    for part in ("train", "dev", "test/en", "test/de"):
        main(tmp_path / "x.tsv", tmp_path / "x", tmp_path / "x.json", part=part, settings=settings)
        table, report = read_table(tmp_path / "x.tsv"), read_json(tmp_path / "x.json")
        assert len(table) == TASKS[task] and not sum(report["removed"].values())
        if settings.unit == "text":
            assert sorted({one.label for one in table}) == sorted(settings.labels) and all(one.pair for one in table)
            assert all(one.text.startswith('"Sentence') for one in table)
        if settings.unit == "word":
            assert [len(one.label.split()) for one in table] == [len(one.text.split()) for one in table]
    if task == "wpr":
        assert report["queries"] == 3 and table[0].pair == "title 0 snippet 0"
        assert report["changed"] == {"query that comes again counted as another": 1}
    if task == "qadsm":
        assert table[0].pair.count("Sentence") == 2
    if task == "mlqa":
        assert table[0].pair[slice(*map(int, table[0].label.split(":")))] == "May"
