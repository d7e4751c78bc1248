"""Which jobs go first: what the first answer needs, before the controls."""

import pytest
from configurations import changed, job

from workflow_scripts.run import urgency
from workflow_scripts.run.config import load
from workflow_scripts.tasks.plan import Plans


def run(**changes):
    """The default configuration with the run's `changes`."""
    raw = changed("run/seeds", [1, 2])
    raw["run"] |= changes
    return load(raw)


def of_demo(config, seed="1", **wildcards):
    """A job of the demo."""
    return job(config, experiment="help-de-en", seed=seed, **wildcards)


@pytest.mark.parametrize(
    ("arms", "first"),
    [
        (["finetune", "csr", "mask", "random"], ["finetune", "csr"]),
        (["finetune", "mask", "random", "csr"], ["finetune", "csr"]),
        (["finetune", "scratch"], ["finetune", "scratch"]),
        (["csr", "mask"], ["csr", "mask"]),
        (["finetune"], ["finetune"]),
    ],
)
def test_the_first_answer_needs_the_baseline_and_an_arm_that_is_no_control(arms, first):
    assert urgency.first_arms(Plans(run(arms=arms)).experiments["help-de-en"]) == first


def test_an_experiment_that_only_trains_what_others_start_from_has_no_answer():
    raw = changed("run/experiments", ["after"])
    raw["run"] |= {"arms": ["finetune"]}
    raw["backbones"]["restored"] = {"kind": "arm", "from": "help-de-en/csr/seed1/pretext"}
    raw["experiments"] |= {"after": {"like": "help-de-en", "backbone": "restored", "arms": ["finetune"]}}
    raw["experiments"]["help-de-en"]["arms"] = ["csr"]
    config = load(raw)
    first = [urgency.first_arms(Plans(config).experiments[name]) for name in ("help-de-en", "after")]
    assert first == [[], ["finetune"]]
    assert urgency.of_training(of_demo(config, arm="csr")) == urgency.TRAINING


def test_they_go_before_the_controls_and_the_first_seed_before_the_others():
    config = run()
    of = {
        (arm, seed): urgency.of_training(of_demo(config, seed, arm=arm))
        for arm in ("finetune", "csr", "csr.grid1", "mask", "random")
        for seed in ("1", "2")
    }
    assert of["finetune", "1"] == of["csr", "1"] == of["csr.grid1", "1"] > of["finetune", "2"] == of["csr", "2"]
    assert of["csr", "2"] > of["mask", "1"] == of["random", "2"] == urgency.TRAINING
    scores = [urgency.of_score(of_demo(config, arm=arm)) for arm in ("csr", "mask", "trivial")]
    assert scores[0] > urgency.TRAINING > scores[1] == scores[2] == urgency.MEASURING
    noises = [urgency.of_noise(of_demo(config, noise=noise)) for noise in ("codeswitch", "mask")]
    assert noises == [of["csr", "1"], urgency.TRAINING]
    assert of["csr", "1"] < urgency.SHARED
