"""Effects over pairs, seeds and sentences: planted ones are found, and chance is not."""

import csv
import re
import shutil

import numpy as np
import pytest
from tiny_models import manual_pairs

from workflow_scripts.evidence.hierarchy import compare, main, student
from workflow_scripts.stage import InputError, write_json


def mean(sums):
    return sums[0] / sums[1]


def compared(pairs, *arms, **settings):
    return compare(pairs, [mean] * len(pairs), *arms, **settings)


def study(rng, effect, pairs=4, seeds=5, sentences=60, between_pairs=0.3, between_seeds=0.3):
    """Scores of two arms whose true difference is `effect`, with differences of pairs, seeds and sentences of their own."""
    made = []
    for _ in range(pairs):
        hard, own = rng.normal(size=sentences), effect + between_pairs * rng.normal()
        pair = {}
        for seed in range(1, seeds + 1):
            for arm, gain in (("plain", 0.0), ("csr", own + between_seeds * rng.normal())):
                values = 10 + hard + gain + 0.5 * rng.normal(size=sentences)
                pair[arm, seed] = np.stack([values, np.ones(sentences)], axis=1)
        made.append(pair)
    return made


@pytest.mark.parametrize("pairs", [3, 6])
def test_what_is_not_there_is_seldom_found_and_what_is_there_mostly(pairs):
    rng = np.random.default_rng(1)
    nothing = [compared(study(rng, 0.0, pairs), "csr", "plain", samples=200) for _ in range(60)]
    planted = [compared(study(rng, 1.5, pairs), "csr", "plain", samples=200) for _ in range(60)]
    # a test of 5 % would have 3 of 60 on average
    assert sum(found["p"] < 0.05 for found in nothing) <= 12
    assert sum(found["p"] < 0.05 for found in planted) >= 45
    # intervals of 95 % have the truth in 57 of 60 on average
    assert sum(found["low"] <= 0.0 <= found["high"] for found in nothing) >= 48
    assert sum(found["low"] <= 1.5 <= found["high"] for found in planted) >= 48
    assert np.mean([found["effect"] for found in planted]) == pytest.approx(1.5, abs=0.3)


def test_students_t_recognises_few_pairs_that_differ_by_chance():
    rng = np.random.default_rng(4)
    nothing = [compared(study(rng, 0.0, 3, between_pairs=1.0, between_seeds=0.3), "csr", "plain", samples=200) for _ in range(100)]
    planted = [compared(study(rng, 3.0, 3, between_pairs=0.3, between_seeds=0.3), "csr", "plain", samples=200) for _ in range(20)]
    # a test of 5 % would have 5 of 100 on average; the bootstrap of three pairs has some 20
    assert sum(found["t_p"] < 0.05 for found in nothing) <= 12 < sum(found["p"] < 0.05 for found in nothing)
    assert sum(found["t_low"] <= 0.0 <= found["t_high"] for found in nothing) >= 88
    assert sum(found["t_p"] < 0.05 for found in planted) >= 17


def test_students_t_is_that_of_the_pairs_or_of_the_seeds_of_a_single_one():
    pairs = study(np.random.default_rng(6), 1.0, pairs=3)
    found = compared(pairs, "csr", "plain", samples=20)
    # Student's quantile for two degrees of freedom
    half = 4.3027 * np.std(found["by_pair"], ddof=1) / 3**0.5
    assert (found["t_low"], found["t_high"]) == pytest.approx((found["effect"] - half, found["effect"] + half), rel=1e-4)
    alone = compared(pairs[:1], "csr", "plain", samples=20)
    seeds = [compared([{key: value for key, value in pairs[0].items() if key[1] == s}], "csr", "plain", samples=20) for s in range(1, 6)]
    half = 2.7764 * np.std([one["effect"] for one in seeds], ddof=1) / 5**0.5
    assert alone["t_high"] - alone["t_low"] == pytest.approx(2 * half, rel=1e-4) and np.isnan(seeds[0]["t_p"])
    assert student([0.0, 0.0]) == {"t_low": 0.0, "t_high": 0.0, "t_p": 1.0} and student([2.0, 2.0])["t_p"] == 0.0


def test_each_pair_has_its_own_score():
    pairs = study(np.random.default_rng(5), 1.0, pairs=2)
    plain = compare(pairs, [mean, mean], "csr", "plain", samples=20)["by_pair"]
    doubled = compare(pairs, [mean, lambda sums: 2 * mean(sums)], "csr", "plain", samples=20)["by_pair"]
    assert doubled == pytest.approx([plain[0], 2 * plain[1]])


def test_pairs_that_disagree_are_no_evidence_though_each_by_itself_would_be():
    rng = np.random.default_rng(2)
    for_csr, against = (study(rng, effect, 1, between_pairs=0.0, between_seeds=0.05)[0] for effect in (2.0, -2.0))
    assert compared([for_csr], "csr", "plain")["p"] < 0.01 > compared([against], "csr", "plain")["p"]
    both = compared([for_csr, against], "csr", "plain")
    assert both["p"] > 0.3 and both["low"] < -1 and both["high"] > 1
    assert both["by_pair"][0] > 1.5 and both["by_pair"][1] < -1.5


def test_equal_arms_differ_by_nothing_and_arms_change_the_sign():
    pairs = study(np.random.default_rng(3), 1.0)
    same = [{(arm, seed): pair["csr", seed] for arm in ("csr", "plain") for seed in range(1, 6)} for pair in pairs]
    found = compared(same, "csr", "plain", samples=50)
    assert (found["effect"], found["low"], found["high"], found["p"]) == (0.0, 0.0, 0.0, 1.0)
    one, other = compared(pairs, "csr", "plain"), compared(pairs, "plain", "csr")
    assert one["effect"] == pytest.approx(-other["effect"]) and one["low"] == pytest.approx(-other["high"], abs=1e-6)
    assert (one["pairs"], one["seeds"], one["sentences"]) == (4, 20, 240)


def test_one_sentence_shows_nothing():
    (pair,) = study(np.random.default_rng(8), 5.0, pairs=1, seeds=1, sentences=1)
    found = compared([pair], "csr", "plain", samples=50)
    assert found["p"] == 1 and found["low"] == found["high"] == pytest.approx(found["effect"]) and found["effect"] > 1


def test_seeds_that_only_one_arm_has_are_left_out():
    pairs = study(np.random.default_rng(4), 1.0)
    whole = compared(pairs, "csr", "plain", samples=20)
    del pairs[0]["plain", 5]
    assert compared(pairs, "csr", "plain", samples=20)["seeds"] == whole["seeds"] - 1
    pairs[1] = {key: value for key, value in pairs[1].items() if key[0] == "csr"}
    with pytest.raises(InputError, match="pair 2 of 4: csr and plain have no seed in common"):
        compared(pairs, "csr", "plain")


def test_a_table_of_effects_is_made_of_the_translations(tmp_path):
    references = manual_pairs(60)[1]
    blocks, corpora = {}, {}
    for code, worse in (("de", 3), ("tr", 4)):
        blocks[f"{code}-part"] = {"corpus": code, "source": code, "target": "en", "scores": {"tokenize": None, "metrics": ["BLEU", "chrF"]}}
        corpora[code] = {"languages": [code, "en"]}
        (folder := tmp_path / f"corpora/{code}.{code}-en/test").mkdir(parents=True)
        (folder / "pages.en").write_text("".join(f"{line}\n" for line in references), encoding="utf-8")
        for arm, step in (("finetune", worse), ("csr", 9), ("late", 9)):
            for seed in (1, 2) if arm != "late" else (1,):
                (folder := tmp_path / f"runs/{code}-part/{arm}/seed{seed}").mkdir(parents=True)
                lines = (" ".join(w for i, w in enumerate(line.split()) if (i + seed) % step) for line in references)
                (folder / "pages.hyp").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    write_json(tmp_path / "configuration.json", {"run": {"seeds": [1, 2]}, "experiments": blocks, "corpora": corpora})
    arguments = {"experiments": ("de-part", "tr-part"), "arms": ("finetune", "csr", "late"), "samples": 100}
    main(tmp_path, tmp_path / "effects.tsv", **arguments)
    with open(tmp_path / "effects.tsv", encoding="utf-8") as file:
        rows = {(row["arm"], row["other"], row["metric"]): row for row in csv.DictReader(file, delimiter="\t")}
    assert len(rows) == 6
    found = rows["csr", "finetune", "BLEU"]
    assert 0 < float(found["low"]) < float(found["effect"]) < float(found["high"]) and float(found["p"]) < 0.05
    assert (found["pairs"], found["seeds"], found["sentences"]) == ("2", "4", "120") and "tr-part:" in found["by_pair"]
    assert rows["late", "csr", "chrF"]["seeds"] == "2"
    tables = []
    for name in ("METEOR", "METEOR (exact+stem)"):
        main(tmp_path, tmp_path / "meteor.tsv", **{**arguments, "metrics": (name,)})
        tables.append((tmp_path / "meteor.tsv").read_text().replace(f"\t{name}\t", "\tMETEOR\t"))
    assert tables[0] == tables[1] and "\tMETEOR\t" in tables[0]
    for name in ("COMET", "METEOR (exact)"):
        with pytest.raises(InputError, match=rf"metrics: {re.escape(name)} has no counts of sentences that add up; there is "):
            main(tmp_path, tmp_path / "none.tsv", **{**arguments, "metrics": (name,)})
    with pytest.raises(InputError, match="has no experiment 'fr-part'; it has de-part, tr-part"):
        main(tmp_path, tmp_path / "effects.tsv", **{**arguments, "experiments": ("fr-part",)})

    # the second seed in an experiment of its own is no language pair more
    for arm in ("finetune", "csr"):
        (tmp_path / f"runs/tr-part-2/{arm}").mkdir(parents=True)
        (tmp_path / f"runs/tr-part/{arm}/seed2").rename(tmp_path / f"runs/tr-part-2/{arm}/seed2")
    blocks["tr-part-2"] = blocks["tr-part"]
    write_json(tmp_path / "configuration.json", {"run": {"seeds": [1, 2]}, "experiments": blocks, "corpora": corpora})
    apart = {**arguments, "experiments": ("de-part", "tr-part", "tr-part-2")}
    main(tmp_path, tmp_path / "apart.tsv", **apart)
    with open(tmp_path / "apart.tsv", encoding="utf-8") as file:
        again = next(row for row in csv.DictReader(file, delimiter="\t") if (row["arm"], row["metric"]) == ("csr", "BLEU"))
    assert again == {
        **found,
        "experiments": "de-part tr-part tr-part-2",
        "by_pair": found["by_pair"].replace("tr-part:", "tr-part+tr-part-2:"),
    }
    shutil.copytree(tmp_path / "runs/tr-part-2/csr/seed2", tmp_path / "runs/tr-part/csr/seed2")
    with pytest.raises(
        InputError, match="tr-part and tr-part-2 are of one pair, and both have trained csr with seed 2; compare one at a time"
    ):
        main(tmp_path, tmp_path / "apart.tsv", **apart)
