"""What no type can see: names, languages, lengths and files that do not go together."""

import contextlib

import pytest
from configurations import DEFAULT, changed, classified, summaries

from workflow_scripts.run import config, findings
from workflow_scripts.stage import InputError
from workflow_scripts.tasks.plan import Plans


@pytest.mark.parametrize(
    "path, value, message",
    [
        ("experiments/help-de-en/corpus", "hlep", "'hlep' is not defined, did you mean 'help'"),
        ("experiments/help-de-en/source", "fr", "are not the languages of corpus"),
        ("run/arms", [], "is empty"),
        ("run/seeds", [1, 1], "different whole numbers"),
        ("run/experiments", ["nothing"], "is not defined"),
        ("corpora/../x", DEFAULT["corpora"]["help"], "names are folders"),
        ("arms/csr/0/updates", 7, "same number of updates"),
        ("experiments/help-de-en/arms", ["csr", "randm"], "arms: 'randm' is not defined, did you mean 'random'"),
        ("experiments/help-de-en/arms", ["scratch"], "arms: none of the run's arms"),
        ("arms/csr", [{"data": "mask", "updates": 2000}], "one `data: task` phase"),
        ("arms/csr/1/start", "scratch", "without what the phase before it has learnt"),
        ("backbones/bible/small/text", {"de": "x"}, "no text for 'en'"),
        ("lexicons/unsupervised/mapping/mode", "supervised", "mapping.mode supervised needs one for 'de-en'"),
        ("lexicons/unsupervised/mapping/mode", "mapped", "needs the mapped vectors of 'de'"),
        ("lexicons/unsupervised/gold", {"en-de": "x"}, "'en-de' must be in the order of the corpus's languages, 'de-en'"),
        ("run/seeds", [0], "different whole numbers from 1"),
        ("arms/csr/0/training", {"updates": 9}, "set `updates` of the phase itself instead"),
        ("arms/csr/0/training", {"pairs": 5000}, r"arms\.csr\.training\.pairs: is for the task phase; a pretext phase restores all"),
        ("backbones/bible/small/training/pairs", 5000, r"bible\.small\.training\.pairs: is for a task phase"),
        ("experiments/help-de-en/training/max_length", 4000, "more than the backbone's 512 positions"),
        ("experiments/help-de-en/lexicon", ..., r"experiments\.help-de-en\.lexicon: is missing; arms\.csr needs one"),
        ("arms/csr/1/lexicon", "unsupervised", "the task itself takes none"),
        ("arms/csr/0/data", "released", "cannot take the lexicon 'unsupervised' of unit word"),
        ("lexicons/unsupervised/unit", "piece", r"lexicons\.unsupervised\.backbone: '' is not defined"),
        ("arms/csr/0/training", {"max_length": 4000}, r"arms\.csr\.training\.max_length: 4000 is more"),
        ("backbones/bible/small/training/max_length", 4000, r"small\.training\.max_length: 4000 is more"),
        ("lexicons/unsupervised/backbone", "bible", "is for unit piece only"),
        ("run/arms", ["finetune", "crs"], "did you mean 'csr'"),
        ("arms/csr/0/lexicon", "unsupervisd", "did you mean 'unsupervised'"),
        ("lexicons/unsupervised/corpus", "halp", "did you mean 'help'"),
    ],
)
def test_mistakes_are_named_with_the_way_out(path, value, message):
    raw = changed(path, value) if "../" not in path else {**DEFAULT, "corpora": {**DEFAULT["corpora"], "../x": value}}
    with pytest.raises(InputError, match=message):
        config.load(raw)


SUMMARIES, EXPERIMENT = "experiments/help-summaries-de-en", "experiments/help-modules"


@pytest.mark.parametrize(
    "path, value, message",
    [
        (f"{SUMMARIES}/task", "translation", "task: translation of corpus 'help-sections', which has some"),
        (f"{SUMMARIES}/corpus", "help", "task: summarisation of corpus 'help', which has none"),
        (f"{SUMMARIES}/decoding/min_length", 50, "min_length 50 is more than max_length 30"),
        (f"{SUMMARIES}/choice", {"by": "dev_bleu"}, "dev_bleu is not measured: dev_metric is ROUGE-L; set dev_rouge"),
    ],
)
def test_mistakes_with_summaries_are_named(path, value, message):
    raw = summaries(path, value)
    raw["experiments"]["help-summaries-de-en"]["training"]["learning_rate"] = [1e-3, 2e-3]
    with pytest.raises(InputError, match=message):
        config.load(raw)


@pytest.mark.parametrize(
    "path, value, message",
    [
        (f"{EXPERIMENT}/corpus", "module", "'module' is not defined, did you mean 'modules'"),
        (f"{EXPERIMENT}/lexicon", ..., r"lexicon: is missing; arms\.csr-10e needs one"),
        (f"{EXPERIMENT}/lexicon", "unsupervised", r"lexicons\.unsupervised\.mapping\.mode: must be dictionary"),
        (f"{EXPERIMENT}/into", ["de", "fr"], r"lexicons\.wiktionary\.dictionary: en-fr is missing, which .*; give a file of word pairs"),
        (f"{EXPERIMENT}/into", ["en"], r"into: no language but 'en'"),
        (f"{EXPERIMENT}/restore", "pair", r"restore: .*texts.*pairs"),
        (f"{EXPERIMENT}/arms", ["finetun-10e"], r"arms: 'finetun-10e' is not defined"),
        (f"{EXPERIMENT}/arms", ["finetune"], "none of the run's arms"),
        (f"{EXPERIMENT}/arms", [], "none of the run's arms"),
        (f"{EXPERIMENT}/classification/max_length", 600, r"classification\.max_length: 600 is more than the backbone's 512 positions"),
        ("lexicons/wiktionary/dictionary", {}, r"lexicons\.wiktionary\.dictionary: en-de is missing"),
        ("arms/finetune-10e", [{"data": "task", "epochs": 9}], "same number of updates in all .*9 epochs"),
        ("arms/finetune-10e", [{"data": "task", "updates": 9}], "help-modules, a classification, counts epochs and not updates"),
        ("arms/finetune-10e", [{"data": "task", "updates": 9, "epochs": 10}], "a phase has either updates or epochs"),
        ("arms/finetune-10e", [{"data": "task"}], "a phase has either updates or epochs"),
        ("arms/finetune-10e", [{"data": "task", "epochs": 0}], "epochs must be at least 1, got 0"),
        ("arms/csr-10e", [{"data": "codeswitch", "epochs": 1}, {"data": "task", "epochs": 10}], "a pretext phase counts updates"),
        ("arms/mask-10e/0/data", "released", "`released` needs parallel text"),
        ("run/experiments", ["help-de-en"], r"arms\.finetune-10e: experiments\.help-de-en, a translation, counts updates"),
    ],
)
def test_mistakes_in_a_classification_are_named(path, value, message):
    with pytest.raises(InputError, match=message):
        config.load(classified(path, value))


def test_a_lexicon_learnt_for_text_with_labels_is_checked():
    raw = classified("lexicons/wiktionary", {"corpus": "help", "mapping": {"mode": "mapped"}})
    with pytest.raises(InputError, match=r"lexicons\.wiktionary\.vectors: mapping.mode mapped needs the mapped vectors of 'de'"):
        config.load(raw)
    raw["lexicons"]["wiktionary"] = {"corpus": "help", "mapping": {"mode": "identical"}}
    loaded = config.load(raw)
    assert ("help", "wiktionary") in findings.used_lexicons(Plans(loaded)) and "help" in findings.used_corpora(Plans(loaded))


def test_experiments_with_other_arms_may_have_other_updates():
    raw = changed("experiments/help-de-en/arms", ["finetune", "csr"])
    raw["arms"]["long"] = [{"data": "task", "updates": 9000}]
    raw["run"]["arms"] = ["finetune", "csr", "long"]
    raw["experiments"]["another"] = {**raw["experiments"]["help-de-en"], "arms": ["long"]}
    raw["run"]["experiments"] = ["help-de-en", "another"]
    loaded = config.load(raw)
    assert [Plans(loaded).experiments[name].arms for name in raw["run"]["experiments"]] == [["finetune", "csr"], ["long"]]
    raw["experiments"]["another"]["arms"] = ["finetune", "long"]
    with pytest.raises(InputError, match=r"all arms of an experiment need the same number of updates .* of another"):
        config.load(raw)


@pytest.mark.parametrize("testset, there", [("nowhere", False), ("average", True), ("de", True)])
def test_published_numbers_of_labels_are_of_known_test_sets(testset, there):
    number = {"arm": "finetune-10e", "metric": "accuracy", "value": 1, "source": "a paper", "testset": testset}
    raw = classified("experiments/help-modules/published", [number])
    with contextlib.nullcontext() if there else pytest.raises(InputError, match="published: testset: 'nowhere' is not defined"):
        config.load(raw)
