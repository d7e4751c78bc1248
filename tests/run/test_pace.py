"""How long an update takes here, measured."""

import json
from dataclasses import asdict

from workflow_scripts.run import pace
from workflow_scripts.training.settings import Training


def test_an_update_of_a_small_model_is_measured(capsys):
    block = {
        "kind": "small",
        "small": {"text": {"de": "task", "en": "task"}, "vocabulary": 200, "d_model": 16, "layers": 1, "heads": 2, "ffn": 16},
    }
    training = Training(batch_tokens=64, max_length=16)
    pace.main(model=json.dumps(block), training=json.dumps(asdict(training)))
    assert 0 < float(capsys.readouterr().out) < 60


def test_its_batches_have_about_the_tokens_of_an_update():
    made = pace.batches(500, 4000, 128)
    assert len(made) == pace.WARM + pace.MEASURED
    for rows in made:
        lengths = {len(side) for row in rows for side in row}
        (length,) = lengths
        assert 4 <= length <= 126 and 500 - length < len(rows) * length <= max(500, length)
