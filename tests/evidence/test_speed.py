"""Settings of the measurement of speed; the measurement itself runs in `tests/workflow/test_sga.py`."""

import pytest
import yaml

from workflow_scripts.run.config import load
from workflow_scripts.stage import InputError


@pytest.mark.parametrize(
    "settings, said", [({"beams": [1, 0]}, "beams.1"), ({"iterations": [-1]}, "iterations.0"), ({"repeats": 0}, "repeats")]
)
def test_beams_and_iterations_have_limits(settings, said):
    with open("config.yaml", encoding="utf-8") as file:
        raw = yaml.safe_load(file)
    raw["experiments"]["help-de-en"]["speed"] = settings
    with pytest.raises(InputError, match=rf"speed\.{said}: input should be greater than or equal to"):
        load(raw)
