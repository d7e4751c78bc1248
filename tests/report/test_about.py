"""The line under the title, the command that would tell more, and what words mean."""

import os
import re

import pytest
from invented import configuration, plain, put, report, results, study_of

from workflow_scripts.report import about


def benchmark(path, begins, seconds):
    put(path, f"s\th:m:s\n{seconds}\t-\n")
    os.utime(path, (begins + seconds,) * 2)


def test_the_line_under_the_title_says_when_where_and_how(tmp_path):
    root = results(tmp_path / "results")
    benchmark(root / "benchmarks/corpus/a.tsv", 1000, 60)
    benchmark(root / "benchmarks/training/demo/csr.seed1.finetune.tsv", 1060, 540)
    text = plain(report(root, tmp_path)[0])
    assert re.search(r"\d\d \w+ 20\d\d · commit abc123 · cpu, float32 · seed 1 · 10 minutes from the first job to the last", text)
    # of ten minutes nine were the seed's
    assert "tells, in about 18 minutes." in text


def test_the_time_of_a_run_that_was_interrupted_is_that_of_its_stretches(tmp_path):
    assert about.worked(tmp_path) == [] and about.time_of_more_seeds(tmp_path, []) == ""
    benchmark(tmp_path / "benchmarks/corpus/a.tsv", 1000, 60)
    benchmark(tmp_path / "benchmarks/training/side_by_side.tsv", 1010, 290)
    benchmark(tmp_path / "benchmarks/corpus/b.tsv", 90_000, 60)
    assert about.worked(tmp_path) == [300, 60]
    assert about.about(tmp_path, [], {"files": {}}) == ["6 minutes of work in 2 stretches"]


@pytest.mark.parametrize("jobs", [2, 10, 100])
def test_files_of_a_copied_folder_tell_no_time(tmp_path, jobs):
    for job in range(jobs):
        benchmark(tmp_path / f"benchmarks/training/{job}.tsv", 1000, 60)
    assert about.worked(tmp_path) == []


def test_the_command_is_what_snakemake_was_called_with(tmp_path):
    root = results(tmp_path / "results")
    assert about.command(root) is None
    said = "\nSNAKEMAKE\n  Command: /x/__main__.py --logger crossgap --logger-crossgap-events /tmp/e --cores all --configfile my.yaml\n"
    put(root / "logs/snakemake.log", said)
    assert about.command(root) == ["--cores", "all", "--configfile", "my.yaml"]
    # a look at the next recipe in the same folder made nothing of these results
    put(tmp_path / ".snakemake/log/2026.snakemake.log", "\nSNAKEMAKE\n  Command: /x/snakemake preflight --cores 1 --configfile next.yaml\n")
    assert about.command(root) == ["--cores", "all", "--configfile", "my.yaml"]
    text = plain(report(root, tmp_path)[0])
    assert "snakemake --cores all --configfile my.yaml --config 'run={seeds: [1, 2, 3]}' tells, in about three times its time" in text
    assert "The run was called with: snakemake --cores all --configfile my.yaml" in text
    assert "float32 · seed 1 · snakemake --cores all --configfile my.yaml" in text


def test_the_command_for_more_seeds_adds_to_the_configuration_that_was_given(tmp_path):
    root = results(tmp_path / "results")
    put(
        root / "logs/snakemake.log",
        "  Command: /x/__main__.py --cores 2 --config arms={csr: [{data: task}]} run={arms: [a, b], seeds: [1]}\n",
    )
    assert about.command(root) == ["--cores", "2", "--config", "arms={csr: [{data: task}]}", "run={arms: [a, b], seeds: [1]}"]
    wanted = "snakemake --cores 2 --config 'arms={csr: [{data: task}]}' 'run={arms: [a, b], seeds: [1, 2, 3]}' tells"
    assert wanted in plain(report(root, tmp_path)[0])


def test_words_are_explained_by_the_glossary():
    found = about.meanings()
    assert found["arm"].startswith("A way to train: a list of phases") and {"backbone", "phase", "noise"} <= found.keys() <= {
        *about.EXPLAINED
    }
    assert {"pretext", "control", "seed", "bootstrap", "chrf", "holm"} <= found.keys() == {*about.EXPLAINED}
    assert not any(re.search(r"[*`]|\]\(", meaning) for meaning in found.values())


def test_several_machines_and_commits_are_counted(tmp_path):
    root = results(tmp_path / "results", (1, 2))
    study = study_of(root, configuration((1, 2)))
    for place, path in enumerate(sorted((root / "runs").rglob("training.json"))):
        path.write_text(path.read_text().replace('"device": "cpu"', f'"device": "cpu", "machine": "m{place}"'))
        study.json(path)
    said = about.about(root, [study], {"files": {"a": [], "b": []}})
    assert said[1] == "commits a and b" and said[2].endswith("machines") and said[3] == "seeds 1, 2"
    assert about.about(root, [study], {"files": {"a": [], "b": [], "c": []}})[1] == "commits a and 2 others"
