"""A tiny experiment that gives sections of the manual their headings: learnt in English, or in German as well, tested in both."""

import pytest
from test_workflow import ROOT, TINY, lay_out, snakemake, write_config

from workflow_scripts.stage import read_json, read_rows
from workflow_scripts.text.files import read_lines

ARMS = ["finetune", "csr", "all"]


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """A folder in which it has run."""
    folder = lay_out(tmp_path_factory.mktemp("titles"))
    text = {"file": "manual.tsv", "columns": {"document": 1, "heading": 2, "text": 3}}
    german = {"file": "manual.tsv", "columns": {"document": 1, "heading": 2, "text": 4}, "language": "de"}
    manual = {
        "unit": "target",
        "language": "en",
        "train": text,
        "dev": {"held_out": 0.1},
        "test": {"pages": {"held_out": 0.1}, "seiten": {**german, "held_out": 0.1}},
        "translations": {"de": {**german, "target_language": "en"}},
        "min_words": 5,
    }
    experiment = {key: TINY["experiments"]["tiny"][key] for key in ("backbone", "training", "scores")}
    experiment |= {"task": "titles", "corpus": "manual", "lexicon": "given", "decoding": {"beam_size": 2, "max_length": 12}}
    content = {
        **TINY,
        "run": {"experiments": ["titles"], "arms": ARMS, "seeds": [1]},
        "labelled": {"manual": manual},
        "lexicons": {
            "given": {"mapping": {"mode": "dictionary"}, "dictionary": {"de-en": str(ROOT / "resources/wiktionary/de-en.tsv.xz")}}
        },
        "arms": {**TINY["arms"], "all": [{"data": "task", "updates": TINY["arms"]["finetune"][0]["updates"], "translations": True}]},
        "experiments": {"titles": experiment},
    }
    snakemake(folder, "--configfile", str(ROOT / "config.yaml"), write_config(folder, content), "--cores", "2")
    return folder / "results"


def test_text_and_answers_go_through_all_stages(done):
    parts = done / "labelled/manual"
    train = [list(read_lines(parts / f"train.en-en.{side}.en")) for side in ("source", "target")]
    assert len(train[0]) == len(train[1]) == read_json(parts / "train.en.json")["examples"]
    tests = {code: read_json(parts / f"test/{name}.{code}.json")["examples"] for name, code in (("pages", "en"), ("seiten", "de"))}
    assert tests["en"] > 10 and tests["de"] > 10
    noised = [line.split("\t") for line in read_lines(done / "codeswitch/titles/codeswitch/seed1/round0.en.tsv.zst")]
    assert [old for _, old in noised] == list(read_lines(parts / "train.en")) and any(new != old for new, old in noised)
    assert {*train[0], *train[1]} == {old for _, old in noised}
    more = [list(read_lines(parts / f"translations/de.de-en.{side}")) for side in ("source.de", "target.en")]
    rows = {arm: read_json(done / f"runs/titles/{arm}/seed1/finetune/training.json")["rows"] for arm in ARMS}
    assert len(more[0]) == len(more[1]) > 100 and rows["all"] > rows["finetune"] == rows["csr"]
    for arm in ARMS:
        for name, code in (("pages", "en"), ("seiten", "de")):
            own = done / f"runs/titles/{arm}/seed1"
            assert len(list(read_lines(own / f"{name}.hyp"))) == tests[code]
            assert (own / f"{name}.hyp").read_bytes() == (own / "predictions" / f"{name}.hyp").read_bytes()
    first = next(read_lines(done / "runs/titles/trivial/seed0/seiten.hyp"))
    assert next(read_lines(parts / "test/seiten.de-de.source.de")).startswith(first)


def test_scores_by_language_in_table_and_report(done):
    rows = read_rows(done / "scores.tsv")
    assert {row["task"] for row in rows} == {"titles"} and {row["arm"] for row in rows} == {*ARMS}
    assert {(row["testset"], row["direction"]) for row in rows} == {("pages", "en-en"), ("seiten", "de-de")}
    wanted = {"BLEU", "BLEU, lower-cased", "ROUGE-L", "METEOR (exact+stem)"}
    assert {row["metric"] for row in rows} == wanted
    assert set(read_json(done / "runs/titles/trivial/seed0/seiten.scores.json")["metrics"]) == wanted
    curve = list(read_lines(done / "runs/titles/csr/seed1/finetune/curve.tsv"))
    assert any(line.split("\t")[-1] for line in curve[1:]) and curve[0].endswith("dev_rouge")
    pairs = read_json(done / "runs/titles/significance/seiten.json")["pairs"]
    assert {row["metric"] for row in pairs} == wanted - {"BLEU, lower-cased"}


def test_the_report_says_what_was_learnt_and_in_which_languages(done):
    page = (done / "report.html").read_text(encoding="utf-8")
    assert "This part could not be made" not in page
    trivial = read_json(done / "runs/titles/trivial/seed0/seiten.scores.json")["metrics"]["ROUGE-L"]["value"]
    of_csr = [float(row["value"]) for row in read_rows(done / "scores.tsv") if (row["arm"], row["metric"]) == ("csr", "ROUGE-L")]
    average = page.partition("Average over test sets")[2].partition("</table>")[0]
    assert f"{sum(of_csr) / 2:.2f}" in average and len(of_csr) == 2 and "without a model" in average
    for words in (
        "titles, learnt in English",
        "Titles side by side",
        "articles with titles",
        "Test set seiten",
        "the first sentence of each text, without a model",
        f"{trivial:.2f}",
        "Dev ROUGE-L by update",
        "heading without text",
        "translations/de",
        "and on the translations of this text",
        "unless an arm learns from translations",
        "METEOR (exact+stem)",
    ):
        assert words in page
