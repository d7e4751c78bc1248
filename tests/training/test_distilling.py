"""Targets that one arm writes for others: of the pairs that are learnt from, and of no more."""

from workflow_scripts.models import decoding
from workflow_scripts.stage import read_json, write_json
from workflow_scripts.training.distilling import main
from workflow_scripts.training.ragged import same_choice

LINES = ["Open the file.", "", "Close it.", "Save the text.", "Print.", "Insert a table.", "Choose a font."]


def test_only_pairs_that_are_learnt_from_are_written(tmp_path, monkeypatch):
    def louder(model, source, hypotheses, *, report, **given):
        lines = source.read_text().split("\n")[:-1]
        hypotheses.write_text("".join(f"{line.upper()}\n" for line in lines))
        write_json(report, {"sentences": len(lines), "empty_sources": lines.count(""), "longest": 9})

    monkeypatch.setattr(decoding, "main", louder)
    source, targets, report = tmp_path / "train.en", tmp_path / "distilled.txt", tmp_path / "distilled.json"
    source.write_text("\n".join(LINES) + "\n")
    for pairs in (0, 3):
        main(tmp_path, source, targets, report, languages=("en", "de"), pairs=pairs)
        learnt = same_choice(len(LINES), pairs or None)
        assert targets.read_text().split("\n")[:-1] == [line.upper() if place in learnt else "" for place, line in enumerate(LINES)]
        said = read_json(report)
        assert (said["sentences"], said["empty_sources"], said["longest"]) == (len(learnt), sum(not LINES[at] for at in learnt), 9)
