"""What the tests of tasks share: a tiny model of each family, made when a test first asks for it."""

from pathlib import Path

import pytest
from tiny_models import small_encoder, small_model


class Models(dict[str, Path]):
    """Family → the folder of a tiny model, which is read alone."""

    def __init__(self, new_folder):
        self.new_folder = new_folder

    def __missing__(self, family):
        make = small_encoder if family in ("bert", "xlm-roberta") else small_model
        self[family] = make(self.new_folder(family), family)
        return self[family]


@pytest.fixture(scope="session")
def models(tmp_path_factory):
    return Models(tmp_path_factory.mktemp)
