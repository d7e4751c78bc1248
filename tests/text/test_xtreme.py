"""config/xtreme.yaml on small files in the very format of XTREME's: every part of every task is read."""

import json
from pathlib import Path

import pytest
from test_config import recipe as recipe_of

from workflow_scripts.run.uses import sources_of
from workflow_scripts.stage import read_json
from workflow_scripts.text.aligned import read_aligned
from workflow_scripts.text.examples import read_table
from workflow_scripts.text.labelled import main

NAMES = {"en": "english", "fi": "finnish"}


def inference(path: Path) -> str:
    """XNLI's table, which holds all languages and more columns than are read; its training file has three."""
    if path.name.startswith("multinli"):
        return (
            "premise\thypo\tlabel\nIt rains .\tIt is wet .\tentailment\nA dog .\tA cat .\tcontradictory\nHe goes .\tHe hurries .\tneutral\n"
        )
    rows = [(code, label, f"{path.name} {code} one {label} .", f"two {label} .") for code in ("en", "fi", "de") for label in LABELS]
    return "language\tgold_label\tpairID\tsentence1\tsentence2\n" + "".join(f"{a}\t{b}\t7\t{c}\t{d}\n" for a, b, c, d in rows)


LABELS = ("neutral", "contradiction", "entailment")


def treebank(path: Path) -> str:
    """CoNLL-U with a multiword token, an empty node, a sentence without its text, and no blank line at the end."""
    rows = f"1-2 zum _ 0|1 zu ADP 3|2 dem DET 3|3 {path.name} NOUN 0|3.1 nothing VERB 0||1 _ NOUN 0|2 _ VERB 1||1 Ende NOUN 0|2 . PUNCT 1"
    written = []
    for number, form, tag, head in (row.split() or [""] * 4 for row in rows.split("|")):
        written.append("\t".join([number, form, "_", tag, "_", "_", head, "_", "_", "_"]) if number else "\n# sent_id = 2")
    return "# sent_id = 1\n" + "\n".join(written)


def names(path: Path) -> str:
    """WikiANN's lines, which begin with the language."""
    code = path.parts[-2]
    return f"{code}:Rome\tB-LOC\n{code}:is\tO\n{code}:{path.name}\tO\n\n{code}:Tom\tB-PER\n{code}:Jones\tI-PER\n"


def paraphrases(path: Path) -> str:
    return f'id\tsentence1\tsentence2\tlabel\n1\tIt "rains" {path.name}\tRain falls .\t1\n2\tA dog {path.name}\tA cat .\t0\n'


def squad(path: Path) -> str:
    """SQuAD's form; TyDiQA's questions have their language in the id, and a file holds all of them. A translation has lost an answer."""
    qas = []
    translated = "-train-" in path.name
    for code, name in NAMES.items() if "tydiqa" in path.name and not translated else (("en", "q"),):
        for number in range(40):
            passage = f"{code} {path.name} {number} : it rains in May ."
            asked = {"id": f"{name}-{number}-1", "question": "When ?", "answers": [{"text": "May", "answer_start": passage.find("May")}]}
            if translated and number == 7:
                asked["answers"] = [{"text": "mai", "answer_start": 0}]
            qas.append({"title": f"{name} {number}", "paragraphs": [{"context": passage, "qas": [asked]}]})
    return json.dumps({"version": "1.1", "data": qas})


FORMS = {"xnli": inference, "pawsx": paraphrases, "pos": treebank, "panx": names, "xquad": squad, "mlqa": squad, "tydiqa": squad}


@pytest.fixture(scope="module")
def recipe():
    return recipe_of("xtreme")


def laid_out(path: Path, content: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content, "utf-8")


@pytest.mark.parametrize("task", FORMS)
def test_every_part_of_a_task_is_read(recipe, tmp_path, monkeypatch, task):
    monkeypatch.chdir(tmp_path)
    settings = recipe.labelled[f"xtreme-{task}"]
    for source in sources_of(settings).values():
        for path in map(Path, source.paths()):
            laid_out(path, FORMS[task](path))
    other = "fi" if "fi" in settings.test else "de"
    tables = {}
    several = {kind: getattr(settings, kind) for kind in ("translations", "more_dev")}
    more = [f"{kind}/{'de' if 'de' in there else 'fi'}" for kind, there in several.items() if there]
    for part in ("train", "dev", *more, "test/en", f"test/{other}"):
        main(tmp_path / "x.tsv", tmp_path / "x", tmp_path / "x.json", part=part, settings=settings)
        tables[part], report = read_table(tmp_path / "x.tsv"), read_json(tmp_path / "x.json")
        assert tables[part] and report["language"] == (part.partition("/")[2] or "en")
        if part.startswith("translations/") and FORMS[task] is squad:
            assert report["removed"]["answer is not in its passage"] == 1
    last = tables[f"test/{other}"]
    if task == "xnli":
        assert [one.text.split()[1] for one in last] == ["de"] * 3
    if task == "pawsx":
        assert last[0].label == "paraphrase" and last[0].text.startswith('It "rains"')
    if task == "pos":
        assert [one.label for one in last] == ["ADP NOUN", "NOUN PUNCT"] and last[0].text.startswith("zum ")
        assert report["changed"]["sentence without its words left out"] == 1
    if task == "panx":
        assert last[0].text.startswith("Rome is") and last[1].label == "B-PER I-PER" and report["changed"]["language prefix cut off"] == 5
    if task == "tydiqa":
        assert len(last) == 40 and all(one.pair.startswith("fi ") for one in last) and tables["dev"]
        assert all(one.pair.startswith("en ") for one in [*tables["train"], *tables["dev"]])


def test_tatoeba_and_bucc_are_read(recipe, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tatoeba, bucc = recipe.aligned["xtreme-tatoeba"].test["sw"], recipe.aligned["xtreme-bucc"]
    assert tatoeba.files["sw"].endswith("tatoeba.swh-eng.swh")
    for code, path in tatoeba.files.items():
        laid_out(Path(path), f"one in {code} .\ntwo in {code} .\n")
    # the English sentences are those whose translations are looked for
    assert read_aligned(tatoeba) == ((["one in en .", "two in en ."], ["one in sw .", "two in sw ."]), [(0, 0), (1, 1)])
    for source in (bucc.test["zh"], bucc.dev["zh"]):
        for code, path in source.files.items():
            laid_out(Path(path), "".join(f"{code}-00000000{n}\t{n} in {code} .\n" for n in (1, 2, 3)))
        laid_out(Path(source.gold), "zh-000000001\ten-000000003\n")
        assert read_aligned(source)[1] == [(0, 2)]
