"""Drawings of the report."""

import re

import pytest

from workflow_scripts.report import drawing


@pytest.mark.parametrize("low, high, expected", [(0, 700, [0, 200, 400, 600, 800]), (0.12, 0.31, [0.1, 0.15, 0.2, 0.25, 0.3, 0.35])])
def test_ticks_are_round_and_hold_the_data(low, high, expected):
    assert drawing.ticks(low, high) == pytest.approx(expected)


def test_layers_are_whole_numbers():
    assert drawing.ticks(0, 2, whole=True) == [0, 1, 2] and drawing.ticks(0, 2)[1] == 0.5


def test_drawings_escape_and_survive_no_or_constant_data():
    svg = drawing.line_chart("a < b", [{"name": "<x>", "colour": 0, "lines": [[(0, 1), (5, 1)]]}], "x", "y")
    assert "<x>" not in svg and "&lt;x&gt;" in svg and "a &lt; b" in svg
    assert "no evaluations" in drawing.line_chart("t", [{"name": "x", "colour": 0, "lines": []}], "x", "y")
    assert "nan" not in drawing.scatter("t", [(0.0, 0.0)], [(0.0, 0.0)], ("a", "b"), 0.0)


def test_points_at_one_place_keep_their_names_and_a_long_name_leaves_room_for_the_axis():
    series = [{"name": "x", "colour": 0, "lines": [[(1, 2)], [(1, 2)], [(3, 4)]], "labels": ["first", "second", "third"]}]
    svg = drawing.line_chart("t", series, "x", "y")
    assert all(svg.count(f">{name}<") == 1 for name in ("first", "second", "third"))
    rows = [{"name": "n" * 90, "colour": 0, "value": value} for value in (1.0, 2.0)]
    left, right = (float(x) for x in re.findall(r'<circle cx="([\d.]+)"[^>]* r="5"', drawing.dot_chart("t", rows, "x")))
    assert left < right
