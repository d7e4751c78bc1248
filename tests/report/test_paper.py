"""The tables of a run as LaTeX, made of its two tables of numbers."""

import re

import pytest

from workflow_scripts.report import paper
from workflow_scripts.report.score_table import COMPARISONS_HEADER, SCORES_HEADER
from workflow_scripts.stage import InputError


@pytest.fixture
def tables(tmp_path):
    """The two tables of an experiment with two arms and two seeds; a distance, which no test compares, is in the first one."""
    scores = [
        ("demo", "translation", "help", "pages", "de-en", arm, seed, metric, value, f"{metric.lower()}|v:2", "", "", "")
        for arm, metric, values in (
            ("finetune", "BLEU", (14.0, 14.5)),
            ("csr_1", "BLEU", (17.0, 17.25)),
            ("finetune", "chrF", (40.0, 40.0)),
            ("csr_1", "chrF", (39.0, 39.5)),
        )
        for seed, value in zip((1, 2), values, strict=True)
    ]
    scores.append(("demo", "translation", "help", "", "de-en", "csr_1", 1, "distance_pairs", 9.5, "X </s> LANG", "", "", ""))
    comparisons = [
        ("demo", "pages", "BLEU", "csr_1", "finetune", 2, 2.875, 2.25, 3.5, 2.0, 3.75, 0.002, 0.001),
        ("demo", "pages", "chrF", "csr_1", "finetune", 2, -0.75, -1.5, -0.25, -2, 1, 0.03, 0.02),
    ]
    for name, header, rows in (("scores", SCORES_HEADER, scores), ("comparisons", COMPARISONS_HEADER, comparisons)):
        lines = ["\t".join(map(str, row)) for row in (header, *rows)]
        (tmp_path / f"{name}.tsv").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return tmp_path


def made(folder):
    paper.main(folder / "table.tex", folder / "scores.tsv", folder / "comparisons.tsv")
    return (folder / "table.tex").read_text(encoding="utf-8")


def test_a_row_has_the_mean_and_the_difference_from_the_baseline(tables):
    lines = made(tables).splitlines()
    assert r" & BLEU & difference & chrF & difference \\" in lines and lines.count(r"\begin{table}") == 1
    assert r"finetune & 14.25 &  & 40.00 &  \\" in lines
    assert r"csr\_1 & 17.12 & +2.88 [+2.25, +3.50] $^\ddagger$ & 39.25 & $-$0.75 [$-$1.50, $-$0.25] \\" in lines


def test_differences_are_those_of_the_run_that_the_scores_are_of(tables, monkeypatch):
    other = (tables / "comparisons.tsv").read_text(encoding="utf-8").replace("2.875", "9.875")
    (tables / "here/results").mkdir(parents=True)
    (tables / "here/results/comparisons.tsv").write_text(other, encoding="utf-8")
    monkeypatch.chdir(tables / "here")
    paper.main(tables / "table.tex", tables / "scores.tsv")
    assert "+2.88" in (tables / "table.tex").read_text(encoding="utf-8")


def test_a_marker_needs_that_the_seeds_agree_too(tables):
    text = made(tables)
    assert "the seeds' differences leaves zero out, too" in text and text.count(r"$^\dagger$ \\") == 0
    path = tables / "comparisons.tsv"
    # Student's interval from −2 to −1 leaves zero out; of one seed there is none
    whole = path.read_text(encoding="utf-8")
    path.write_text(whole.replace("\t-2\t1\t", "\t-2\t-1\t"), encoding="utf-8")
    assert made(tables).count(r"$^\dagger$ \\") == 1
    path.write_text(whole.replace("\t-2\t1\t", "\t\t\t").replace("2.0\t3.75", "\t"), encoding="utf-8")
    assert made(tables).count(r"$^\dagger$ \\") == 1 and "Student" not in made(tables)


def test_the_legend_says_what_is_covered_and_how_it_was_computed(tables):
    text = made(tables)
    assert "means of 2 seed(s). Differences from finetune with 95 \\% intervals over training seeds and test sentences" in text
    assert "corrected for all comparisons (Holm)" in text and "BLEU: bleu\\textbar{}v:2; chrF: chrf\\textbar{}v:2" in text
    comparisons = tables / "comparisons.tsv"
    comparisons.write_text(comparisons.read_text(encoding="utf-8").replace("finetune\t2\t", "finetune\t1\t"), encoding="utf-8")
    assert "another training may differ" in made(tables)


def test_a_score_between_0_and_1_keeps_its_digits(tables):
    for name in ("scores", "comparisons"):
        path = tables / f"{name}.tsv"
        path.write_text(path.read_text(encoding="utf-8").replace("BLEU", "COMET").replace("2.875", "0.0123"), encoding="utf-8")
    text = made(tables)
    assert "finetune & 14.2500 &" in text and "+0.0123 [+2.2500, +3.5000]" in text and "40.00" in text


def test_a_plugins_score_between_0_and_1_keeps_its_digits(tables):
    """What the plugin says of it is not known where tables are read."""
    for name in ("scores", "comparisons"):
        path = tables / f"{name}.tsv"
        text = path.read_text(encoding="utf-8").replace("BLEU", "terms").replace("2.875", "0.0123")
        path.write_text(re.sub(r"\t1([47])\.", r"\t0.1\1", text) if name == "scores" else text, encoding="utf-8")
    text = made(tables)
    assert "finetune & 0.1425 &" in text and "+0.0123 [" in text and "40.00" in text


def test_the_legend_promises_no_interval_and_no_correction_that_there_is_not(tables):
    path = tables / "comparisons.tsv"
    whole = path.read_text(encoding="utf-8")
    path.write_text(whole.replace("2.25\t3.5\t", "\t\t").replace("-1.5\t-0.25\t", "\t\t"), encoding="utf-8")
    text = made(tables)  # by randomization
    assert "95 \\%" not in text and "tested over test sentences alone; another training may differ" in text and "(Holm)" in text
    path.write_text(whole.replace("0.002\t0.001", "0.001\t0.001").replace("0.03\t0.02", "0.02\t0.02"), encoding="utf-8")
    assert "Holm" not in made(tables) and "p $<$ 0.01, where Student" in made(tables)


def test_a_table_whose_p_a_correction_left_as_they_are_names_it(tables):
    """Holm's correction multiplies the largest p of a family by one, and a test set may have that one alone."""
    for name in ("scores", "comparisons"):
        path = tables / f"{name}.tsv"
        whole = path.read_text(encoding="utf-8")
        more = [line.replace("pages", "news") for line in whole.splitlines(keepends=True) if "pages" in line]
        path.write_text(whole + "".join(more).replace("0.002\t0.001", "0.9\t0.9").replace("0.03\t0.02", "0.9\t0.9"), encoding="utf-8")
    assert made(tables).count("(Holm)") == 2


def test_an_experiment_with_a_single_arm_has_no_table_and_is_named(tables, capsys):
    path = tables / "scores.tsv"
    whole = path.read_text(encoding="utf-8")
    alone = [line.replace("demo", "alone") for line in whole.splitlines(keepends=True) if "\tfinetune\t" in line]
    path.write_text(whole + "".join(alone), encoding="utf-8")
    assert made(tables).count(r"\begin{table}") == 1
    assert capsys.readouterr().out == "1 without a table, since no arms are compared there: alone on pages\n"


def test_tables_that_do_not_belong_together_are_refused(tables):
    with pytest.raises(InputError, match=r"gone\.tsv: no such file; a finished run has it"):
        paper.main(tables / "table.tex", tables / "gone.tsv", tables / "comparisons.tsv")
    whole = (tables / "comparisons.tsv").read_text(encoding="utf-8")
    (tables / "comparisons.tsv").write_text(whole.replace("\tfinetune\t", "\tother\t"), encoding="utf-8")
    with pytest.raises(InputError, match="compares nothing that"):
        made(tables)
    (tables / "comparisons.tsv").write_text("\t".join(COMPARISONS_HEADER) + "\n", encoding="utf-8")
    with pytest.raises(InputError, match="compares nothing that"):
        made(tables)
