"""What an arm took, beside its speed."""

import json

import pytest
from invented import configuration, put, results, study_of

from workflow_scripts.report.tradeoff import cost


@pytest.mark.parametrize(
    ("said", "trained"),
    [({}, 9), ({"trained": 3}, 3), ({"adapter": {"kind": "bottleneck", "trained": 2}}, 2), ({"shots": 0}, 0)],
)
def test_the_weights_that_were_trained_are_counted(said, trained, tmp_path):
    root = results(tmp_path / "results")
    for path in (root / "runs/demo/csr/seed1").glob("*/training.json"):
        put(path, {**json.loads(path.read_text(encoding="utf-8")), "settings": {"batch_tokens": 10}, **said})
    study = study_of(root, configuration())
    study.pretraining = {"csr": 700}
    found = cost(study, "csr")
    assert (found["trained"], found["pretraining_tokens"]) == (trained, 700) and found["training_tokens"] > 0
