"""What the tests on a cluster share: what is run, the profile as a reader would edit it, Snakemake beside a test, and what Slurm says."""

import copy
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import yaml
from safetensors.torch import load_file
from test_workflow import ROOT, TINY, write_config

PROFILE = yaml.safe_load((ROOT / "slurm/config.yaml").read_text(encoding="utf-8"))
# a job is asked after once a second has passed, then ever less often
QUICK = ["--slurm-init-seconds-before-status-checks", "1"]
# several looks at the dev set, to be killed between
LOOKS = {"evaluate_every": 40, "bleu_sentences": 0, "log_every": 40}
# more memory than all else takes
LARGE = {**LOOKS, "pairs": 2500, "batch_tokens": 60000}


def configuration(*arms: str) -> dict:
    """The tiny experiment on a CPU. An arm that is no arm of it is a finetune phase, to be killed or, if named `large…`, to fill memory."""
    content = copy.deepcopy(TINY)
    content["run"]["arms"] = list(arms)
    for arm in set(arms) - content["arms"].keys():
        large = arm.startswith("large")
        content["arms"][arm] = [{"data": "task", "updates": 6 if large else 240, "training": LARGE if large else LOOKS}]
    return on_cpu(content)


def on_cpu(content: dict) -> dict:
    """The configuration for a cluster whose GPU is a fake."""
    experiment = content["experiments"]["tiny"]
    trained = [backbone["small"]["training"] for backbone in content["backbones"].values()]
    for block in (experiment["training"], experiment["decoding"], *trained):
        block["device"] = "cpu"
    experiment["representation"] = {"device": "cpu"}
    for analysis in content.get("analyses", {}).values():
        for stage in ("cka", "layerwise", "separability", "spectra"):
            analysis[stage] = analysis.get(stage, {}) | {"device": "cpu"}
    return content


def profile(folder: Path, **changes: dict | str) -> Path:
    """A copy of the shipped profile in `folder` with changes, one training thread among them; a block's go over the shipped ones."""
    content = copy.deepcopy(PROFILE)
    content["set-threads"]["finetune"] = 1
    for key, value in changes.items():
        key = key.replace("_", "-")
        if key == "finetune":
            content["set-resources"]["finetune"].update(value)
        elif isinstance(value, dict):
            content[key].update(value)
        else:
            content[key] = value
    folder.mkdir(parents=True)
    (folder / "config.yaml").write_text(yaml.safe_dump(content), encoding="utf-8")
    return folder


def command(folder: Path, arms: list[str], *arguments: str | Path) -> list[str]:
    """Snakemake's command line to finetune `arms` in `folder`."""
    models = [f"results/runs/tiny/{arm}/seed1/finetune/model" for arm in arms]
    configs = [str(ROOT / "config.yaml"), write_config(folder, configuration(*arms))]
    line = [sys.executable, "-m", "snakemake", "-s", ROOT / "Snakefile", "--directory", folder, *models, "--configfile", *configs]
    return [str(part) for part in (*line, *arguments)]


class Driver:
    """Snakemake in the background, in a process group of its own; what it says goes to a file."""

    def __init__(self, line: list[str], log: Path):
        self.log = log
        with open(log, "w", encoding="utf-8") as file:
            self.process = subprocess.Popen(
                line, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT, start_new_session=True
            )

    def said(self) -> str:
        return self.log.read_text(encoding="utf-8")

    def until(self, found: Callable[[], object], seconds: float = 240) -> object:
        """What `found` returns as soon as it returns something; fails when Snakemake ends before, or after `seconds`."""
        end = time.monotonic() + seconds
        while not (result := found()):
            ended = self.process.poll() is not None
            assert time.monotonic() < end and not (ended and not found()), self.said()[-6000:]
            time.sleep(0.05)
        return result

    def end(self, seconds: float = 400) -> int:
        """Wait for Snakemake and return its exit status."""
        self.until(lambda: self.process.poll() is not None, seconds)
        return self.process.returncode


@contextmanager
def driver(line: list[str], log: Path) -> Iterator[Driver]:
    """Snakemake beside the test; killed, if it is still there, at the end."""
    running = Driver(line, log)
    try:
        yield running
    finally:
        if running.process.poll() is None:
            os.killpg(running.process.pid, 9)
            running.process.wait()


def phase(folder: Path, arm: str) -> Path:
    return folder / "results/runs/tiny" / arm / "seed1/finetune"


def training_log(folder: Path, arm: str) -> str:
    return (folder / f"results/logs/training/tiny/{arm}.seed1.finetune.log").read_text(encoding="utf-8")


def has_checkpoint(folder: Path, arm: str, update: int = 80) -> bool:
    return bool(list(phase(folder, arm).glob(f"checkpoints/*/checkpoint-{update}/trainer_state.json")))


def same_weights(folder: Path, *arms: str) -> bool:
    one, other = (load_file(phase(folder, arm) / "model/model.safetensors") for arm in arms)
    return one.keys() == other.keys() and all(one[name].equal(other[name]) for name in one)


def slurm(*line: str) -> str:
    return subprocess.run(line, check=True, capture_output=True, text=True).stdout


def queue(job: str) -> list[tuple[str, str, str]]:
    """Number, state and reason of the waiting and running jobs whose comment has `job` in it."""
    lines = slurm("squeue", "--noheader", "--format=%i|%T|%r|%k").splitlines()
    return [tuple(line.split("|")[:3]) for line in lines if job in line.split("|")[3]]


def account_of(job: str = "") -> list[dict[str, str]]:
    """What the accounting has on the jobs whose comment has `job` in it, oldest first."""
    fields = "JobID,State,Partition,Account,ReqTRES,Timelimit,Comment"
    lines = [line.split("|") for line in slurm("sacct", "--allocations", "--parsable2", f"--format={fields}").splitlines()]
    rows = [dict(zip(lines[0], line, strict=True)) for line in lines[1:]]
    return [row for row in rows if job in row["Comment"]]
