"""Distances of representations in the report."""

import numpy as np
import pytest
from invented import configuration, done_again, put, report, results, study_of

from workflow_scripts.report.geometry import distances, plane
from workflow_scripts.report.overview import overview_rows
from workflow_scripts.stage import read_json


def test_plane_keeps_the_two_main_directions():
    points = np.array([[0, 3, 0], [0, -3, 0], [1, 0, 0], [-1, 0, 0], [0, 0, 0.1], [0, 0, -0.1]])
    flat, share = plane(points)
    assert np.abs(flat[0]).tolist() == pytest.approx([3, 0]) and share > 0.99


def test_distances_of_another_kind_are_kept_apart(tmp_path):
    root, config = results(tmp_path / "results"), configuration()
    for path in root.glob("runs/demo/csr/seed*/finetune/representation.json"):
        put(path, {**read_json(path), "tag_format": "X </s>; mean over the positions"})
    done_again(root, config)
    html = report(root, tmp_path, config)[0]
    assert (
        "distances in which these differ cannot be compared: backbone, " in html and "csr after finetune: X &lt;/s&gt;; mean over" in html
    )
    assert "Each kind has one of its own" in html
    study = study_of(root, config)
    rows = distances(study)
    closer = {row["arm"]: row["closer"] for row in overview_rows({"study": study, "distances": {"rows": rows}, "failed": {}})}
    assert closer["csr"] is None and closer["mask"] == 0.0
