"""Acquired data in the workflow: from a server on the loopback address to the corpus."""

import hashlib
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

from workflow.test_workflow import LINES, ROOT, TINY, lay_out, planned, snakemake, write_config

from workflow_scripts.stage import read_json


def test_a_corpus_of_acquired_data(tmp_path, monkeypatch):
    folder = lay_out(tmp_path / "run")
    content = (folder / "manual.tsv").read_bytes()
    (tmp_path / "www").mkdir()
    (folder / "manual.tsv").rename(tmp_path / "www/manual.tsv")
    monkeypatch.setenv("CROSSGAP_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(SimpleHTTPRequestHandler, directory=tmp_path / "www")) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        web = {
            "url": f"http://127.0.0.1:{server.server_port}/manual.tsv",
            "sha256": "0" * 64,
            "languages": ["en", "de"],
            "columns": {"en": 3, "de": 4, "document": 1},
        }
        corpora = {"tiny": {**TINY["corpora"]["tiny"], "train": {"data": "web"}}}
        target = "results/corpora/tiny.en-de/corpus.json"

        def run(*arguments, check=True):
            tiny = write_config(folder, {**TINY, "corpora": corpora, "data": {"web": web}})
            return snakemake(folder, *arguments, "--configfile", str(ROOT / "config.yaml"), tiny, "--cores", "2", check=check)

        said = run(target, check=False)
        expected = hashlib.sha256(content).hexdigest()
        assert "acquisition (data web" in said and f"has the SHA-256 {expected}, expected is {web['sha256']}" in said
        assert not (folder / "results/data").exists() or not list((folder / "results/data").iterdir())
        web["sha256"] = expected
        run(target)
        server.shutdown()
    corpus = read_json(folder / target)
    assert corpus["read"] == LINES and list(corpus["checksums"]) == ["results/data/web.tsv.zst"]
    assert read_json(folder / "results/data/web.tsv.zst.json")["origin"]["sha256"] == expected
    # what is stated about data makes nothing anew
    web |= {"licence": "MPL-2.0", "citation": "the contributors"}
    assert planned(run(target, "-n")) == set()
