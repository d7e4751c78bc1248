"""The report's page and its table of scores, of the results of `invented`; and a browser for pages."""

import subprocess

import pytest
from browser import launch_options
from invented import report, results
from playwright.sync_api import sync_playwright


@pytest.fixture
def page(tmp_path):
    return report(results(tmp_path / "results"), tmp_path)


@pytest.fixture(scope="module")
def browser():
    try:
        options = launch_options()
    except (AssertionError, OSError, subprocess.CalledProcessError) as reason:
        pytest.skip(f"no Chromium is installed, and none could be fetched from npm: {reason}")
    with sync_playwright() as playwright:
        yield playwright.chromium.launch(**options)
