"""What planning a run costs."""

import subprocess

import warm
from test_workflow import ROOT, TINY, lay_out, write_config

PLAN = """
import sys
from snakemake.cli import main
try:
    main(sys.argv[1:])
except SystemExit as ended:
    assert not ended.code, ended.code
from workflow_scripts import lazily
print("loaded:", *(name for name in ("torch", "transformers", "ctranslate2", "gensim", "numba") if lazily.is_loaded(name)))
"""


def test_a_plan_loads_no_heavy_library(tmp_path):
    config = write_config(lay_out(tmp_path / "work"), TINY)
    line = ["-s", str(ROOT / "Snakefile"), "--directory", str(tmp_path / "work"), "--configfile", str(ROOT / "config.yaml"), config, "-n"]
    done = subprocess.run([warm.python(), "-c", PLAN, *line], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "loaded:"
