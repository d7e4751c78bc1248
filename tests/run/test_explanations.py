"""Plain words explain what types refuse, and name the way out."""

import copy
import datetime

import pytest
from configurations import DEFAULT, changed, classified, summaries

from workflow_scripts.run import config
from workflow_scripts.stage import InputError


@pytest.mark.parametrize(
    "path, value, message",
    [
        ("experiments/help-de-en/trainig", {}, r"experiments\.help-de-en\.trainig: unknown key, did you mean 'training'"),
        ("experiments/help-de-en/training/learning_rte", 1, "did you mean 'learning_rate'"),
        ("experiments/help-de-en/training/dropout", "much", "dropout: input should be a valid number"),
        ("arms/csr/0/training", {"dropuot": 1}, "did you mean 'dropout'"),
        ("experiments/help-de-en/training/adapter", {"kind": ["lora"]}, r"adapter\.kind: there is no adapter \['lora'\]"),
        ("experiments/help-de-en/training/pairs", True, "pairs: input should be a number, got true"),
        ("arms/csr/0/training", {"dropout": "much"}, "dropout: input should be a valid number"),
        ("experiments/help-de-en/codeswitch/noise/poisson_lambda", 0, "poisson_lambda: input should be greater than or equal to 0.5"),
        ("corpus", {}, r"corpus: unknown key, did you mean 'corpora'"),
        ("experiment", {}, r"experiment: unknown key, did you mean 'experiments'"),
        ("experiments/help-de-en/epochs", 3, r"epochs: unknown key; .*arms\.NAME have a key of this name"),
        ("corpora/help/held_out", 3, r"help\.held_out: unknown key, did you mean 'held_out_min_words'"),
        ("arms/csr/0/codeswitch", {}, r"codeswitch: unknown key, did you mean 'switch'\? \(experiments\.NAME has a key of this name\)"),
        ("corpora/help/liek", "other", r"help\.liek: unknown key, did you mean 'like'"),
        ("corpora/help/test", {"held_out": 5}, r"corpora\.help\.test: holds test sets by name; write `test: \{NAME: \{held_out: …\}\}`"),
        ("corpora/help/test", {"files": {"de": "a", "en": "b"}}, r"test: holds test sets by name; write `test: \{NAME: \{files"),
        ("experiments/help-de-en/scores/metrics", ["bleu"], r"did you mean 'BLEU'\?"),
        ("backbones/bible/small/training/dropuot", 0.1, r"small\.training\.dropuot: unknown key, did you mean 'dropout'"),
        ("experiments/help-de-en/scores/metrics", ["BLEU", "COMET"], r"got 'COMET'; `comet: \{\}` in the experiment switches it on"),
        ("lexicons/unsupervised/lexicon/retrieval", "euclid", "csls"),
        ("arms/csr/0/data", "noise", "codeswitch"),
        ("arms/csr", {"data": "task", "updates": 9}, r"arms\.csr: .*list, got \{'data': .*; put it into a list, also if it is alone"),
        ("run", ..., "run: is missing"),
        ("experiments/help-de-en/corpus", ["help"], r"experiments\.help-de-en\.corpus: input should be a valid string, got \['help'\]"),
        ("corpora/help/languages", ["en", False], r'got false; YAML takes no, off and false for .* quotes, as in "no"'),
        ("corpora/help/languages", ["en", True], r'got true; YAML takes yes, on and true for .* quotes, as in "yes"'),
        ("corpora/help/test", {2017: {"held_out": 9}}, r'help\.test\.2017: .*got 2017; YAML takes it for a number: write "2017" in quotes'),
        ("run/arms", [datetime.date(2024, 1, 31)], r'YAML takes it for a date: write "2024-01-31" in quotes'),
        ("experiments/help-de-en/training", {"batch_tokens": "1e4"}, r"batch_tokens: .*got '1e4'; write it out: 10000"),
        ("experiments/help-de-en/training", {"learning_rate": 1, 1: None}, "got 1; a comma ends a value in .*decimals with a point"),
        ("experiments/help-de-en/task", ["translation"], r"there is no task \['translation'\], did you mean 'translation'"),
    ],
)
def test_what_types_refuse_is_explained_in_plain_words(path, value, message):
    with pytest.raises(InputError, match=message):
        config.load(changed(path, value))


SECTIONS, EXPERIMENT = "corpora/help-sections", "experiments/help-modules"


@pytest.mark.parametrize(
    "path, value, message",
    [
        (f"{SECTIONS}/documents/cut", {"de": {"wrods": 5}}, "did you mean 'words'"),
        (f"{SECTIONS}/documents/cut", {"de": {"words": 0}}, "words: input should be greater than or equal to 1"),
        (f"{SECTIONS}/train/summary", "last", "'first' or 'heading'"),
        ("experiments/help-summaries-de-en/task", "summarization", "there is no task 'summarization', did you mean 'summarisation'"),
    ],
)
def test_what_types_refuse_in_documents_is_explained_too(path, value, message):
    with pytest.raises(InputError, match=message):
        config.load(summaries(path, value))


@pytest.mark.parametrize(
    "path, value, message",
    [
        (f"{EXPERIMENT}/classification/lr", 1e-3, r"classification\.lr: unknown key, did you mean 'learning_rate'"),
        (f"{EXPERIMENT}/clasification", {}, r"experiments\.help-modules\.clasification: unknown key, did you mean 'classification'"),
        (f"{EXPERIMENT}/classification/learning_rate", -1, r"help-modules\.classification\.learning_rate: input should be greater than 0"),
        (f"{EXPERIMENT}/training/learning_rate", [1e-3, 2e-3], r"training\.learning_rate: input should be a valid number"),
        ("labelled/modules/dev/held_out", 0.7, "held_out: input should be less than or equal to 0.4"),
    ],
)
def test_what_types_refuse_around_labels_is_explained_too(path, value, message):
    with pytest.raises(InputError, match=message):
        config.load(classified(path, value))


def test_a_misspelt_like_is_one_mistake_and_so_is_a_task_that_is_not_named():
    raw = copy.deepcopy(DEFAULT)
    raw["experiments"]["mine"] = {"liek": "help-de-en"}
    with pytest.raises(InputError) as refused:
        config.load(raw)
    assert str(refused.value).splitlines()[1:] == ["  experiments.mine.liek: unknown key, did you mean 'like'?"]
    raw["labelled"] = {"names": {"language": "en"}}
    raw["experiments"]["mine"] = {"corpus": "names", "backbone": "bible", "labels": ["O"]}
    with pytest.raises(InputError) as refused:
        config.load(raw)
    said = [line for line in str(refused.value).splitlines() if "experiments.mine" in line]
    assert len(said) == 1 and "mine.task: is missing" in said[0] and "labelling" in said[0] and "retrieval" not in said[0]


def test_a_number_of_epochs_beside_a_grid_is_refused_as_it_is_without():
    with pytest.raises(InputError, match=r"classification\.epochs: unknown key"):
        config.load(classified("experiments/help-modules/classification", {"epochs": 5, "learning_rate": [1e-5, 3e-5]}))
