"""Linear CKA, plain and unbiased: exact values, known populations, and tiny models of each family."""

import json

import numpy as np
import pytest
import torch
from tiny_models import manual_pairs, small_encoder, small_model

from workflow_scripts.evidence import cka, separability, states
from workflow_scripts.evidence.analysis import Subject
from workflow_scripts.evidence.cka import Cka, Place, compare, groups, model_pairs, pairs_of
from workflow_scripts.evidence.separability import Separability
from workflow_scripts.evidence.states import encoded, hidden_states, open_half, pooled, read_texts
from workflow_scripts.models.tokenisation import load_codec
from workflow_scripts.stage import InputError, read_json


def similarity(x, y, **settings):
    """CKA of two representations (texts × width)."""
    sides = [torch.tensor(np.asarray(side), dtype=torch.float32)[None, None] for side in (x, y)]
    pair = (Place(0, 0, 0, 0), Place(1, 0, 0, 0))
    found = compare([pair], lambda at, model, _: sides[model][:, :, at], len(x), [x.shape[1], y.shape[1]], Cka(samples=200, **settings))
    return found[pair]


def written_out(x, y):
    """The unbiased CKA by equation 5 of Song et al. (2012), as it stands there."""

    def hsic(k, l):  # noqa: E741
        n = len(k)
        k, l = (side - np.diag(np.diag(side)) for side in (k, l))  # noqa: E741
        one = np.ones(n)
        sums = (one @ k @ one) * (one @ l @ one) / ((n - 1) * (n - 2))
        return (np.trace(k @ l) + sums - 2 / (n - 2) * (one @ k @ l @ one)) / (n * (n - 3))

    k, l = x @ x.T, y @ y.T  # noqa: E741
    return hsic(k, l) / np.sqrt(hsic(k, k) * hsic(l, l))


def paper(x, y):
    """The paper's formula, on centred columns."""
    x, y = x - x.mean(axis=0), y - y.mean(axis=0)
    return np.linalg.norm(y.T @ x) ** 2 / (np.linalg.norm(x.T @ x) * np.linalg.norm(y.T @ y))


def gaussian(n, width=8, share=0.0, seed=1):
    """Two representations of n texts whose CKA is share² as n grows: they have so much of each feature in common."""
    rng = np.random.default_rng(seed)
    x, noise = rng.normal(size=(2, n, width))
    return x, share * x + np.sqrt(1 - share**2) * noise


@pytest.mark.parametrize("block", [500, 37])
def test_both_estimates_are_their_formulas_streamed_and_directly(block):
    x, y = gaussian(150, 12, 0.6)
    x, y = x + 40, np.concatenate([y, y[:, :3] ** 2], axis=1)
    found = similarity(x, y, block=block)
    assert found["plain"] == pytest.approx(paper(x, y), rel=1e-4)
    assert found["unbiased"] == pytest.approx(written_out(x, y), rel=1e-3)


@pytest.mark.parametrize("block", [500, 20])
def test_rotation_shift_and_scale_change_nothing_and_each_is_1_with_itself(block):
    x, y = gaussian(100, 10, 0.7)
    turn, _ = np.linalg.qr(np.random.default_rng(2).normal(size=(10, 10)))
    before, after = similarity(x, y, block=block), similarity(3.5 * x @ turn - 7, y, block=block)
    for key in before:
        assert after[key] == pytest.approx(before[key], abs=2e-4)
    same = similarity(x, 3.5 * x @ turn - 7, block=block)
    assert [same[key] for key in ("plain", "unbiased", "low", "high")] == pytest.approx([1, 1, 1, 1], abs=1e-4)


def test_unrelated_representations_are_at_the_zero_line():
    # 80 texts and 256 dimensions, somewhat as in the paper: the plain estimate is far above zero
    found = [similarity(*gaussian(80, 256, seed=seed)) for seed in range(20)]
    plain, zero, unbiased = (np.array([each[key] for each in found]) for key in ("plain", "zero", "unbiased"))
    assert zero.min() > 0.7
    # the sum of some thousand independent products: 4 standard errors of 20 values
    assert abs((plain - zero).mean()) < 4 * plain.std() / np.sqrt(20) + 1e-3
    assert abs(unbiased.mean()) < 4 * unbiased.std() / np.sqrt(20)


def test_the_zero_line_is_the_mean_over_all_orders_of_the_texts():
    from itertools import permutations

    x, y = gaussian(6, 3, 0.8)
    every = [paper(x, y[list(order)]) for order in permutations(range(6))]
    assert similarity(x, y)["zero"] == pytest.approx(np.mean(every), rel=1e-4)


@pytest.mark.parametrize("block", [2000, 100])
def test_a_planted_similarity_is_found(block):
    x, y = gaussian(2000, 8, 0.6)
    found = similarity(x, y, block=block)
    assert found["low"] < 0.36 < found["high"] and found["high"] - found["low"] < 0.12
    assert found["low"] < found["unbiased"] < found["high"]


def test_parts_are_the_pseudo_values_of_leaving_one_text_out():
    x, y = gaussian(9, 4, 0.5)
    k, l = (cka.u_centred(torch.tensor(side @ side.T)) for side in (x, y))  # noqa: E741

    def hsic(keep):
        a, b = (cka.u_centred(torch.tensor(side[keep] @ side[keep].T)) for side in (x, y))
        return float((a * b).sum() / (len(keep) * (len(keep) - 3)))

    whole = hsic(list(range(9)))
    expected = [9 * whole - 8 * hsic([j for j in range(9) if j != i]) for i in range(9)]
    assert cka.pseudo_values(k, l).tolist() == pytest.approx(expected)
    assert np.mean(expected) == pytest.approx(whole)


def test_a_representation_that_is_the_same_for_all_texts_has_no_value():
    x, _ = gaussian(30, 4)
    assert set(similarity(x, np.full((30, 4), 3.3)).values()) == {None}


@pytest.mark.parametrize("block", [20, 60])
def test_neither_has_one_that_is_the_same_for_all_texts_but_one(block):
    x, _ = gaussian(60, 4)
    odd = np.full((60, 4), 3.3)
    odd[7] += 1
    assert set(similarity(x, odd, block=block).values()) == {None}


def test_moments_that_do_not_fit_are_computed_in_further_passes():
    rng = np.random.default_rng(1)
    sides = torch.tensor(rng.normal(size=(2, 3, 60, 6)), dtype=torch.float32)
    pairs = [(Place(0, 0, 0, layer), Place(1, 0, 0, layer)) for layer in range(3)]
    asked = []

    def read(at, model, _):
        asked.append((at.start, model))
        return sides[model][None, :, at]

    small = Cka(block=20, memory_gb=2 * 4e-9 * 36, samples=50)
    found = compare(pairs, read, 60, [6, 6], small)
    assert max(map(len, groups(pairs, [6, 6], small.memory_gb))) == 2 and len(asked) > 6
    assert found == compare(pairs, read, 60, [6, 6], Cka(block=20, samples=50))


def test_which_models_and_layers_are_compared():
    assert model_pairs("abc", []) == [(0, 1), (0, 2), (1, 2)]
    assert model_pairs("abc", ["b"]) == [(1, 0), (1, 2)]
    every = pairs_of([2, 1], "ab", 1, False, [(0, 1)], Cka(layers="all"))
    assert len(every) == 3 * 2
    with pytest.raises(InputError, match=r"a has 2 layers and b 1.*cka.layers: all"):
        pairs_of([2, 1], "ab", 1, False, [(0, 1)], Cka())


FAMILIES = ["mbart", "mbart50", "nllb", "bert", "xlm-roberta"]


def tiny(folder, kind):
    folder.mkdir()
    return small_encoder(folder, kind) if kind in ("bert", "xlm-roberta") else small_model(folder, kind)


@pytest.mark.parametrize("kind", FAMILIES)
def test_every_family_is_pooled_as_its_rows_are_made(tmp_path, kind):
    half = open_half("model", tiny(tmp_path / "tiny", kind))
    rows = encoded(half, manual_pairs(7)[0], "de")
    together = pooled(half, rows, ["mean", "text", "first", "last"], 60)
    assert together.shape == (4, half.depth + 1, 7, half.width)
    at = half.form.row.index("text")
    for number, row in enumerate(rows):
        with torch.no_grad():
            states = hidden_states(half, [row])[:, 0]
        inside = states[:, at : at + len(row) - len(half.form.row) + 1]
        for pooling, expected in enumerate([states.mean(dim=1), inside.mean(dim=1), states[:, 0], states[:, -1]]):
            assert torch.allclose(together[pooling, :, number], expected, atol=1e-4)


@pytest.mark.parametrize("kind", FAMILIES)
def test_a_document_is_read_as_in_training(tmp_path, kind):
    folder = tiny(tmp_path / "tiny", kind)
    texts = [" </s> ".join(manual_pairs(2)[0])]
    ends = [encoded(open_half("model", folder, documents=documents), texts, "de")[0] for documents in (True, False)]
    codec = load_codec(folder, documents=True)
    assert ends[0] == codec.encode(texts, "de")[0] != ends[1]
    eos = codec.tokenizer.eos_token_id if codec.tokenizer.eos_token else codec.tokenizer.sep_token_id
    assert ends[0].count(eos) == ends[1].count(eos) + 1


def test_the_decoder_can_be_chosen_and_an_encoder_has_none(tmp_path):
    half = open_half("model", tiny(tmp_path / "tiny", "mbart"), "decoder")
    rows = encoded(half, manual_pairs(2)[0], "de")
    _, text, first, _ = pooled(half, rows, ["mean", "text", "first", "last"], 1000)
    # a decoder begins with the tag, before it has read any text; in the embeddings it is the same for both texts
    assert torch.allclose(first[0, 0], first[0, 1], atol=1e-5) and not torch.allclose(text[0, 0], text[0, 1], atol=1e-5)
    with pytest.raises(InputError, match="odd: XLM-R has no decoder"):
        open_half("odd", tiny(tmp_path / "encoder", "xlm-roberta"), "decoder")
    # as a classifier that reads the encoder's states is saved
    path = tmp_path / "tiny/model/config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "decoder_layers": 0}))
    with pytest.raises(InputError, match=r"half: .*model has no layers in its decoder; look into its encoder"):
        open_half("half", path.parent, "decoder")


def test_models_and_languages_are_compared_from_files(tmp_path):
    sides = manual_pairs(60)
    paths = [tmp_path / "de.txt", tmp_path / "en.txt"]
    for path, lines in zip(paths, sides, strict=True):
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    models = tuple(tiny(tmp_path / kind, kind) for kind in ("mbart", "xlm-roberta"))
    job = {"models": models, "names": ("one", "other"), "texts": tuple(paths), "languages": ("de", "en"), "parallel": True}
    reports = []
    for block in (100, 20):
        settings = Cka(texts=50, poolings=["mean", "first"], block=block, samples=50, device="cpu")
        cka.main(tmp_path / "cka.json", Subject(**job), settings=settings)
        reports.append(read_json(tmp_path / "cka.json"))
    direct, streamed = reports
    assert (
        direct["texts"] == 50 and direct["device"] == "cpu" and direct["models"]["other"] == {"layers": 1, "width": 32, "family": "XLM-R"}
    )
    assert [each["language"] for each in direct["poolings"]["mean"]["models"]] == ["de", "en"]
    assert [each["model"] for each in direct["poolings"]["mean"]["languages"]] == ["one", "other"]
    for pooling in ("mean", "first"):
        for kind in ("models", "languages"):
            for a, b in zip(*(report["poolings"][pooling][kind] for report in reports), strict=True):
                assert [row["layers"] for row in a["by_layer"]] == [[0, 0], [1, 1]]
                for one, other in zip(a["by_layer"], b["by_layer"], strict=True):
                    for key in ("plain", "unbiased", "zero"):
                        assert (one[key] is None) == (other[key] is None)
                        assert one[key] is None or one[key] == pytest.approx(other[key], abs=1e-3)
    # the embedding of <s> is the same for all texts
    assert streamed["poolings"]["first"]["languages"][1]["by_layer"][0]["plain"] is None


def test_languages_are_compared_on_texts_that_are_no_translations_only_where_it_is_asked_for(tmp_path):
    german, english = manual_pairs(80)
    paths = [tmp_path / "de.txt", tmp_path / "en.txt"]
    for path, lines in zip(paths, (german[:40], english[40:]), strict=True):
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    job = {"models": (tiny(tmp_path / "mbart", "mbart"),), "names": ("one",), "texts": tuple(paths), "languages": ("de", "en")}
    with pytest.raises(InputError, match="there is nothing to compare"):
        cka.main(tmp_path / "cka.json", Subject(**job), settings=Cka(texts=40, samples=20, device="cpu"))
    cka.main(tmp_path / "cka.json", Subject(**job), settings=Cka(texts=40, samples=20, device="cpu", unaligned=True))
    report = read_json(tmp_path / "cka.json")
    (found,) = report["poolings"]["mean"]["languages"]
    assert report["parallel"] is False and (found["a"], found["b"]) == ("de", "en")
    # texts that have nothing to do with each other are as alike as shuffled ones, as far as so few can tell
    assert all(abs(row["plain"] - row["zero"]) < 0.2 and abs(row["unbiased"]) < 0.3 for row in found["by_layer"])


@pytest.mark.parametrize("stage, settings", [(cka, Cka(texts=5, samples=5)), (separability, Separability(texts=5, samples=5))])
def test_no_model_reads_more_of_a_text_than_another(tmp_path, monkeypatch, stage, settings):
    paths = [tmp_path / "de.txt", tmp_path / "en.txt"]
    for path in paths:
        path.write_text("".join(f"{number} {'house ' * 100}\n" for number in range(5)))
    read = {}

    def noted(half, rows):
        read[half.name] = max(read.get(half.name, 0), *map(len, rows))
        return hidden_states(half, rows)

    monkeypatch.setattr(states, "hidden_states", noted)
    models = tuple(tiny(tmp_path / kind, kind) for kind in ("mbart", "xlm-roberta"))
    job = {"models": models, "names": ("long", "short"), "texts": tuple(paths), "languages": ("de", "en"), "parallel": True}
    stage.main(tmp_path / "out.json", Subject(**job), settings=settings)
    assert read == {"long": 64, "short": 64} and open_half("long", models[0]).longest == 256


def test_texts_that_do_not_fit_are_refused(tmp_path):
    long, short = tmp_path / "long", tmp_path / "short"
    long.write_text("a\n" * 9)
    short.write_text("a\n" * 4)
    with pytest.raises(InputError, match=r"same number of lines: .*long 9, .*short 4"):
        read_texts([long, short], ["de", "en"], 10, 5, parallel=True, seed=1)
    with pytest.raises(InputError, match="short: has 4 texts, the estimate needs at least 5"):
        read_texts([long, short], ["de", "en"], 10, 5, parallel=False, seed=1)
    with pytest.raises(InputError, match="1 texts for 2 languages"):
        read_texts([long], ["de", "en"], 10, 5, parallel=False, seed=1)
    taken = [line for side in read_texts([long, long], ["de", "en"], 3, 3, parallel=True, seed=1) for line in side]
    assert len(taken) == 6


@pytest.mark.parametrize("parallel", [True, False])
def test_blank_lines_are_no_texts(tmp_path, parallel):
    """They separate documents in text such as CC-100, and would all have one state."""
    sides = [["a1", "", "a2", " ", "a3", "a4"], ["b1", "", "b2", "", "", "b4"]]
    for name, lines in zip("ab", sides, strict=True):
        (tmp_path / name).write_text("\n".join([*lines, ""]), encoding="utf-8")
    found = read_texts([tmp_path / "a", tmp_path / "b"], ["de", "en"], 10, 3, parallel=parallel, seed=1)
    if parallel:
        assert [a[1] for a in found[0]] == [b[1] for b in found[1]] and {*found[0]} == {"a1", "a2", "a4"}
    else:
        assert {*found[0]} <= {"a1", "a2", "a3", "a4"} and {*found[1]} == {"b1", "b2", "b4"} and len(found[0]) == 3
    with pytest.raises(InputError, match="b: has 3 texts, the estimate needs at least 4" if not parallel else "a: has 3 texts"):
        read_texts([tmp_path / "a", tmp_path / "b"], ["de", "en"], 10, 4, parallel=parallel, seed=1)


def test_a_labelled_example_is_one_text(tmp_path):
    table = tmp_path / "news.tsv"
    table.write_text("sport\tA title\tThe body.\nmoney\tAlone\t\nsport\tA title\tThe body.\n")
    options = {"parallel": False, "seed": 1}
    assert sorted(read_texts([table], ["en"], 10, 2, labelled=True, **options)[0]) == ["A title The body.", "Alone"]
    # a user's own text is read line by line, whatever its name ends in
    assert len(read_texts([table], ["en"], 10, 2, **options)[0]) == 3
