"""An analysis of one's own: a number for the states of each layer."""

import numpy as np
import pytest
from tiny_models import manual_pairs, small_encoder, small_model

from workflow_scripts import registry
from workflow_scripts.errors import InputError
from workflow_scripts.evidence.analysis import Subject, analysis
from workflow_scripts.evidence.layerwise import Layerwise, main
from workflow_scripts.stage import read_json


@pytest.fixture
def measured(tmp_path):
    """Registers a function as an analysis, and measures a model by it."""
    texts = []
    for code, lines in zip(("de", "en"), manual_pairs(12), strict=True):
        texts.append(tmp_path / f"text.{code}")
        texts[-1].write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    model = small_encoder(tmp_path, "xlmr")

    def measure(function, settings=Layerwise(device="cpu"), model=model, measure="made", **more):
        analysis("made", label="made")(function)
        subject = Subject((model,), ("tiny",), tuple(texts), ("de", "en"), threads=1, **more)
        try:
            main(tmp_path / "made.json", subject, measure=measure, settings=settings)
        finally:
            registry.forget("analysis", "made")
        return read_json(tmp_path / "made.json")

    return measure


def test_a_function_gets_the_states_of_each_layer(measured):
    seen = []

    def norm(states, language, layer, draw):
        seen.append((language, layer, states.shape, states.dtype, draw.integers(1 << 30)))
        return np.linalg.norm(states, axis=1).mean()

    found = measured(norm)
    about = found["models"]["tiny"]
    layers = [(code, layer) for code in ("de", "en") for layer in range(about["layers"] + 1)]
    assert [(language, layer) for language, layer, *_ in seen] == layers
    assert [(row["language"], row["layer"]) for row in about["rows"]] == layers and all(row["value"] > 0 for row in about["rows"])
    assert all(shape == (12, about["width"]) and dtype == np.float64 for _, _, shape, dtype, _ in seen)
    assert found["texts"] == 12 and len({number for *_, number in seen}) == len(layers)
    # the same numbers again
    before = list(seen)
    seen.clear()
    assert measured(norm)["models"] == found["models"] and [each[-1] for each in seen] == [each[-1] for each in before]


@pytest.mark.parametrize("side", ["encoder", "decoder"])
def test_both_halves_of_a_model_that_has_two(measured, tmp_path, side):
    assert {row["value"] for row in measured(lambda layer: layer, model=small_model(tmp_path), side=side)["models"]["tiny"]["rows"]} >= {
        0,
        1,
    }


def test_fewer_texts(measured):
    assert measured(lambda states: len(states), Layerwise(texts=5, device="cpu"))["models"]["tiny"]["rows"][0]["value"] == 5


@pytest.mark.parametrize(
    ("returned", "said"),
    [(None, "returned None"), ("x", "returned 'x'"), ([1, 2], r"returned \[1, 2\]"), (float("inf"), "no number but inf")],
)
def test_a_wrong_return_is_one_clear_error(measured, returned, said):
    with pytest.raises(InputError, match=f"analysis 'made' .*{said}.*tiny, de, layer 0"):
        measured(lambda states: returned)
    with pytest.raises(InputError, match=r"no number but nan \(tiny, de, layer 0\)"):
        measured(lambda states: float("nan"))


def test_a_function_that_fails_says_file_line_and_layer(measured):
    with pytest.raises(InputError, match=rf"analysis 'made': line \d+ of {__file__}, .*IndexError: .*\(tiny, de, layer 0\)"):
        measured(lambda states: states[1000])


def test_what_an_analysis_may_not_ask_for():
    with pytest.raises(InputError, match="analysis 'made' asks for `text`; an analysis can ask for states, language, layer, draw"):
        analysis("made", label="made")(lambda text: 1)


def test_ours_are_stages_of_their_own(measured):
    with pytest.raises(InputError, match=r"cka is a stage of its own: python -m workflow_scripts.evidence.cka"):
        measured(lambda states: 1, measure="cka")
    with pytest.raises(InputError, match="there is no analysis 'mad', did you mean 'made'"):
        measured(lambda states: 1, measure="mad")
