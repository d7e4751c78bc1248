"""Data by mtdata's ids, with mtdata itself in its own environment: make test-mtdata."""

import gzip
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from workflow.test_workflow import ROOT, TINY, lay_out, snakemake, write_config

from workflow_scripts.stage import read_json
from workflow_scripts.text.files import read_lines

ENVIRONMENT = Path("results/environments/mtdata.json")


class Proxy(BaseHTTPRequestHandler):
    """Answers for every server: mtdata's URLs are its own."""

    content = gzip.compress("".join(f"sakinys {n}\tsentence {n}\n" for n in range(50)).encode())

    def do_GET(self):
        self.server.asked.append(self.path)
        self.send_response(200)
        self.send_header("Content-Length", str(len(self.content)))
        self.end_headers()
        self.wfile.write(self.content)

    def log_message(self, *_):
        pass


@pytest.fixture(scope="session")
def made():
    """mtdata's environment. The rule makes it where a run in this clone would, once."""
    snakemake(ROOT, str(ENVIRONMENT), "--cores", "1", "--nolock")
    made = read_json(ENVIRONMENT)
    assert made["python"], made["reason"]
    return made


def test_the_environment_is_the_lock(made):
    lock = [line for line in Path("envs/mtdata.txt").read_text().splitlines() if not line.startswith("#")]
    listed = subprocess.run([made["python"], "-m", "pip", "list", "--format=freeze"], capture_output=True, text=True).stdout.splitlines()
    installed = {line.lower() for line in listed if line.split("==")[0] not in ("pip", "setuptools")}
    assert installed == {line.lower() for line in lock}


def test_a_dataset_of_its_index(made, tmp_path, monkeypatch):
    folder = lay_out(tmp_path / "run")
    (folder / "results").mkdir()
    (folder / "results/environments").symlink_to(ENVIRONMENT.parent.absolute())
    monkeypatch.setenv("CROSSGAP_CACHE", str(tmp_path / "cache"))
    data = {name: {"mtdata": f"Statmt-{name}-lit-eng", "languages": ["lt", "en"]} for name in ("europarl-9", "europarl-99")}
    arguments = ["--configfile", str(ROOT / "config.yaml"), write_config(folder, {**TINY, "data": data}), "--cores", "1"]
    with ThreadingHTTPServer(("127.0.0.1", 0), Proxy) as server:
        server.asked = []
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{server.server_port}")
        snakemake(folder, "results/data/europarl-9.tsv.zst", *arguments)
        said = snakemake(folder, "results/data/europarl-99.tsv.zst", *arguments, check=False)
        server.shutdown()
    assert server.asked == ["http://www.statmt.org/europarl/v9/training/europarl-v9.lt-en.tsv.gz"]
    lines = list(read_lines(folder / "results/data/europarl-9.tsv.zst"))
    assert len(lines) == 50 and lines[41] == "block 1\tsakinys 41\tsentence 41"
    assert "mtdata cannot give Statmt-europarl-99-lit-eng" in said


def test_without_its_environment_it_says_why(tmp_path):
    (tmp_path / "none.json").write_text('{"python": null, "reason": "pip could not install mtdata.txt"}')
    command = [
        sys.executable,
        "-m",
        "workflow_scripts.text.acquisition",
        "--output",
        tmp_path / "x",
        "--report",
        tmp_path / "y",
        "--environment",
    ]
    settings = '{"mtdata": "Statmt-europarl-9-lit-eng", "languages": ["lt", "en"]}'
    done = subprocess.run([*command, tmp_path / "none.json", "--settings", settings], capture_output=True, text=True)
    assert done.returncode == 1 and "mtdata: pip could not install mtdata.txt" in done.stderr
