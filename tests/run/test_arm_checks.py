"""Checks of arms: phases before the task that learn by an objective, and those that read a text of their own."""

import re

import pytest
from configurations import changed, classified

from workflow_scripts.run.config import load
from workflow_scripts.stage import InputError

ENCODER = {"kind": "small", "family": "xlmr", "small": classified()["backbones"]["bible"]["small"]}
OTHER = {**changed("run/seeds", [1])["corpora"]["help"], "languages": ["de", "fr"]}


def refused(raw, phase, task):
    raw["arms"]["chain"] = [phase, task]
    raw["run"]["arms"] = [*raw["run"]["arms"], "chain"]
    with pytest.raises(InputError) as error:
        load(raw)
    return str(error.value)


@pytest.mark.parametrize(
    ("phase", "said"),
    [
        ({"data": "mlm"}, "arms.chain: objective mlm is not for mBART, which has a decoder; set objective: denoising or translation"),
        ({"data": "denosing"}, "arms.chain.0.data: .*got 'denosing'; did you mean 'denoising'"),
        ({"data": "denoising", "text": "halp"}, "arms.chain.text: 'halp' is not defined, did you mean 'help'"),
        ({"data": "translation", "noise": {"a": 1}}, "arms.chain.noise: is for phases that restore noised text; translation has none"),
        ({"data": "mask", "objective": {"a": 1}}, "arms.chain.objective: is for phases that learn by an objective; mask has none"),
        ({"data": "translation", "objective": {"pivo": "en"}}, "arms.chain.objective: .* no setting 'pivo', did you mean 'pivot'"),
        ({"data": "translation", "objective": {"direction": "up"}}, "arms.chain.objective.direction: input should be"),
        ({"data": "translation", "objective": {"direction": "one-to-many"}}, "arms.chain.objective: .*needs one language as its `pivot`"),
        ({"data": "denoising", "objective": {"noise": {"rate": 3}}}, "arms.chain.objective: rate: .*got 3"),
        ({"data": "translation", "lexicon": "unsupervised"}, "lexicon: translation takes none"),
        ({"data": "translation", "text": "french"}, "arms.chain: translation learns from pairs of sentences in two languages of"),
        ({"data": "mask", "text": "french"}, "'french' is in de and fr; experiments.help-de-en needs de and en; to read one of them alone"),
    ],
)
def test_a_phase_of_a_translation(phase, said):
    raw = changed("corpora/french", OTHER)
    raw["run"]["arms"] = ["finetune"]
    message = refused(raw, {"updates": 100, **phase}, {"data": "task", "updates": 4100})
    assert re.search(said, message), message


@pytest.mark.parametrize(
    ("phase", "backbone", "said"),
    [
        ({"data": "translation"}, None, "translation learns from pairs of sentences in two languages of experiments.help-modules"),
        ({"data": "denoising", "text": "help"}, ENCODER, "arms.chain: objective denoising is not for XLM-R, which has no decoder"),
        (
            {"data": "veco", "objective": {"veco": {"is_mlm": False, "cs_mlm": False}}},
            ENCODER,
            "arms.chain.objective.veco: tlm alone needs the pairs of `bitext`",
        ),
        (
            {"data": "veco", "text": "help", "objective": {"veco": {"cross_attention_first": 100}}},
            ENCODER,
            "arms.chain.objective.veco.cross_attention_first: 100 must be less than the 100 updates of the pretraining",
        ),
        ({"data": "mask", "text": "french"}, None, "arms.chain.text: 'french' is in de and fr; experiments.help-modules needs en"),
    ],
)
def test_a_phase_of_a_task_with_labels(phase, backbone, said):
    raw = classified("corpora/french", OTHER)
    if backbone:
        raw["backbones"]["encoder"] = backbone
        raw["experiments"]["help-modules"]["backbone"] = "encoder"
        raw["run"]["arms"] = ["finetune-10e"]
    message = refused(raw, {"updates": 100, **phase}, {"data": "task", "epochs": 10})
    assert said in message, message


def test_text_of_documents_is_for_their_own_experiments():
    from configurations import summaries

    raw = summaries("run/arms", ["finetune"])
    documents = raw["experiments"][raw["run"]["experiments"][0]]["corpus"]
    raw["run"]["experiments"] = ["help-de-en"]
    message = refused(raw, {"data": "denoising", "text": documents, "updates": 100}, {"data": "task", "updates": 4100})
    assert f"arms.chain.text: {documents!r} has documents; a corpus of sentences is needed" in message


def test_the_task_reads_the_text_of_its_experiment():
    raw = changed("arms/finetune/0/text", "help")
    with pytest.raises(InputError, match=r"arms.finetune.text: is for phases before the task, which reads the text of its experiment"):
        load(raw)
