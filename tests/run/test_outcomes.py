"""What jobs found, in a line each."""

import json

import pytest
from rule_files import rule_blocks

from workflow_scripts.run import outcomes
from workflow_scripts.run.schedule import PlannedJob


def put(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path.name


def finding_of(rule, folder, *outputs):
    return outcomes.finding(PlannedJob(rule, outputs=list(outputs)), folder)


def test_each_kind_of_result_has_its_numbers(tmp_path):
    corpus = put(tmp_path / "corpus.json", {"kept": 32511, "held_out": {"dev": 1016, "pages": 1009}})
    assert finding_of("corpus", tmp_path, "train.de", corpus) == "text: 32,511 pairs to learn from, 2,025 held out"
    gold = {"all": {"covered": 1534, "p@1": 0.394}}
    lexicon = put(
        tmp_path / "lexicon.json", {"directions": {"de-en": {"entries": 6463, "gold": gold}, "en-de": {"entries": 1, "gold": None}}}
    )
    assert finding_of("lexicon", tmp_path, lexicon) == "lexicon de-en: 6,463 words, 39 % right first"
    put(tmp_path / "lexicon.json", {"directions": {"de-en": {"entries": 6463, "gold": None}}})
    assert finding_of("lexicon", tmp_path, lexicon) == "lexicon de-en: 6,463 words"
    scores = put(
        tmp_path / "pages.scores.json", {"metrics": {"BLEU": {"value": 21.34}, "chrF": {"value": 45.0}, "METEOR": {"value": None}}}
    )
    assert finding_of("scores", tmp_path, scores) == "BLEU 21.3, chrF 45.0"
    curve = put(tmp_path / "curve.tsv", "update\tseconds\tloss\n350\t4\t2.1\n1400\t9\t2.0\n")
    assert finding_of("finetune", tmp_path, "model", curve) == "trained, 1,400 updates"
    put(tmp_path / "noised/codeswitch.json", {"kind": "codeswitch", "sides": {"de": {"rate": 0.35}, "en": {"rate": 0.33}}})
    assert finding_of("codeswitch", tmp_path, "noised") == "noised text (codeswitch): 34 % of the words changed"
    for language, accuracy in (("de", 70.0), ("fr", 60.0)):
        put(tmp_path / f"predictions/{language}.scores.json", {"accuracy": accuracy})
    assert finding_of("head_prediction", tmp_path, "predictions") == "2 test sets answered, 65.0 on average"


def test_what_cannot_be_read_costs_its_line_alone(tmp_path):
    assert (
        finding_of("scores", tmp_path, "nowhere.scores.json")
        == finding_of("representation", tmp_path, "x")
        == finding_of("lexicon", tmp_path)
        == ""
    )
    assert finding_of("corpus", tmp_path, put(tmp_path / "corpus.json", "{")) == ""


def test_looks_at_the_dev_set(tmp_path):
    log = tmp_path / "log"
    log.write_text(
        "update 3550/4200  loss 2.6  learning_rate 0.0005  tokens/s 829  left 17:02\n"
        "update 3600/4200  eval_loss 3.224  eval_bleu 13.56  tokens/s 841  left 17:11\n"
        "update 3800/4200  dev_loss 3.2\nupdate 4200/4200  eval_loss 3.1\n"
    )
    assert outcomes.looks(str(log)) == ["3,600 of 4,200, dev BLEU 13.6", "4,200 of 4,200, dev loss 3.10"]
    assert outcomes.looks(str(tmp_path / "none")) == []


def test_jobs_are_called_by_what_tells_them_apart():
    run = [PlannedJob("finetune", {"experiment": "help", "arm": arm, "seed": seed}) for arm in ("plain", "csr") for seed in ("1", "2")]
    assert outcomes.name_of(run[2], run) == "csr, seed 1" and outcomes.name_of(run[2], run[::2]) == "csr"
    run[2].updates = 700, 2800
    assert outcomes.doing(run[2], run[::2]) == "csr: finetuning, 700 of 2,800 updates"
    assert outcomes.doing(PlannedJob("of_a_new_kind"), run) == "of a new kind"


HEAD = "experiment\ttestset\tmetric\tarm\tother\tseeds\tdifference\tlow\thigh\tseeds_low\tseeds_high\tp\tp_uncorrected\n"


def test_answers_come_from_the_table_of_comparisons(tmp_path):
    table = tmp_path / "comparisons.tsv"
    rows = [
        "x\tpages\tBLEU\tcsr\tfinetune\t1\t3.12\t2.1\t4.0\t\t\t0.0003\t0.0001",
        "x\tpages\tchrF\tcsr\tfinetune\t1\t2\t1\t3\t\t\t0.01\t0.01",
    ]
    table.write_text(HEAD + "\n".join(rows) + "\nx\tpages\tBLEU\tmask\tcsr\t1\t\t\t\t\t\t\t\n")
    (row,) = outcomes.answers(table)
    assert outcomes.answer_line(row) == "csr − finetune +3.1 BLEU (95 % +2.1 to +4.0, p < 0.001)"
    # summaries lead with ROUGE-L, whatever stands first
    summaries = "".join(f"{row.replace('BLEU', 'ROUGE-1').replace('chrF', 'ROUGE-L')}\n" for row in rows)
    table.write_text(HEAD + summaries, "utf-8")
    assert [one["metric"] for one in outcomes.answers(table)] == ["ROUGE-L"]
    # one that rounds to zero has no sign
    assert outcomes.answer_line(row | {"difference": "-0.04", "low": "-0.31", "p": ""}) == "csr − finetune 0.0 BLEU (95 % −0.3 to +4.0)"
    assert [outcomes.signed(number) for number in (0.004, -0.004, 1.5, -0.31)] == ["0.00", "0.00", "+1.50", "−0.31"]
    assert [*outcomes.answers(tmp_path / "none")] == []


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, "more than chance on these sentences; another training may differ"),
        ({"seeds": "3", "seeds_low": "1", "seeds_high": "5"}, "more than chance, with other sentences and other seeds too"),
        ({"seeds": "3", "seeds_low": "-1", "seeds_high": "5"}, "not shown: the seeds differ too much among themselves"),
        ({"low": "-0.1"}, "no more than chance could make"),
        ({"p": "0.05"}, "no more than chance could make"),
        ({"p": ""}, "no more than chance could make"),
    ],
)
def test_a_verdict_claims_no_more_than_its_test(changes, said):
    row = {"seeds": "1", "low": "1", "high": "4", "seeds_low": "", "seeds_high": "", "p": "0.001", **changes}
    assert outcomes.verdict(row) == said


def test_every_rule_has_words():
    assert rule_blocks().keys() - {"all", "lexicons"} <= outcomes.DOING.keys()
