"""The whole workflow with tiny settings, and what Snakemake plans after a change."""

import base64
import contextlib
import functools
import io
import os
import re
import shutil
import subprocess
import sys
import time
import zipfile
from collections import Counter, defaultdict
from pathlib import Path
from unittest import mock

import pytest
import warm
import yaml
from rule_files import rule_blocks, training_rules
from snakemake.cli import main as snakemake_main

from workflow_scripts import plugins
from workflow_scripts.environment import suitable
from workflow_scripts.stage import read_json, read_rows
from workflow_scripts.text.files import read_lines

ROOT = Path(__file__).resolve().parents[2]
ARMS = ["finetune", "csr"]

LINES = 1500
"""Of the manual, from which the tiny experiment learns."""
TINY = {
    "run": {"experiments": ["tiny"], "arms": ARMS, "seeds": [1]},
    "corpora": {
        "tiny": {
            "languages": ["en", "de"],
            "train": {"file": "manual.tsv", "columns": {"document": 1, "en": 3, "de": 4}},
            "dev": {"held_out": 40},
            "test": {"pages": {"held_out": 40}},
        }
    },
    "lexicons": {
        "tiny": {
            "embeddings": {"dimensions": 50, "epochs": 2, "window": 5, "negative": 5, "min_count": 5},
            "mapping": {"search_cutoff": 300, "initial_words": 300, "patience": 2, "restarts": 0, "fallback": [], "on_failure": "warn"},
        }
    },
    "backbones": {
        "tiny": {
            "kind": "small",
            "small": {
                "text": {"de": "bible.de.txt", "en": "bible.en.txt"},
                "vocabulary": 800,
                "d_model": 32,
                "layers": 1,
                "heads": 2,
                "ffn": 64,
                "dev_lines": 30,
                "training": {
                    "updates": 20,
                    "batch_tokens": 800,
                    "learning_rate": 0.005,
                    "warmup_updates": 5,
                    "max_length": 96,
                    "evaluate_every": 10,
                    "checkpoint": "last",
                },
            },
        }
    },
    "arms": {
        "finetune": [{"data": "task", "updates": 16}],
        **{
            arm: [{"data": data, "updates": 6}, {"data": "task", "updates": 10}]
            for arm, data in (("csr", "codeswitch"), ("random", "random"))
        },
    },
    "experiments": {
        "tiny": {
            "corpus": "tiny",
            "source": "de",
            "target": "en",
            "backbone": "tiny",
            "lexicon": "tiny",
            "training": {
                "pairs": 300,
                "batch_tokens": 800,
                "learning_rate": 0.005,
                "warmup_updates": 3,
                "max_length": 96,
                "evaluate_every": 8,
                "loss_every": 4,
                "log_every": 2,
                "bleu_sentences": 4,
            },
            "decoding": {"max_length": 16},
            "scores": {"samples": 40},
        }
    },
}


def snakemake(folder: Path, *arguments: str, check: bool = True) -> str:
    """Run the repository's workflow in `folder` and return what it said; a dry run in this process, which saves seconds."""
    line = ["-s", str(ROOT / "Snakefile"), "--directory", str(folder), *arguments]
    environment = {**os.environ, "PATH": warm.path(), "COLUMNS": "200"}
    if "-n" in arguments:
        status, said = dry_run(line, environment)
    else:
        command = [warm.python(), "-m", "snakemake", *line]
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        status, said = done.returncode, done.stdout + done.stderr
    assert not check or status == 0, said[-6000:]
    return said


def dry_run(line: list[str], environment: dict[str, str]) -> tuple[int, str]:
    """Status and words of a Snakemake in this process."""
    said = io.StringIO()
    with (
        contextlib.chdir(ROOT),
        mock.patch.dict(os.environ, environment),
        mock.patch.object(sys, "path", [*sys.path]),
        contextlib.redirect_stdout(said),
        contextlib.redirect_stderr(said),
        pytest.raises(SystemExit) as end,
    ):
        snakemake_main(line)
    plugins.forget()
    return end.value.code, said.getvalue()


def planned(said: str) -> set[str]:
    """The rules of a dry run's job table."""
    table = re.search(r"^job +count\n-+ +-+\n(.*?)\ntotal", said, flags=re.M | re.S)
    return set() if table is None else {line.split()[0] for line in table.group(1).splitlines()}


def write_config(folder: Path, content: dict) -> str:
    path = folder / "tiny.yaml"
    path.write_text(yaml.safe_dump(content), encoding="utf-8")
    return str(path)


@functools.cache
def shipped_lines(source: str, start: int, n: int) -> str:
    """n lines of an embedded text from the line `start` on; to unpack one takes a moment."""
    return "".join(f"{line}\n" for line in list(read_lines(ROOT / "resources" / source))[start : start + n])


def lay_out(folder: Path) -> Path:
    """`folder`, made, with the text that the tiny experiment reads."""
    folder.mkdir(exist_ok=True)
    for name, source, start, n in (
        ("manual.tsv", "libreoffice-help/en-de.tsv.xz", 4000, LINES),
        ("bible.de.txt", "bible/de.txt.xz", 0, 1200),
        ("bible.en.txt", "bible/en.txt.xz", 0, 1200),
    ):
        (folder / name).write_text(shipped_lines(source, start, n), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """A folder (with a blank in its name) in which the tiny experiment has run."""
    folder = lay_out(tmp_path_factory.mktemp("work") / "a folder")
    config = write_config(folder, TINY)
    snakemake(folder, "--configfile", str(ROOT / "config.yaml"), config, "--cores", "2")
    return folder


def plan(folder: Path, content: dict) -> set[str]:
    return planned(snakemake(folder, "--configfile", str(ROOT / "config.yaml"), write_config(folder, content), "--cores", "2", "-n"))


def changed(path: str, value) -> dict:
    content = yaml.safe_load(yaml.safe_dump(TINY))
    *keys, last = path.split("/")
    node = content
    for key in keys:
        node = node[key]
    node[last] = value
    return content


def test_it_runs_to_the_report(done):
    results = done / "results"
    page = (results / "report.html").read_text(encoding="utf-8")
    assert "tiny" in page and all(arm in page for arm in ARMS) and not re.search(r'(src|href)="https?:', page)
    rows = read_rows(results / "scores.tsv")
    assert {row["arm"] for row in rows if row["metric"] == "BLEU"} == set(ARMS)
    for row in rows:
        if row["metric"] == "BLEU":
            scores = read_json(results / f"runs/tiny/{row['arm']}/seed1/pages.scores.json")
            assert float(row["value"]) == pytest.approx(scores["metrics"]["BLEU"]["value"], abs=1e-3)


def test_files_are_where_the_contract_says(done):
    results = done / "results"
    corpus = read_json(results / "corpora/tiny.en-de/corpus.json")
    assert corpus["read"] == LINES == corpus["kept"] + sum(corpus["removed"].values())
    for name in ("en-de.tsv", "de-en.tsv", "en.vec", "de.mapped.vec", "mapping.json", "lexicon.json"):
        assert (results / "lexicons/tiny.en-de/tiny" / name).stat().st_size > 100
    hypotheses = list(read_lines(results / "runs/tiny/csr/seed1/pages.hyp"))
    assert len(hypotheses) == len(list(read_lines(results / "corpora/tiny.en-de/test/pages.en")))
    trivial = results / "runs/tiny/trivial/seed0"
    assert (trivial / "pages.hyp").read_bytes() == (results / "corpora/tiny.en-de/test/pages.de").read_bytes()
    copied = read_json(trivial / "pages.scores.json")["metrics"]["BLEU"]["value"]
    assert f'<th scope="row">a copy of the source, without a model</th><td class="n">{copied:.2f}</td>' in (
        results / "report.html"
    ).read_text(encoding="utf-8")
    assert read_json(results / "backbones/tiny/backbone.json")["provenance"]["versions"]["torch"]
    assert not list(results.rglob("*.part"))
    assert all(path.stat().st_size for path in (results / "benchmarks").rglob("*.tsv"))


def test_all_arms_saw_the_same_number_of_updates(done):
    for arm in ARMS:
        phases = (done / "results/runs/tiny" / arm / "seed1").glob("*/training.json")
        assert sum(read_json(phase)["settings"]["updates"] for phase in phases) == 16


def test_a_second_call_does_nothing(done):
    said = snakemake(done, "--configfile", str(ROOT / "config.yaml"), write_config(done, TINY), "--cores", "2")
    assert "Nothing to be done" in said


def test_snakemakes_own_report_holds_the_page_and_the_files_behind_it(done, tmp_path):
    arguments = ["--configfile", str(ROOT / "config.yaml"), write_config(done, TINY), "--report"]
    snakemake(done, *arguments, str(tmp_path / "one.html"))
    snakemake(done, *arguments, str(tmp_path / "many.zip"))
    html = (done / "results/report.html").read_bytes()
    assert base64.b64encode(html).decode() in (tmp_path / "one.html").read_text(encoding="utf-8")
    with zipfile.ZipFile(tmp_path / "many.zip") as archive:
        inside = {name: archive.read(name) for name in archive.namelist()}
    assert html in inside.values()
    kinds = Counter(Path(name).name for name in inside)
    assert (
        kinds["pages.scores.json"] - 1 == kinds["pages.words.json"] == len(ARMS)  # and that of copied sources
        and kinds["curve.tsv"] == kinds["representation.json"] == 2 * len(ARMS) - 1
    )
    index = inside["many/report.html"].decode()
    for words in ("Experiments of this run: tiny", "Crossgap report", "Word accuracy", "Arm csr, seed 1, the phase pretext"):
        assert words in index


def test_a_metric_setting_reruns_scores_only(done):
    assert plan(done, changed("experiments/tiny/scores/samples", 41)) == {
        "scores",
        "significance",
        "significance_over_seeds",
        "configuration",
        "report",
        "all",
    }


def test_comet_runs_where_it_is_switched_on(done):
    content = changed("experiments/tiny/comet", {})
    assert plan(done, content) == {"comet_environment", "comet", "significance_over_seeds", "configuration", "report", "all"}


def test_a_run_goes_on_without_comet_and_says_why(done, monkeypatch):
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    scores = "results/runs/tiny/csr/seed1/pages.comet.json"
    snakemake(done, scores, "--configfile", str(ROOT / "config.yaml"), write_config(done, TINY), "--cores", "2")
    found = read_json(done / scores)
    # on a newer Python than COMET's, an older one may be missing
    why = (
        "pip could not install comet.txt (ERROR: No matching distribution"
        if suitable("comet")
        else "comet.txt is for Python 3.12 and older"
    )
    assert found["value"] is None and why in found["reason"]


def test_conda_takes_the_place_of_comets_own_environment(done, commands):
    # what Snakemake asks conda before a dry run; nothing is installed
    commands("conda", """{"conda_version": "25.1.1", "conda_prefix": "/", "platform": "linux-64", "get": {"channel_priority": "strict"}}""")
    content = write_config(done, changed("experiments/tiny/comet", {}))
    said = snakemake(done, "--configfile", str(ROOT / "config.yaml"), content, "--cores", "2", "-n", "--sdm", "conda")
    assert "envs/comet.yaml will be created" in said and "comet" in planned(said) and "comet_environment" not in planned(said)


def test_a_training_setting_reruns_from_training_on_and_the_dry_run_says_why(done):
    content = write_config(done, changed("experiments/tiny/training/dropout", 0.15))
    said = snakemake(done, "--configfile", str(ROOT / "config.yaml"), content, "--cores", "2", "-n")
    assert re.search(r"^rule finetune:\n(    .*\n)*    reason: Params have changed since last execution", said, flags=re.M)
    rules = planned(said)
    assert {"pretext", "finetune", "decoding", "scores", "representation", "report"} <= rules
    assert not rules & {"corpus", "held_out", "embeddings", "mapping", "lexicon", "codeswitch", "backbone"}


def test_the_released_noise_switches_pieces(done):
    content = changed("arms/released", [{"data": "released", "lexicon": "pieces", "updates": 6}, {"data": "task", "updates": 10}])
    content["run"]["arms"] = ["finetune", "released"]
    mapping = {"mode": "numerals", "patience": 2, "restarts": 0, "fallback": [], "on_failure": "warn", "search_cutoff": 300}
    content["lexicons"]["pieces"] = {
        "unit": "piece",
        "backbone": "tiny",
        "embeddings": {"dimensions": 20, "epochs": 2, "min_count": 5},
        "mapping": mapping,
        "lexicon": {"retrieval": "farthest", "numbers": True, "align": False},
    }
    made = done / "results/codeswitch/tiny/released.pieces/seed1"
    target = str(made.relative_to(done))
    snakemake(done, target, "--configfile", str(ROOT / "config.yaml"), write_config(done, content), "--cores", "2")
    assert read_json(made / "codeswitch.json")["unit"] == "piece"
    lexicon = done / "results/lexicons/tiny.en-de/pieces/de-en.tsv"
    assert any(line.startswith("▁") for line in read_lines(lexicon)) and any(line[0].isalpha() for line in read_lines(lexicon))


def test_a_given_dictionary_takes_the_place_of_vectors_and_mapping(done):
    (done / "dictionary.txt").write_text("file datei\nwindow fenster\nthe das\n", encoding="utf-8")
    content = changed("lexicons/tiny/dictionary", {"en-de": "dictionary.txt"})
    content["lexicons"]["given"] = content["lexicons"].pop("tiny")
    content["lexicons"]["given"]["mapping"]["mode"] = "dictionary"
    content["lexicons"]["given"]["lexicon"] = {"align": False}
    content["experiments"]["tiny"]["lexicon"] = "given"
    assert not plan(done, content) & {"embeddings", "mapping"}
    snakemake(done, "lexicons", "--configfile", str(ROOT / "config.yaml"), write_config(done, content), "--cores", "2")
    lexicon = done / "results/lexicons/tiny.en-de/given"
    assert [line.split("\t")[:2] for line in read_lines(lexicon / "de-en.tsv")] == [
        ["datei", "file"],
        ["fenster", "window"],
        ["das", "the"],
    ]
    assert read_json(lexicon / "lexicon.json")["directions"]["en-de"]["coverage"]["running_words"] > 0


def test_a_lexicon_is_made_of_the_parallel_text(done):
    content = changed("lexicons/tiny/mapping/mode", "aligned")
    content["lexicons"]["aligned"] = content["lexicons"].pop("tiny")
    content["experiments"]["tiny"]["lexicon"] = "aligned"
    assert not plan(done, content) & {"embeddings", "mapping"}
    snakemake(done, "lexicons", "--configfile", str(ROOT / "config.yaml"), write_config(done, content), "--cores", "2")
    lexicon = done / "results/lexicons/tiny.en-de/aligned"
    assert read_json(lexicon / "lexicon.json")["aligned"] and not (lexicon / "mapping.json").exists()
    assert ["datei", "file"] in [line.split("\t")[:2] for line in read_lines(lexicon / "de-en.tsv")]


@pytest.mark.parametrize("mode", ["supervised", "mapped"])
def test_given_vectors_and_a_dictionary_reach_the_mapping(done, mode):
    folder = done / "results/lexicons/tiny.en-de/tiny"
    english, german = ([line.split(" ")[0] for line in read_lines(folder / f"{code}.vec")][1:] for code in ("en", "de"))
    shared = sorted({*english} & {*german})
    (done / "dictionary.txt").write_text("".join(f"{word} {word}\n" for word in shared), encoding="utf-8")
    content = changed("lexicons/tiny/dictionary", {"en-de": "dictionary.txt"})
    block = content["lexicons"][mode] = content["lexicons"].pop("tiny")
    block["mapping"]["mode"], block["lexicon"] = mode, {"align": False}
    block["vectors"] = {code: str(folder / f"{code}.vec") for code in ("en", "de")}
    content["experiments"]["tiny"]["lexicon"] = mode
    rules = plan(done, content)
    assert "mapping" in rules and "embeddings" not in rules
    if mode == "supervised":
        snakemake(done, "lexicons", "--configfile", str(ROOT / "config.yaml"), write_config(done, content), "--cores", "2")
        assert read_json(done / f"results/lexicons/tiny.en-de/{mode}/mapping.json")["start"] == mode


def test_another_seed_adds_its_runs_only(done):
    rules = plan(done, changed("run/seeds", [1, 2]))
    assert {"codeswitch", "pretext", "finetune"} <= rules and not rules & {"corpus", "embeddings", "mapping", "lexicon", "backbone"}


def test_the_slurm_profile_plans_the_whole_run(tmp_path):
    config = write_config(tmp_path, {"experiments": {"help-de-en": {"comet": {}}}})
    said = snakemake(tmp_path, "--configfile", str(ROOT / "config.yaml"), config, "--profile", "slurm", "-n")
    jobs = re.findall(r"^ *rule (\w+):\n(.*?)(?=^ *\[|\Z)", said, flags=re.M | re.S)
    with_gpu = {rule for rule, text in jobs if re.search(r"\bgpu=1\b", text)}
    assert with_gpu == {"backbone", "pretext", "finetune", "decoding", "comet", "representation", "representation_backbone"}
    assert all(("slurm_partition=gpu" in text) == (rule in with_gpu) for rule, text in jobs)
    assert "report" in planned(said)


def test_a_folder_without_a_configuration_goes_by_the_one_beside_the_snakefile(tmp_path):
    config = write_config(tmp_path, {"run": {"arms": ["finetune"]}})
    assert {"corpus", "finetune", "report"} <= planned(snakemake(tmp_path, "--configfile", config, "-n"))
    (tmp_path / "config.yaml").write_text("corpora: {}\n", encoding="utf-8")
    assert "run.seeds: is missing" in snakemake(tmp_path, "--configfile", config, "-n", check=False)


def test_one_job_at_a_time_uses_this_machines_gpu(tmp_path, commands, monkeypatch):
    commands("nvidia-smi", "40960")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    config = ["--configfile", str(ROOT / "config.yaml"), write_config(lay_out(tmp_path), TINY)]
    wanted = ["results/configuration.json", *config, "--cores", "2"]
    assert re.search(r"Provided resources:.* gpu=\D*1\b", snakemake(tmp_path, *wanted))
    assert re.search(
        r"Provided resources:.* gpu=\D*3\b", snakemake(tmp_path, *wanted, "--forcerun", "configuration", "--resources", "gpu=3")
    )
    # those that have one on Slurm
    profile = yaml.safe_load((ROOT / "slurm/config.yaml").read_text(encoding="utf-8"))["set-resources"]
    using = {name for name, block in rule_blocks().items() if "gpu=GPU," in block}
    assert using == {rule for rule, asked in profile.items() if asked.get("gpu")}


def test_trainings_what_they_wait_for_and_what_the_first_answer_needs_have_a_priority():
    found = {name: re.search(r"^    priority: ([^#\n]*)", block, flags=re.M) for name, block in rule_blocks().items()}
    by_priority = defaultdict(set)
    for name, priority in found.items():
        by_priority[priority and priority[1].strip()].add(name)
    trainings = training_rules()
    assert by_priority["urgency.SHARED"] == {"configuration", "backbone", "embeddings", "mapping", "lexicon"}
    assert by_priority["of(urgency.of_noise)"] == {"codeswitch", "labelled_codeswitch"}
    assert by_priority["of(urgency.of_training)"] == trainings - {"backbone"} | {"distillation"}  # which a training waits for
    assert by_priority["of(urgency.of_score)"] == {"decoding", "generation_decoding", "head_prediction", "scores"}


def test_another_model_in_the_folder_of_a_backbone_is_taken(tmp_path):
    lay_out(tmp_path)
    shutil.copytree(ROOT / "resources/backbones/bible", tmp_path / "own")
    content = changed("backbones/tiny", {"kind": "hub", "model": "own"})
    arguments = ["results/backbones/tiny/model", "--configfile", str(ROOT / "config.yaml"), write_config(tmp_path, content), "--cores", "1"]
    snakemake(tmp_path, *arguments)
    assert not planned(snakemake(tmp_path, *arguments, "-n"))
    time.sleep(1.1)  # a time of a file may be whole seconds
    (tmp_path / "own/model.safetensors").touch()
    assert planned(snakemake(tmp_path, *arguments, "-n")) == {"backbone"}


def test_preflight_finds_nothing_wrong_with_what_has_run(done):
    said = snakemake(done, "preflight", "--configfile", str(ROOT / "config.yaml"), write_config(done, TINY), "--cores", "1")
    assert f"ok     corpora.tiny.train: manual.tsv, {LINES:,} pairs" in said and "ok     disk" in said and "WRONG" not in said
    assert "ok     run.experiments: tiny" in said  # config.yaml's own, which is not run, goes without saying


def test_preflight_leaves_the_locks_of_a_run_at_work(done):
    lock = done / ".snakemake/locks/0.output.lock"
    lock.parent.mkdir(exist_ok=True)
    lock.write_text("results/report.html\n")
    arguments = ["--configfile", str(ROOT / "config.yaml"), write_config(done, TINY), "--cores", "1"]
    try:
        assert "WRONG" not in snakemake(done, "preflight", *arguments) and lock.exists()
    finally:
        shutil.rmtree(lock.parent)


def test_preflight_lists_all_that_is_wrong_and_ends(tmp_path, commands):
    # Snakemake's plugin looks for the others before it starts
    for name in ("sinfo", "squeue", "sacct"):
        commands(name, "", 1)
    arguments = ["preflight", "--configfile", str(ROOT / "config.yaml"), write_config(tmp_path, TINY), "--profile", "slurm"]
    said = snakemake(tmp_path, *arguments, "--slurm-init-seconds-before-status-checks", "1", check=False)
    for wrong in ("corpora.tiny.train: manual.tsv: no such file", "backbones.tiny.small.text.de: bible.de.txt: no such", "Slurm: sinfo"):
        assert said.count(f"WRONG  {wrong}") == 1
    assert "error: 4 things are wrong" in said and "Traceback" not in said and not (tmp_path / "results").exists()


def test_preflight_tells_what_a_profile_asks_for_that_cannot_be(tmp_path, commands):
    for name in ("sinfo", "squeue", "sacct"):
        commands(name, "", 1)
    profile = (ROOT / "slurm/config.yaml").read_text(encoding="utf-8")
    profile = profile.replace("  finetune: *training", "  finetun: *training").replace("runtime: 1440", 'runtime: "24:00:00"', 1)
    profile = profile.replace("embeddings: {runtime: 1440}", 'embeddings: {runtime: "30:00:00"}')
    profile = profile.replace("  scores: &few_minutes\n", "  codeswitch: {mem_mb: 900 * len(wildcards.noise)}\n  scores: &few_minutes\n")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/config.yaml").write_text(profile, encoding="utf-8")
    arguments = ["preflight", "--configfile", str(ROOT / "config.yaml"), write_config(tmp_path, TINY), "--profile", str(tmp_path / "mine")]
    said = snakemake(tmp_path, *arguments, "--slurm-init-seconds-before-status-checks", "1", check=False)
    assert "WRONG  profile: finetun: set-resources names a rule that is not there, did you mean 'finetune'?" in said
    for rule, runtime in (("backbone", "24:00:00"), ("embeddings", "30:00:00")):
        assert re.search(
            rf"WRONG  profile: {rule}: .*{runtime}.* could not be parsed as minutes; a runtime is a number of minutes, or", said
        )
    assert "note   profile: codeswitch: what a job asks for depends on its wildcards, so it is not checked" in said


def test_a_run_that_stops_says_why_and_how_to_go_on(done):
    lines = (done / "manual.tsv").read_bytes().split(b"\n")
    (done / "latin1.tsv").write_bytes(b"\n".join([*lines[:700], b"a\tb\tM\xfcller\td", *lines[700:]]))
    content = changed("corpora/tiny/train/file", "latin1.tsv")
    content["corpora"]["broken"] = content["corpora"].pop("tiny")
    content["experiments"]["tiny"]["corpus"] = "broken"
    arguments = ["--configfile", str(ROOT / "config.yaml"), write_config(done, content), "--cores", "2"]
    said = snakemake(done, *arguments, "results/corpora/broken.en-de/corpus.json", check=False)
    digest = said[said.index("────") :]
    assert "held_out (corpus broken, a en, b de, part dev)\n  why     bad input\n  change  latin1.tsv, line 701: not UTF-8" in digest
    assert "--cores 2 results/corpora/broken.en-de/corpus.json" in digest and "Traceback" not in said


def test_a_wrong_path_is_refused_though_results_of_the_right_one_are_there(done):
    config = write_config(done, changed("corpora/tiny/train/file", "manaul.tsv"))
    said = snakemake(done, "--configfile", str(ROOT / "config.yaml"), config, "-n", check=False)
    assert "corpora.tiny.train: manaul.tsv: no such file" in said and "Traceback" not in said


def test_a_mistake_in_the_configuration_is_reported_without_a_traceback(tmp_path):
    config = write_config(tmp_path, changed("experiments/tiny/bakcbone", "tiny"))
    said = snakemake(tmp_path, "--configfile", str(ROOT / "config.yaml"), config, "-n", check=False)
    assert "experiments.tiny.bakcbone: unknown key, did you mean 'backbone'" in said and "Traceback" not in said
