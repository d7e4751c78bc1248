"""Cost, data and provenance in the report."""

from invented import MAPPING, configuration, plain, put, report, results

from workflow_scripts.report.origins import cost
from workflow_scripts.stage import read_json
from workflow_scripts.text.acquisition import Data


def test_mixed_commits_warn(tmp_path):
    assert "Mixed origins" not in report(results(tmp_path / "one"), tmp_path)[0]
    html, _ = report(results(tmp_path / "two", commit="def456"), tmp_path)
    assert "2 different commits" in plain(html) and "def456" in html


def test_every_file_that_a_stage_read_is_listed_with_its_checksum(tmp_path):
    root = results(tmp_path / "results")
    lexicon = root / "lexicons/help.de-en/own"
    put(root / "backbones/small/backbone.json", {**read_json(root / "backbones/small/backbone.json"), "checksums": {"mono.de": "beef"}})
    put(lexicon / "mapping.json", {**MAPPING, "checksums": {"given.vec": "cafe"}})
    put(lexicon / "lexicon.json", {**read_json(lexicon / "lexicon.json"), "checksums": {"gold.tsv": "dead", "train.de": "0ff0"}})
    text = plain(report(root, tmp_path)[0])
    assert "given.vec cafe gold.tsv dead mono.de beef train.de 0ff0, f00d source:" in text


def test_acquired_data_are_listed_with_licence_and_citation(tmp_path):
    root, settings = results(tmp_path / "results"), configuration()
    assert "Data that were acquired" not in report(root, tmp_path)[0]
    settings.data = {"web": Data(url="http://x/words.txt", licence="CC0", citation="Nobody & al. (2020)"), "unused": Data(url="http://y")}
    settings.lexicons["own"].gold["de-en"] = "results/data/web.txt"
    origin = {"kind": "url", "url": "http://x/words.txt", "sha256": "f00d"}
    put(root / "data/web.txt.json", {"origin": origin, "bytes": 12345, "sha256": "f00d", "date": "2026-01-02"})
    page = plain(report(root, tmp_path, settings)[0])
    assert "web url http://x/words.txt SHA-256 f00d 12,345 2026-01-02 CC0 Nobody & al. (2020) source: results/data/{data}.….json" in page
    assert "http://y" not in page.partition("The configuration")[0]


def test_cost_sums_benchmarks_and_takes_missing_ones(tmp_path):
    root = results(tmp_path / "results")
    assert "no benchmark files" in report(root, tmp_path)[0]
    header = "s\th:m:s\tmax_rss\tcpu_time\n"
    put(root / "benchmarks/training/demo/csr.seed1.finetune.tsv", header + "10.0\t0:00:10\t300.5\t36\n")
    put(root / "benchmarks/training/demo/mask.seed1.finetune.tsv", header + "20.5\t0:00:20\tNA\t-\n")
    put(root / "benchmarks/training/demo/mask.seed1.pretext.tsv", header + "5\t0:00:05\t200\t18\n")
    text = plain(report(root, tmp_path)[0])
    assert "finetune 2 30 0.010 300" in text and "pretext 1 5 0.005 200" in text and "all 3 36 0.015 300" in text
    assert "only the attempt that succeeded" in text and "GPU hours" not in text
    training = root / "runs/demo/mask/seed1/finetune/training.json"
    put(training, {**read_json(training), "device": "cuda:0", "processes": 8})
    backbone = root / "backbones/small/backbone.json"
    put(backbone, {**read_json(backbone), "device": "cuda:0", "processes": 4})
    for job in ("training/demo/mask.seed1.finetune", "decoding/demo/mask.seed1.pages", "decoding/demo/csr.seed1.pages", "backbone/small"):
        put(root / f"benchmarks/{job}.tsv", header + "1800\t0:30:00\t500\t-\n")
    put(root / "benchmarks/heads/demo/significance.tsv", header + "1800\t0:30:00\t500\t-\n")
    text = plain(report(root, tmp_path)[0])
    assert "finetune 2 1,810 0.010 500 4.00" in text and "pretext 1 5 0.005 200 0.00" in text
    assert "decoding 2 3,600 0.000 500 0.50" in text and "backbone 1 1,800 0.000 500 2.00" in text
    assert "head_significance 1 1,800 0.000 500 0.00" in text


def test_gpu_hours_of_jobs_whose_models_are_not_trained_here(tmp_path):
    root = tmp_path / "results"
    said = {
        "retrieval/nearest/hub.seed1": "runs/nearest/hub/seed1/predictions/flores.scores.json",
        "translated/topics/train.de": "labelled/topics/translated/train.de.json",
        "mapping/help.de-en/own": "lexicons/help.de-en/own/mapping.json",
        "cka/inside": "analyses/inside/cka.json",
        "spectra/inside": "analyses/inside/spectra.json",
        "separability/inside": "analyses/inside/separability.json",
        "speed/demo": "runs/demo/speed.json",
        "layerwise/inside.depth": "analyses/inside/depth.json",
    }
    for job, file in said.items():
        put(root / f"benchmarks/{job}.tsv", "s\th:m:s\tmax_rss\tcpu_time\n1800\t0:30:00\t500\t36\n")
        put(root / file, {"device": "NVIDIA H100" if job == "speed/demo" else "cuda:0"})
    put(root / "analyses/inside/spectra.json", {"device": "cpu"})
    (root / "analyses/inside/separability.json").unlink()  # of a job that is being repeated
    hours = {row["rule"]: row["gpu"] for row in cost(root)}
    on_gpu = dict.fromkeys(("retrieval", "translated", "cka", "speed", "mapping", "layerwise"), 0.5)
    assert hours == {**on_gpu, "spectra": 0, "separability": 0, "all": 3.0}
