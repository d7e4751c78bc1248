"""The choice from a grid."""

import json

import pytest

from workflow_scripts.stage import InputError, read_json
from workflow_scripts.training.choice import Choice, main


def put(path, **content):
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"seed": 3, "diverged": "", **content}))
    return path


@pytest.fixture
def grid(tmp_path):
    """Three points of an arm with a pretext phase: the first has the better BLEU, the third the better loss, the second diverged."""
    reports = []
    for point, (rate, bleu, loss, diverged) in enumerate(((1, 12.0, 3.0, ""), (2, 99.0, 0.1, "loss nan"), (3, 11.0, 2.5, ""))):
        run = tmp_path / f"csr.grid{point}/seed3"
        settings = {"learning_rate": rate, "dropout": 0.1}
        put(run / "pretext/training.json", settings={**settings, "learning_rate": 7}, checkpoints=str(run / "pretext/checkpoints/h"))
        report = put(
            run / "finetune/training.json",
            start=str(run / "pretext/model"),
            settings=settings,
            checkpoints=str(run / "finetune/checkpoints/h"),
            handed_on={"updates": [9], "dev_bleu": bleu, "dev_loss": loss},
            diverged=diverged,
        )
        reports.append(report)
    return reports


@pytest.mark.parametrize("by, chosen", [("dev_bleu", 0), ("dev_loss", 2)])
def test_the_best_point_that_did_not_diverge_is_chosen(tmp_path, grid, by, chosen):
    main(tuple(grid), tmp_path / "choice.json", swept=("learning_rate",), settings=Choice(by))
    choice = read_json(tmp_path / "choice.json")
    assert choice["chosen"] == chosen and choice["seed"] == 3
    assert [point["settings"] for point in choice["points"]] == [{"learning_rate": rate} for rate in (1, 2, 3)]
    phases = choice["phases"]
    assert phases["finetune"]["settings"] == {"learning_rate": chosen + 1} and phases["pretext"]["settings"] == {"learning_rate": 7}
    assert phases["finetune"]["checkpoints"] == str(grid[chosen].parent / "checkpoints")


def test_by_the_loss_a_heads_score_is_reported_as_well(tmp_path):
    reports = [
        put(
            tmp_path / f"plain.grid{point}/seed1/finetune/training.json",
            start="results/backbones/small/model",
            settings={"learning_rate": point},
            checkpoints="x/h",
            handed_on={"updates": [9], "dev_macro_f1": score, "dev_loss": loss},
        )
        for point, score, loss in ((0, 0.5, 1.0), (1, 0.7, 2.0))
    ]
    for by, chosen in (("dev_loss", 0), ("dev_score", 1)):
        main(tuple(reports), tmp_path / "choice.json", swept=("learning_rate",), settings=Choice(by))
        choice = read_json(tmp_path / "choice.json")
        assert choice["chosen"] == chosen
        assert [(point["dev_score"], point["dev_loss"]) for point in choice["points"]] == [(0.5, 1.0), (0.7, 2.0)]


def test_a_grid_that_diverges_everywhere_is_refused(tmp_path, grid):
    with pytest.raises(InputError, match=r"diverged at every point.*loss nan"):
        main((grid[1],), tmp_path / "choice.json", swept=("learning_rate",))
    assert not (tmp_path / "choice.json").exists()


def test_a_point_that_was_not_measured_is_refused(tmp_path, grid):
    grid[2].write_text(grid[2].read_text().replace('"dev_bleu": 11.0', '"dev_bleu": null'))
    with pytest.raises(InputError, match=r"point {'learning_rate': 3} of the grid has no dev_bleu.*set choice.by: dev_loss"):
        main(tuple(grid), tmp_path / "choice.json", swept=("learning_rate",), settings=Choice("dev_bleu"))
    main(tuple(grid), tmp_path / "choice.json", swept=("learning_rate",), settings=Choice("dev_loss"))


def test_a_pretext_phase_that_diverged_spoils_its_point(tmp_path, grid):
    pretext = grid[0].parents[1] / "pretext/training.json"
    pretext.write_text(pretext.read_text().replace('"diverged": ""', '"diverged": "loss inf"'))
    main(tuple(grid), tmp_path / "choice.json", swept=("learning_rate",))
    assert read_json(tmp_path / "choice.json")["chosen"] == 2
