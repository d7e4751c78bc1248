"""What the jobs between a model and its task read: noised text, text by an objective, and text of a phase's own."""

import json

import pytest
from configurations import changed, classified
from configurations import job as job_of

from workflow_scripts.run import arms, backbone_inputs, bridges, text_inputs
from workflow_scripts.run.config import load
from workflow_scripts.run.findings import used_corpora
from workflow_scripts.run.uses import paths_used

BOOKS = {**changed("run/seeds", [1])["corpora"]["help"], "languages": ["en", "de"]}
TASK = {"task": {"data": "task", "updates": 4000}, "head": {"data": "task", "epochs": 10}}
ENCODER = {"kind": "small", "family": "xlmr", "small": classified()["backbones"]["bible"]["small"]}


def first_job(raw, task, *phases, **experiment):
    """A job of the first of these phases, which are a chain."""
    name = raw["run"]["experiments"][0]
    raw["arms"]["chain"] = [*phases, TASK[task]]
    raw["experiments"][name] |= {"arms": ["chain"], **experiment}
    raw["run"]["arms"] = ["chain"]
    raw["corpora"]["books"] = BOOKS
    config = load(raw)
    first = config.arms["chain"][0]
    noise = {"noise": first.noised} if first.restores else {}
    return job_of(config, experiment=name, arm="chain", seed="1", phase=first.name, **noise)


def files(corpus, part, *codes):
    return [f"results/corpora/{corpus}/{part}.{code}" for code in codes]


def test_an_objective_reads_the_text_itself():
    own = {"direction": "many-to-one", "pivot": "en"}
    job = first_job(changed("run/seeds", [1]), "task", {"data": "translation", "updates": 200, "objective": own})
    assert bridges.command(job) == ["learn", "--objective", "translation", "--objective-settings", json.dumps(own)]
    assert bridges.text(job) == {part: files("help.de-en", part, "de", "en") for part in ("train", "dev")}
    assert bridges.languages(job) == ["de", "en"] and bridges.with_documents(job) == ""


@pytest.mark.parametrize(("data", "command"), [("denoising", ["learn", "--objective", "denoising"]), ("mask", ["restore"])])
def test_a_text_of_its_own_is_read_in_its_own_order(data, command):
    job = first_job(changed("run/seeds", [1]), "task", {"data": data, "text": "books", "updates": 200})
    assert bridges.command(job) == command and job.w.phase == "pretext"
    if data == "mask":
        assert bridges.text(job) == {"noised": "results/codeswitch/help-de-en/mask@books/seed1"}
        assert [bridges.side(job, "dev", side) for side in (0, 1)] == files("books.en-de", "dev", "en", "de")
        assert bridges.sides(job) == ["en", "de"] and bridges.languages(job) == ["de", "en"]
    else:
        assert bridges.text(job)["train"] == files("books.en-de", "train", "en", "de")
        assert bridges.languages(job) == ["en", "de"]


def test_a_lexicon_switches_each_side_of_the_text_into_the_other():
    job = first_job(changed("run/seeds", [1]), "task", {"data": "codeswitch", "text": "books", "updates": 200})
    folder = "results/lexicons/help.de-en/unsupervised"
    assert bridges.noise_sources(job) == {"lexicon_ab": f"{folder}/en-de.tsv", "lexicon_ba": f"{folder}/de-en.tsv"}


def test_the_run_knows_of_the_text_and_holds_the_tests_out_of_it():
    job = first_job(changed("run/seeds", [1]), "task", {"data": "denoising", "text": "books", "updates": 200})
    assert used_corpora(job.plans) == ["help", "books"]
    assert any(where.startswith("corpora.books") for where, _ in paths_used(job.plans))
    out = text_inputs.others_held_out(job_of(job.plans.config, corpus="books", a="en", b="de"), "a")
    assert {*files("help.de-en", "dev", "de", "en"), *files("help.de-en", "test/pages", "de", "en")} <= {*out}


def test_a_task_with_labels_reads_its_own_text_or_the_side_in_its_language():
    job = first_job(classified(), "head", {"data": "denoising", "updates": 10})
    assert bridges.text(job)["train"] == ["results/labelled/modules/train.en"]
    assert bridges.languages(job) == ["en"]
    job = first_job(classified(), "head", {"data": "denoising", "text": "books", "updates": 10})
    assert bridges.text(job)["dev"] == files("books.en-de", "dev", "en", "de")
    assert bridges.languages(job) == ["en", "de"]
    job = first_job(classified(), "head", {"data": "codeswitch", "text": "books", "updates": 10})
    assert [bridges.one_side(job, "train")] == files("books.en-de", "train", "en")
    assert bridges.languages(job) == ["en"]
    assert bridges.pairs_flag(job) == ""


@pytest.mark.parametrize("data", ["mlm", "veco"])
def test_an_encoder_guesses_words_before_a_head(data):
    raw = classified("backbones/encoder", ENCODER)
    job = first_job(raw, "head", {"data": data, "text": "books", "updates": 10}, backbone="encoder")
    of_encoder = job_of(job.plans.config, backbone="encoder")
    assert backbone_inputs.encoder_will_do(of_encoder) and backbone_inputs.loaded_for(of_encoder)
    assert arms.phase_start(job, "finetune").endswith("/chain/seed1/pretext/model")


def test_noise_of_an_arm_that_is_not_run_is_as_long_as_it_needs():
    """As where a file of it is asked for by its name."""
    config = load(changed("run/arms", ["finetune"]))
    (phase, _) = config.arms["csr"]
    noised = job_of(config, experiment="help-de-en", noise=phase.noised, seed="1")
    assert bridges.tokens(noised) == phase.updates * config.experiments["help-de-en"].training.batch_tokens
