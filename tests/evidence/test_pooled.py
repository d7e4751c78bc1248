"""Effects from the table that machines add their numbers to."""

import csv

import pytest

from workflow_scripts.evidence.collect import COLUMNS
from workflow_scripts.evidence.pooled import main
from workflow_scripts.stage import InputError

# pair, arm → machine → scores of seeds 1, 2, …
SCORES = {
    ("de", "finetune"): {"one": [10.0, 11.0], "two": [10.0]},
    ("de", "csr"): {"one": [13.0, 15.0], "two": [14.0], "three": [99.0]},
    ("tr", "finetune"): {"one": [8.0]},
    ("tr", "csr"): {"one": [10.5]},
}


@pytest.fixture
def table(tmp_path):
    with open(tmp_path / "study.tsv", "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, delimiter="\t", lineterminator="\n")
        writer.writeheader()
        for (pair, arm), machines in SCORES.items():
            for machine, values in machines.items():
                for seed, value in enumerate(values, 1):
                    head = {"machine": machine, "setting": f"{pair}-part", "pair": f"{pair}-en", "arm": arm, "seed": seed, "commit": "c"}
                    for testset, metric, number in (("pages", "BLEU", value), ("pages", "chrF", 2 * value), ("talks", "BLEU", 0.0)):
                        writer.writerow({**head, "testset": testset, "metric": metric, "value": number, "date": "2026-01-01"})
    return tmp_path / "study.tsv"


def read(path, together="pairs"):
    """Rows by experiments and metric: of several pairs the test over `together`, of a pair by itself the only one."""
    found = {}
    with open(path, encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            if (key := (row["experiments"], row["metric"])) not in found or row["over"] == together:
                found[key] = row
    return found


def test_machines_count_within_seeds_seeds_within_pairs_and_pairs_alike(table, tmp_path):
    main(table, tmp_path / "pooled.tsv", experiments=("de-part", "tr-part"), arms=("finetune", "csr"))
    found = read(tmp_path / "pooled.tsv")
    assert len(found) == 6
    # seed 1: 3 and 4 by two machines; seed 2: 4. A machine that has trained one of the arms alone has nothing to say.
    german, turkish = found["de-part", "BLEU"], found["tr-part", "BLEU"]
    assert (float(german["effect"]), german["seeds"]) == (3.75, "2") and (float(turkish["effect"]), turkish["t_p"]) == (2.5, "nan")
    half = 12.7062 * 0.25  # Student's quantile for one degree of freedom, and the standard error of 3.5 and 4
    assert (float(german["t_low"]), float(german["t_high"])) == pytest.approx((3.75 - half, 3.75 + half), rel=1e-4)
    both = found["de-part tr-part", "BLEU"]
    half = 12.7062 * 0.625
    assert (float(both["effect"]), both["seeds"]) == (3.125, "3")
    assert (float(both["t_low"]), float(both["t_high"])) == pytest.approx((3.125 - half, 3.125 + half), rel=1e-4)
    assert float(found["de-part tr-part", "chrF"]["effect"]) == 6.25
    alike = read(tmp_path / "pooled.tsv", "trainings")["de-part tr-part", "BLEU"]
    # 3.5, 4 and 2.5, whose standard error is √(7 / 36), and Student's quantile for two degrees of freedom
    assert (float(alike["effect"]), alike["seeds"]) == (pytest.approx(10 / 3, rel=1e-4), "3")
    assert float(alike["t_high"]) - float(alike["effect"]) == pytest.approx(4.30265 * (7 / 36) ** 0.5, rel=1e-4)
    main(table, tmp_path / "one.tsv", experiments=("de-part",), arms=("csr", "finetune"), metrics=("BLEU",))
    assert float(read(tmp_path / "one.tsv")["de-part", "BLEU"]["effect"]) == -3.75


def test_arms_of_different_commits_are_named(table, tmp_path, capsys):
    main(table, tmp_path / "same.tsv", experiments=("de-part",), arms=("finetune", "csr"))
    assert "commit" not in capsys.readouterr().out
    lines = table.read_text().splitlines(keepends=True)
    changed = [line.replace("\tc\t", "\td\t") if "\tcsr\t2\t" in line else line for line in lines]
    table.write_text("".join(changed))
    main(table, tmp_path / "other.tsv", experiments=("de-part",), arms=("finetune", "csr"))
    assert capsys.readouterr().out.count("of different commits: de-part, seed 2: c: finetune; d: csr\n") == 1


def test_arms_of_different_machines_count_where_one_asks_for_it(table, tmp_path):
    main(table, tmp_path / "any.tsv", experiments=("de-part",), arms=("finetune", "csr"), metrics=("BLEU",), across_machines=True)
    # seed 1: the mean of 13, 14 and 99 against that of 10 and 10
    assert float(read(tmp_path / "any.tsv")["de-part", "BLEU"]["effect"]) == (32 + 4) / 2
    with pytest.raises(InputError, match="has no BLEU of mask and finetune in de-part with one seed"):
        main(table, tmp_path / "none.tsv", experiments=("de-part",), arms=("finetune", "mask"), across_machines=True)


def test_experiments_of_one_pair_count_together(table, tmp_path):
    """As with one experiment for each seed of a backbone."""
    rows = table.read_text(encoding="utf-8")
    other = [
        row.replace("de-part", "de-part-2").replace("\t13.0\t", "\t20.0\t") for row in rows.splitlines(keepends=True) if "de-part" in row
    ]
    table.write_text(rows + "".join(other), encoding="utf-8")
    main(table, tmp_path / "pooled.tsv", experiments=("de-part", "tr-part", "de-part-2"), arms=("finetune", "csr"), metrics=("BLEU",))
    found = read(tmp_path / "pooled.tsv")
    assert [(names, row["seeds"]) for (names, _), row in found.items()] == [
        ("de-part de-part-2 tr-part", "5"),
        ("de-part de-part-2", "4"),
        ("tr-part", "1"),
    ]
    # seeds 1 and 2 of the one have 3.5 and 4; of the other, whose first machine had 20 where it had 13, 7 and 4
    assert float(found["de-part de-part-2", "BLEU"]["effect"]) == 4.625
    assert float(found["de-part de-part-2 tr-part", "BLEU"]["effect"]) == (4.625 + 2.5) / 2
    # a piece that has one of the arms alone adds nothing
    table.write_text(rows + "".join(row for row in other if "\tcsr\t" in row), encoding="utf-8")
    main(table, tmp_path / "pooled.tsv", experiments=("de-part", "de-part-2"), arms=("finetune", "csr"), metrics=("BLEU",))
    assert float(read(tmp_path / "pooled.tsv")["de-part de-part-2", "BLEU"]["effect"]) == 3.75


def test_arms_without_a_seed_in_common_are_named(table, tmp_path):
    with pytest.raises(InputError, match=r"study\.tsv: has no BLEU of random and finetune in de-part by one machine with one seed"):
        main(table, tmp_path / "pooled.tsv", experiments=("de-part",), arms=("finetune", "random"))
