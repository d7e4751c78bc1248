"""Which experiments differ by their backbone alone, and the flags of the rules that compare their models."""

import pytest
from configurations import job, with_recipes

from workflow_scripts.run import report_inputs, transfer_comparisons
from workflow_scripts.run.config import load
from workflow_scripts.stage import InputError
from workflow_scripts.tasks.plan import Plans


def study(*more, **changes):
    """The recipe of the small study, and `more` recipes over it, with settings of `run` and of experiments replaced."""
    raw = with_recipes("small-transfer", *more)
    raw["run"] |= changes.pop("run", {})
    raw["experiments"] |= changes
    return load(raw)


def test_models_are_compared_task_by_task_with_the_base_first():
    config = study(run={"transfer": "xlmr-small"})
    plans = Plans(config)
    found = transfer_comparisons.comparisons(plans)
    assert [group["xlmr-small"].name for group in found] == [f"small-{task}-xlmr-small" for task in ("pos", "ner", "topics")]
    assert all(list(group)[:2] == ["xlmr-small", "mbart-small"] and len(group) == 7 for group in found)
    assert next(iter(transfer_comparisons.retrievals(plans)[plans.experiments["small-retrieval"]])) == "xlmr-small"
    asked = job(config, experiment="small-topics-xlmr-small")
    assert transfer_comparisons.names(asked)[0] == "xlmr-small"
    # by model, then by seed
    first = "results/runs/small-topics-xlmr-small/finetune-5e"
    assert transfer_comparisons.folders(asked)[2:4] == [
        f"{first}/seed3/predictions",
        "results/runs/small-topics-mbart-small/finetune-5e/seed1/predictions",
    ]
    assert f"{first.rpartition('/')[0]}/transfer.json" in transfer_comparisons.results(Plans(config))
    assert report_inputs.report_tables(config.run) == ["results/comparisons.tsv", "results/transfer.tsv", "results/analyses.tsv"]


def test_experiments_that_write_are_not_compared():
    run = {"experiments": ["small-pos-*", "one", "other"], "arms": ["finetune-12e", "finetune"], "transfer": "xlmr-small"}
    one = {"like": "questions", "arms": ["finetune"]}
    config = study("questions", run=run, one=one, other=one)
    assert [group["xlmr-small"].name for group in transfer_comparisons.comparisons(Plans(config))] == ["small-pos-xlmr-small"]


def test_a_model_of_an_arm_is_not_compared_by_its_backbone():
    models = {"base": {"backbone": "mbart-small"}, "tuned": {"experiment": "small-topics-mbart-small", "arm": "finetune-5e"}}
    config = study(**{"small-retrieval": {"task": "retrieval", "corpus": "small-sentences", "models": models}})
    assert transfer_comparisons.retrievals(Plans(config)) == {} and transfer_comparisons.comparisons(Plans(config))


def test_nothing_is_compared_unless_asked_for():
    config = study(run={"transfer": None, "analyses": []})
    assert (
        transfer_comparisons.comparisons(Plans(config)) == []
        and transfer_comparisons.retrievals(Plans(config)) == {}
        and transfer_comparisons.results(Plans(config)) == []
    )
    assert report_inputs.report_tables(config.run) == ["results/comparisons.tsv"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"run": {"transfer": "mbart"}}, r"run\.transfer: 'mbart' is not defined, did you mean 'mbart-small'"),
        ({"run": {"experiments": ["small-pos-mbart-small"]}}, r"there is nothing to compare 'mbart-small' with"),
        ({"again": {"like": "small-pos-mbart-small"}, "run": {"experiments": ["small-pos-*", "again"]}}, r"again are both labelling of small-pos"),
        (
            {"small-pos-csr-small": {"like": "small-pos-mbart-small", "backbone": "csr-small", "arms": ["finetune-5e"]}},
            r"need the same first arm: .*'small-pos-csr-small': 'finetune-5e'",
        ),
        (
            {"small-pos-csr-small": {"like": "small-pos-mbart-small", "backbone": "csr-small", "labelling": {"metric": "f1"}}},
            r"need the same `metric`: .*'small-pos-csr-small': 'f1'",
        ),
        (
            {"small-pos-csr-small": {"like": "small-pos-mbart-small", "backbone": "csr-small", "seeds": 1}},
            r"need the same `seeds`: .*'small-pos-csr-small': \[1\]",
        ),
        (
            {"small-retrieval": {"task": "retrieval", "corpus": "small-sentences", "models": {
                "base": {"backbone": "mbart-small"}, "first": {"backbone": "m2m-small"}, "last": {"backbone": "m2m-small"}}}},
            r"first and last of experiments\.small-retrieval\.models are both backbone m2m-small",
        ),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_comparison(changes, message):
    with pytest.raises(InputError, match=message):
        study(**changes)


def test_rankings_are_compared_by_one_measure_of_what_is_relevant():
    changes = {"run": {"experiments": ["answers", "other"], "arms": ["finetune-3e"], "transfer": "bible-answers", "analyses": []}}
    other = {"like": "answers", "backbone": "xlmr-small", "ranking": {"relevant": 2}}
    with pytest.raises(InputError, match=r"need the same `relevant`: \{'answers': 1\.0, 'other': 2\.0\}"):
        study("ranking", **changes, other=other)
