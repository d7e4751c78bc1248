"""Question answering: pieces with offsets of all families, windows, best spans, finetuning, prediction of all test sets, comparison."""

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModelForQuestionAnswering

from workflow_scripts.evidence import answers
from workflow_scripts.evidence.average import AVERAGE, Significance
from workflow_scripts.models.offsets import defuse_in_place, pieces_in_place
from workflow_scripts.models.span_head import best_spans
from workflow_scripts.stage import InputError, read_json
from workflow_scripts.tasks import head
from workflow_scripts.tasks.answering import ANSWERING, Answering, first_sentence, reader_of, score
from workflow_scripts.tasks.head_model import load_token_head
from workflow_scripts.tasks.passages import answers_lost, mark, pieces_of_span
from workflow_scripts.text.examples import Example, read_table
from workflow_scripts.text.labelled import Labelled, main
from workflow_scripts.text.labelled_source import LabelledSource
from workflow_scripts.text.questions import parse_spans, write_spans
from workflow_scripts.training.job import TrainingJob

FAMILIES = ["mbart", "cc25", "mbart50", "nllb", "m2m100", "bert", "xlm-roberta"]
DECODERS = ["gemma3_text", "llama", "gpt2"]
HEADS = [*((family, "both") for family in (*FAMILIES, *DECODERS)), ("mbart", "encoder"), ("nllb", "encoder")]


@pytest.fixture(scope="module")
def text(tmp_path_factory) -> Path:
    """Some questions of each part, as `labelled` writes them."""
    folder = tmp_path_factory.mktemp("text")
    columns = {"document": "article", "question": "question", "answer": "answer", "start": "start", "passage": "passage"}
    train = LabelledSource(file="resources/qamr/en.tsv.xz", columns=columns, header=True)
    tests = {code: LabelledSource(file=f"resources/xquad/{code}.json.xz", language=code) for code in ("en", "de")}
    settings = Labelled(language="en", train=train, dev=LabelledSource(held_out=0.05), test=tests, unit="question")
    for part in ("train", "dev", "test/en", "test/de"):
        name = part.removeprefix("test/")
        main(folder / f"{name}.tsv", folder / name, folder / f"{name}.json", part=part, settings=settings)
        lines = (folder / f"{name}.tsv").read_text("utf-8").splitlines(keepends=True)
        (folder / f"{name}.tsv").write_text("".join(lines[:: math.ceil(len(lines) / 24)]), "utf-8")
    return folder


def example(answer: str, passage: str, question: str = "What is it?") -> Example:
    start = passage.index(answer)
    return Example(write_spans([(start, start + len(answer))]), question, passage)


PASSAGE = "The house </s> of  Straße № ５: “café”, <mask> ﬁve 黑豹队 [SEP] 😀 … e\u0301 and the end."


@pytest.mark.parametrize("family", FAMILIES)
def test_pieces_stand_in_the_text_where_their_offsets_say(models, family):
    tokenizer = reader_of(models[family], Answering()).tokenizer
    (pieces,) = pieces_in_place(tokenizer, [PASSAGE])
    plain, origin = defuse_in_place(PASSAGE, set(tokenizer.all_special_tokens))
    assert pieces.ids == list(tokenizer(plain, add_special_tokens=False)["input_ids"])
    assert not set(pieces.ids) & (set(tokenizer.all_special_ids) - {tokenizer.unk_token_id})
    assert not origin or len(origin) == len(plain) + 1
    begins = [begin for begin, _ in pieces.offsets]
    assert begins == sorted(begins)
    covered = {at for begin, end in pieces.offsets for at in range(begin, end)}
    assert covered == {at for at, letter in enumerate(PASSAGE) if not letter.isspace()}
    for begin, end in pieces.offsets:
        assert PASSAGE[begin:end] == PASSAGE[begin:end].strip()
    word = PASSAGE.index("house")
    first, last = pieces_of_span(pieces, (word, word + 5))
    assert PASSAGE[pieces.offsets[first][0] : pieces.offsets[last][1]] == "house"


@pytest.mark.parametrize("family, parts", HEADS)
def test_windows_lose_no_piece_and_mark_the_answer(models, family, parts):
    passage = " ".join(f"word{i} is the house of" for i in range(40))
    settings = Answering(max_length=48, stride=10, longest_question=12, parts=parts)
    reader = reader_of(models[family], settings)
    (pieces,) = pieces_in_place(reader.tokenizer, [passage])
    asked = [example("word20", passage), example("word0 is the house of word1", passage, "Which house is it? " * 20)]
    windows = reader.windows(asked, "en")
    assert max(len(window.row[0]) for window in windows) <= 48 and len(windows) > 10
    for number, one in enumerate(asked):
        mine = [window for window in windows if window.example == number]
        assert {place for window in mine for place in window.offsets} == set(pieces.offsets)
        ((start, end),) = parse_spans(one.label)
        found = 0
        for window in mine:
            first, last, none, *places = window.row[1]
            assert none not in places and all(0 <= place < len(window.row[0]) for place in (none, *places))
            if first != none:
                assert {first, last} <= set(places)
                assert (window.offsets[first - window.first][0], window.offsets[last - window.first][1]) == (start, end)
                found += 1
            else:
                inside = [place for place in window.offsets if place[1] > place[0] and start <= place[0] and place[1] <= end]
                assert last == none and sum(b - a for a, b in inside) < len("".join(passage[start:end].split()))
        assert found
    batch = reader.collate([window.row for window in windows])
    read = batch["decoder_input_ids"] if reader.has_decoder else batch["input_ids"]
    specials = set(reader.tokenizer.all_special_ids) - {reader.tokenizer.unk_token_id}
    for window, ids, allowed in zip(windows, read, batch["places"], strict=True):
        if family in DECODERS:  # the line break behind the question
            assert window.row[1][2] == window.first - 1 and reader.tokenizer.decode(ids[window.first - 1]) == "\n"
        else:
            assert int(ids[window.row[1][2]]) in specials
        assert sorted(allowed.nonzero().flatten().tolist()) == sorted(window.row[1][2:])
        begin = pieces.offsets.index(window.offsets[0])
        assert ids[window.first :][: len(window.offsets)].tolist() == pieces.ids[begin : begin + len(window.offsets)]


def test_answers_between_two_windows_are_counted(models, capsys):
    """Windows that do not overlap have some answers in two parts, and those are said to be lost."""
    table = [example(word, PASSAGE * 3) for word in ("house", "café", "and the end")]
    for stride, lost in ((4, False), (100, True)):
        reader = reader_of(models["xlm-roberta"], Answering(max_length=24, stride=stride))
        windows = reader.windows(table, "en")
        found = answers_lost(windows, table)
        naive = [all(window.row[1][0] == window.row[1][2] for window in windows if window.example == n) for n in range(len(table))]
        assert found == sum(naive) and bool(found) == lost == ("lower answering.stride" in capsys.readouterr().out)


def test_the_row_is_that_of_the_familys_pairs(models):
    for family in ("bert", "xlm-roberta"):
        reader = reader_of(models[family], Answering(max_length=64))
        (window,) = reader.windows([example("house", "The house of words.")], "en")
        expected = reader.tokenizer("What is it?", "The house of words.")
        batch = reader.collate([window.row])
        assert window.row[0].tolist() == expected["input_ids"]
        if family == "bert":
            assert batch["token_type_ids"][0].tolist() == expected["token_type_ids"]
    for family in ("mbart", *DECODERS):
        reader = reader_of(models[family], Answering(max_length=64))
        (window,) = reader.windows([example("house", "The house of words.")], "en")
        assert window.row[0].tolist() == reader.codec.encode_pairs(["What is it?"], ["The house of words."], "en", 64)[0]


def test_the_best_span_is_the_best_of_all_spans_that_are_short_enough():
    logits = torch.randn(5, 2, 12, generator=torch.Generator().manual_seed(1))
    logits[:, :, :3] = float("-inf")
    score, first, last = best_spans(logits, 4)
    for row in range(5):
        every = {(a, b): float(logits[row, 0, a] + logits[row, 1, b]) for a in range(12) for b in range(a, min(a + 4, 12))}
        best = max(every, key=every.__getitem__)
        assert (int(first[row]), int(last[row])) == best and float(score[row]) == pytest.approx(every[best])
    assert best_spans(torch.full((1, 2, 3), float("-inf")), 9)[0].item() == float("-inf")


@pytest.mark.parametrize("family, parts", HEADS)
def test_answers_do_not_depend_on_the_batch(models, text, family, parts):
    settings = Answering(parts=parts, max_length=64, stride=16, longest_answer=8)
    reader = reader_of(models[family], settings)
    network = load_token_head(models[family], "answering", [], settings, seed=1)
    table = read_table(text / "en.tsv")[:6]
    windows = reader.windows(table, "en")
    together, alone = (mark(network, reader, windows, 8, "float32", tokens) for tokens in (1000, 1))
    assert together.spans == alone.spans and len(together.spans) == len(table)
    np.testing.assert_allclose(together.losses, alone.losses, rtol=1e-3, atol=1e-4)
    assert all(end > start and one.pair[start:end].strip() for one, (start, end) in zip(table, together.spans, strict=True))


def test_a_passage_without_a_piece_has_no_answer(models):
    settings = Answering(max_length=64)
    reader = reader_of(models["bert"], settings)
    windows = reader.windows([Example("0:1", "What?", "\u200e"), example("house", "The house.")], "en")
    found = mark(load_token_head(models["bert"], "answering", [], settings, seed=1), reader, windows, 8, "float32")
    assert found.spans[0] in ((0, 0), (0, 1)) and found.spans[1][1] > 0


def test_the_saved_model_opens_with_transformers(models, tmp_path):
    for family in ("bert", "xlm-roberta", "mbart"):
        network = load_token_head(models[family], "answering", [], Answering(), seed=1)
        network.save_pretrained(tmp_path / family)
        _, loading_info = AutoModelForQuestionAnswering.from_pretrained(tmp_path / family, output_loading_info=True)
        assert not loading_info["missing_keys"] and not loading_info["unexpected_keys"]


def run(models, text, folder: Path, family: str, seed: int = 1, **changes) -> Path:
    chosen = Answering(**{"batch_size": 8, "learning_rate": 1e-3, "max_length": 64, "stride": 32, **changes})
    files = {"train": (text / "train.tsv",), "dev": (text / "dev.tsv",)}
    made = {"model": folder / "model", "curve": folder / "curve.tsv", "report": folder / "training.json"}
    settings = ANSWERING.finetune_settings(language="en", epochs=2, answering=chosen)
    head.finetune(ANSWERING, TrainingJob(models[family], **made, checkpoints=folder / "checkpoints", seed=seed), **files, settings=settings)
    tables = (text / "en.tsv", text / "de.tsv")
    named = {"testsets": ("en", "de"), "languages": ("en", "de")}
    head.predict(ANSWERING, folder / "model", tables, folder / "predictions", **named, settings=chosen)
    return folder


def test_an_answer_that_is_not_in_the_passage_is_scored_by_its_text(models, tmp_path):
    passage = "The house stands in Rome."
    table = [Example(write_spans([], ["a house"]), "What stands in Rome?", passage), example("Rome", passage)]
    reader = reader_of(models["xlm-roberta"], Answering())
    windows = reader.windows(table, "en")
    first, last, none, *_ = windows[0].row[1]
    assert len(windows) == 2 and first == last == none  # nothing of the passage is the answer
    assert score(table, [(0, 9), (0, 9)], "en", "em")["em"] == 50
    assert score(table, [(10, 16), (20, 24)], "en", "em")["em"] == 50


LORA = {"adapter": {"kind": "lora", "rank": 2}, "gradient_checkpointing": True}


@pytest.mark.parametrize(
    "family, changes",
    [("xlm-roberta", {"metric": "em_mlqa"}), ("mbart", {"parts": "encoder"}), ("m2m100", {}), ("gemma3_text", LORA)],
)
def test_finetuning_and_prediction(models, text, tmp_path, family, changes):
    folder = run(models, text, tmp_path, family, **changes)
    report = read_json(folder / "training.json")
    metric = changes.get("metric", "f1")
    assert report["rows"] > 24 and report["updates"]["made"] == 2 * math.ceil(report["rows"] / 8)
    assert 0 <= report["handed_on"][f"dev_{metric}"] <= 1
    assert (folder / "curve.tsv").read_text().splitlines()[0].endswith(f"dev_loss\tdev_{metric}")
    for name in ("en", "de"):
        table = read_table(text / f"{name}.tsv")
        lines = [line.split("\t") for line in (folder / "predictions" / f"{name}.hyp").read_text("utf-8").splitlines()]
        given = [example.pair[slice(*parse_spans(span)[0])] for example, (span, _) in zip(table, lines, strict=True)]
        assert given == [words for _, words in lines]
        truth = [[example.pair[start:end] for start, end in parse_spans(example.label)] for example in table]
        scores = read_json(folder / "predictions" / f"{name}.scores.json")
        sums = answers.count(truth, given, name).sum(axis=0)
        assert {key: scores[key] for key in answers.SCORES} == {key: 100 * of(sums) for key, of in answers.SCORES.items()}
        first = answers.count(truth, [e.pair[slice(*first_sentence(e.pair))] for e in table], name).sum(axis=0)
        assert scores["metric"] == metric and scores["chance"] == 100 * answers.SCORES[metric](first)
        assert scores["low"] <= scores[metric] <= scores["high"] and scores["at_chance"] == (scores["low"] <= scores["chance"])
        assert scores["windows"] >= scores["examples"] == len(table) >= scores["passages"]


def test_a_family_without_such_a_head_is_refused_before_text_is_read(models, text, tmp_path):
    with pytest.raises(InputError, match="which has no head for answering; those that have one:"):
        run(models, text, tmp_path / "out", "bart")


def test_micro_batches_add_up_to_an_update(models, text, tmp_path):
    exact = {"dropout": 0.0, "attention_dropout": 0.0, "batch_size": 9}
    curves = [
        [line.split("\t")[2] for line in (run(models, text, tmp_path / str(i), "bert", **exact, **changes) / "curve.tsv").open()][1:]
        for i, changes in enumerate(({}, {"micro_batch": 2}))
    ]
    whole, parts = (np.array([float(loss) for loss in column if loss]) for column in curves)
    np.testing.assert_allclose(whole, parts, rtol=1e-3)


def test_first_sentence():
    assert first_sentence("Paris is big. It is old.") == (0, 13) and first_sentence("东京很大。它很老。") == (0, 5)
    assert first_sentence("no end") == (0, 6)


def test_comparison_of_arms(text, tmp_path):
    tables = {name: read_table(text / f"{name}.tsv") for name in ("en", "de")}
    for arm, wrong in (("base", 2), ("better", 6)):
        (tmp_path / arm).mkdir()
        for name, table in tables.items():
            lines = ["0:1\tx" if at % wrong == 0 else f"{one.label.split(' ')[0]}\tx" for at, one in enumerate(table)]
            (tmp_path / arm / f"{name}.hyp").write_text("".join(f"{line}\n" for line in lines))
    chosen = {"names": ("base", "better"), "testsets": ("en", "de"), "languages": ("en", "de"), "seeds": (1,)}
    files = (tmp_path / "base", tmp_path / "better"), (text / "en.tsv", text / "de.tsv"), tmp_path / "x.json"
    head.compare_arms(ANSWERING, *files, **chosen, settings=Significance(samples=100))
    found = {(row["testset"], row["seed"]): row for row in read_json(tmp_path / "x.json")["pairs"]}
    assert set(found) == {(testset, seed) for testset in ("en", "de", AVERAGE) for seed in (1, None)}
    assert found[AVERAGE, 1]["difference"] == pytest.approx((found["en", 1]["difference"] + found["de", 1]["difference"]) / 2)
    assert 0 < found["de", 1]["low"] < found["de", 1]["difference"] < found["de", 1]["high"] and found["de", 1]["p"] < 0.05
    (tmp_path / "base/en.hyp").write_text("0:1\tx\n")
    with pytest.raises(
        InputError, match=r"en\.hyp: has 1 lines with answers for \d+ questions; delete its folder and run the same command again"
    ):
        head.compare_arms(ANSWERING, *files, **chosen)
