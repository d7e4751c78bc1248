"""What experiments and backbones mean, found once from the configuration."""

import dataclasses

import pytest
import yaml

from workflow_scripts.run.config import load
from workflow_scripts.tasks.plan import Plans
from workflow_scripts.training.backbone import Backbone


@pytest.fixture(scope="module")
def config():
    with open("config.yaml", encoding="utf-8") as file:
        return load(yaml.safe_load(file))


def changed(config, **changes):
    """A configuration that is not checked, whose experiment has other settings."""
    block = dataclasses.replace(config.experiments["help-de-en"], **changes)
    return dataclasses.replace(config, experiments={**config.experiments, "help-de-en": block})


def test_it_knows_its_task_text_arms_seeds_and_languages(config):
    plan = Plans(config).experiments["help-de-en"]
    assert (plan.where, plan.folder, plan.corpus) == ("experiments.help-de-en", "results/runs/help-de-en", "help")
    assert plan.task.name == "translation" and plan.text is config.corpora["help"] and plan.trains
    assert plan.arms == config.run.arms and plan.seeds == config.run.seeds
    assert plan.languages == plan.trained_languages == ["de", "en"]
    assert (
        plan.backbones == [plan.plans.backbones["bible"]]
        and plan.lexicons == ["unsupervised"]
        and plan.lexicon_corpus("unsupervised") == "help"
    )
    assert [arm for arm, _ in plan.phases_of_arms(["csr", "finetune"])] == ["csr", "csr", "finetune"]
    assert plan.arms is plan.arms and plan.phases is plan.phases


def test_it_takes_some_of_the_runs_arms_and_seeds(config):
    of_run = dataclasses.replace(config, run=dataclasses.replace(config.run, seeds=[4, 2, 7]))
    plan = Plans(changed(of_run, arms=["mask", "finetune"], seeds=2)).experiments["help-de-en"]
    assert plan.arms == ["finetune", "mask"] and plan.seeds == [4, 2]
    assert Plans(changed(of_run, seeds=[7])).experiments["help-de-en"].seeds == [7]


def test_what_is_not_defined_is_no_error_before_it_is_checked(config):
    plan = Plans(changed(config, corpus="none")).experiments["help-de-en"]
    assert plan.text is None and plan.phases_of("none") == []
    run = dataclasses.replace(config.run, experiments=["none", "help-de-en"])
    assert [plan.name for plan in Plans(dataclasses.replace(config, run=run)).of_run] == ["help-de-en"]


def test_it_reads_and_learns_from_the_corpora_of_its_phases(config):
    arms = {arm: [dataclasses.replace(phase) for phase in phases] for arm, phases in config.arms.items()}
    arms["csr"][0].text = "books"
    plan = Plans(dataclasses.replace(changed(config, together_with=["more"]), arms=arms)).experiments["help-de-en"]
    assert plan.corpora_read == ["books"] and plan.corpora_learnt == ["help", "more", "books"]


def test_a_chain_ends_at_a_circle_and_at_what_is_not_defined(config):
    one, two, three = (Backbone(kind="continued", from_=name) for name in ("two", "one", "nothing"))
    made = {"one": one, "two": two, "three": three, "four": Backbone(kind="continued", from_="small"), "small": Backbone(kind="small")}
    plans = Plans(dataclasses.replace(config, backbones=made))
    assert {name: [link.name for link in backbone.chain] for name, backbone in plans.backbones.items()} == {
        "one": ["one", "two"],
        "two": ["two", "one"],
        "three": ["three"],
        "four": ["four", "small"],
        "small": ["small"],
    }
    assert plans.backbone("nothing").chain == [] and plans.backbones["four"].family is plans.backbones["small"].family


def test_the_model_of_an_arm_is_made_from_what_the_arm_starts_from(config):
    arms = config.arms | {"own": [dataclasses.replace(config.arms["finetune"][0], backbone="other")]}
    trained = {arm: Backbone(kind="arm", from_=f"help-de-en/{arm}/seed1/finetune") for arm in ("csr", "own")}
    backbones = config.backbones | trained | {"other": Backbone(kind="hub", model="a/b")}
    plans = Plans(dataclasses.replace(changed(config, backbone="csr"), arms=arms, backbones=backbones))
    assert [link.name for link in plans.backbones["own"].chain] == ["own", "other"]
    assert plans.backbones["csr"].made_of == plans.backbones["csr"] and plans.backbones["own"].origin.model == "a/b"
    assert plans.backbones_used == [plans.backbones["csr"]] and plans.needed == plans.of_run
