"""Products by oneDNN are those of PyTorch, to rounding, and so are their gradients."""

import pytest
import torch
import torch.nn.functional as F
from tiny_models import small_model

from workflow_scripts.models import products
from workflow_scripts.models.products import linear, product, quick_products
from workflow_scripts.training.loop import load_model
from workflow_scripts.training.settings import Training


@pytest.fixture(autouse=True)
def small_products_too(monkeypatch):
    monkeypatch.setattr(products, "_WORTHWHILE", 1)


@pytest.fixture(params=[True, False], ids=["onednn", "without"])
def with_and_without(request, monkeypatch):
    there = torch.backends.mkldnn.is_available()
    monkeypatch.setattr(products, "has_onednn", lambda: there and request.param)


def drawn(*shape: int, seed: int = 1, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


@pytest.mark.parametrize("rows, width, columns", [(7, 5, 3), (3, 40, 90), (90, 40, 3), (1, 1, 1), (0, 4, 5), (4, 5, 0)])
@pytest.mark.parametrize("turned", [(False, False), (True, False), (False, True), (True, True)])
@pytest.mark.usefixtures("with_and_without")
def test_products_of_any_layout(rows, width, columns, turned):
    a, b = drawn(rows, width), drawn(width, columns, seed=2)
    a, b = (matrix.T.contiguous().T if other else matrix for matrix, other in zip((a, b), turned, strict=True))
    found = product(a, b)
    assert found.shape == (rows, columns) and torch.allclose(found.double(), a.double() @ b.double(), atol=1e-5)


@pytest.mark.parametrize("capability", ["AVX512", "AVX2", "DEFAULT"])
@pytest.mark.parametrize("mkls", [True, False])
def test_onednn_multiplies_where_there_is_avx512_that_it_uses_better(monkeypatch, capability, mkls):
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: capability)
    monkeypatch.setattr(torch.backends.mkldnn, "is_available", lambda: True)
    monkeypatch.setattr(products, "machine", lambda: "x86_64")
    monkeypatch.setattr(products, "suits_mkl", lambda: mkls)
    assert products.has_onednn.__wrapped__() == (capability == "AVX512" and not mkls)


@pytest.mark.parametrize("vendor, family, mkls", [("AuthenticAMD", 25, True), ("AuthenticAMD", 26, False), ("GenuineIntel", 6, True)])
def test_mkl_multiplies_on_intels_and_on_zen_4(tmp_path, vendor, family, mkls):
    (tmp_path / "cpuinfo").write_text(
        "".join(f"processor\t: {n}\nvendor_id\t: {vendor}\ncpu family\t: {family}\nmodel\t\t: 17\n\n" for n in "01")
    )
    assert products.suits_mkl(tmp_path / "cpuinfo") == mkls
    assert not products.suits_mkl(tmp_path / "missing")


def test_the_smaller_matrix_is_the_one_that_is_copied(monkeypatch):
    first = []
    monkeypatch.setattr(products, "has_onednn", lambda: True)
    monkeypatch.setattr(products, "_multiply", lambda a, b, bias: first.append(a.shape) or a @ b.T)
    gradient, states = drawn(50, 400), drawn(50, 20)
    assert torch.allclose(product(gradient.T, states), gradient.T @ states, atol=1e-5)
    assert torch.allclose(product(states.T, gradient), states.T @ gradient, atol=1e-5)
    assert first == [(20, 50), (20, 50)]


@pytest.mark.parametrize("shape", [(6, 8), (2, 3, 8), (8,), (0, 8)])
@pytest.mark.parametrize("biased", [True, False])
@pytest.mark.parametrize("frozen", [None, "values", "weight"])
@pytest.mark.usefixtures("with_and_without")
def test_layers_and_their_gradients(shape, biased, frozen):
    parts = {"values": drawn(*shape), "weight": drawn(5, 8, seed=2)} | ({"bias": drawn(5, seed=3)} if biased else {})
    found, expected = ({name: part.clone().requires_grad_(name != frozen) for name, part in parts.items()} for _ in range(2))
    outputs = linear(**found), F.linear(*expected.values())
    weights = drawn(*outputs[0].shape, seed=4)
    for output in outputs:
        (output * weights).sum().backward()
    assert torch.allclose(*outputs, atol=1e-5) and outputs[0].shape == (*shape[:-1], 5)
    for name, part in expected.items():
        if name == frozen:
            assert found[name].grad is None
        else:
            assert torch.allclose(found[name].grad, part.grad, atol=1e-5)


@pytest.mark.parametrize("bias", [drawn(10)[::2], torch.ones(1).expand(5), drawn(5, 3)[:, 1]])
def test_a_bias_of_any_layout(bias):
    values, weight = drawn(6, 8), drawn(5, 8, seed=2)
    assert torch.allclose(linear(values, weight, bias), F.linear(values, weight, bias), atol=1e-5)


def test_only_large_products_of_float32_are_given_to_onednn(monkeypatch):
    given = []
    monkeypatch.setattr(products, "has_onednn", lambda: True)
    monkeypatch.setattr(products, "_multiply", lambda a, b, bias: given.append(a.dtype) or a @ b.T)
    for dtype in (torch.float64, torch.bfloat16):
        values, weight = drawn(4, 6, dtype=dtype), drawn(3, 6, seed=2, dtype=dtype)
        assert torch.equal(linear(values, weight), F.linear(values, weight))
        assert torch.equal(product(values, weight.T), values @ weight.T)
    with torch.autocast("cpu", torch.bfloat16):
        assert linear(drawn(4, 6), drawn(3, 6)).dtype == torch.bfloat16
    assert given == []
    for least in (4 * 6 * 3, 4 * 6 * 3 + 1):
        monkeypatch.setattr(products, "_WORTHWHILE", least)
        linear(drawn(4, 6), drawn(3, 6))
        product(drawn(4, 6), drawn(6, 3))
    assert given == [torch.float32] * 2


def test_models_use_it_within_the_block_only(tmp_path, monkeypatch):
    network = load_model(small_model(tmp_path), Training(), 1).eval()
    inputs = {"input_ids": torch.tensor([[5, 6, 2]]), "decoder_input_ids": torch.tensor([[2, 7]])}
    asked = []
    monkeypatch.setattr(products, "suits_onednn", lambda a, b, columns: asked.append(a.shape))
    original, theirs = F.linear, network(**inputs).logits
    assert not asked
    with quick_products():
        assert torch.equal(network(**inputs).logits, theirs)
    assert asked
    with pytest.raises(KeyError), quick_products():
        raise KeyError
    assert F.linear is original
