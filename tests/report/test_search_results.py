"""The report of a retrieval: models instead of arms, layers, and neighbours side by side, of a small results tree."""

from html import unescape

import torch
from invented import put, report

from workflow_scripts.run.config import load
from workflow_scripts.tasks.neighbours import Sides, score_of
from workflow_scripts.tasks.retrieval import compare_models
from workflow_scripts.text.aligned import AlignedSource, main
from workflow_scripts.text.files import write_lines

FOUND = {"plain": [0, 1, 0, 0], "better": [0, 1, 2, 0]}


def configuration(backbone=None):
    return load(
        {
            "run": {"experiments": ["lookup"], "arms": [], "seeds": [1, 2]},
            "corpora": {},
            "lexicons": {},
            "arms": {},
            "backbones": {"small": backbone or {"kind": "hub", "model": "somebody/mbart"}},
            "aligned": {"pairs": {"test": {"short": {"languages": ["de", "en"], "files": {"de": "x.de", "en": "x.en"}}}}},
            "experiments": {
                "lookup": {"task": "retrieval", "corpus": "pairs", "models": {name: {"backbone": "small"} for name in FOUND}},
            },
        }
    )


def results(root, folder):
    """What a finished run would have left."""
    sides = {"de": ["Hund", "Katze", "Aal", "<b>Haus"], "en": ["dog", "cat", "eel", "house"]}
    for code, lines in sides.items():
        write_lines(folder / f"x.{code}", lines)
    part = root / "aligned/pairs/test"
    part.mkdir(parents=True)
    files = {code: str(folder / f"x.{code}") for code in sides}
    main(*(part / f"short.{kind}" for kind in ("source", "target", "gold", "json")), settings=AlignedSource(("de", "en"), files=files))
    put(root / "backbones/small/backbone.json", {"kind": "hub", "model": "somebody/mbart", "family": "mbart", "parameters": 9})
    test = Sides([torch.zeros(4, 2)], [torch.zeros(4, 2)], [(i, i) for i in range(4)])
    settings = {"part": "encoder", "pooling": "mean", "score": "margin", "k": 4}
    for name, given in FOUND.items():
        run = root / f"runs/lookup/{name}/seed1/predictions"  # a backbone is measured with the first seed alone
        put(
            run / "short.scores.json",
            score_of(given, test, mines=False)
            | {"by_cosine": 25.0, "backwards": 50.0, "threshold": None, "layers": {"0": 10.0, "1": 75.0}}
            | {"layer": 1, "width": 2, "family": "mbart", "settings": settings},
        )
        write_lines(run / "short.hyp", (f"{at}\t0.5" for at in given))
    folders = tuple(root / f"runs/lookup/{name}/seed1/predictions" for name in FOUND)
    compare_models(
        folders, (part / "short.gold",), root / "runs/lookup/significance.json", names=tuple(FOUND), testsets=("short",), seeds=(1,)
    )


def test_the_page_of_a_retrieval_has_every_part(tmp_path):
    results(tmp_path / "results", tmp_path)
    page, rows = report(tmp_path / "results", tmp_path, configuration())
    assert "could not be made" not in page and "<b>Haus" not in page
    text = unescape(page)
    assert "lookup: retrieval of translations" in text and "German to English" in text and "margin, k = 4" in text
    assert "a random choice gets 25.00 %" in text  # one in four
    # the eel is found by one model alone; what is not the translation is marked
    neighbours = page[page.index('id="neighbours-lookup"') :]
    assert neighbours.count("<mark>dog</mark>") == 3 and "<mark>eel</mark>" not in neighbours
    # backbones have no other seeds, and the page says nothing of any
    assert {r["seed"] for r in rows} == {"1"} and "over 2 seeds" not in text and "and of training seeds" not in text
    assert "With one training seed" not in text and "was pretrained once" not in text
    found = {(r["arm"], r["metric"]): float(r["value"]) for r in rows}
    assert found == {
        ("plain", "accuracy"): 50,
        ("plain", "backwards"): 50,
        ("plain", "chance"): 25,
        ("better", "accuracy"): 75,
        ("better", "backwards"): 50,
        ("better", "chance"): 25,
    }
    assert {r["direction"] for r in rows} == {"de-en"}


def test_the_page_says_that_models_were_pretrained_once(tmp_path):
    results(tmp_path / "results", tmp_path)
    pretrained = {"kind": "small", "small": {"text": {"de": "x.de", "en": "x.en"}}}
    page, _ = report(tmp_path / "results", tmp_path, configuration(pretrained))
    text = unescape(page)
    assert (
        "Each model was pretrained once, so nothing is known about how the differences vary" in text
        and "With one training seed" not in text
    )
