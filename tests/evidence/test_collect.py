"""The table of a study's numbers."""

import csv

import pytest

from workflow_scripts.evidence.collect import COLUMNS, main
from workflow_scripts.stage import InputError, processor, read_json, write_json


def put(results, setting, arm, seed, bleu, **trained):
    folder = results / f"runs/{setting}/{arm}/seed{seed}"
    write_json(folder / "finetune/training.json", {"languages": ["de", "en"], **trained})
    write_json(folder / "pages.scores.json", {"metrics": {"BLEU": {"value": bleu}, "chrF": {"value": 40.0}}})
    write_json(folder / "pages.words.json", {"buckets": {"low": {"f": 0.125}, "high": {"f": None}}})


def rows(table):
    with open(table, encoding="utf-8") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def test_every_number_has_a_row_and_machines_add_theirs(tmp_path):
    results, table = tmp_path / "results", tmp_path / "docs" / "study.tsv"
    for arm, seed, bleu in (("csr", 1, 18.5), ("csr", 10, 18.0), ("csr", 2, 19.0), ("csr.grid0", 1, 1.0)):
        put(results, "study-de", arm, seed, bleu)
    put(results, "other", "csr", 1, 2.0)
    main(results, table, experiments=("study-*",), machine="one")
    found = rows(table)
    assert [(row["seed"], row["metric"]) for row in found][:4] == [("1", "BLEU"), ("1", "chrF"), ("1", "word_f_low"), ("2", "BLEU")]
    assert len(found) == 9 and {row["setting"] for row in found} == {"study-de"} and {row["arm"] for row in found} == {"csr"}
    commit = read_json(results / "runs/study-de/csr/seed1/pages.scores.json")["provenance"]["commit"]
    assert tuple(found[0]) == COLUMNS and (found[0]["value"], found[0]["commit"], found[0]["pair"]) == ("18.5000", commit, "de-en")
    assert found[2]["value"] == "12.5000" and len(found[0]["date"]) == len("2026-01-01")

    put(results, "study-de", "csr", 1, 20.0)
    main(results, table, experiments=("study-*",), machine="two")
    main(results, table, experiments=("study-*",), machine="two")
    found = rows(table)
    assert len(found) == 18
    first = {row["machine"]: row["value"] for row in found if (row["seed"], row["metric"]) == ("1", "BLEU")}
    assert first == {"one": "18.5000", "two": "20.0000"}
    main(results, table)
    assert {row["machine"] for row in rows(table)} == {"one", "two", processor()}


def test_a_number_names_the_machine_that_trained_its_model(tmp_path):
    results, table = tmp_path / "results", tmp_path / "study.tsv"
    put(results, "study-de", "csr", 1, 18.5, machine="EPYC, AVX-512", precision="float32")
    put(results, "study-de", "csr", 2, 18.5, machine="Xeon, NVIDIA H200", precision="bfloat16")
    put(results, "study-de", "csr", 3, 18.5)  # as trainings were before they said so
    main(results, table)
    assert {row["seed"]: row["machine"] for row in rows(table)} == {
        "1": "EPYC, AVX-512",
        "2": "Xeon, NVIDIA H200, bfloat16",
        "3": processor(),
    }


def test_no_scores_and_another_table_are_refused(tmp_path):
    with pytest.raises(InputError, match=r"has no scores of study-\*; run the recipe first"):
        main(tmp_path, tmp_path / "table.tsv", experiments=("study-*",))
    put(tmp_path, "study-de", "csr", 1, 18.5)
    (tmp_path / "table.tsv").write_text("a\tb\n1\t2\n")
    with pytest.raises(InputError, match="line 1: has the columns"):
        main(tmp_path, tmp_path / "table.tsv")
