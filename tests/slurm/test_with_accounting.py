"""The whole run through the shipped profile, and what goes wrong on a cluster."""

import copy
import os
import re
import signal
import subprocess
from collections import Counter
from html import unescape

from runs import (
    PROFILE,
    QUICK,
    account_of,
    command,
    configuration,
    driver,
    has_checkpoint,
    on_cpu,
    phase,
    profile,
    queue,
    same_weights,
    slurm,
    training_log,
)
from test_plugin_run import CONTENT, lay_out_plugins
from test_workflow import ROOT, lay_out, snakemake, write_config

CLUSTER = "accounting"

TIME_LIMIT = re.compile(r"(?:(\d+)-)?(\d+):(\d+):\d+")


def asked_for(job):
    """What a job asked Slurm for: partition, GPUs, CPUs, MB and minutes."""
    tres = dict(part.split("=") for part in job["ReqTRES"].split(","))
    days, hours, minutes = (int(part or 0) for part in TIME_LIMIT.fullmatch(job["Timelimit"]).groups())
    memory = int(tres["mem"].removesuffix("M"))
    return job["Partition"], int(tres.get("gres/gpu", 0)), int(tres["cpu"]), memory, days * 1440 + hours * 60 + minutes


def profile_asks_for(rule):
    """The same of a job's first attempt, as the profile says it."""
    resources = {**PROFILE["default-resources"], **PROFILE["set-resources"].get(rule, {})}
    memory = eval(resources["mem_mb"], {"attempt": 1})
    return resources["slurm_partition"], resources.get("gpu", 0), PROFILE["set-threads"].get(rule, 1), memory, resources["runtime"]


def test_the_shipped_profile_runs_it_to_the_report(cluster, local, tmp_path):
    folder = lay_out(tmp_path / "run")
    config = write_config(folder, configuration("finetune", "csr"))
    found = snakemake(folder, "preflight", "--profile", "slurm", *QUICK, "--configfile", str(ROOT / "config.yaml"), config, check=False)
    assert re.search(r"^ok +Slurm: gpu can take .*\bfinetune\b", found, flags=re.M) and "WRONG  Slurm" not in found, found
    snakemake(folder, "--profile", "slurm", *QUICK, "--configfile", str(ROOT / "config.yaml"), config)
    assert (folder / "results/report.html").stat().st_size > 10_000
    assert (folder / "results/scores.tsv").read_text() == (local / "results/scores.tsv").read_text()
    jobs = account_of()
    assert {job["State"] for job in jobs} == {"COMPLETED"}
    named = [(job["Comment"].removeprefix("rule_").partition("_wildcards_tiny")[0], asked_for(job)) for job in jobs]
    grouped = {name: asked for name, asked in named if name.split(".")[0] == "significance"}
    single = Counter(rule for rule, _ in named if rule not in grouped)
    assert single == {
        **{"held_out": 2, "corpus": 1, "embeddings": 2, "mapping": 1, "lexicon": 1, "codeswitch": 1, "backbone": 1, "pretext": 1},
        **{"finetune": 2, "decoding": 2, "scores": 3, "word_accuracy": 2, "frequencies": 1},
        **{"representation": 3, "representation_backbone": 1},
    }
    assert all(asked == profile_asks_for(rule) for rule, asked in named if rule in single)
    # rules of seconds share a job, and the report needs none
    one = profile_asks_for("significance")
    assert grouped.pop("significance.tiny.pages_significance_significance_over_seeds") == (*one[:-1], 2 * one[-1])
    assert not grouped


def test_plugins_of_all_kinds_run_to_the_report(cluster, tmp_path):
    """Files in the reader's folder, which each job loads on its node."""
    folder = lay_out_plugins(tmp_path / "plugins")
    config = write_config(folder, on_cpu(copy.deepcopy(CONTENT)))
    snakemake(folder, "--profile", "slurm", *QUICK, "--configfile", str(ROOT / "config.yaml"), config)
    page = unescape((folder / "results/report.html").read_text(encoding="utf-8"))
    assert "Does word order alone help? order against the baseline, finetune" in page and "adapter BitFit" in page
    jobs = [job for job in account_of() if "tiny_order" in job["Comment"] or "tiny_other" in job["Comment"]]
    assert len(jobs) >= 4 and {job["State"] for job in jobs} == {"COMPLETED"}


def test_jobs_wait_for_a_drained_node_and_ask_for_the_readers_account_and_gpus(cluster, whole, tmp_path):
    account, gpus = {"slurm_account": "project"}, {"gpu": 2, "gpu_model": "fake"}
    edited = profile(tmp_path / "profile", default_resources=account, finetune=gpus)
    slurm("scontrol", "update", "NodeName=node", "State=drain", "Reason=test")
    try:
        with driver(command(whole, ["drained"], "--profile", edited, *QUICK), tmp_path / "log") as run:
            run.until(lambda: [row for row in queue("drained") if row[1] == "PENDING"])
            slurm("scontrol", "update", "NodeName=node", "State=resume")
            assert run.end() == 0, run.said()
    finally:
        subprocess.run(["scontrol", "update", "NodeName=node", "State=resume"])
    (job,) = account_of("drained")
    assert job["State"] == "COMPLETED" and job["Account"] == "project" and "gres/gpu:fake=2" in job["ReqTRES"]
    assert same_weights(whole, "whole", "drained")


def test_a_cancelled_job_goes_on_from_its_checkpoint(cluster, whole, tmp_path):
    edited = profile(tmp_path / "profile")
    with driver(command(whole, ["cancelled"], "--profile", edited, *QUICK), tmp_path / "log") as run:
        run.until(lambda: has_checkpoint(whole, "cancelled"))
        slurm("scancel", *(number for number, *_ in queue("cancelled")))
        assert run.end() == 0, run.said()
    assert [job["State"].split()[0] for job in account_of("cancelled")] == ["CANCELLED", "COMPLETED"]
    assert "not done: SIGTERM: stopped after update" in run.said() and "continuing from" in training_log(whole, "cancelled")
    assert same_weights(whole, "whole", "cancelled")


def test_a_job_that_is_killed_at_its_time_limit_goes_on(cluster, whole, tmp_path):
    edited = profile(tmp_path / "profile", finetune={"runtime": 1})
    with driver(command(whole, ["late"], "--profile", edited, *QUICK), tmp_path / "log") as run:
        run.until(lambda: has_checkpoint(whole, "late"))
        # it stands still, as on a file system that hangs, until its minute is over
        slurm("scancel", "--signal=STOP", *(number for number, *_ in queue("late")))
        assert run.end() == 0, run.said()
    first, *others = account_of("late")
    assert first["State"] == "TIMEOUT" and others[-1]["State"] == "COMPLETED"
    assert {job["Timelimit"] for job in (first, *others)} == {"00:01:00"}
    assert same_weights(whole, "whole", "late")


def test_a_job_out_of_memory_is_tried_with_more_and_in_the_end_names_what_to_raise(cluster, whole, tmp_path):
    memory = "1400 * (attempt ** 2 if wildcards.arm == 'large' else 1)"
    edited = profile(tmp_path / "profile", finetune={"mem_mb": memory}, slurm_status_command="sacct")
    with driver(
        command(whole, ["large", "large-starved"], "--profile", edited, "--preemptible-retries", "3", *QUICK), tmp_path / "log"
    ) as run:
        assert run.end() == 1, run.said()
    starved = account_of("large-starved")
    grown = [job for job in account_of("large") if job not in starved]
    assert [asked_for(job)[3] for job in grown] == [1400, 5600] and grown[-1]["State"] == "COMPLETED"
    assert len(starved) == 4
    assert not (phase(whole, "large-starved") / "model").exists()
    said = run.said()
    assert said.count("slurmstepd-node: error: Exceeded job memory limit") >= 3 and "Error in rule finetune" in said
    assert "attempt 3 left no checkpoint after update 0 (killed, for want of memory or time, or as its node failed: raise mem_mb" in said
    assert (
        "finetune (experiment tiny, arm large-starved, seed 1)\n  why     the attempts before it ended in the same way as this one would\n"
        in said
    )
    assert "raise mem_mb" in said[said.index("────") :]


def test_a_new_driver_waits_for_the_jobs_of_a_killed_one(cluster, whole, tmp_path):
    line = command(whole, ["orphaned"], "--profile", profile(tmp_path / "profile"), *QUICK)
    with driver(line, tmp_path / "first.log") as first:
        first.until(lambda: has_checkpoint(whole, "orphaned"))
        ((orphan, *_),) = queue("orphaned")
        slurm("scancel", "--signal=STOP", orphan)
        os.killpg(first.process.pid, signal.SIGKILL)
    with driver(line, tmp_path / "locked.log") as locked:
        assert locked.end() == 1 and "Directory cannot be locked" in locked.said()
    with driver([*line, "--unlock"], tmp_path / "unlock.log") as unlock:
        assert unlock.end() == 0
    with driver(line, tmp_path / "second.log") as second:
        # refused, and tried again
        second.until(lambda: re.search(rf"in use by process \d+ on \S+, Slurm job {orphan},", second.said()))
        slurm("scancel", orphan)
        assert second.end() == 0, second.said()
    assert same_weights(whole, "whole", "orphaned")
