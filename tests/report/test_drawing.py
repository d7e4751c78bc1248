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


def test_lines_end_with_their_names_where_the_data_end():
    series = [
        {"name": name, "colour": place, "lines": [[(0, 1), (430, height)]]}
        for place, (name, height) in enumerate((("one", 5), ("two", 5.01)))
    ]
    svg = drawing.line_chart("t", series, "x", "y")
    assert svg.count(">one<") == svg.count(">two<") == 2  # in the legend and at the line's end
    ends = [float(y) for y in re.findall(r'y="([\d.]+)" text-anchor="start" class="tick">(?:one|two)<', svg)][:2]
    assert abs(ends[0] - ends[1]) >= 12.9
    # the last tick is within the data
    assert ">400<" in svg and ">500<" not in svg
    assert "<title>one, 430: 5</title>" in svg


def test_names_keep_apart_and_below_the_top():
    assert drawing.spread_out([10.0, 11.0, 50.0], 13, 0) == pytest.approx([4.0, 17.0, 44.0])
    found = drawing.spread_out([3.0, 3.0, 3.0], 13, 20)
    assert found == [20, 33, 46]


def test_a_histogram_counts_every_value_and_tells_signs_apart():
    ranges = drawing.counted([-3.0, -0.5, 0.0, 0.2, 7.9])
    assert sum(count for _, _, count in ranges) == 5 and any(low == 0 for low, _, _ in ranges)
    assert sum(count for _, high, count in ranges if high <= 0) == 2
    svg = drawing.histogram("t", [-3.0, 7.9], "x")
    assert "var(--c2)" in svg and "var(--c1)" in svg and "no numbers" in drawing.histogram("t", [], "x")


def test_a_forest_has_words_above_each_interval_and_says_which_side_is_which():
    row = {
        "name": "csr − <b>",
        "words": "+1.00 (+0.50 to +1.50), better",
        "colour": 1,
        "value": 1.0,
        "low": 0.5,
        "high": 1.5,
        "values": [0.9],
    }
    sides = ("the first is worse", "the first is better")
    svg = drawing.forest("t", [row], "difference, BLEU", sides)
    assert "<tspan>csr − &lt;b&gt;:</tspan> +1.00 (+0.50 to +1.50), better" in svg and svg.count("<circle") == 2
    assert "the first is better" in svg and "the first is worse" not in svg  # there is no room on the left of zero
    svg = drawing.forest("t", [row, {**row, "low": -2.0, "value": 0.0}], "difference, BLEU", sides)
    assert "the first is better" in svg and "the first is worse" in svg
    long = drawing.forest("t", [{**row, "name": "n" * 200}], "x", sides)
    assert float(re.search(r'width="([\d.]+)"', long)[1]) > 200 * 8
