"""How long an update takes here, measured."""

import json
from dataclasses import asdict
from itertools import accumulate

from workflow_scripts.run import pace
from workflow_scripts.training.backbone import Backbone, Small
from workflow_scripts.training.settings import Training


def test_an_update_of_a_small_model_is_measured(capsys):
    block = {
        "kind": "small",
        "small": {"text": {"de": "task", "en": "task"}, "vocabulary": 200, "d_model": 16, "layers": 1, "heads": 2, "ffn": 16},
    }
    training = Training(batch_tokens=64, max_length=16)
    pace.main(model=json.dumps(block), training=json.dumps(asdict(training)))
    assert 0 < float(capsys.readouterr().out) < 60


def test_the_processor_time_of_the_updates_behind_the_first_ones_counts(monkeypatch):
    """Beside the first jobs of a run, the clock on the wall gave twice the time."""
    taken = [50.0] * pace.WARM + [1.0, 9.0, 2.0, 8.0, 5.0, 4.0, 6.0, 3.0, 7.0]
    clock = accumulate(step for each in taken for step in (1.0, each))
    monkeypatch.setattr(pace.time, "thread_time", lambda: next(clock))
    small = Small(text={"de": "task", "en": "task"}, vocabulary=200, d_model=16, layers=1, heads=2, ffn=16)
    assert pace.seconds_per_update(Backbone(kind="small", small=small), Training(batch_tokens=64, max_length=16)) == 5


def test_its_batches_have_about_the_tokens_of_an_update():
    made = pace.batches(500, 4000, 128)
    assert len(made) == pace.WARM + pace.MEASURED
    for rows in made:
        lengths = {len(side) for row in rows for side in row}
        (length,) = lengths
        assert 4 <= length <= 126 and 500 - length < len(rows) * length <= max(500, length)
