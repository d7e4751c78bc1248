"""What a user reads when a run stops: real failing runs of a tiny workflow, and what Snakemake says of Slurm's jobs."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import warm
from configurations import changed, with_recipes
from tqdm import tqdm

from workflow_scripts.run.config import load
from workflow_scripts.run.digest import Failure, diagnose, digest, end_of, failures
from workflow_scripts.training.launching import ON_ONE_NODE

WORKFLOW = """
import sys
from workflow_scripts.run.digest import digest

rule all:
    input: expand("{kind}.out", kind=["killed", "bash", "memory", "late", "unforeseen", "input", "again"])

rule finetune:
    output: "killed.out"
    log: "killed.log"
    shell: "exec {sys.executable} -c 'import os; print(7, flush=True); os.kill(os.getpid(), 9)' > {log} 2>&1"

rule killed_under_a_shell:
    output: "bash.out"
    log: "bash.log"
    shell: "{sys.executable} -c 'import os; os.kill(os.getpid(), 9)' > {log} 2>&1; exit $?"

rule memory:
    output: "memory.out"
    log: "memory.log"
    shell: "(ulimit -v 400000; {sys.executable} -c 'bytes(1 << 30)') > {log} 2>&1"

rule late:
    output: "late.out"
    log: "late.log"
    shell: "echo done > {log}"

rule unforeseen:
    output: "unforeseen.out"
    log: "unforeseen.log"
    shell: "{sys.executable} -c '1 / 0' > {log} 2>&1"

rule input:
    output: "{kind,input}.out"
    log: "{kind}.log"
    shell: "echo first > {log}; echo 'error: x.tsv, line 3: no text; mend it' >> {log}; exit 1"

rule again:
    output: "again.out"
    log: "again.log"
    retries: 1
    resources: n=lambda w, attempt: attempt
    shell: "test {resources.n} = 2 && touch {output}"

onerror:
    print(digest(log, sys.argv[1:]), file=sys.stderr)
"""


@pytest.fixture(scope="module")
def end_of_run(tmp_path_factory) -> str:
    """The digest of a run in which seven jobs fail, and one the first time only."""
    folder = tmp_path_factory.mktemp("digest")
    (folder / "Snakefile").write_text(WORKFLOW)
    command = [warm.python(), "-m", "snakemake", "--cores", "2", "--keep-going", "--latency-wait", "1", "--directory", str(folder)]
    done = subprocess.run([*command, "-s", str(folder / "Snakefile")], capture_output=True, text=True)
    assert done.returncode == 1 and "Traceback" not in done.stderr.partition("────")[0], done.stderr
    return done.stderr[done.stderr.index("────") :]


@pytest.mark.parametrize(
    "job, lines",
    [
        ("finetune", ["why     killed", "change  let fewer jobs run at once (--cores), or set", "killed.log, which ends:", "│ 7"]),
        ("killed_under_a_shell", ["why     killed", "log     bash.log, which is empty"]),
        ("memory", ["why     out of memory", "│ MemoryError"]),
        ("late", ["why     its output files did not appear", "change  raise latency-wait", "│ done"]),
        ("unforeseen", ["why     an unexpected error", "│ ZeroDivisionError: division by zero"]),
        ("input (kind input)", ["why     bad input", "change  x.tsv, line 3: no text; mend it", "input.log, which ends:", "│ first"]),
    ],
)
def test_each_job_that_failed_is_named_with_why_and_what_to_change(end_of_run, job, lines):
    section = next(part for part in end_of_run.split("\n\n") if part.startswith(f"{job}\n"))
    assert all(line in section for line in lines), section
    assert section.count("x.tsv") <= 1


def test_how_many_failed_and_how_to_go_on(end_of_run):
    assert end_of_run.startswith("──── 6 jobs failed ────") and "again" not in end_of_run
    assert "To go on: snakemake --cores 2 --keep-going --latency-wait 1 --directory" in end_of_run


TOGETHER = """\
RuleException:
Command 'set -euo pipefail;  first > a.log' died with <Signals.SIGKILL: 9>.
RuleException:
Command 'set -euo pipefail;  second > b.log' returned non-zero exit status 1.
Error in rule a:
    message: None
    jobid: 1
    shell:
        first > a.log
        (command exited with non-zero exit code)
Error in rule b:
    message: None
    jobid: 2
    shell:
        second > b.log
        (command exited with non-zero exit code)
"""


def test_jobs_that_end_at_the_same_moment_keep_their_own_status():
    assert [failure.message for failure in failures(TOGETHER)] == ["died with <Signals.SIGKILL", "returned non-zero exit status 1"]


def test_an_interrupted_job_is_no_bug(tmp_path):
    log = tmp_path / "own.log"
    log.write_text("Traceback (most recent call last):\n  File x\nKeyboardInterrupt\n", encoding="utf-8")
    failure = failures(TOGETHER)[1]
    why, change = diagnose(failure._replace(logs=[str(log)]), [])
    assert why == "stopped from outside" and change.startswith("nothing")


SLURM = """\
[Sat Nov 21 21:32:36 2026]
rule finetune:
    input: results/backbones/tiny/model, results/corpora/tiny.en-de/train.en
    output: results/runs/tiny/csr/seed1/finetune/model
    log: {own}
    jobid: 35
    reason: Missing output files: results/runs/tiny/csr/seed1/finetune/model
    wildcards: experiment=tiny, arm=csr, seed=1
    threads: 4
    resources: tmpdir=<TBD>, mem_mb=32000, mem=32 GB, slurm_partition=gpu, runtime=1440, nodes=1, gpu=1
Job 35 has been submitted with SLURM jobid 32 (log: {slurm}).
[Sat Nov 21 21:40:01 2026]
Error in rule finetune:
    message: SLURM-job '32' failed, SLURM status is: '{status}'. Reason: Unknown.
    jobid: 35
    output: results/runs/tiny/csr/seed1/finetune/model
    log: {own}, {slurm} (check log file(s) for error details)
    shell:
        exec python -m workflow_scripts.training.training --settings '{{"checkpoint": "best"}}' > x 2>&1
        (command exited with non-zero exit code)
    external_jobid: 32
"""


@pytest.mark.parametrize(
    "status, own, slurm, why, way",
    [
        ("OUT_OF_MEMORY", "", "slurmstepd: error: Detected 1 oom_kill event", "out of memory", "finetune: mem_mb in slurm/"),
        ("FAILED", "", "error: Detected 1 oom-kill event(s) in StepId=32.0", "out of memory", "training.micro_batch_tokens"),
        ("FAILED", "", "slurmstepd-node: error: Exceeded job memory limit", "out of memory", "finetune: mem_mb in slurm/"),
        ("TIMEOUT", "update 5/10", "JOB 32 CANCELLED AT 2026-11-21 DUE TO TIME LIMIT", "the job's time was over", "finetune: runtime in"),
        ("FAILED", "not done: the job's time is nearly over: stopped after update 7", "", "the job's time was over", "from its checkpoint"),
        ("CANCELLED", "", "*** JOB 32 ON node CANCELLED AT 2026-11-21 ***", "stopped from outside", "nothing; the same command"),
        ("NODE_FAIL", "", "", "its node failed", "nothing; the same command"),
        ("PREEMPTED", "", "", "stopped from outside", "nothing"),
        ("FAILED", "torch.OutOfMemoryError: CUDA out of memory. Tried", "", "the GPU's memory did not suffice", "training.micro_batch"),
        (
            "FAILED",
            "error: /tmp/x: cannot be written: No space left on device; /tmp (temporary files) has 1.5 MB free; make room, or set TMPDIR",
            "",
            "the folder of temporary files is full",
            "set TMPDIR",
        ),
        ("FAILED", "OSError: [Errno 28] No space left on device", "", "the disk is full", "make room"),
        ("FAILED", "RuntimeError: [enforce fail at inline_container.cc:672] . unexpected pos 64 vs 0", "", "the disk is full", "make room"),
        ("FAILED", "error: training loss nan at update 5: training has diverged; lower it", "", "training diverged", "(experiments.tiny"),
        ("FAILED", "error: 'x' is neither here nor available from the Hugging Face hub", "", "the model is not there", "'x' is neither"),
        ("FAILED", "error: checkpoints: in use by process 5 on node", "", "another process trains", "in use by process 5"),
        ("FAILED", "error: a GPU was given (x), but ...; install a CUDA build of torch", "", "the GPU cannot be used", "a CUDA build"),
        ("FAILED", "bash: python: command not found", "", "a program or package is missing", "activate the environment"),
        ("FAILED", "", "", "not known", "look at the log"),
    ],
)
def test_what_slurm_and_a_job_say_is_understood(tmp_path, status, own, slurm, why, way):
    for name, content in (("own.log", own), ("32.log", slurm)):
        (tmp_path / name).write_text(content)
    log = tmp_path / "snakemake.log"
    log.write_text(SLURM.format(status=status, own=tmp_path / "own.log", slurm=tmp_path / "32.log"))
    said = digest([str(log)], ["--profile", "slurm"])
    assert "──── 1 job failed ────\n\nfinetune (experiment tiny, arm csr, seed 1)\n" in said
    assert f"why     {why}" in said and way in said, said
    assert "To go on: snakemake --profile slurm\n" in said


REFUSED = """\
    message: SLURM sbatch failed. The error message was '{said}'.
    sbatch call:
        sbatch --parsable --job-name crossgap_1 --comment rule_finetune_wildcards_tiny -A physics -p gpu --wrap="python -m snakemake"
For further error details see the cluster/cloud log and the log files of the involved rule(s).
"""


@pytest.mark.parametrize(
    "said, why, keys",
    [
        (
            "sbatch: error: invalid partition specified: gpu\nsbatch: error: Batch job submission failed: Invalid partition name specified",
            "invalid partition specified: gpu; Batch job submission failed: Invalid partition name specified",
            "slurm_partition",
        ),
        *(
            (f"sbatch: error: Batch job submission failed: {said}", f"Batch job submission failed: {said}", keys)
            for said, keys in (
                ("Invalid account or account/partition combination specified", "slurm_account"),
                ("Invalid qos specification", "slurm-qos"),
                ("Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)", "mem_mb, gpu, runtime, jobs"),
                ("Requested time limit is invalid (missing or exceeds some limit)", "runtime"),
                ("Memory specification can not be satisfied", "mem_mb"),
                ("Requested node configuration is not available", "mem_mb, gpu, gpu_model, set-threads"),
            )
        ),
    ],
)
def test_what_slurm_refuses_is_reported_with_its_words_and_the_key(tmp_path, said, why, keys):
    one = re.sub(r" +message: .*\n", lambda _: REFUSED.format(said=said), SLURM).format(own="a.log", slurm="b.log")
    log = tmp_path / "snakemake.log"
    log.write_text(one + one.replace("jobid: 35", "jobid: 36").replace("arm=csr", "arm=finetune"))
    printed = digest([str(log)], ["--profile", "slurm"])
    for arm in ("csr", "finetune"):
        assert (
            f"finetune (experiment tiny, arm {arm}, seed 1)\n  why     Slurm refused the job: {why}\n  change  {keys} of finetune in"
            in printed
        )


@pytest.mark.parametrize(
    "said, key",
    [
        ("Invalid GPU model format: nvidia_a100-sxm4-80gb. Expected format: '<name>' (e.g., 'tesla')", "gpu_model"),
        ("Invalid GRES format: gpu:1,nvme:5. Expected format: '<name>', '<name>:<number>' or (e.g., 'gpu', 'gpu:1')", "gres"),
        ("The --generic-resources-(GRES) option is not allowed in the 'slurm_extra' parameter. The generic resources", "slurm_extra"),
        ("The --quality-of-service option is not allowed in the 'slurm_extra' parameter. The quality of service is set", "slurm_extra"),
        ("The --memory option is not allowed in the 'slurm_extra' parameter. The memory is set", "slurm_extra"),
    ],
)
def test_what_the_plugin_refuses_is_reported_with_the_key(tmp_path, said, key):
    refused = f"    message: Job submission failed with exception: {said}For further error details see the cluster/cloud log\n"
    (tmp_path / "snakemake.log").write_text(re.sub(r" +message: .*\n", lambda _: refused, SLURM).format(own="a.log", slurm="b.log"))
    printed = digest([str(tmp_path / "snakemake.log")], ["--profile", "slurm"])
    assert f"\n  change  {key} of finetune in slurm/config.yaml" in printed


def test_a_failed_log_that_is_pasted_into_snakemakes_is_not_read_as_its_own(tmp_path):
    inner = SLURM.format(status="FAILED", own="c.log", slurm="d.log").replace("jobid: 35", "jobid: 0")
    pasted = f"Logfile b.log:\n{'=' * 80}\nSNAKEMAKE\n=========\n{inner}{'=' * 80}\n"
    once = SLURM.format(status="FAILED", own="a.log", slurm="b.log") + pasted
    assert [failure.logs for failure in failures(once)] == [["a.log", "b.log"]]
    assert not failures(once + "Trying to restart job 35.\n")


def test_a_job_that_succeeds_in_the_end_is_not_reported(tmp_path):
    once = SLURM.format(status="OUT_OF_MEMORY", own="a.log", slurm="b.log")
    assert len(failures(once)) == len(failures(once + "Trying to restart job 35.\n" + once)) == 1
    assert not failures(once + "Trying to restart job 35.\n")
    assert not failures(once + "Finished jobid: 35 (Rule: finetune)\n")


GROUP = """\
[Sat Nov 21 21:33:25 2026] Group job evaluation (jobs in lexicogr. order):
    [Sat Nov 21 21:33:25 2026]
    rule decoding:
        log: {decoding}
        jobid: 3
        reason: Missing output files: pages.hyp
        wildcards: experiment=tiny, arm=csr, seed=1, testset=pages
        resources: tmpdir=<TBD>, mem_mb=8000
    [Sat Nov 21 21:33:25 2026]
    rule scores:
        log: {scores}
        jobid: 5
        reason: Missing output files: pages.scores.json
        wildcards: experiment=tiny, arm=csr, seed=1, testset=pages
        resources: tmpdir=<TBD>, mem_mb=8000
[Sat Nov 21 21:35:25 2026]
    message: Error in group evaluation
    log: {slurm} (check log file(s) for error details)
    jobs:
        rule decoding:
            jobid: 3
            log: {decoding} (check log file(s) for error details)
        rule scores:
            jobid: 5
            log: {scores} (check log file(s) for error details)
    [Sat Nov 21 21:35:25 2026]
    Error in rule decoding:
        message: None
        jobid: 3
        log: {decoding} (check log file(s) for error details)
    [Sat Nov 21 21:35:25 2026]
    Error in rule scores:
        message: None
        jobid: 5
        log: {scores} (check log file(s) for error details)
"""


@pytest.mark.parametrize(
    "logs, nested, culprits",
    [
        (
            {"decoding": "done", "scores": "error: bad"},
            "Error in rule scores:\n    message: None\n    jobid: 0\n    log: {scores}\n",
            ["scores"],
        ),
        ({"decoding": "started"}, "slurmstepd: error: Detected 1 oom_kill event", ["decoding"]),
        ({}, "", ["decoding", "scores"]),
    ],
)
def test_of_a_group_the_job_that_failed_is_named(tmp_path, logs, nested, culprits):
    paths = {name: str(tmp_path / name) for name in ("decoding", "scores", "slurm")}
    for name, content in {**logs, "slurm": nested.format(**paths)}.items():
        (tmp_path / name).write_text(content)
    found = failures(GROUP.format(**paths))
    assert [failure.rule for failure in found] == culprits
    assert found[0].logs[1] == paths["slurm"] and found[0].wildcards["arm"] == "csr"


def test_a_group_that_is_tried_again_is_not_reported_and_its_number_is_no_jobs(tmp_path):
    once = GROUP.format(**{name: str(tmp_path / name) for name in ("decoding", "scores", "slurm")})
    again = "Trying to restart job 3c9f1a52-1111-4222-8333-444455556666.\n"
    assert not failures(once + again + once.partition("[Sat Nov 21 21:35:25 2026]")[0])
    assert [failure.rule for failure in failures(once + again)] == ["decoding", "scores"]


def test_a_group_that_slurm_refused_is_reported(tmp_path):
    refused = re.sub(r"( +message: Error in group .*\n) +log: .*\n", r"\1", GROUP)
    failed = failures(
        GROUP.replace("jobid: ", "jobid: 7") + "SLURM run ID: crossgap_1\n" + refused
    )  # an earlier group's log is not this one's
    assert [failure.logs for failure in failed[2:]] == [["{decoding}"], ["{scores}"]]
    assert diagnose(failed[3], ["--profile", "slurm"]) == (
        "Slurm refused the job of its group",
        "what `snakemake preflight --profile slurm` names in slurm/config.yaml",
    )


def test_many_failures_are_reported_in_short(tmp_path):
    log = tmp_path / "snakemake.log"
    one = SLURM.format(status="FAILED", own="a.log", slurm="b.log")
    log.write_text("".join(one.replace("jobid: 35", f"jobid: {n}").replace("seed=1", f"seed={n}") for n in range(9)))
    said = digest([str(log)], [])
    assert "9 jobs failed" in said and said.count("  why  ") == 6 and "and 3 more: finetune (experiment tiny, arm csr, seed 6); " in said


@pytest.mark.parametrize(
    "rule, wildcards, key",
    [
        ("backbone", {"backbone": "bible"}, "backbones.bible.small.training.micro_batch_tokens"),
        ("pretext", {"experiment": "e"}, "experiments.e.training.micro_batch_tokens"),
        ("representation_backbone", {"experiment": "e"}, "lower experiments.e.representation.batch_tokens"),
        ("decoding", {"experiment": "e"}, "lower experiments.e.decoding.batch_tokens"),
        ("mapping", {"lexicon": "l"}, "set-resources: mapping: mem_mb in /etc/lab/config.yaml"),
    ],
)
def test_the_key_to_change_is_the_jobs_own(rule, wildcards, key):
    why, way = diagnose(Failure(rule, wildcards, "SLURM status is: 'OUT_OF_MEMORY'", [], False), ["--profile=/etc/lab/", "-k"])
    assert why == "out of memory" and key in way


@pytest.mark.parametrize("recipe, task", [("inference", "classification"), ("labelling", "labelling")])
def test_micro_batch_is_named_for_the_jobs_that_heed_it_alone(recipe, task):
    config = load(with_recipes(recipe))
    name = next(name for name, experiment in config.experiments.items() if experiment.task == task)
    rules = re.findall(r"^rule (\w+):", Path("rules/head.smk").read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert len(rules) > 2
    for rule in rules:
        _, way = diagnose(Failure(rule, {"experiment": name}, "SLURM status is: 'OUT_OF_MEMORY'", [], False), [], config)
        assert (f"set experiments.{name}.{task}.micro_batch in" in way) == rule.endswith("_finetune"), (rule, way)


@pytest.mark.parametrize(
    "kind, key",
    [
        ("small", "set backbones.made.small.training.micro_batch_tokens"),
        ("continued", "set backbones.made.continued.training.micro_batch_tokens"),
        ("hub", None),
    ],
)
def test_the_key_of_a_backbone_is_that_of_its_kind(kind, key):
    block = {"hub": {"model": "somebody/mbart"}, "continued": {"from": "bible", "continued": {"text": {"de": "task", "en": "task"}}}}
    made = {"kind": kind, **block.get(kind, {"small": {"text": {"de": "task", "en": "task"}}})}
    config = load(changed("backbones/made", made))
    _, way = diagnose(Failure("backbone", {"backbone": "made"}, "SLURM status is: 'OUT_OF_MEMORY'", [], False), [], config)
    assert key in way if key else "backbones" not in way


def test_bars_of_progress_are_left_out_of_the_end_of_a_log(tmp_path):
    with open(tmp_path / "log", "w", encoding="utf-8") as log:
        for _ in tqdm(range(3), "Loading weights", file=log, mininterval=0):
            pass
        print("update 50/100  loss 3.1", file=log)
        bar = tqdm(total=3, desc="Writing", file=log, mininterval=0)
        bar.update(1)
        print("ValueError: a bad value, 100% | of it", file=log)  # which comes on the bar's own line
    assert end_of(str(tmp_path / "log"), 9) == ["update 50/100  loss 3.1", "ValueError: a bad value, 100% | of it"]


def test_a_run_that_stopped_without_a_failed_job():
    assert digest([], ["--cores", "2"]).startswith("──── the run stopped ────\n\nTo go on: snakemake --cores 2\n")


@pytest.mark.parametrize(
    "ending, why, lines",
    [
        ("sys.exit('error: training has diverged; lower it')", "training diverged", ["update 5/10", "error: training has diverged"]),
        ("os.kill(os.getpid(), 9)", "killed", ["update 5/10", "Signal 9 (SIGKILL) received"]),
    ],
)
def test_what_torchrun_adds_does_not_hide_why_one_process_ended(tmp_path, ending, why, lines):
    (tmp_path / "worker.py").write_text(
        f"import os, sys, time\nif os.environ['RANK'] == '0':\n    print('update 5/10', flush=True)\n    {ending}\ntime.sleep(60)\n"
    )
    launch = [sys.executable, "-m", "torch.distributed.run", *ON_ONE_NODE, "--nproc-per-node", "2", str(tmp_path / "worker.py")]
    with open(tmp_path / "log", "w") as log:
        assert subprocess.run(launch, stdout=log, stderr=log).returncode
    assert diagnose(Failure("finetune", {}, "SLURM status is: 'FAILED'", [str(tmp_path / "log")], False), [])[0].startswith(why)
    for line, wanted in zip(end_of(str(tmp_path / "log"), 2), lines, strict=True):
        assert line.startswith(wanted)


def test_a_machine_without_slurm_is_reported():
    said = "Job submission failed with exception: [Errno 2] No such file or directory: 'sacct'"
    why, way = diagnose(Failure("corpus", {}, said, [], False), ["--profile", "slurm"])
    assert why == "this machine has no Slurm" and "login node" in way


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("RuntimeError: CUDA failed with error out of memory", "the GPU's memory did not suffice"),
        ("RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling", "the GPU's memory did not suffice"),
        ("RuntimeError: DataLoader worker (pid 12) is killed by signal: Killed.", "out of memory"),
    ],
)
def test_memory_that_runs_out_has_many_names(tmp_path, said, why):
    (tmp_path / "log").write_text(f"Traceback (most recent call last):\n{said}\n")
    assert diagnose(Failure("decoding", {"experiment": "e"}, "exit status 1", [str(tmp_path / "log")], False), [])[0] == why
