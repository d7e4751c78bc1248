"""BLEU, chrF and TER."""

import pytest
import sacrebleu

from workflow_scripts.evidence.scores import Scores, main
from workflow_scripts.stage import read_json


def test_scores_are_sacrebleus_with_signatures(files):
    folder, systems = files
    main(folder / "good", folder / "ref", folder / "s.json", language="en")
    metrics = read_json(folder / "s.json")["metrics"]
    assert metrics["BLEU"]["value"] == sacrebleu.corpus_bleu(systems["good"], [systems["ref"]]).score
    assert metrics["chrF"]["value"] == sacrebleu.corpus_chrf(systems["good"], [systems["ref"]]).score
    assert metrics["TER"]["value"] == sacrebleu.corpus_ter(systems["good"], [systems["ref"]]).score
    assert "tok:13a" in metrics["BLEU"]["signature"] and "version" in metrics["BLEU"]["signature"]


@pytest.mark.parametrize("code, tokenizer", [("zh", "tok:zh"), ("ja", "tok:ja-mecab"), ("ko", "tok:ko-mecab")])
def test_the_target_language_chooses_the_tokeniser(files, code, tokenizer):
    folder, _ = files
    main(folder / "good", folder / "ref", folder / "s.json", language=code)
    assert tokenizer in read_json(folder / "s.json")["metrics"]["BLEU"]["signature"]


def test_metrics_are_chosen_and_measured_without_case(files):
    folder, systems = files
    (folder / "upper").write_text("".join(f"{line.upper()}\n" for line in systems["ref"]), encoding="utf-8")
    main(folder / "upper", folder / "ref", folder / "s.json", language="en", settings=Scores(metrics=["BLEU"], lowercase=True))
    metrics = read_json(folder / "s.json")["metrics"]
    assert list(metrics) == ["BLEU", "BLEU, lower-cased"]
    assert metrics["BLEU"]["value"] < 50 and metrics["BLEU, lower-cased"]["value"] == pytest.approx(100)
    assert "case:lc" in metrics["BLEU, lower-cased"]["signature"] and "case:mixed" in metrics["BLEU"]["signature"]


def test_what_cannot_be_measured_is_said(files, monkeypatch):
    folder, systems = files
    (folder / "short").write_text("one\n")
    (folder / "empty").write_text("")
    for name in ("short", "empty"):
        main(folder / name, folder / "ref", folder / "s.json", language="en")
        result = read_json(folder / "s.json")
        assert result["metrics"] == {} and "decode again" in result["failed"]["BLEU"] and set(result["failed"]) == {"BLEU", "chrF", "TER"}
    main(folder / "empty", folder / "empty", folder / "s.json", language="en")
    assert "are empty" in read_json(folder / "s.json")["failed"]["chrF"]

    def out_of_order(*_, **__):
        raise RuntimeError("broken today")

    monkeypatch.setattr(sacrebleu.metrics.TER, "corpus_score", out_of_order)
    # as where the tokeniser of a language has to be fetched, without network
    monkeypatch.setattr(sacrebleu.metrics.BLEU, "__init__", out_of_order)
    main(folder / "good", folder / "ref", folder / "s.json", language="en")
    result = read_json(folder / "s.json")
    assert result["failed"] == dict.fromkeys(("BLEU", "TER"), "RuntimeError: broken today") and set(result["metrics"]) == {"chrF"}


@pytest.mark.parametrize(
    "code, hypothesis, reference, edits, length",
    [
        ("th", "ฉันกินข้าว", "ฉันกินน้ำ", 3, 5),
        ("ja", "わたしはいぬがすきです", "わたしはねこがすきです", 2, 11),
        ("km", "ខ្ញុំទៅផ្ទះ", "ខ្ញុំទៅផ្សារ", 2, 4),
        ("zh", "我喜欢狗", "我喜欢猫", 1, 4),
        ("bo", "ང་ཁྱིམ་ལ", "ང་ཁང་ལ", 2, 6),
    ],
)
def test_ter_counts_characters_where_words_have_no_spaces(tmp_path, code, hypothesis, reference, edits, length):
    for name, line in (("hypothesis", hypothesis), ("reference", reference)):
        (tmp_path / name).write_text(line + "\n", encoding="utf-8")
    main(tmp_path / "hypothesis", tmp_path / "reference", tmp_path / "s.json", language=code, settings=Scores(metrics=["TER"]))
    ter = read_json(tmp_path / "s.json")["metrics"]["TER"]
    assert ter["value"] == pytest.approx(100 * edits / length) and "tok:char" in ter["signature"]


def test_lines_without_text_are_counted(tmp_path):
    for name, lines in (("hyp", ["", "a b", ""]), ("ref", ["x", "a b", "c"]), ("source", ["\u200b", "A B", "C"])):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    main(tmp_path / "hyp", tmp_path / "ref", tmp_path / "s.json", language="en", source=tmp_path / "source")
    assert read_json(tmp_path / "s.json")["empty"] == {"hypotheses": 2, "sources": 1}
