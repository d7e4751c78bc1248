"""Translations: on which other test sets a model translates zero-shot."""

import pytest
from configurations import changed

from workflow_scripts.run import config
from workflow_scripts.stage import InputError
from workflow_scripts.tasks.plan import Plans
from workflow_scripts.tasks.translation import zero_shot_tests


def test_zero_shot_tests_are_those_of_experiments_with_the_same_target_and_backbone():
    raw = changed("run/zero_shot", True)
    raw["corpora"]["spanish"] = {**raw["corpora"]["help"], "languages": ["es", "en"], "train": {"files": {"es": "x.es", "en": "x.en"}}}
    small = raw["backbones"]["bible"]["small"]
    small["text"]["es"] = "task"
    for name, changes in (
        ("es-en", {"corpus": "spanish", "source": "es"}),
        ("en-es", {"corpus": "spanish", "source": "en", "target": "es"}),
        ("de-en-again", {}),
    ):
        raw["experiments"][name] = {**raw["experiments"]["help-de-en"], **changes}
        raw["run"]["experiments"].append(name)
    loaded = config.load(raw)
    assert zero_shot_tests(Plans(loaded).experiments["help-de-en"]) == ["es-en@pages"]
    assert zero_shot_tests(Plans(loaded).experiments["es-en"]) == ["help-de-en@pages"]  # de-en-again has the same test set
    assert zero_shot_tests(Plans(loaded).experiments["en-es"]) == []
    loaded.run.zero_shot = ["es-en"]
    assert zero_shot_tests(Plans(loaded).experiments["help-de-en"]) == [] and zero_shot_tests(Plans(loaded).experiments["es-en"]) == [
        "help-de-en@pages"
    ]
    raw["run"]["zero_shot"] = ["es-em"]
    with pytest.raises(InputError, match=r"run\.zero_shot: .*es-em"):
        config.load(raw)
    loaded.run.zero_shot = False
    assert zero_shot_tests(Plans(loaded).experiments["help-de-en"]) == []
