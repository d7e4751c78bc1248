"""Adapters in a configuration: what is wrong with their settings, whether they fit the model, how much memory they save."""

import pytest
from configurations import changed, classified
from tiny_models import small_encoder, small_model

from workflow_scripts.run.adapter_findings import adapters, trained_weights
from workflow_scripts.run.config import load
from workflow_scripts.run.estimates import training_disk, training_memory
from workflow_scripts.run.model_findings import shape_of
from workflow_scripts.run.resources import phases
from workflow_scripts.stage import InputError
from workflow_scripts.tasks.plan import Plans

WHERE = "experiments/help-de-en/training/adapter"


def looked_at(raw):
    config = load(raw)
    return [(finding.verdict, finding.said) for finding in adapters(phases(Plans(config)))]


def test_preflight_counts_the_weights_that_are_trained():
    config = load(changed(WHERE, {"kind": "lora", "rank": 4}))
    (found,) = adapters(phases(Plans(config)))
    small = config.backbones["bible"].small
    matrices = small.layers * (3 * 4 * 2 * small.d_model + 2 * 2 * (small.d_model + small.ffn))
    assert found.verdict == "ok" and f"lora trains {4 * matrices:,} weights of bible" in found.said
    phase = next(phase for phase in phases(Plans(config)) if phase.adapter)
    shape = shape_of(phase.backbone)
    trained = trained_weights(phase)
    less = training_memory(shape, phase, 0) - training_memory(shape, phase, 0, trained)
    assert less == 12 * (shape.parameters - trained) and training_disk(shape, phase, trained) < training_disk(shape, phase)


@pytest.mark.parametrize(
    "chosen, said",
    [
        ({"kind": "lora", "targets": ["query"]}, "mBART has no matrix 'query' in its layers; it has k_proj, v_proj, q_proj, out_proj"),
        ({"kind": "dora", "rank": 4096}, "rank: 4096 is more than the 192 that the matrices have"),
    ],
)
def test_what_does_not_fit_the_model_is_wrong(chosen, said, tmp_path):
    ((verdict, found),) = looked_at(changed(WHERE, chosen))
    assert verdict == "WRONG" and said in found


@pytest.mark.parametrize(("family", "trained"), [("mbart", "2,304"), ("umt5", "5,376")])
def test_a_published_model_is_looked_at_where_it_is_there(tmp_path, family, trained):
    raw = changed(WHERE, {"kind": "lora", "rank": 2})
    raw["backbones"]["bible"] = {"kind": "hub", "model": str(small_model(tmp_path, family))}
    assert looked_at(raw) == [("ok", f"lora trains {trained} weights of bible")]


def test_of_a_model_in_another_form_nothing_is_said_before_it_is_there(tmp_path):
    raw = changed(WHERE, {"kind": "bottleneck", "width": 2})
    raw["backbones"]["bible"] = {"kind": "converted", "from": "encoder", "to": "encoder-decoder"}
    raw["backbones"]["encoder"] = {"kind": "hub", "model": str(small_encoder(tmp_path, "xlm-roberta"))}
    assert looked_at(raw) == [("ok", "bottleneck; whether it fits bible is known when that model is there")]


@pytest.mark.parametrize(
    "path, value, said",
    [
        (WHERE, {"kind": "lorra"}, r"training\.adapter\.kind: there is no adapter 'lorra', did you mean 'lora'"),
        (WHERE, {"kind": "lora", "rang": 2}, r"training\.adapter\.rang: unknown key; lora has rank, alpha, dropout, targets"),
        (WHERE, {"kind": "lora", "rank": 0}, r"training\.adapter\.rank: input should be greater than or equal to 1, got 0"),
        (WHERE, "lora", r"training\.adapter: wants a block with a `kind`, one of lora, dora"),
        ("arms/csr/0/training", {"adapter": {"kind": "lora", "rank": "x"}}, r"arms\.csr.*training\.adapter\.rank: input should be a valid"),
        ("arms/finetune/0", {"data": "task", "updates": 4200, "start": "scratch", "training": {"adapter": {"kind": "lora"}}}, "for random"),
        ("backbones/bible/small/training/adapter", {"kind": "lora"}, "a small model begins with random weights"),
    ],
)
def test_settings_that_cannot_be_are_refused(path, value, said):
    with pytest.raises(InputError, match=said):
        load(changed(path, value))


def test_a_head_is_finetuned_with_all_weights():
    raw = classified()
    arm = raw["run"]["arms"][0]
    raw["arms"][arm][-1]["training"] = {"adapter": {"kind": "lora"}}
    with pytest.raises(InputError, match="a head is finetuned with all weights"):
        load(raw)
