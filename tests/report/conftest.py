"""The report's page and its table of scores, of the results of `invented`."""

import pytest
from invented import report, results


@pytest.fixture
def page(tmp_path):
    return report(results(tmp_path / "results"), tmp_path)
