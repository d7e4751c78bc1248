"""Updates in bfloat16: all that is multiplied is in it, and gradients are near those of float32.

Where it is not said otherwise, with copies of the weights, as on a GPU. There are fewer rows here than a CPU can sum in bfloat16.
"""

from contextlib import nullcontext

import pytest
import torch
from tiny_decoders import small_decoder
from tiny_models import manual_pairs, small_encoder, small_model
from transformers import MBartConfig, MBartForConditionalGeneration

from workflow_scripts.device import reading_in
from workflow_scripts.models.batches import collate
from workflow_scripts.models.networks import load_network
from workflow_scripts.models.prompt_files import make_generator
from workflow_scripts.models.sga import SGA
from workflow_scripts.models.tokenisation import load_codec
from workflow_scripts.models.veco import load_stack
from workflow_scripts.tasks.head_model import Reader, summed_loss
from workflow_scripts.training.adapter import adapt
from workflow_scripts.training.bitext import Bitext
from workflow_scripts.training.generating import collate_sources, summed
from workflow_scripts.training.loop import pick_loss
from workflow_scripts.training.mixed_precision import copied_weights, mixed_precision
from workflow_scripts.training.objective import Part, Text
from workflow_scripts.training.pretraining_settings import Pretraining, Veco
from workflow_scripts.training.segments import held_back
from workflow_scripts.training.settings import Training
from workflow_scripts.training.veco_losses import collate as veco_batch
from workflow_scripts.training.veco_losses import forward_guesses, update_loss

END = 2
ROWS = [([*(5 + at % 40 for at in range(length)), END], [*(6 + at % 30 for at in range(length)), END]) for length in (12, 9, 4)]

NO_DROPOUT = {"dropout": 0.0, "attention_dropout": 0.0}
PRECISIONS = ("float32", "bfloat16")


def a_network(folder, family, rows=ROWS):
    network = load_network(small_model(folder, family), "text", **NO_DROPOUT, seed=1).train()
    return network, collate(rows, 1, family not in ("bert", "xlm-roberta"))


def gradients(network, batch, precision, loss=None):
    """Those of all weights that are learnt."""
    measured = loss or pick_loss(network, Training(), precision)
    with copied_weights(network) if precision == "bfloat16" else nullcontext():
        labels = batch["labels"]
        measured(network(**{name: value for name, value in batch.items() if name != "labels"}), labels, (labels != -100).sum()).backward()
    found = {name: weight.grad for name, weight in network.named_parameters() if weight.grad is not None}
    network.zero_grad(set_to_none=True)
    return found


def near(exact, rough):
    """Those in bfloat16 belong to the same weights, are in float32, and as a whole near those of float32."""
    assert exact.keys() == rough.keys() and {gradient.dtype for gradient in rough.values()} == {torch.float32}
    one, other = (torch.cat([gradient.flatten() for gradient in found.values()]) for found in (exact, rough))
    assert 0 < (one - other).norm() < 0.05 * one.norm()


@pytest.fixture
def multiplied(monkeypatch):
    """Types of what linear layers have multiplied."""
    types, original = set(), torch.nn.functional.linear

    def linear(values, weight, bias=None):
        types.update({values.dtype, weight.dtype})
        return original(values, weight, bias)

    monkeypatch.setattr(torch.nn.functional, "linear", linear)
    return types


@pytest.mark.parametrize("family", ["mbart", "nllb", "m2m100", "bart", "bert", "xlm-roberta"])
def test_gradients_are_near_those_of_float32(tmp_path, family, multiplied):
    network, batch = a_network(tmp_path, family)
    exact = gradients(network, batch, "float32")
    multiplied.clear()
    near(exact, gradients(network, batch, "bfloat16"))
    assert multiplied == {torch.bfloat16} and len(exact) > 20


def test_so_are_those_of_the_plain_loss(tmp_path):
    network, batch = a_network(tmp_path, "mbart")
    loss = pick_loss(network, Training(loss="plain"), "float32")
    near(*(gradients(network, batch, precision, loss) for precision in PRECISIONS))


@pytest.mark.parametrize("family", ["mbart", "nllb", "bert", "xlm-roberta"])
@pytest.mark.parametrize("head", ["classification", "labelling", "answering"])
def test_so_are_those_of_heads(tmp_path, family, head):
    model = small_model(tmp_path, family)
    network = load_network(model, head, **NO_DROPOUT, seed=1, **({} if head == "answering" else {"labels": ["A", "B"]})).train()
    batch = Reader(model, 20).collate([(ids, [at % 2]) for at, (ids, _) in enumerate(ROWS)])
    if head == "labelling":
        batch["labels"] = torch.where(batch["attention_mask"] > 0, batch["input_ids"] % 2, -100)
    elif head == "answering":
        batch |= {"places": batch["attention_mask"] > 0, "labels": torch.tensor([[1, 2]] * len(ROWS))}
    near(*(gradients(network, batch, precision, summed_loss) for precision in PRECISIONS))


@pytest.mark.parametrize("sga", [{}, {"alignment": "mask_predict"}])
def test_so_are_those_of_prompts(tmp_path, sga):
    """Without noise, which would be that of a draft, and a draft hangs on rounding."""
    model = small_encoder(tmp_path, "xlm-roberta")
    encoder = load_network(model, "text", **NO_DROPOUT, seed=1)
    torch.manual_seed(1)
    generator = make_generator(encoder, load_codec(model), SGA(prompt_length=3, denoising=False, **sga)).train()
    found = []
    for precision in PRECISIONS:
        torch.manual_seed(2)
        found.append(gradients(generator, collate_sources(ROWS, 1), precision, summed))
    near(*found)
    assert found[0].keys() == generator.trained().keys()


@pytest.mark.parametrize(("loss", "alone"), [("chunked", False), ("plain", False), ("chunked", True)])
def test_so_are_those_of_veco(tmp_path, loss, alone):
    """Also where cross-attention learns alone: layers are then called without gradients first."""
    model = small_encoder(tmp_path, "xlm-roberta")
    german, english = manual_pairs(13)
    part = Part.write(tmp_path, "dev", Text({"de": german}, [Bitext("help.de-en", {"de": german, "en": english})]))
    dev = held_back(part, load_codec(model), Pretraining(training=Training(max_length=30)), seed=1)
    stack = load_stack(model, cross=True, **NO_DROPOUT).train()
    forward_guesses(stack, causal=True)
    batch = veco_batch(dev[1]._replace(cross_alone=alone), 1, 0, Veco())
    near(*(gradients(stack, batch, precision, update_loss(stack, Training(loss=loss), precision)) for precision in PRECISIONS))


def test_frequencies_of_rotary_positions_are_not_rounded(tmp_path):
    """They are multiplied by positions: in bfloat16 the phase at the 500th would be wrong by half a radian."""
    network = load_network(small_decoder(tmp_path, "qwen3"), "text", **NO_DROPOUT, seed=1).train()
    found: list[tuple[torch.Tensor, ...]] = []
    network.model.rotary_emb.register_forward_hook(lambda module, given, phases: found.append(phases))
    for context in (nullcontext(), copied_weights(network)):
        with context:
            network(torch.tensor([[5]]), position_ids=torch.tensor([[500]]))
    exact, rounded = found
    assert {each.dtype for each in rounded} == {torch.bfloat16}
    assert all(torch.equal(one.bfloat16(), other) for one, other in zip(exact, rounded, strict=True))


def test_weights_stay_as_they_are_and_where_they_are(tmp_path):
    network, batch = a_network(tmp_path, "mbart")
    before = {name: (weight, weight.clone()) for name, weight in network.named_parameters()}
    gradients(network, batch, "bfloat16")
    for name, weight in network.named_parameters():
        same, copy = before[name]
        assert weight is same and weight.dtype == torch.float32 and torch.equal(weight, copy)


def test_what_is_not_learnt_has_no_gradient(tmp_path):
    network, batch = a_network(tmp_path, "mbart")
    network.base_model.encoder.requires_grad_(False)
    found = gradients(network, batch, "bfloat16")
    assert found and not any(".encoder." in name for name in found)


def test_looks_compute_with_the_weights_themselves(tmp_path, multiplied):
    network, batch = a_network(tmp_path, "mbart")
    labels = batch.pop("labels")
    exact = network.eval()(**batch, labels=labels).logits
    with copied_weights(network):
        assert torch.equal(network(**batch, labels=labels).logits, exact)
    assert multiplied == {torch.float32}


def test_the_context_leaves_nothing_behind(tmp_path, multiplied):
    network, batch = a_network(tmp_path, "mbart")
    batch.pop("labels")
    with pytest.raises(RuntimeError, match="in between"), copied_weights(network):
        raise RuntimeError("in between")
    network(**batch)
    assert multiplied == {torch.float32} and "forward" not in vars(network)
    with copied_weights(network), pytest.raises(ValueError, match="input_ids"):
        network(decoder_input_ids=batch["decoder_input_ids"])
    # past the network, whose own weights are not copied then
    with copied_weights(network), pytest.raises(RuntimeError, match="type"):
        network.base_model(**batch)
    assert {type(weight) for weight in network.parameters()} == {torch.nn.Parameter}
    assert {weight.dtype for weight in network.parameters()} == {torch.float32}


def test_gradients_of_a_layer_are_complete_before_the_layers_below(tmp_path):
    """Several processes exchange them while the way back goes on."""
    config = MBartConfig(
        vocab_size=60, d_model=16, encoder_layers=3, decoder_layers=2, encoder_attention_heads=2, decoder_attention_heads=2
    )
    network = MBartForConditionalGeneration(config).train()
    layers = [*network.model.encoder.layers, *network.model.decoder.layers]
    complete = []
    for number, layer in enumerate(layers):
        layer.fc1.weight.register_post_accumulate_grad_hook(lambda _, number=number: complete.append(number))
    seen = []

    def reached(number):
        return lambda *_: seen.append((number, [*complete]))

    for number, layer in enumerate(layers):
        layer.fc1.register_full_backward_hook(reached(number))
    gradients(network, collate(ROWS, 1), "bfloat16")
    assert complete == [4, 3, 2, 1, 0] and [number for number, _ in seen] == complete
    # when the way back reaches a layer, those above it are complete, but for the one that it has just left
    assert all(set(range(number + 2, 5)) <= {*before} for number, before in seen)


def test_layers_are_compiled_once_for_each_kind():
    config = MBartConfig(
        vocab_size=60, d_model=16, encoder_layers=3, decoder_layers=3, encoder_attention_heads=2, decoder_attention_heads=2
    )
    network, compiled = MBartForConditionalGeneration(config).train(), []

    def counting(graph, inputs):
        compiled.append(graph)
        return graph.forward

    torch._dynamo.reset()
    for layer in (*network.model.encoder.layers, *network.model.decoder.layers):
        layer.compile(dynamic=False, backend=counting)
    for _ in range(2):
        found = gradients(network, collate(ROWS, 1), "bfloat16")
    assert len(compiled) == 2 and len(found) == len([*network.parameters()])


def test_on_a_cpu_it_is_autocast(tmp_path):
    """A CPU's sums of equal gradients of embeddings and normalisations stop growing at 256 of them in bfloat16, without a word."""
    network = a_network(tmp_path, "xlm-roberta")[0]
    batch = collate([([5, 6, 7, END] * 10, [5, 6, 7, END] * 10)] * 20, 1, decoder=False)
    exact = gradients(network, batch, "float32")
    with mixed_precision(network, "bfloat16"):
        rough = gradients(network, batch, "float32", pick_loss(network, Training(), "bfloat16"))
    near(exact, rough)
    types = "roberta.embeddings.token_type_embeddings.weight"
    assert (exact[types] - rough[types]).norm() < 0.1 * exact[types].norm()


def test_with_an_adapter_a_cpu_computes_with_copies_of_the_weights(tmp_path, multiplied):
    """Its gradients are those of matrices alone, which are products."""
    network = load_network(small_decoder(tmp_path), "text", **NO_DROPOUT, seed=1).train()
    adapt(network, {"kind": "lora", "rank": 4}, 1)
    for name, weight in network.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(weight, std=0.1)
    batch = collate(ROWS, 0, decoder=False)
    exact = gradients(network, batch, "float32")
    loss = pick_loss(network, Training(), "bfloat16")
    multiplied.clear()
    with mixed_precision(network, "bfloat16"):
        rough = gradients(network, batch, "float32", loss)
    near(exact, rough)
    assert multiplied == {torch.bfloat16}


def test_looks_on_a_cpu_have_the_precision_that_they_ask_for(tmp_path):
    network, batch = a_network(tmp_path, "xlm-roberta")
    del batch["labels"]
    with mixed_precision(network.eval(), "bfloat16"):
        for precision in PRECISIONS:
            with reading_in(precision, network.device):
                assert network(**batch).logits.dtype == getattr(torch, precision)
