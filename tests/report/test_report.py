"""The report as a whole, made of a small tree of results with invented numbers."""

import re
import shutil
from dataclasses import replace
from types import SimpleNamespace

import pytest
from invented import ARMS, configuration, done_again, plain, put, report, results

from workflow_scripts.report.__main__ import write_report
from workflow_scripts.report.comparison import contrast
from workflow_scripts.report.exhibits import marked
from workflow_scripts.report.study import summary
from workflow_scripts.report.zero_shot import zero_shot
from workflow_scripts.stage import InputError, read_rows
from workflow_scripts.tasks.plan import Plans
from workflow_scripts.tasks.translation import PARTS
from workflow_scripts.text.files import evenly


def test_numbers_come_out_in_both_files(page):
    html, rows = page
    assert "weights of 40, by dev BLEU" in html
    assert "weights of 40, by dev loss (no BLEU was measured on the dev set)" in html
    for number in ("21.25 ‡", "+1.25", "1,234", "98,765", "34.5 %", "91.2 %", "34.7 %", "23.250", "9.500", "4,321", "f00d", "abc123"):
        assert number in html
    found = {(r["arm"], r["metric"]): r for r in rows}
    assert found["csr", "BLEU"] == {
        "experiment": "demo", "task": "translation", "corpus": "help", "testset": "pages", "direction": "de-en",
        "arm": "csr", "seed": "1", "metric": "BLEU", "value": "21.25", "signature": "b|s",
        "low": "19.75", "high": "22.75", "p": "0.0045",
    }  # fmt: skip
    distance = found["csr", "distance_pairs_rms"]
    assert (distance["value"], distance["testset"], distance["signature"]) == ("9.5", "", "X </s> LANG")
    assert found["backbone", "distance_means"]["value"] == "11.625"
    assert found["csr", "distance_pairs_rms_pretext"]["seed"] == "1"


def test_a_lower_cased_corpus_is_called_so(tmp_path):
    root, config = results(tmp_path / "results"), configuration()
    assert "lower-cased" not in plain(report(root, tmp_path)[0]).partition("The configuration")[0]
    config.corpora["help"].lowercase = True
    text = plain(report(root, tmp_path, config)[0])
    assert "all of its text was lower-cased" in text and "German to English, of lower-cased text" in text


def test_text_is_escaped(tmp_path):
    html, _ = report(results(tmp_path / "results", hypothesis="<script>alert(1)</script> & more"), tmp_path)
    assert html.count("<script") == 1 and "&lt;script&gt;alert(1)&lt;/script&gt; &amp; more" in html
    assert "&lt;b&gt;schließt&lt;/b&gt;" in html


def test_nothing_is_loaded_from_anywhere(page):
    html = page[0]
    # the script that sorts tables stands in the page
    assert not re.search(r"<(script |link|img|iframe|object|embed)\b|@import|url\(|fetch\(|import\(", html)
    assert all(target.startswith("#") for target in re.findall(r'(?:src|href|srcset|xlink:href)\s*=\s*["\']?([^"\'\s>]+)', html))
    ids = set(re.findall(r'\bid="([^"]+)"', html))
    assert {target[1:] for target in re.findall(r'href="(#[^"]+)"', html)} <= ids


@pytest.mark.parametrize(
    "lost, part, reason",
    [
        ("csr/seed1/pages.scores.json", "scores", "csr/seed1/pages.scores.json is missing"),
        ("csr/seed1/pages.words.json", "words", "pages.words.json is missing"),
        ("mask/seed1/finetune/curve.tsv", "curves", "curve.tsv"),
        ("backbone.representation.npz", "distances", "backbone.representation.npz"),
        ("random/seed1/pages.hyp", "translations", "pages.hyp"),
    ],
)
def test_a_part_that_cannot_be_made_says_why_and_the_rest_is_made(tmp_path, lost, part, reason):
    root = results(tmp_path / "results")
    (root / "runs/demo" / lost).unlink()
    html, rows = report(root, tmp_path)
    text = plain(html)
    assert "Not all of this report could be made" in text and text.count("This part could not be made") == 1
    at = html.index(f'id="{part}-demo"')
    assert reason in html[at : at + 600]
    assert bool(rows) and ("34.5 %" in html or part == "lexicon") and all(f'id="{name}-demo"' in html for name in PARTS if name != "speed")
    assert any(row["metric"] == "BLEU" for row in rows) == (part != "scores")


def test_a_file_of_another_form_costs_its_part_alone(tmp_path):
    root = results(tmp_path / "results")
    put(root / "corpora/help.de-en/corpus.json", {"read": 5})
    html, _ = report(root, tmp_path)
    assert html.count("This part could not be made") == 1 and "21.25 ‡" in html
    assert "UndefinedError" in html[html.index('id="run-demo"') : html.index('id="distances-demo"')]


def test_a_folder_without_a_run_is_one_clear_error(tmp_path):
    with pytest.raises(InputError, match=r"corpus\.json is missing.*made of a finished run"):
        report(tmp_path, tmp_path)
    assert not (tmp_path / "report.html").exists()


def test_many_experiments_have_a_page_each(tmp_path):
    root = results(tmp_path / "results")
    config = configuration()
    done_again(root, config)
    pages = tuple(tmp_path / "report" / f"{name}.html" for name in ("demo", "again"))
    for path in (root / "runs/again").rglob("*.json"):
        path.write_text(path.read_text(encoding="utf-8").replace("abc123", "def456"), encoding="utf-8")
    compared = tmp_path / "comparisons.tsv"
    write_report(root, tmp_path / "report.html", tmp_path / "s.tsv", pages=pages, tables=(compared,), plans=Plans(config))
    index = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert 'href="report/again.html"' in index and "Learning curves" not in index and "21.25 ‡" in index
    one = pages[1].read_text(encoding="utf-8")
    assert 'href="../report.html"' in one and 'id="curves-again"' in one and "demo" not in plain(one[: one.index("Provenance")])
    assert "2 different commits" in index and "different commits" not in pages[0].read_text(encoding="utf-8")
    rows = {(row["experiment"], row["metric"], row["arm"], row["other"]): row for row in read_rows(compared)}
    assert {name for name, *_ in rows} == {"demo", "again"}
    found = rows["again", "BLEU", "csr", "finetune"]
    values = [found[name] for name in ("difference", "low", "seeds_low", "p", "p_uncorrected")]
    assert values == ["1.25", "0.75", "", "0.009", "0.003"]


def test_small_functions():
    assert summary([1.0, 3.0])["sd"] == pytest.approx(2**0.5)
    assert summary([2.0])["interval"] is None
    assert evenly(range(100), 4) == [0, 25, 50, 75] and evenly([1], 4) == [1]
    assert marked("a b c", "a x c", "en") == [("a", False), ("x", True), ("c", False)]
    rows = [
        {"testset": "t", "metric": "BLEU", "arm": a, "seed": s, "value": v}
        for a, s, v in (("x", 1, 3), ("y", 1, 1), ("x", 2, 5), ("y", 2, 4))
    ]
    assert contrast(rows, "x", "y", "t", "BLEU")["values"] == [2, 1]


def test_an_overview_stands_above_several_experiments(tmp_path, page):
    assert 'id="overview"' not in page[0]
    root = tmp_path / "results"
    config = configuration()
    done_again(root, config)
    html = report(root, tmp_path, config)[0]
    table = html[html.index('id="overview"') : html.index('id="scores-demo"')]
    assert table.count('<a href="#headline-again">') == len(ARMS) and "21.25 ‡" in table and "+1.25" in table
    assert "without a model" in table and table.count("3.33") == 2 * len(ARMS)
    ids = re.findall(r'\bid="([^"]+)"', html)
    assert len(ids) == len(set(ids)) and {link for link in re.findall(r'href="#([^"]+)"', html)} <= set(ids)


def test_the_hash_of_the_configuration_tells_configurations_apart(tmp_path, page):
    (found,) = re.findall(r"The configuration \(SHA-256 ([0-9a-f]{16})", page[0])
    config = configuration()
    assert found in report(tmp_path / "results", tmp_path, config)[0]
    config.experiments["demo"].training.dropout = 0.123
    assert found not in report(tmp_path / "results", tmp_path, config)[0]


def test_models_of_other_experiments_stand_in_a_matrix(tmp_path):
    """Two experiments into one language; each model translates the other's test set (Table III)."""
    config = configuration()
    config.experiments["spanish"] = replace(config.experiments["demo"], source="es", corpus="es")
    config.corpora["es"] = replace(config.corpora["help"], languages=("es", "en"))
    config.run.experiments.append("spanish")
    config.run.zero_shot = True
    root = results(tmp_path / "results")
    for folder in ("runs", "codeswitch"):
        shutil.copytree(root / folder / "demo", root / folder / "spanish")
    for folder in ("corpora/help.de-en", "lexicons/help.de-en"):
        shutil.copytree(root / folder, root / folder.replace("help.de", "es.es"))
    for name, other in (("demo", "spanish"), ("spanish", "demo")):
        put(
            root / f"runs/{name}/trivial/seed0/{other}@pages.scores.json",
            {"sentences": 3, "metrics": {"BLEU": {"value": 3.33, "signature": "b|s"}}},
        )
        for path in (root / "runs" / name).glob("*/seed1/pages.scores.json"):
            score = {"BLEU": {"value": 3.25 if "csr" in str(path) else 2.0, "signature": "b|s"}}
            put(path.with_name(f"{other}@pages.scores.json"), {"sentences": 3, "metrics": score})
        for file in ("pages.seed1.json", "pages.json"):
            shutil.copy(root / "runs" / name / "significance" / file, root / "runs" / name / "significance" / f"{other}@{file}")
    html = report(root, tmp_path, config)[0]
    matrix = plain(html[html.index('id="zero-shot"') : html.index('id="run-demo"')])
    # p = 0.003 for three arms on two test sets
    assert "Spanish spanish@pages csr 3.25 † +1.25 21.25 † +1.25" in matrix and "German demo@pages csr 21.25 † +1.25 3.25 † +1.25" in matrix
    assert "German demo@pages a copy of the source 3.33 3.33" in matrix
    assert "Test set spanish@pages" not in html
    rows = [row.split("\t") for row in (tmp_path / "scores.tsv").read_text(encoding="utf-8").splitlines()]
    assert ["demo", "spanish@pages", "es-en", "csr", "3.25"] in [[row[0], row[3], row[4], row[5], row[8]] for row in rows]


def part(name, corpus, sources, zero_shot, arms=("csr",), metrics=("BLEU",)):
    """What the page has of an experiment whose models translate other test sets, too."""
    tested = ["pages", *zero_shot]
    study = SimpleNamespace(
        name=name, corpus_name=corpus, source=sources[0], learnt_sources=sources, target="en", leading="BLEU", zero_shot=zero_shot,
        tested=tested, arms=dict.fromkeys(arms), baseline=arms[0], lowercased=[],
    )  # fmt: skip
    tables = {test: {"cells": {(arm, metric): {"mean": 1.0, "seeds": []} for arm in arms for metric in metrics}} for test in tested}
    trivial = {"trivial": {test: {"BLEU": 3.5} for test in tested}, "trivially": "a copy of the source"}
    return {"study": study, "failed": {}, "scores": {"tables": tables, **trivial}}


def test_in_the_matrix_experiments_on_one_corpus_share_rows_and_what_a_model_learnt_together_is_in_italics():
    (matrix,) = zero_shot(
        [
            part("german", "de", ["de"], {"spanish@pages": "es"}, ["sga"]),
            part("both", "de", ["de", "es"], {"spanish@pages": "es"}, ["sga"]),
            part("spanish", "es", ["es"], {"german@pages": "de"}, ["finetune", "sga"]),
        ]
    )
    assert matrix["rows"] == {"german@pages": "de", "spanish@pages": "es"} and matrix["arms"] == ["sga", "finetune"]
    learnt = {(name, test): cell["learnt"] for (name, test, arm), cell in matrix["cells"].items() if arm == "sga"}
    assert learnt == {
        ("german", "german@pages"): True, ("german", "spanish@pages"): False, ("both", "german@pages"): True,
        ("both", "spanish@pages"): True, ("spanish", "spanish@pages"): True, ("spanish", "german@pages"): False,
    }  # fmt: skip
    assert matrix["baselines"]["spanish"] == "finetune" and matrix["columns"]["both"] == ["de", "es"]
    assert matrix["trivial"] == {"german@pages": 3.5, "spanish@pages": 3.5}


def test_comet_has_a_matrix_of_its_own_where_it_was_measured():
    german = part("de1", "de", ["de"], {"ru1@pages": "ru"}, metrics=["BLEU", "COMET"])
    bleu, comet = zero_shot([german, part("ru1", "ru", ["ru"], {"de1@pages": "de"})])
    assert (
        (bleu["metric"], comet["metric"]) == ("BLEU", "COMET")
        and list(bleu["columns"]) == ["de1", "ru1"]
        and list(comet["columns"]) == ["de1"]
    )


def test_in_the_matrix_a_test_set_has_one_row_for_models_of_all_backbones():
    (matrix,) = zero_shot(
        [
            part("de1", "german", ["de"], {"ru1@pages": "ru"}),
            part("ru1", "russian", ["ru"], {"de1@pages": "de"}),
            part("de2", "german", ["de"], {"ru2@pages": "ru"}),
            part("ru2", "russian", ["ru"], {"de2@pages": "de"}),
        ]
    )
    assert matrix["rows"] == {"de1@pages": "de", "ru1@pages": "ru"} and len(matrix["cells"]) == 8
