"""BLEU, chrF and significance."""

import pytest
import sacrebleu
from models import manual_pairs

from workflow_scripts.scores import Scores, marker, score, significance
from workflow_scripts.stage import InputError, read_json


@pytest.fixture
def files(tmp_path):
    """References, a good system, a poor one, and the poor one again."""
    references = manual_pairs(120)[1]
    systems = {
        "ref": references,
        "good": [" ".join(line.split()[:-1]) for line in references],
        "poor": [" ".join(line.split()[::2]) for line in references],
    }
    systems["same"] = systems["poor"]
    for name, lines in systems.items():
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return tmp_path, systems


def test_scores_are_sacrebleus_with_signatures(files):
    folder, systems = files
    score(folder / "good", folder / "ref", folder / "s.json", language="en")
    metrics = read_json(folder / "s.json")["metrics"]
    assert metrics["BLEU"]["value"] == sacrebleu.corpus_bleu(systems["good"], [systems["ref"]]).score
    assert metrics["chrF"]["value"] == sacrebleu.corpus_chrf(systems["good"], [systems["ref"]]).score
    assert metrics["TER"]["value"] == sacrebleu.corpus_ter(systems["good"], [systems["ref"]]).score
    assert "tok:13a" in metrics["BLEU"]["signature"] and "version" in metrics["BLEU"]["signature"]


@pytest.mark.parametrize("code, tokenizer", [("zh", "tok:zh"), ("ja", "tok:ja-mecab"), ("ko", "tok:ko-mecab")])
def test_the_target_language_chooses_the_tokeniser(files, code, tokenizer):
    folder, _ = files
    score(folder / "good", folder / "ref", folder / "s.json", language=code)
    assert tokenizer in read_json(folder / "s.json")["metrics"]["BLEU"]["signature"]


def test_metrics_are_chosen_and_measured_without_case(files):
    folder, systems = files
    (folder / "upper").write_text("".join(f"{line.upper()}\n" for line in systems["ref"]), encoding="utf-8")
    score(folder / "upper", folder / "ref", folder / "s.json", language="en", settings=Scores(metrics=["BLEU"], lowercase=True))
    metrics = read_json(folder / "s.json")["metrics"]
    assert list(metrics) == ["BLEU", "BLEU, lower-cased"]
    assert metrics["BLEU"]["value"] < 50 and metrics["BLEU, lower-cased"]["value"] == pytest.approx(100)
    assert "case:lc" in metrics["BLEU, lower-cased"]["signature"] and "case:mixed" in metrics["BLEU"]["signature"]


@pytest.mark.parametrize("test", ["bootstrap", "randomization"])
def test_significance_tells_a_better_system_from_the_same_one(files, test):
    folder, _ = files
    systems = tuple(folder / name for name in ("poor", "good", "same"))
    significance(
        systems, folder / "ref", folder / "p.json", names=("poor", "good", "same"), language="en", settings=Scores(test=test, samples=200)
    )
    result = read_json(folder / "p.json")["systems"]
    assert result["poor"]["BLEU"]["p"] is None
    assert result["good"]["BLEU"]["p"] < 0.01 and result["good"]["BLEU"]["score"] > result["poor"]["BLEU"]["score"]
    assert result["same"]["BLEU"]["p"] > 0.05


def test_one_system_has_nothing_to_be_compared_with(files):
    folder, _ = files
    significance((folder / "poor",), folder / "ref", folder / "p.json", names=("poor",), language="en")
    assert read_json(folder / "p.json")["systems"] == {"poor": {}}


def test_markers():
    assert [marker(p, 1.0) for p in (None, 0.2, 0.049, 0.009)] == ["", "", "†", "‡"]
    assert marker(0.001, -1.0) == "‡↓"


def test_lost_lines_are_refused(files):
    folder, _ = files
    (folder / "short").write_text("one\n")
    with pytest.raises(InputError, match="decode again"):
        score(folder / "short", folder / "ref", folder / "s.json", language="en")
