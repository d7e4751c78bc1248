"""The report of a classification, made of a small results tree with invented numbers."""

import itertools
import re
import shutil
from dataclasses import replace
from html import unescape

import invented
import pytest
import zstandard
from invented import put

from workflow_scripts.config.phases import Phase, placed
from workflow_scripts.evidence.accuracy import score
from workflow_scripts.report import labels
from workflow_scripts.report.__main__ import write_report
from workflow_scripts.report.drawing import dot_chart
from workflow_scripts.report.headline import counted, differences_by_testset
from workflow_scripts.report.labels import scores
from workflow_scripts.report.study import configured
from workflow_scripts.run.config import load
from workflow_scripts.stage import read_json, read_rows, write_json
from workflow_scripts.tasks.own import task
from workflow_scripts.tasks.plan import Plans

ARMS = ("plain", "csr", "random")
LABELS = ["yes", "<no> & co."]
RIGHT = {("plain", "de"): 50, ("plain", "en"): 70, ("csr", "de"): 75, ("csr", "en"): 72, ("random", "de"): 52, ("random", "en"): 71}


def configuration(seeds=(1,), experiments=("labels",), task="classification"):
    source = {"file": "x.tsv", "columns": {"text": 1, "label": 2}}
    phases = {"plain": [], "csr": [{"data": "codeswitch", "updates": 10}], "random": [{"data": "random", "updates": 10}]}
    experiment = {"task": task, "corpus": "texts", "backbone": "small", "lexicon": "given"}
    published = {"arm": "csr", "metric": "accuracy", "value": 80.0, "source": "somewhere", "testset": "average"}
    return load(
        {
            "run": {"experiments": [*experiments], "arms": list(ARMS), "seeds": list(seeds)},
            "corpora": {},
            "labelled": {
                "texts": {
                    "language": "en",
                    "labels": LABELS,
                    "train": source,
                    "dev": {"held_out": 0.1},
                    "test": {"de": {**source, "language": "de"}, "en": {**source, "file": "test.tsv"}},
                }
            },
            "lexicons": {"given": {"mapping": {"mode": "dictionary"}, "dictionary": {"en-de": "d.txt"}}},
            "backbones": {"small": {"kind": "hub", "model": "somebody/mbart"}},
            "arms": {arm: [*before, {"data": "task", "epochs": 2}] for arm, before in phases.items()},
            "experiments": {name: {**experiment, "published": [published]} for name in experiments},
        }
    )


def results(root, seeds=(1,), name="labels"):
    """What a finished run would have left of one experiment."""
    truth = ["yes"] * 55 + [LABELS[1]] * 45
    for part, code in (("train", "en"), ("dev", "en"), ("test/de", "de"), ("test/en", "en")):
        counts = {"examples": 100, "labels": {"yes": 55, LABELS[1]: 45}, "removed": {"too short": 3}, "checksums": {"x.tsv": "abc"}}
        put(root / f"labelled/texts/{part}.{code}.json", {"part": part, "language": code, **counts})
    put(
        root / "backbones/small/backbone.json",
        {"kind": "hub", "model": "somebody/mbart", "revision": "c0ffee", "family": "mbart", "parameters": 9},
    )
    direction = {"words": 2, "entries": 2, "coverage": {"running_words": 0.5, "types": 0.25}, "gold": None, "switched": None}
    folder = root / "lexicons/texts/given/en-de"
    put(folder / "lexicon.json", {"directions": {"en-de": direction, "de-en": direction}, "dictionary": "d.txt"})
    put(folder / "en-de.tsv", "house\thaus\t1\t1.0\nhouse\theim\t2\t1.0\n")
    put(root / "labelled/texts/test/en.en.tsv", "yes\tThe house.\t\n")
    for (arm, testset), seed in itertools.product(RIGHT, seeds):
        right = RIGHT[arm, testset] + seed
        other = {"yes": LABELS[1], LABELS[1]: "yes"}
        given = [label if i % 100 * 37 % 100 < right else other[label] for i, label in enumerate(truth)]
        run = root / f"runs/{name}/{arm}/seed{seed}"
        put(run / f"predictions/{testset}.scores.json", score(truth, given, LABELS))
        training = {"from_scratch": False, "start": "results/backbones/small/model", "device": "cpu", "precision": "float32", "rows": 77}
        training |= {"updates": {"planned": 20, "made": 15}, "handed_on": {"updates": [10], "dev_loss": 0.5, "dev_accuracy": 0.8}}
        put(run / "finetune/training.json", training)
        rows = "5\t1\t0.7\t1e-3\t\t\n5\t1.1\t\t\t0.6\t0.7\n10\t2\t\t\t0.5\t0.8\n"
        put(run / "finetune/curve.tsv", f"update\tseconds\tloss\tlearning_rate\tdev_loss\tdev_accuracy\n{rows}")
        put(run / "pretext/training.json", training)
        put(run / "pretext/curve.tsv", "update\tseconds\tloss\tlearning_rate\tdev_loss\tdev_bleu\n10\t1\t4.5\t1e-3\t\t\n")
    for kind, seed in itertools.product(("codeswitch", "random"), seeds):
        noised = root / f"codeswitch/{name}/{kind}/seed{seed}"
        side = {"words": 100, "replaced": 35, "rate": 0.35, "coverage": 0.8, "shortfall": 0.0}
        put(noised / "codeswitch.json", {"unit": "word", "sides": {"en": side}})
        line = "Open the haus now and see what is in there today\tOpen the house now and see what is in there today\n"
        (noised / "round0.en.tsv.zst").write_bytes(zstandard.compress(line.encode()))
    pairs = []
    for testset, seed in itertools.product(("de", "en", "average"), (*seeds, None)):
        for (place, arm), p in zip(enumerate(ARMS), (None, 0.004, 0.6), strict=True):
            for other in ARMS[:place]:
                of = {t: RIGHT[arm, t] - RIGHT[other, t] for t in ("de", "en")}
                gap = of.get(testset, sum(of.values()) / 2)
                tested = {"difference": float(gap), "low": gap - 5.0, "high": gap + 5.0, "p": p, "seeds": 1}
                pairs.append({"testset": testset, "seed": seed, "arm": arm, "other": other, **tested})
    put(root / f"runs/{name}/significance.json", {"baseline": "plain", "pairs": pairs, "covers": {"seed": "examples", "seeds": "examples"}})
    return root


def made(folder, config):
    write_report(folder / "results", folder / "report.html", folder / "scores.tsv", plans=Plans(config))
    return (folder / "report.html").read_text(encoding="utf-8")


def test_a_model_that_is_the_same_for_all_seeds_is_compared_with_the_mean_of_the_baseline(tmp_path, monkeypatch):
    root = results(tmp_path / "results", (1, 2))
    tested = read_json(root / "runs/labels/significance.json")
    for row in tested["pairs"]:
        if row["seed"] is None:
            row |= {"difference": -3.0, "p": 0.3}
    put(root / "runs/labels/significance.json", tested)
    called = labels.measure(configured(root, Plans(configuration((1, 2))).experiments["labels"]))
    once = called._replace(same_for_all_seeds=lambda arm: arm == "csr")
    for module in ("labels", "measures"):
        monkeypatch.setattr(f"workflow_scripts.report.{module}.measure", lambda study: once)
    found = scores(configured(root, Plans(configuration((1, 2))).experiments["labels"]))
    mine = [row for row in found["measures"] if row["arm"] == "csr" and row["testset"] == "de"]
    assert [(row["seed"], row["difference"], row["marker"]) for row in mine] == [(1, -3.0, "")] and mine[0]["p"] >= 0.3
    trained = [row["difference"] for row in found["measures"] if row["arm"] == "random" and row["testset"] == "de"]
    assert trained == [2.0, 2.0]


@pytest.mark.parametrize("trained", [True, False])
@pytest.mark.parametrize("seeds", [(1,), (1, 2, 3)])
def test_models_that_are_asked_as_they_are_have_one_score_and_no_other_training(tmp_path, seeds, trained):
    root, config = results(tmp_path / "results", seeds), configuration(seeds)
    config.arms |= {name: [Phase("task", shots=0)] for name in ("plain", "csr")} | {"random": [Phase("task", shots=5)]}
    # epochs, which no number of tokens is known of
    config.arms["before"] = [Phase("task", epochs=2) if trained else Phase("task", shots=0)]
    placed(config.arms)
    config.experiments["first"] = replace(config.experiments["labels"], arms=["before"])
    config.backbones["trained"] = replace(config.backbones["small"], kind="arm", model=None, from_="first/before/seed1/finetune")
    config.arms["csr"][0].backbone = "trained"
    study = configured(root, Plans(config).experiments["labels"])
    found = scores(study)
    assert {(row["arm"], row["seed"]) for row in found["measures"] if row["once"]} == {("plain", 1), ("csr", 1)}
    assert {row["seed"] for row in found["measures"] if row["arm"] == "random"} == {*seeds}
    assert study.pretrained_here == (["csr"] if trained else []) and not any(study.pretraining.values())
    claim = found["headline"][0]["answers"][0]["claim"]
    assert ("another pretraining may differ" in claim) == trained and ("Yes, by" in claim) != trained
    config.run.arms = ["plain", "csr"]
    put(root / "backbones/trained/backbone.json", {"kind": "arm", "start": "x", "parameters": 9})
    assert ("Each model was pretrained once" in made(tmp_path, config)) == trained


@pytest.mark.parametrize("seeds", [(1,), (1, 2, 3)])
def test_the_page_has_every_part(tmp_path, seeds):
    results(tmp_path / "results", seeds)
    page = made(tmp_path, configuration(seeds))
    assert "could not be made" not in page and "<no>" not in page
    # three curves, paired differences on average, and those by test set of two comparisons
    assert page.count('<svg viewBox="') == 3 + 1 + 2
    text = unescape(page)
    assert "restoring the same words switched by a scrambled lexicon" in text and "given, en-de" in text and "haus, heim" in text
    assert "among the 400 most frequent ones of the test text in English" in text
    assert "Accuracy in per cent" in text and "80.0" in text
    assert "somebody/mbart, revision c0ffee" in text and '<tr><th scope="row">x.tsv</th>' in text


def test_the_page_says_which_examples_were_cut(tmp_path):
    results(tmp_path / "results")
    assert "Long texts were cut" not in made(tmp_path, configuration())
    for arm, number in (("plain", 1), ("csr", 1), ("random", 1200)):
        path = tmp_path / f"results/runs/labels/{arm}/seed1/predictions/de.scores.json"
        put(path, read_json(path) | {"cut_examples": number, "answers_lost": number - 1})
    text = unescape(made(tmp_path, configuration()))
    assert "1 example of de has an end that was not read (plain, csr). 1,200 examples of de have an end that was not read (random)." in text
    assert "1,199 answers of de lie between two windows (random)." in text
    put(path, read_json(path) | {"cut_examples": 0, "cut_texts": 2})  # as retrieval has them
    assert "2 texts of de have an end that was not read (random)." in unescape(made(tmp_path, configuration()))


def test_the_page_says_nothing_of_phases_and_of_other_arms_that_there_are_not(tmp_path):
    results(tmp_path / "results")
    config = configuration()
    said = [
        "Dashed: the pretext phase",
        "In italics: the pretext phase",
        "its pretext phase included",
        "against other arms",
        "other arms it is not",
    ]
    for arms, expected in ((ARMS, said), (("plain", "csr"), said[:3]), (("plain",), [])):
        config.run.arms = [*arms]
        page = made(tmp_path, config)
        assert [sentence for sentence in said if sentence in page] == expected


def test_words_that_an_arm_switches_while_it_is_finetuned_are_reported(tmp_path):
    root = results(tmp_path / "results")
    assert "switched by the lexicon, anew" not in made(tmp_path, configuration())
    path = root / "runs/labels/csr/seed1/finetune/training.json"
    put(path, {**read_json(path), "settings": {"codeswitch": {"noise": {"rate": 0.25}}}, "switched": {"rate": 0.231}})
    page = made(tmp_path, configuration())
    table = page[page.index("An arm is a way to train") : page.index("Labelled text")]
    rows = {row.partition("<")[0]: row for row in table.split('<tr><th scope="row">')[1:] if "<td>finetune</td>" in row}
    said = "<td>labels<small>25% of the words switched by the lexicon, anew in each epoch (23.1% in the first)</small></td>"
    assert said in rows["csr"] and "<td>labels</td>" in rows["random"] and page.count("anew in each epoch") == 1
    assert "could not be made" not in page


def test_a_task_of_a_plugin_may_have_a_hyphen_in_its_name(tmp_path, door):
    task(
        "alike-texts",
        label="likeness",
        learns="say how alike texts are",
        outputs="grades",
        loss=lambda outputs: outputs.sum(dim=1),
        answer=lambda outputs: outputs.argmax(dim=1),
        counts=lambda truth, given: [(a == b, 1) for a, b in zip(truth, given, strict=True)],
        scores={"accuracy": lambda sums: sums[0] / sums[1]},
        trivial=lambda texts: ["yes"] * len(texts),
        trivially="always yes",
    )
    study = configured(results(tmp_path / "results"), Plans(configuration(task="alike-texts")).experiments["labels"])
    assert study.head.choose_by == "score"
    assert labels.measure(study).axis == "accuracy, times 100"


@pytest.mark.parametrize("kind, objective", [("small", "mlm"), ("continued", "mlm"), ("small", "denoising")])
def test_the_loss_of_the_backbones_pretraining_stands_beside_that_of_a_unigram_guess(tmp_path, kind, objective):
    results(tmp_path / "results")
    learnt = {"objective": objective, f"{objective}_loss": 3.211, "unigram_loss": 6.432}
    made_here = {"kind": kind, "family": "xlm-roberta", "parameters": 9, "vocabulary": 4321, "sentences": {"de": 1234}}
    put(tmp_path / "results/backbones/small/backbone.json", {**made_here, **learnt})
    page = unescape(made(tmp_path, configuration()))
    assert f'<th scope="row">{objective} loss, held out</th><td>3.21 nats' in page and "unigram guess</th><td>6.43 nats" in page
    assert "1,234 German sentences" in page and "3.22 nats per label better" in page


def test_what_the_most_frequent_label_beats_is_said_first(tmp_path):
    results(tmp_path / "results")
    found = scores(configured(tmp_path / "results", Plans(configuration()).experiments["labels"]))
    (first,) = found["warnings"]
    assert first.startswith(
        "On the test set de (German) the accuracy of plain, random is not shown to be above the most frequent label "
        "(plain 51.00 %; random 53.00 %)"
    )
    assert "guess" not in first and "chance" not in first
    assert "always answering with the most frequent label gets 55.00 %" in first
    helps, words = ([(answer["claim"], answer["numbers"]) for answer in compared["answers"]] for compared in found["headline"])
    interval = "a difference of +13.50 (95 % interval +8.50 to +18.50, p = 0.008)."
    assert helps == [
        (
            "On average over 2 test sets (de, en): Better on these sentences, by 13.50 points of accuracy; another training may differ",
            f"csr has 74.50, plain 61.00, {interval}",
        ),
    ]
    assert found["headline"][0]["counts"] == "csr by test set: better in 1, not shown in 1"
    assert words[0][1].startswith("csr has 74.50, random 62.50, a difference of +12.00")


@pytest.mark.parametrize("unit, axis, behind", [("%", "%", " %"), ("", "times 100", "")])
def test_scores_that_are_no_shares_are_not_in_per_cent(tmp_path, monkeypatch, unit, axis, behind):
    root = results(tmp_path / "results")
    called = labels.measure(configured(root, Plans(configuration()).experiments["labels"]))
    monkeypatch.setattr("workflow_scripts.report.labels.measure", lambda study: called._replace(unit=unit))
    page = unescape(made(tmp_path, configuration()))
    assert page.count(f"dev accuracy, {axis}<") == 2  # the axis, and the column of the looks
    assert f"(plain 51.00{behind}; random 53.00{behind})" in page and f"gets 55.00{behind}. " in page


def test_arms_that_train_nothing_are_not_said_to_be_finetuned(tmp_path):
    results(tmp_path / "results")
    config = configuration()
    assert "All arms are finetuned for the same number of epochs" in made(tmp_path, config)
    config.arms["random"] = [Phase("task", shots=0)]
    placed(config.arms)
    page = made(tmp_path, config)
    assert "All arms that learn are finetuned for" in page and "All arms that learn share text" in page
    assert "Arms that train nothing: random." in page


def test_p_is_corrected_for_arms_and_test_sets(tmp_path, monkeypatch):
    results(tmp_path / "results")
    study = configured(tmp_path / "results", Plans(configuration()).experiments["labels"])
    once = labels.measure(study)._replace(same_for_all_seeds=lambda arm: arm == "random")
    rows = {(r["arm"], r["testset"]): r for r in scores(study)["measures"]}
    # of two arms on two test sets four p, of the average two
    assert rows["csr", "de"]["p"] == pytest.approx(4 * 0.004) and rows["csr", "de"]["marker"] == "†"
    assert rows["csr", "average"]["p"] == pytest.approx(2 * 0.004) and rows["csr", "average"]["marker"] == "‡"
    # those of an arm that is the same for all seeds count, too, though its rows do not show them
    monkeypatch.setattr("workflow_scripts.report.measures.measure", lambda study: once)
    rows = {(r["arm"], r["testset"]): r for r in scores(study)["measures"]}
    assert rows["csr", "de"]["p"] == pytest.approx(4 * 0.004)
    study.settings.scores.correction = "none"
    assert {r["p"] for r in scores(study)["measures"] if r["arm"] == "csr"} == {0.004}


def test_a_marker_over_seeds_needs_that_the_seeds_agree_too(tmp_path):
    root = results(tmp_path / "results", (1, 2))
    study = configured(root, Plans(configuration((1, 2))).experiments["labels"])

    def marked():
        return {r["testset"]: r["marker"] for r in scores(study)["over_seeds"] if (r["arm"], r["other"]) == ("csr", "plain")}

    assert marked() == {"de": "†", "en": "†", "average": "‡"}
    path = root / "runs/labels/csr/seed2/predictions/de.scores.json"
    write_json(path, {**read_json(path), "accuracy": 40.0})
    assert marked() == {"de": "", "en": "†", "average": ""}


def test_scores_tsv(tmp_path):
    results(tmp_path / "results", (1, 2))
    made(tmp_path, configuration((1, 2)))
    rows = read_rows(tmp_path / "scores.tsv")
    assert len(rows) == 3 * 3 * 2 * 3 and {row["task"] for row in rows} == {"classification"}
    chosen = {
        (r["testset"], r["direction"]): float(r["value"]) for r in rows if (r["arm"], r["seed"], r["metric"]) == ("csr", "2", "accuracy")
    }
    tested = [r for r in rows if (r["testset"], r["arm"], r["seed"], r["metric"]) == ("de", "csr", "2", "accuracy")]
    assert [(r["low"] < r["value"] < r["high"], r["p"]) for r in tested] == [(True, "0.016")]
    assert chosen == {("de", "en-de"): 77, ("en", "en-en"): 74, ("average", "en"): 75.5}


def test_models_of_several_experiments_stand_in_one_table(tmp_path):
    results(tmp_path / "results")
    results(tmp_path / "results", name="again")
    page = made(tmp_path, configuration(experiments=("labels", "again")))
    assert 'id="accuracies"' in page
    overview = page[page.index('id="overview"') : page.index('id="accuracies"')]
    assert overview.count('<a href="#headline-again">') == len(ARMS) and "74.50" in overview and "+13.50" in overview
    # 55 of 100 examples have the most frequent label, in both languages
    assert "without a model" in overview and overview.count('<td class="n">55.00</td>') == 2 * len(ARMS)


def test_the_index_lists_what_has_no_scores_and_why(tmp_path):
    root = invented.results(tmp_path / "results")
    for name, folder in itertools.product(("lost", "again"), ("runs", "codeswitch")):
        shutil.copytree(root / folder / "demo", root / folder / name)
    (root / "runs/lost/csr/seed1/pages.scores.json").unlink()
    put(root / "runs/again/mask/seed1/pages.scores.json", {"metrics": {}, "failed": {"BLEU": "1 line & 3 lines"}})
    results(root)
    config, labelled = invented.configuration(), configuration()
    config.labelled, config.experiments["labels"] = labelled.labelled, replace(labelled.experiments["labels"], arms=["csr"])
    config.lexicons["given"] = labelled.lexicons["given"]
    config.run.experiments += ["lost", "again", "labels"]
    for name in ("lost", "again"):
        config.experiments[name] = config.experiments["demo"]
    pages = tuple(tmp_path / "report" / f"{name}.html" for name in config.run.experiments)
    write_report(root, tmp_path / "report.html", tmp_path / "s.tsv", pages=pages, plans=Plans(config))
    index = (tmp_path / "report.html").read_text(encoding="utf-8")
    navigation = index[index.index("<nav") : index.rindex("</nav>")]
    table = index[index.index('id="overview"') : index.index("</table>")]
    for name in config.run.experiments:
        arms = 1 if name == "labels" else len(invented.ARMS)
        assert f'href="report/{name}.html"' in navigation and table.count(f'href="report/{name}.html"') == arms
    assert table.count("csr/seed1/pages.scores.json is missing") == len(invented.ARMS) and table.count("1 line &amp; 3 lines") == 1
    assert 'href="#cost"' in navigation and re.search(r"74\.50\s+<", table) and "accuracy" in table


def test_a_missing_file_costs_one_part(tmp_path):
    results(tmp_path / "results")
    shutil.rmtree(tmp_path / "results/codeswitch")
    page = made(tmp_path, configuration())
    assert page.count("This part could not be made") == 1 and "On average over 2 test sets" in page


def test_the_line_of_a_chart():
    drawn = dot_chart("t", [{"name": "a", "colour": 0, "value": 60.0}], "x", line=("word list", 33.3))
    assert 'stroke-dasharray="5 3"' in drawn and "dashed: word list, 33.30" in drawn


def test_of_a_dictionary_a_pack_needs_the_words_alone_that_some_are_shown_of(tmp_path, monkeypatch):
    root = results(tmp_path / "results")
    path = root / "lexicons/texts/given/en-de/en-de.tsv"
    put(path, "car\tauto\t1\t1.0\nhouse\thaus\t1\t1.0\nsky\thimmel\t1\t1.0\nhouse\theim\t2\t1.0\nthe\tdie\t1\t1.0\n")
    put(root / "labelled/texts/test/en.en.tsv", "yes\tThe house, the sky, the sky.\t\n")
    monkeypatch.setattr(labels, "FREQUENT", 3)
    study = configured(root, Plans(configuration()).experiments["labels"])
    shown = labels.dictionaries(study)
    assert [word for word, _ in shown["dictionaries"]["given, en-de"]["examples"]] == ["the", "sky", "house"]
    parts = labels.shown_of_dictionaries(study)
    assert parts == {path: b"house\thaus\t1\t1.0\nsky\thimmel\t1\t1.0\nhouse\theim\t2\t1.0\nthe\tdie\t1\t1.0\n"}
    path.write_bytes(parts[path])
    assert labels.dictionaries(study) == shown


def test_an_average_does_not_hide_what_is_worse_on_a_test_set():
    seeds, arms = (1, 2, 3), ("switch", "plain")
    values = {("zh", "switch"): (60, 63, 66), ("de", "switch"): (80, 80.2, 80.1), ("fr", "switch"): (84, 88, 85)}
    rows = [
        {
            "testset": testset,
            "metric": "accuracy",
            "seed": seed,
            "arm": arm,
            "value": float(value if arm == "switch" else 85 if testset != "zh" else 40),
        }
        for (testset, _), of_seeds in values.items()
        for seed, value in zip(seeds, of_seeds, strict=True)
        for arm in arms
    ]
    tested = {"metric": "accuracy", "arm": "switch", "other": "plain"}
    over_seeds = [
        {**tested, "testset": testset, "low": low, "high": high, "p": p}
        for testset, low, high, p in (("zh", 20.0, 26.0, 0.0001), ("de", -5.2, -4.7, 0.0001), ("fr", 0.1, 2.0, 0.01))
    ]
    called = {"zh": "Chinese", "de": "German", "fr": "French", "th": "Thai, which has no test"}
    each = differences_by_testset(rows, over_seeds, "switch", "plain", "accuracy", called)
    # French: the test is sure, Student's interval of the three seeds is not
    assert [(row["name"], row["shown"]) for row in each] == [("Chinese", "better"), ("French", "not shown"), ("German", "worse")]
    assert [row["words"] for row in each] == [
        "+23.00 (+20.00 to +26.00), better",
        "+0.67 (+0.10 to +2.00), not shown by the seeds alone",
        "−4.90 (−5.20 to −4.70), worse",
    ]
    assert counted(each, "switch") == "switch by test set: better in 1, worse in 1, not shown in 1"


def test_many_test_sets_are_rows(tmp_path):
    results(tmp_path / "results")
    config = configuration()
    text = config.labelled["texts"]
    for name in ("da", "nl", "sv"):
        text.test[name] = replace(text.test["de"], language=name)
    root, tested = tmp_path / "results", read_json(tmp_path / "results/runs/labels/significance.json")
    for name in ("da", "nl", "sv"):
        tested["pairs"] += [{**row, "testset": name} for row in tested["pairs"] if row["testset"] == "de"]
        shutil.copy(root / "labelled/texts/test/de.de.json", root / f"labelled/texts/test/{name}.{name}.json")
        for arm in ARMS:
            folder = root / f"runs/labels/{arm}/seed1/predictions"
            shutil.copy(folder / "de.scores.json", folder / f"{name}.scores.json")
    put(root / "runs/labels/significance.json", tested)
    page = made(tmp_path, config)
    table = page[page.index('id="table-scores-labels"') :].partition("</table>")[0]
    assert re.findall(r'<tr><th scope="row">([^<]*)<', table) == ["German", "English", "Danish", "Dutch", "Swedish", "average"]
    assert "could not be made" not in page
    # differences by test set are drawn, and no intervals of single arms beside them
    assert 'aria-label="Differences by test set"' in page and "A chart for each test set" not in page
