"""What an experiment means, found once from the configuration."""

import dataclasses

import pytest
import yaml

from workflow_scripts.run.config import load
from workflow_scripts.tasks.plan import Plan, plans_of_run


@pytest.fixture(scope="module")
def config():
    with open("config.yaml", encoding="utf-8") as file:
        return load(yaml.safe_load(file))


def changed(config, **changes):
    """A configuration that is not checked, whose experiment has other settings."""
    block = dataclasses.replace(config.experiments["help-de-en"], **changes)
    return dataclasses.replace(config, experiments={**config.experiments, "help-de-en": block})


def test_it_knows_its_task_text_arms_seeds_and_languages(config):
    plan = Plan(config, "help-de-en")
    assert (plan.where, plan.folder, plan.corpus) == ("experiments.help-de-en", "results/runs/help-de-en", "help")
    assert plan.task.name == "translation" and plan.text is config.corpora["help"] and plan.trains
    assert plan.arms == config.run.arms and plan.seeds == config.run.seeds
    assert plan.languages == plan.trained_languages == ["de", "en"]
    assert plan.backbones == ["bible"] and plan.lexicons == ["unsupervised"] and plan.lexicon_corpus("unsupervised") == "help"
    assert [arm for arm, _ in plan.phases_of_arms(["csr", "finetune"])] == ["csr", "csr", "finetune"]
    assert plan.arms is plan.arms and plan.phases is plan.phases


def test_it_takes_some_of_the_runs_arms_and_seeds(config):
    of_run = dataclasses.replace(config, run=dataclasses.replace(config.run, seeds=[4, 2, 7]))
    plan = Plan(changed(of_run, arms=["mask", "finetune"], seeds=2), "help-de-en")
    assert plan.arms == ["finetune", "mask"] and plan.seeds == [4, 2]
    assert Plan(changed(of_run, seeds=[7]), "help-de-en").seeds == [7]


def test_what_is_not_defined_is_no_error_before_it_is_checked(config):
    plan = Plan(changed(config, corpus="none"), "help-de-en")
    assert plan.text is None and plan.phases_of("none") == []
    run = dataclasses.replace(config.run, experiments=["none", "help-de-en"])
    assert [plan.name for plan in plans_of_run(dataclasses.replace(config, run=run))] == ["help-de-en"]


def test_it_reads_and_learns_from_the_corpora_of_its_phases(config):
    arms = {arm: [dataclasses.replace(phase) for phase in phases] for arm, phases in config.arms.items()}
    arms["csr"][0].text = "books"
    plan = Plan(dataclasses.replace(changed(config, together_with=["more"]), arms=arms), "help-de-en")
    assert plan.corpora_read == ["books"] and plan.corpora_learnt == ["help", "more", "books"]
