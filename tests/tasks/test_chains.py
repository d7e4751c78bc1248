"""Arms as chains of phases: names, starts, lengths, points of a grid, choices, and a chain that is killed in its middle."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
import warm
from configurations import changed
from phases import TINY, assert_same, phase_files
from safetensors.torch import load_file
from snakemake.iocontainers import Wildcards

from workflow_scripts.run import arms, bridges, jobs
from workflow_scripts.run.config import dumped, load, read
from workflow_scripts.run.jobs import Job
from workflow_scripts.stage import InputError, read_json
from workflow_scripts.tasks.plan import Plans
from workflow_scripts.training.choice import chosen_for, main

CHAIN = [{"data": "mask", "updates": 700}, {"data": "codeswitch", "updates": 2100}, {"data": "task", "updates": 1400}]


def chained(*phases, **more):
    """The default configuration with the arm `chain` beside its baseline."""
    raw = changed("arms/chain", [dict(phase) for phase in phases or CHAIN])
    raw["run"]["arms"] = ["finetune", "chain"]
    raw["experiments"]["help-de-en"] |= more
    return raw


def of(phase, arm="chain", **more):
    return Wildcards(fromdict={"experiment": "help-de-en", "arm": arm, "seed": "1", "phase": phase, **more})


@pytest.mark.parametrize("before", [0, 1, 2, 3])
def test_phases_are_numbered_where_there_are_several(before):
    noises = ["mask", "codeswitch", "random"][:before]
    updates = [100] * before + [4200 - 100 * before]
    config = load(chained(*({"data": data, "updates": n} for data, n in zip([*noises, "task"], updates, strict=True))))
    names = [phase.name for phase in config.arms["chain"]]
    assert names == (
        [["finetune"], ["pretext", "finetune"]][before] if before < 2 else [*(f"{i + 1}-{n}" for i, n in enumerate(noises)), "finetune"]
    )
    assert [Job(Plans(config), of(name)).phase().data for name in names] == [*noises, "task"]


def test_a_noise_may_stand_twice():
    config = load(chained({"data": "mask", "updates": 100}, {"data": "mask", "updates": 100}, {"data": "task", "updates": 4000}))
    assert [phase.name for phase in config.arms["chain"]] == ["1-mask", "2-mask", "finetune"]
    assert {phase.noised for phase in config.arms["chain"][:2]} == {"mask"}
    batch = config.experiments["help-de-en"].training.batch_tokens
    assert bridges.tokens(Job(Plans(config), of("1-mask", noise="mask"))) == 100 * batch


def test_each_phase_starts_from_the_one_before(tmp_path):
    config = load(chained())
    (tmp_path / "configuration.json").write_text(dumped(config), encoding="utf-8")
    for each in (config, read(tmp_path / "configuration.json")):
        run = "results/runs/help-de-en/chain/seed1"
        backbone = arms.phase_start(Job(Plans(each), of("finetune", "finetune")))
        starts = [arms.phase_start(Job(Plans(each), of(name))) for name in ("1-mask", "2-codeswitch", "finetune")]
        assert "backbones" in backbone and starts == [backbone, f"{run}/1-mask/model", f"{run}/2-codeswitch/model"]
        assert bridges.text(Job(Plans(each), of("2-codeswitch")))["noised"].endswith("/help-de-en/codeswitch/seed1")


@pytest.mark.parametrize("place", [0, 1, 2])
def test_updates_are_equal_over_the_whole_chain(place):
    load(chained())
    phases = [dict(phase) for phase in CHAIN]
    phases[place]["updates"] += 1
    with pytest.raises(InputError, match=r"all arms of an experiment need the same number of updates in all.*'chain': '4201 updates'"):
        load(chained(*phases))


@pytest.mark.parametrize("place", [1, 2])
def test_no_later_phase_begins_anew(place):
    phases = [dict(phase) for phase in CHAIN]
    phases[0]["start"] = "scratch"
    config = load(chained(*phases))
    assert arms.from_scratch(Job(Plans(config), of("1-mask"))) and not arms.from_scratch(Job(Plans(config), of("2-codeswitch")))
    phases[place]["start"] = "scratch"
    with pytest.raises(InputError, match=r"arms.chain.start: .* would begin anew, without what the phase before it has learnt"):
        load(chained(*phases))


@pytest.mark.parametrize("phases", [CHAIN[:2], [*CHAIN, CHAIN[0]], [CHAIN[2], CHAIN[2]]])
def test_a_chain_ends_with_its_only_task_phase(phases):
    raw = chained()
    raw["arms"]["chain"] = [dict(phase) for phase in phases]
    with pytest.raises(InputError, match=r"arms.chain: an arm ends with its one `data: task` phase"):
        load(raw)


def test_a_phase_that_an_arm_has_not_is_refused():
    config = load(chained())
    for name, noise in (("pretext", "mask"), ("1-mask", "released.pieces")):
        with pytest.raises(InputError, match="is asked for, which is not defined"):
            jobs.check_names(config, of(name, noise=noise))
    jobs.check_names(config, of("1-mask", noise="mask"))
    jobs.check_names(config, of("1-mask", arm="chain.grid1"))


def test_points_that_differ_in_later_phases_share_those_before():
    """The first phase has a learning rate of its own, so that the grid says nothing of it."""
    phases = [dict(phase) for phase in CHAIN]
    phases[0]["training"] = {"learning_rate": 1e-3}
    raw = chained(*phases)
    raw["experiments"]["help-de-en"]["training"] = {**raw["experiments"]["help-de-en"].get("training", {}), "learning_rate": [1e-4, 5e-4]}
    config = load(raw)
    starts = {
        (name, n): arms.phase_start(Job(Plans(config), of(name, f"chain.grid{n}"))) for name in ("2-codeswitch", "finetune") for n in (0, 1)
    }
    run = "results/runs/help-de-en/chain.grid{}/seed1"
    assert starts["2-codeswitch", 0] == starts["2-codeswitch", 1] == f"{run.format(0)}/1-mask/model"
    assert [starts["finetune", n] for n in (0, 1)] == [f"{run.format(n)}/2-codeswitch/model" for n in (0, 1)]
    # the arm itself goes on from its own
    assert arms.phase_start(Job(Plans(config), of("2-codeswitch"))) == "results/runs/help-de-en/chain/seed1/1-mask/model"


def put(path, **content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"seed": 3, "diverged": "", "settings": {"learning_rate": 1}, **content}), encoding="utf-8")
    return path


def test_a_choice_has_all_phases_of_a_chain(tmp_path):
    first, second = tmp_path / "chain.grid0/seed3", tmp_path / "chain.grid1/seed3"
    put(first / "1-mask/training.json", start="backbones/small/model", checkpoints=str(first / "1-mask/checkpoints/h"))
    reports = []
    for run, bleu in ((first, 1.0), (second, 2.0)):
        shared = str(first / "1-mask/model")
        put(run / "2-codeswitch/training.json", start=shared, checkpoints=str(run / "2-codeswitch/checkpoints/h"))
        about = {"start": str(run / "2-codeswitch/model"), "checkpoints": str(run / "finetune/checkpoints/h")}
        reports.append(put(run / "finetune/training.json", **about, handed_on={"updates": [9], "dev_bleu": bleu, "dev_loss": 1.0}))
    main(tuple(reports), tmp_path / "choice.json", swept=("learning_rate",))
    choice = read_json(tmp_path / "choice.json")
    assert choice["chosen"] == 1 and {*choice["phases"]} == {"1-mask", "2-codeswitch", "finetune"}
    own = tmp_path / "own"
    assert chosen_for(tmp_path / "choice.json", "1-mask", 3, own) == ({"learning_rate": 1}, first / "1-mask/checkpoints")
    assert chosen_for(tmp_path / "choice.json", "2-codeswitch", 3, own)[1] == second / "2-codeswitch/checkpoints"
    assert chosen_for(tmp_path / "choice.json", "1-mask", 4, own)[1] == own
    with pytest.raises(InputError, match="nothing was chosen for a phase 'pretext'; it has finetune, 2-codeswitch, 1-mask"):
        chosen_for(tmp_path / "choice.json", "pretext", 3, own)


def test_a_chain_that_is_killed_in_its_middle_goes_on(tmp_path):
    """Its second phase, by hand as the rule calls it: a killed one that goes on ends where one ends that nobody kills."""
    folder, model = phase_files(tmp_path)
    settings = {**TINY, "updates": 60, "evaluate_every": 4, "checkpoint": "last", "loss_every": 0}
    choice = put(folder / "choice.json", phases={"2-mask": {"settings": {"learning_rate": 4e-3}, "checkpoints": "x"}})

    def command(out, start, **more):
        given = {
            "start": start,
            "noised": folder / "noised",
            "model": out / "model",
            "curve": out / "curve.tsv",
            "report": out / "training.json",
        }
        given |= {"checkpoints": out / "checkpoints", "threads": 1, "settings": json.dumps({**settings, **more})}
        flags = [str(part) for name, value in given.items() for part in (f"--{name}", value)]
        chain = ["--phase", "2-mask", "--choice", str(choice)] if start != model else []
        return [warm.python(), "-m", "workflow_scripts.training.training", "restore", "--languages", "de", "en", *chain, *flags]

    assert warm.run(command(folder / "1-mask", model, updates=6)).returncode == 0
    before = folder / "1-mask/model"
    out = folder / "killed"
    process = subprocess.Popen([sys.executable, *command(out, before)[1:]], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while not [*out.glob("checkpoints/*/checkpoint-*")]:
        assert process.poll() is None
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert not (out / "model").exists()
    done = warm.run(command(out, before))
    assert done.returncode == 0, done.stderr
    whole = folder / "whole"
    assert warm.run(command(whole, before)).returncode == 0
    report = read_json(out / "training.json")
    assert report["start"] == str(before) and report["settings"]["learning_rate"] == 4e-3
    assert_same(*(load_file(each / "model/model.safetensors") for each in (out, whole)))
