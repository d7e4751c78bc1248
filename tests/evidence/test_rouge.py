"""ROUGE of summaries."""

import pytest
from rouge_score.rouge_scorer import RougeScorer
from tiny_models import manual_pairs

from workflow_scripts.evidence.rouge import Rouge, RougeTokenizer
from workflow_scripts.evidence.scores import Scores, leading, main, metrics
from workflow_scripts.evidence.significance import over_seeds, per_seed
from workflow_scripts.stage import read_json

KINDS = ["ROUGE-1", "ROUGE-2", "ROUGE-L"]


@pytest.mark.parametrize("name, expected", [("ROUGE-1", 2 * 3 / (5 + 4)), ("ROUGE-2", 2 * 1 / (4 + 3)), ("ROUGE-L", 2 * 2 / (5 + 4))])
def test_one_summary_by_hand(name, expected):
    # in common: the, file, open; "the file"; the longest common subsequence is "the file"
    rouge = Rouge(name, "en")
    assert rouge.sentence_score("Now the file, open!", ["Open all of the FILE"]).score == pytest.approx(100 * expected)
    assert rouge.sentence_score("", ["Open"]).score == 0


def test_a_corpus_has_the_mean_of_its_summaries_and_rouge_scores_own_numbers():
    _, references = manual_pairs(80)
    plain = [line for line in references if line.isascii() and not set(line) & set("_.,:'’·-")] + ["Open the file", "Select all cells"]
    hypotheses = [" ".join(line.split()[1::2]) for line in plain]
    theirs = RougeScorer(["rouge1", "rouge2", "rougeL"])
    for name in KINDS:
        scores = [theirs.score(r, h)[f"rouge{name[-1]}"].fmeasure for r, h in zip(plain, hypotheses, strict=True)]
        assert Rouge(name, "en").corpus_score(hypotheses, [plain]).score == pytest.approx(100 * sum(scores) / len(scores))


def test_by_sentences_their_order_does_not_count():
    summary, reference = "It rains today. The cat sleeps on the roof.", "The cat sleeps on the roof. It rains today."
    found = [Rouge(name, "en").sentence_score(summary, [reference]).score for name in ("ROUGE-L", "ROUGE-Lsum")]
    assert found == [pytest.approx(100 * 6 / 9), pytest.approx(100)]


@pytest.mark.parametrize(
    "code, text, tokens",
    [
        ("en", "Don't open: C.3!", ["don't", "open", "c.3"]),
        ("ru", "Открыть «файл»", ["открыть", "файл"]),
        ("zh", "打开 LibreOffice 7，复制。", ["打", "开", "libreoffice", "7", "复", "制"]),
        ("ja", "ファイルを開く", list("ファイルを開く")),
        ("th", "เปิดไฟล์", ["เปิด", "ไฟล์"]),
    ],
)
def test_tokens_of_a_language(code, text, tokens):
    assert RougeTokenizer(code).tokenize(text) == tokens


def test_scores_and_their_signature(files):
    folder, systems = files
    main(folder / "good", folder / "ref", folder / "s.json", language="en", settings=Scores(metrics=["ROUGE-2"]))
    found = read_json(folder / "s.json")["metrics"]
    assert list(found) == ["ROUGE-2", "ROUGE-L"] and found["ROUGE-L"]["signature"].startswith("nrefs:1|case:lc|tok:words|stem:no|type:F1|")
    assert found["ROUGE-L"]["value"] == Rouge("ROUGE-L", "en").corpus_score(systems["good"], [systems["ref"]]).score
    assert "tok:characters" in str(metrics_of("zh")) and "version:rouge-score" in str(metrics_of("zh"))
    assert leading(Scores()) == "BLEU" and set(metrics("en", Scores(metrics=["BLEU", *KINDS]))) == {"BLEU", *KINDS}


def metrics_of(code):
    rouge = metrics(code, Scores(metrics=KINDS))["ROUGE-L"]()
    rouge.sentence_score("开", ["开"])
    return rouge.get_signature()


@pytest.mark.parametrize("test", ["bootstrap", "randomization"])
def test_differences_are_tested_per_seed_and_over_seeds(files, test):
    folder, systems = files
    settings, names = Scores(metrics=KINDS, test=test, samples=150), ("base", "better", "equal")
    paths = tuple(folder / name for name in ("poor", "good", "poor"))
    per_seed(paths, folder / "ref", folder / "p.json", names=names, language="en", settings=settings)
    rows = read_json(folder / "p.json")["systems"]
    assert rows["better"]["ROUGE-L"]["p"] < 0.01 and rows["equal"]["ROUGE-L"]["p"] == 1 and set(rows["better"]) == set(KINDS)
    over_seeds(paths, folder / "ref", folder / "o.json", names=names, seeds=(1,), language="en", settings=settings)
    found = {(r["metric"], r["arm"], r["other"]): r for r in read_json(folder / "o.json")["pairs"]}
    gain = rows["better"]["ROUGE-L"]["score"] - rows["base"]["ROUGE-L"]["score"]
    assert found["ROUGE-L", "better", "base"]["difference"] == pytest.approx(gain) and gain > 5
    assert found["ROUGE-L", "better", "base"]["p"] < 0.01 and found["ROUGE-1", "equal", "base"]["p"] == 1
