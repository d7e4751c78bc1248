"""A tiny experiment in summarisation, from sections of the manual to the report."""

import pytest
from test_workflow import ROOT, TINY, lay_out, snakemake, write_config

from workflow_scripts.stage import read_json, read_rows
from workflow_scripts.text.files import read_lines

ARMS = ["finetune", "csr"]


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """A folder in which it has run."""
    folder = lay_out(tmp_path_factory.mktemp("summaries"))
    sections = {
        "languages": ["de", "en"],
        "train": {"file": "manual.tsv", "columns": {"document": 1, "heading": 2, "en": 3, "de": 4}, "summary": "heading"},
        "dev": {"held_out": 20},
        "test": {"pages": {"held_out": 20}},
        "documents": {"language": "de", "cut": {"de": {"words": 25}}, "min_words": 5},
    }
    experiment = {
        **TINY["experiments"]["tiny"],
        "task": "summarisation",
        "corpus": "sections",
        "decoding": {"beam_size": 2, "max_length": 12},
        "representation": {"sentences": 20},
    }
    content = {
        **TINY,
        "run": {"experiments": ["summaries"], "arms": ARMS, "seeds": [1]},
        "corpora": {**TINY["corpora"], "sections": sections},
        "lexicons": {"tiny": {**TINY["lexicons"]["tiny"], "corpus": "tiny", "lexicon": {"align": False}}},
        "experiments": {"summaries": experiment},
    }
    snakemake(folder, "--configfile", str(ROOT / "config.yaml"), write_config(folder, content), "--cores", "2")
    return folder / "results"


def test_documents_go_through_all_stages(done):
    sides = {code: list(read_lines(done / f"corpora/sections.de-en/train.{code}")) for code in ("de", "en")}
    assert any(" </s> " in line for line in sides["de"]) and not any("</s>" in line for line in sides["en"])
    assert "s" not in {line.split(" ")[0] for line in read_lines(done / "lexicons/tiny.en-de/tiny/de.vec")}
    noised = [line.split("\t") for line in read_lines(done / "codeswitch/summaries/codeswitch/seed1/round0.de.tsv.zst")]
    assert [new.count("</s>") for new, _ in noised] == [line.count("</s>") for line in sides["de"]]
    assert [old for _, old in noised] == sides["de"] and any(new != old for new, old in noised)
    hypotheses = list(read_lines(done / "runs/summaries/csr/seed1/pages.hyp"))
    assert len(hypotheses) == len(list(read_lines(done / "corpora/sections.de-en/test/pages.en"))) >= 20
    assert not any("</s>" in line for line in hypotheses)
    trivial = list(read_lines(done / "runs/summaries/trivial/seed0/pages.hyp"))
    documents = list(read_lines(done / "corpora/sections.de-en/test/pages.de"))
    assert trivial == [line.partition(" </s> ")[0] for line in documents] != documents


def test_rouge_leads_in_table_and_report(done):
    rows = read_rows(done / "scores.tsv")
    assert {row["task"] for row in rows} == {"summarisation"} and not [row for row in rows if row["metric"] == "BLEU"]
    found = {row["arm"]: row for row in rows if row["metric"] == "ROUGE-L"}
    assert set(found) == set(ARMS) and "tok:words" in found["csr"]["signature"]
    scores = read_json(done / "runs/summaries/csr/seed1/pages.scores.json")["metrics"]
    assert set(scores) == {"ROUGE-1", "ROUGE-2", "ROUGE-L"}
    assert float(found["csr"]["value"]) == pytest.approx(scores["ROUGE-L"]["value"], abs=1e-3)
    curve = list(read_lines(done / "runs/summaries/csr/seed1/finetune/curve.tsv"))
    assert curve[0].endswith("dev_bleu\tdev_rouge") and any(line.split("\t")[-1] for line in curve[1:])
    page = (done / "report.html").read_text(encoding="utf-8")
    assert "This part could not be made" not in page and "BLEU" not in page.partition('id="cost"')[0]
    kept = read_json(done / "corpora/sections.de-en/corpus.json")["documents"]
    assert kept["de"]["cut"] and f"{kept['de']['cut']:,}, " in page
    for words in (
        "summarisation, German to English",
        "25 words",
        "Summaries side by side",
        "Dev ROUGE-L by update",
        "the first sentence of each text, without a model",
    ):
        assert words in page
