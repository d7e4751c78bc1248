"""Adapters in a configuration: what is wrong with their settings, whether they fit the model, how much memory they save."""

import importlib.util

import pytest
from configurations import changed, classified
from tiny_models import small_encoder, small_model

from workflow_scripts.run import resources
from workflow_scripts.run.adapter_findings import adapters, rounded_weights, trained_weights
from workflow_scripts.run.config import load
from workflow_scripts.run.estimates import training_disk, training_memory
from workflow_scripts.run.findings import gigabytes
from workflow_scripts.run.model_findings import shape_of
from workflow_scripts.run.resources import phases
from workflow_scripts.stage import InputError
from workflow_scripts.tasks.classification import Classification
from workflow_scripts.tasks.experiment import head_settings
from workflow_scripts.tasks.head_model import load_text_head
from workflow_scripts.tasks.plan import Plans
from workflow_scripts.training.adapter import adapt

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


@pytest.mark.parametrize("targets", [None, ["q_proj", "fc1"]])
def test_matrices_that_are_rounded_take_half_a_byte_on_a_gpu(targets, monkeypatch):
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: name if name == "bitsandbytes" else real(name))
    plain, rounded = (
        next(phase for phase in phases(Plans(load(changed(WHERE, {"kind": "lora", "base": base, "targets": targets})))) if phase.adapter)
        for base in ("float32", "4bit")
    )
    small, shape, trained = plain.backbone.settings.small, shape_of(plain.backbone), trained_weights(plain)
    square, wide = small.d_model**2, small.d_model * small.ffn
    weights = small.layers * (3 * square + 2 * wide if targets else 3 * 4 * square + 2 * 2 * wide)
    assert (rounded_weights(plain), rounded_weights(rounded)) == (None, weights) and trained_weights(rounded) == trained
    on_gpu, on_cpu = (training_memory(shape, plain, n, trained) - training_memory(shape, rounded, n, trained, weights) for n in (1, 0))
    assert on_gpu == pytest.approx((6 - 0.6) * weights) and on_cpu == 0
    jobs = {"finetune": {"gpu": 1, "gpu_model": "a100"}}
    monkeypatch.setattr(resources, "training_memory", lambda *asked: float(asked[-1]))
    plans = Plans(load(changed(WHERE, {"kind": "lora", "base": "4bit", "targets": targets})))
    assert f"about {gigabytes(weights)}" in next(each.said for each in resources.memory(plans, jobs) if each.about == "memory of finetune")


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


def test_a_heads_adapter_is_counted_with_its_head(tmp_path):
    raw = classified()
    (name,) = raw["run"]["experiments"]
    raw["experiments"][name]["classification"] |= {"adapter": {"kind": "lora", "rank": 2}, "gradient_checkpointing": True}
    raw["backbones"][raw["experiments"][name]["backbone"]] = {"kind": "hub", "model": str(small_encoder(tmp_path, "xlm-roberta"))}
    config = load(raw)
    (found,) = adapters(phases(Plans(config)))
    assert found.verdict == "ok" and found.said.endswith(", with the head"), found
    phase = next(phase for phase in phases(Plans(config)) if phase.head)
    network = load_text_head(tmp_path / "model", config.labelled[config.experiments[name].corpus].labels, Classification(), 1)
    assert trained_weights(phase) == adapt(network, phase.adapter, 1, "classification").trained
    shape = shape_of(phase.backbone)
    assert training_memory(shape, phase, 0, trained_weights(phase)) < training_memory(shape, phase._replace(computes_again=False), 0)


@pytest.mark.parametrize(
    "training, said",
    [
        ({"adapter": {"kind": "lora", "rank": "x"}}, r"training\.adapter\.rank: input should be a valid"),
        ({"updates": 3}, r"training\.updates: "),
        (
            {"max_length": 30},
            r"training\.max_length: is for pretext phases; in a task phase only adapter, gradient_checkpointing, learning_rate",
        ),
        ({"learning_rate": 1e-4}, r"training\.learning_rate: is also in the grid of "),
    ],
)
def test_an_arm_may_finetune_a_head_in_its_own_way(training, said):
    raw = classified()
    arm = raw["run"]["arms"][0]
    raw["arms"][arm][-1]["training"] = {"adapter": {"kind": "dora"}, "weight_decay": 0.1}
    (plan,) = (plan for plan in Plans(load(raw)).experiments.values() if plan.task.name == "classification")
    chosen = head_settings(plan.settings, plan.phases_of(arm)[-1])
    assert (chosen.adapter, chosen.weight_decay) == ({"kind": "dora"}, 0.1)
    raw["arms"][arm][-1]["training"] = training
    raw["experiments"][plan.name]["grid"] = {"learning_rate": [1e-5, 1e-4]}
    with pytest.raises(InputError, match=said):
        load(raw)
