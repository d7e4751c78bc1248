"""Rounds of noised text: a file each, and the text is gone through once for many of them."""

import pytest

from workflow_scripts.noise import rounds
from workflow_scripts.text.files import read_lines

LINES = [f"line {number}" for number in range(9000)]


def noised(lines, first, numbers):
    """Each line with the numbers of its round and of itself."""
    for number in numbers:
        yield [f"{number} {first + place}" for place in range(len(lines))]


@pytest.mark.parametrize("together", [1, 2, 16])
def test_every_round_has_every_line_and_the_text_is_read_as_seldom_as_may_be(tmp_path, monkeypatch, together):
    monkeypatch.setattr(rounds, "_TOGETHER", together)
    read = []

    def lines():
        read.append(1)
        return iter(LINES)

    files = {number: tmp_path / f"round{number}.tsv.zst" for number in (0, 1, 7)}
    rounds.write_rounds(files, lines, noised)
    for number, path in files.items():
        assert list(read_lines(path)) == [f"{number} {place}\t{line}" for place, line in enumerate(LINES)]
    assert len(read) == {1: 3, 2: 2, 16: 1}[together]


def test_an_error_leaves_no_round_half_written(tmp_path):
    def broken(lines, first, numbers):
        if first:
            raise ValueError("noise")
        return noised(lines, first, numbers)

    with pytest.raises(ValueError, match="noise"):
        rounds.write_rounds({number: tmp_path / f"{number}.tsv" for number in range(3)}, lambda: iter(LINES), broken)
    assert not list(tmp_path.iterdir())


def test_noise_has_as_many_lines_and_rounds_as_it_is_asked_for(tmp_path):
    for wrong in (lambda lines, first, numbers: [lines[1:]], lambda lines, first, numbers: []):
        with pytest.raises(ValueError):
            rounds.write_rounds({0: tmp_path / "0.tsv"}, lambda: iter(LINES), wrong)
    assert not list(tmp_path.iterdir())
