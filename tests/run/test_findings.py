"""What a configuration says by itself that may be meant otherwise."""

from configurations import DEFAULT, changed, demo, planned

from workflow_scripts.run import config, findings


def test_an_experiment_that_is_defined_but_not_run_is_noted():
    raw = changed("experiments/mine", {"like": "help-de-en"})
    said = [str(finding) for finding in findings.experiments(config.load(raw))]
    assert said == ["note   run.experiments: mine is defined, but not run; run is help-de-en"]
    # config.yaml's own are there with every recipe
    raw["run"]["experiments"] = ["mine"]
    assert [str(finding) for finding in findings.experiments(config.load(raw))] == ["ok     run.experiments: mine"]


def test_what_a_later_selection_costs_is_noted_before_the_first_run():
    raw = changed("experiments/mine", {"like": "help-de-en"})
    raw["experiments"]["other"] = {"like": "help-de-en", "backbone": "second"}
    raw["backbones"]["second"] = {"like": "bible"}
    assert not list(findings.left_out(planned(DEFAULT)))
    (note,) = findings.left_out(planned(raw))
    assert note.said.startswith("leaves out mine, also on backbone bible.")
    assert "add one later, and 4 trainings are made anew" in note.said
    raw["run"]["experiments"] = ["help-de-en", "mine"]
    assert not list(findings.left_out(planned(raw)))


def test_an_experiment_that_asks_for_more_seeds_than_the_run_has_is_noted():
    said = [str(finding) for finding in findings.few_seeds(demo(changed("experiments/help-de-en/seeds", 3)))]
    assert said == ["note   experiments.help-de-en.seeds: 3, but run.seeds has 1; name more of them there"]
    assert not list(findings.few_seeds(demo(changed("experiments/help-de-en/seeds", 1))))


def test_a_warmup_that_does_not_end_is_noted():
    notes = [*findings.long_warmups(demo(changed("experiments/help-de-en/training/warmup_updates", 1400)))]
    # not of the phases of 2,800 and 4,200 updates
    assert len(notes) == 3 and all("1,400: the learning rate still rises at the last of 1,400 updates" in note.said for note in notes)
    assert not [*findings.long_warmups(demo(DEFAULT))]


def test_updates_beside_those_of_the_arms_are_noted():
    (note,) = findings.unread_updates(demo(changed("experiments/help-de-en/training/updates", 100)))
    assert note.about == "experiments.help-de-en.training.updates" and note.said.startswith("100: is not read; a phase of an arm says")
    assert not [*findings.unread_updates(demo(DEFAULT))]


def test_batches_that_are_shorter_than_a_row_may_be_are_noted():
    raw = changed("experiments/help-de-en/training/batch_tokens", 100)
    raw["backbones"]["bible"]["small"]["training"]["batch_tokens"] = 127
    raw["arms"]["csr"][0]["training"]["max_length"] = 50
    notes = {finding.about: finding.said for finding in findings.short_batches(planned(raw))}
    assert notes.keys() == {f"{where}.training.batch_tokens" for where in ("experiments.help-de-en", "backbones.bible.small")}
    assert notes["experiments.help-de-en.training.batch_tokens"].startswith("100 is less than max_length, 128, and a row")


def test_the_rate_of_a_small_model_is_noted_for_a_published_one():
    raw = changed("backbones/bible", {"kind": "hub", "model": "facebook/mbart-large-cc25"})
    (note,) = findings.high_learning_rates(planned(raw))
    assert str(note).startswith("note   experiments.help-de-en.training.learning_rate: 0.002 is for small models")
    raw["experiments"]["help-de-en"]["training"]["adapter"] = {"kind": "lora"}  # which wants such rates
    assert not [*findings.high_learning_rates(planned(raw))]
    del raw["experiments"]["help-de-en"]["training"]["adapter"]
    raw["experiments"]["help-de-en"]["training"]["learning_rate"] = 1e-4
    assert not [*findings.high_learning_rates(planned(raw))]
    raw["arms"]["csr"][0]["training"]["learning_rate"] = 1e-3
    (note,) = findings.high_learning_rates(planned(raw))
    assert note.about == "arms.csr.training.learning_rate"
    assert not [*findings.high_learning_rates(planned(DEFAULT))]
