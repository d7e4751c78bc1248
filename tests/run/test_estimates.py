"""Estimates of memory, against what a model really has and keeps."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM, MBartConfig, MBartForConditionalGeneration

from workflow_scripts.models.networks import share_embeddings
from workflow_scripts.run.estimates import MBART_LARGE, Shape, gpu_gigabytes, is_without_bfloat16, training_memory
from workflow_scripts.tasks.experiment import Trained, of_training
from workflow_scripts.training import loop as trainer
from workflow_scripts.training.adapter import adapt
from workflow_scripts.training.settings import Training


def phase(training: Training) -> Trained:
    """A phase with these settings."""
    return of_training("finetune", "experiments.x.training", "small", training, 1)


@contextmanager
def kept_by(network) -> Iterator[dict[int, int]]:
    """What autograd keeps, beside the weights: storage → bytes."""
    weights = {weight.untyped_storage().data_ptr() for weight in network.parameters()}
    kept: dict[int, int] = {}

    def keep(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in weights:
            kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        yield kept


def mbart(shape: Shape, **changes) -> MBartForConditionalGeneration:
    names = {"encoder_attention_heads": 2, "decoder_attention_heads": 2, "decoder_ffn_dim": shape.encoder_ffn_dim}
    return MBartForConditionalGeneration(MBartConfig(**shape._asdict(), **names, **changes))


@pytest.mark.parametrize("shape", [MBART_LARGE, Shape(1000, 64, 256, 2, 3, 128), Shape(1000, 64, 256, 2, 3, 128, False)])
def test_parameters_are_counted_exactly(shape):
    with torch.device("meta"):
        network = mbart(shape)
    share_embeddings(network, {f"model.{half}.embed_tokens.weight" for half in ("encoder", "decoder")})  # as where a model is loaded
    assert network.num_parameters() == shape.parameters


@pytest.mark.parametrize("loss", ["plain", "chunked"])
def test_memory_for_the_way_back_is_what_autograd_keeps(loss):
    shape, training = Shape(2000, 128, 512, 2, 3, 128), Training(batch_tokens=512, loss=loss, attention_dropout=0.0)
    network = mbart(shape, attention_dropout=0.0).train()
    ids = torch.randint(5, shape.vocab_size, (8, 64))
    with kept_by(network) as kept:
        trainer.pick_loss(network, training, "float32")(network(input_ids=ids, decoder_input_ids=ids), ids)
    estimate = training_memory(shape, phase(training), 0) - 1e9 - 16 * shape.parameters
    # of the plain loss's three numbers for each piece one is kept, two come and go
    estimate -= 512 * 8 * shape.vocab_size if loss == "plain" else 0
    assert sum(kept.values()) == pytest.approx(estimate, rel=0.1)


GEMMA = {"hidden_size": 64, "intermediate_size": 192, "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 1}


def test_a_decoder_with_an_adapter_is_counted_and_keeps_what_is_said():
    shape = Shape(3000, 64, 192, 3, 0, 512, True, 4 * 32, 32)
    more = {
        "architectures": ["Gemma3ForCausalLM"],
        "layer_types": ["full_attention"] * 3,
        "query_pre_attn_scalar": 32,
        "max_position_embeddings": 512,
    }
    network = AutoModelForCausalLM.from_config(AutoConfig.for_model("gemma3_text", vocab_size=3000, head_dim=32, **GEMMA, **more)).train()
    assert network.num_parameters() == pytest.approx(shape.parameters, rel=0.01)
    training = Training(batch_tokens=512, label_smoothing=0.0, attention_dropout=0.0)
    trained = adapt(network, {"kind": "lora", "rank": 2}, 1).trained
    ids = torch.randint(5, 3000, (8, 64))
    loss = trainer.pick_loss(network, training, "float32")
    with trainer.network_reads(network, False), kept_by(network) as kept:
        loss(network(input_ids=ids), ids, 512)
    estimate = training_memory(shape, phase(training), 0, trained) - 1e9 - 4 * shape.parameters - 12 * trained
    estimate -= 8 * 512 * shape.vocab_size  # which come and go
    assert sum(kept.values()) == pytest.approx(estimate, rel=0.1)


def test_an_update_is_shared_and_cut():
    shape = Shape(1000, 256, 1024, 6, 6, 512)
    whole, half, shared = (
        training_memory(shape, phase(Training(batch_tokens=8192, micro_batch_tokens=micro)), gpus)
        for micro, gpus in ((None, 1), (4096, 1), (None, 2))
    )
    fixed = training_memory(shape, phase(Training(batch_tokens=1)), 1)
    assert half == shared and (whole - fixed) / (half - fixed) == pytest.approx(2, rel=0.01)


def test_weights_that_are_spread_take_less_on_each_gpu():
    whole, spread = (phase(Training(batch_tokens=1, sharded=sharded)) for sharded in (False, True))
    on_one, on_two, on_eight = (training_memory(MBART_LARGE, spread, gpus) for gpus in (1, 2, 8))
    assert on_one == training_memory(MBART_LARGE, whole, 1) and on_eight < on_two < on_one
    # a part of the weights, and what must be whole at times
    assert on_eight > 1e9 + 20 * MBART_LARGE.parameters / 8 + 8 * MBART_LARGE.d_model * MBART_LARGE.vocab_size


def test_what_is_computed_again_is_not_kept():
    shape, training = Shape(2000, 128, 512, 2, 3, 128), Training(batch_tokens=512, attention_dropout=0.0, gradient_checkpointing=True)
    network = mbart(shape, attention_dropout=0.0).train()
    trainer.compute_again(network)
    ids = torch.randint(5, shape.vocab_size, (8, 64))
    with kept_by(network) as kept:
        trainer.pick_loss(network, training, "float32")(network(input_ids=ids, decoder_input_ids=ids), ids)
    estimate = training_memory(shape, phase(training), 0) - 1e9 - 16 * shape.parameters
    plain = training_memory(shape, phase(replace(training, gradient_checkpointing=False)), 0) - 1e9 - 16 * shape.parameters
    assert sum(kept.values()) < estimate < plain


def test_names_of_gpus():
    names = {"rtx_a4000": None, "quadro_p1000": None, "mi300a": 128, "l40s": 48, "gtx1060": None}
    names |= {"gh200": 96, "nvidia_gh200_480gb": 96, "NVIDIA GH200 480GB": 96}
    names |= {"a100": 40, "nvidia_a100-sxm4-80gb": 80, "A100_80GB": 80, "h200": 141, "l40s": 48, "rtx_3090": 24, "mystery": None, "": None}
    assert {name: gpu_gigabytes(name) for name in names} == names
    names = {"rtx_2080": 8, "gtx1080": 8, "gtx1080ti": 11, "Quadro RTX 6000": 24, "rtx_6000_ada": None, "quadro_p4000": None}
    assert {name: gpu_gigabytes(name) for name in names} == names
    old = {"tesla_v100_32gb_sxm2": True, "titan_rtx": True, "p40": True, "a40": False, "l40s": False}
    old |= {"v100_32gb": True, "v100-16gb": True, "t4 16 GB": True, "rtx2080ti_11gb": True, "a100_80gb": False, "rtx_4090_24gb": False}
    assert {name: is_without_bfloat16(name) for name in old} == old
