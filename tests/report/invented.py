"""A small tree of results with invented numbers, and the report on it."""

import json
import re
import shutil
from html import unescape

import numpy as np
import zstandard

from workflow_scripts.evidence.significance import COVERS
from workflow_scripts.report.__main__ import write_report
from workflow_scripts.report.study import configured
from workflow_scripts.run.config import load
from workflow_scripts.stage import read_rows
from workflow_scripts.tasks.plan import Plans

ARMS = ("finetune", "csr", "mask", "random")
KINDS = {"csr": "codeswitch", "mask": "mask", "random": "random", "released": "released"}
BLEU = {"finetune": 20.0, "csr": 21.25, "mask": 20.5, "random": 20.75, "released": 20.25}
SOURCES = ["Öffnen Sie die Datei.", "Klicken Sie auf Drucken.", "Das Fenster <b>schließt</b> sich & bleibt zu."]
REFERENCES = ["Open the file.", "Click Print.", "The window closes & stays closed."]
NOISED = {
    "codeswitch": "Klicken you auf file Schaltfläche um das Fenster zu close",
    "mask": "Klicken <mask> auf <mask> Schaltfläche um das Fenster zu <mask>",
    "random": "Klicken tab auf cell Schaltfläche um das Fenster zu font",
    "released": "▁K lick en ▁zebra ▁auf ▁die ▁Schaltfläche ▁um ▁das ▁Fenster ▁zu ▁ox",
}
ORIGINAL = "Klicken Sie auf die Schaltfläche um das Fenster zu schließen"


def configuration(seeds=(1,), arms=ARMS):
    return load(
        {
            "run": {"experiments": ["demo"], "arms": list(arms), "seeds": list(seeds)},
            "corpora": {
                "help": {
                    "languages": ["de", "en"],
                    "train": {"files": {"de": "train.de", "en": "train.en"}},
                    "dev": {"held_out": 5},
                    "test": {"pages": {"held_out": 5}},
                }
            },
            "lexicons": {"own": {}, "pieces": {"unit": "piece", "backbone": "small"}},
            "backbones": {"small": {"kind": "hub", "model": "somebody/mbart"}},
            "arms": {
                "finetune": [{"data": "task", "updates": 100}],
                **{
                    arm: [
                        {"data": kind, "updates": 20, "lexicon": "pieces" if kind == "released" else None},
                        {"data": "task", "updates": 80},
                    ]
                    for arm, kind in KINDS.items()
                },
            },
            "experiments": {"demo": {"corpus": "help", "source": "de", "target": "en", "backbone": "small", "lexicon": "own"}},
        }
    )


def put(path, content, commit="abc123"):
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(content, dict):
        content = json.dumps({**content, "provenance": {"commit": commit, "versions": {"sacrebleu": "2.6.0"}}})
    path.write_text(content, encoding="utf-8")


def words_json(score):
    """Word accuracies around `score`."""
    buckets = {
        name: {"matches": 1, "reference": count, "hypothesis": 9, "precision": 0.1, "recall": 0.2, "f": (score + shift) / 100}
        for name, count, shift in (("low", 1234, -7), ("mid", 20, 0), ("high", 30, 11), ("all", 1284, 3))
    }
    return {"buckets": buckets, "settings": {"low": 100, "high": 1000, "tokenize": None}}


def put_representation(stem, distance):
    layer = {"pairs": distance * 2, "pairs_rms": distance, "means": distance / 2, "cosine": 0.5}
    layer |= {"source_to_target": 0.25, "target_to_source": 0.75}
    layers = {side: [{**layer, "pairs_rms": distance + depth} for depth in (2, 1, 0)] for side in ("encoder", "decoder")}
    put(
        stem.with_name(stem.name + ".json"),
        {**layer, "layers": layers, "sentences": 3, "retrieved_among": 3, "dimensions": 4, "text": ["t.de", "t.en"]}
        | {"tag_format": "X </s> LANG"},
    )
    points = np.random.default_rng(1).normal(size=(3, 4)).astype(np.float16)
    np.savez_compressed(stem.with_name(stem.name + ".npz"), source=points, target=points + 1)


def put_curve(path, updates):
    half = updates // 2
    curve = f"{half}\t1\t3.5\t0.1\t\t\n{half}\t2\t\t\t3.0\t10.0\n{updates}\t3\t2.5\t0.1\t\t\n{updates}\t4\t\t\t2.0\t14.0\n"
    put(path, "update\tseconds\tloss\tlearning_rate\tdev_loss\tdev_bleu\n" + curve)


MAPPING = {
    "start": "unsupervised",
    "good": True,
    "reason": "",
    "attempts": [{}],
    "objective": 0.5,
    "mutual": 0.4,
    "witnesses": 25,
    "witnesses_found": 0.6,
    "iterations": 77,
    "seconds": 3,
    "words": [10, 11],
}


def results(root, seeds=(1,), arms=ARMS, test="bootstrap", commit="abc123", hypothesis="Open a file.", bleu=lambda arm, seed: BLEU[arm]):
    """Every file that the report reads; `bleu` gives the score of an arm with a seed."""
    corpus, lexicon, experiment = root / "corpora/help.de-en", root / "lexicons/help.de-en/own", root / "runs/demo"
    put(
        corpus / "corpus.json",
        {"read": 1234, "kept": 1200, "removed": {"length ratio": 34}, "held_out": {"pages": 3}, "checksums": {"train.de": "f00d"}},
    )
    for part, code, lines in (("test/pages", "de", SOURCES), ("test/pages", "en", REFERENCES)):
        put(corpus / f"train.{code}", "Open Click Print the file\n" * 120)
        put(corpus / f"{part}.{code}", "".join(f"{line}\n" for line in lines))
    put(experiment / "frequencies.tsv", "the\t240\nOpen\t120\nClick\t120\nfile\t120\nwindow\t3\n")
    put(root / "backbones/small/backbone.json", {"kind": "hub", "model": "somebody/mbart", "revision": "r1", "parameters": 98765})
    gold = {"covered": 50, "gold_words": 60, "p@1": 0.345, "p@5": 0.5, "p@10": 0.6}
    direction = {"words": 10, "entries": 9, "coverage": {"running_words": 0.912, "types": 0.2}}
    switched = {"judged": 0.875, "right": 0.432}
    directions = {
        "de-en": {**direction, "gold": {"all": gold, "non_identical": gold}, "switched": switched},
        "en-de": {**direction, "gold": None, "switched": None},
    }
    for each in (lexicon, lexicon.with_name("pieces")) if "released" in arms else (lexicon,):
        put(each / "mapping.json", MAPPING)
        put(each / "lexicon.json", {"directions": directions, "dictionary": None})
    put(lexicon / "de-en.tsv", "datei\tfile\t1\t0.7000\ndatei\tfolder\t2\t0.1234\ndatei\ttable\t3\t-0.0010\nfenster\twindow\t1\t0.6000\n")
    put(lexicon / "en-de.tsv", "file\tdatei\t1\t0.7000\n")
    put_representation(experiment / "backbone.representation", 23.25)
    put(experiment / "trivial/seed0/pages.scores.json", {"sentences": 3, "metrics": {"BLEU": {"value": 3.33, "signature": "b|s"}}})
    for seed in seeds:
        systems = {}
        for arm in arms:
            run = experiment / arm / f"seed{seed}"
            score = bleu(arm, seed)
            first, last = (hypothesis, "The window closes & stays.") if arm == "csr" else ("Open file.", "The window closes.")
            put(run / "pages.hyp", f"{first}\nClick Print.\n{last}\n")
            put(run / "pages.words.json", words_json(score))
            put(
                run / "pages.scores.json",
                {"sentences": 3, "metrics": {"BLEU": {"value": score, "signature": "b|s"}, "chrF": {"value": 50, "signature": "c|s"}}},
                commit,
            )
            p = None if arm == "finetune" else 0.0015  # one-sided, as sacreBLEU's
            systems[arm] = {
                name: {"score": value, "mean": value, "ci": 1.5, "p": p, "signature": f"{name}|bs:9"}
                for name, value in (("BLEU", score), ("chrF2", 50))
            }
            for phase in ("pretext", "finetune") if arm in KINDS else ("finetune",):
                put_curve(run / phase / "curve.tsv", 20 if phase == "pretext" else 80 if arm in KINDS else 100)
                training = {"parameters": 9, "device": "cpu", "precision": "float32", "rows": 4321, "from_scratch": False, "start": "x"}
                handed_on = {"updates": [40], "chosen_by": "dev_bleu" if phase == "finetune" else "dev_loss"}
                handed_on["reason"] = None if phase == "finetune" else "no BLEU was measured on the dev set"
                put(run / phase / "training.json", {**training, "handed_on": handed_on, "settings": {}})
                put_representation(run / phase / "representation", 9.5)
            if arm in KINDS:
                noise, unit = ("released.pieces", "piece") if arm == "released" else (KINDS[arm], "word")
                folder = root / f"codeswitch/demo/{noise}/seed{seed}"
                side = {"words": 100, "replaceable": 90, "replaced": 34, "budget": 35, "rate": 0.347, "coverage": 0.9, "shortfall": 0.01}
                put(folder / "codeswitch.json", {"kind": KINDS[arm], "unit": unit, "rounds": 1, "sides": {"de": side, "en": side}})
                for code in ("de", "en"):
                    with zstandard.open(folder / f"round0.{code}.tsv.zst", "wt", encoding="utf-8") as file:
                        file.write(f"{NOISED[KINDS[arm]]}\t{ORIGINAL}\n")
        put(experiment / f"significance/pages.seed{seed}.json", {"baseline": "finetune", "systems": systems})
    pairs = []
    for at, arm in enumerate(arms):
        for other in arms[:at]:
            gap = sum(bleu(arm, seed) - bleu(other, seed) for seed in seeds) / len(seeds)
            row = {"arm": arm, "other": other, "metric": "BLEU", "seeds": len(seeds), "difference": gap}
            pairs.append({**row, "low": gap - 0.5, "high": gap + 0.5, "p": 0.006 if len(seeds) > 1 else 0.003})
    covers = COVERS["seed" if len(seeds) == 1 else test]
    put(experiment / "significance/pages.json", {"baseline": "finetune", "pairs": pairs, "covers": covers, "two_sided": True})
    return root


def generating():
    """A configuration that asks questions, learnt in English and tested in English and in Chinese."""
    source = {"file": "x.tsv", "columns": {"text": 1, "target": 2}}
    tests = {"en": {**source, "file": "en.tsv"}, "zh": {**source, "file": "zh.tsv", "language": "zh"}}
    text = {"unit": "target", "language": "en", "train": source, "dev": {"held_out": 0.1}, "test": tests}
    return load(
        {
            "run": {"experiments": ["asking"], "arms": ["finetune", "again"], "seeds": [1]},
            "corpora": {},
            "lexicons": {},
            "labelled": {"texts": text},
            "backbones": {"small": {"kind": "hub", "model": "somebody/mbart"}},
            "arms": {arm: [{"data": "task", "updates": 10}] for arm in ("finetune", "again")},
            "experiments": {"asking": {"task": "questions", "corpus": "texts", "backbone": "small"}},
        }
    )


def generated(root):
    """What `generating` wrote in the folder of results `root`, and its references."""
    texts = {"en": ["Which houses stand here?", "Who won in 1990?"], "zh": ["城里有什么房子？", "谁赢了？"]}
    for testset, lines in texts.items():
        for side in ("source", "target"):
            put(root / f"labelled/texts/test/{testset}.{testset}-{testset}.{side}.{testset}", "".join(f"{line}\n" for line in lines))
        for arm, written in (("finetune", lines), ("again", reversed(lines))):
            put(root / f"runs/asking/{arm}/seed1/{testset}.hyp", "".join(f"{line}\n" for line in written))
    return root


def study_of(root, config):
    """The only experiment of a configuration, or the first of several."""
    return configured(root, Plans(config).experiments["demo"])


def done_again(root, config):
    """Results and configuration have the experiment once more, called `again`."""
    for folder in ("runs", "codeswitch"):
        shutil.copytree(root / folder / "demo", root / folder / "again")
    config.experiments["again"] = config.experiments["demo"]
    config.run.experiments.append("again")


def report(root, tmp_path, config=None, **choices):
    """The page and the rows of `scores.tsv`, of a configuration, or of `configuration` with these choices."""
    write_report(root, tmp_path / "report.html", tmp_path / "scores.tsv", plans=Plans(config or configuration(**choices)))
    return (tmp_path / "report.html").read_text(encoding="utf-8"), read_rows(tmp_path / "scores.tsv")


def plain(html):
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", html)).split())
