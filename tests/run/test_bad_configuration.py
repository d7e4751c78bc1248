"""Bad configurations: a clear error for each, never a traceback."""

from pathlib import Path
from typing import get_args

import pytest
import sacrebleu
import yaml
from configurations import DEFAULT, changed

from workflow_scripts.evidence import scores
from workflow_scripts.run import config
from workflow_scripts.run.config_files import check_files, with_nulls
from workflow_scripts.stage import InputError

TRAINING = "experiments/help-de-en/training"
EXPERIMENT = "experiments/help-de-en"
HELP = DEFAULT["corpora"]["help"]


@pytest.mark.parametrize(
    "path, value, said",
    [
        # numbers out of their range
        (f"{TRAINING}/learning_rate", float("nan"), "learning_rate: input should be a finite number, got nan"),
        (f"{TRAINING}/learning_rate", float("inf"), "learning_rate: input should be a finite number, got inf"),
        (f"{TRAINING}/learning_rate", -0.001, "learning_rate: input should be greater than 0, got -0.001"),
        (f"{TRAINING}/learning_rate", [1e-3, 0], "learning_rate: input should be greater than 0, got 0"),
        (f"{TRAINING}/batch_tokens", 0, "batch_tokens: input should be greater than or equal to 1, got 0"),
        (f"{TRAINING}/batch_tokens", 500.5, "batch_tokens: input should be a valid integer"),
        (f"{TRAINING}/micro_batch_tokens", -1, "micro_batch_tokens: input should be greater than or equal to 1, got -1"),
        (f"{TRAINING}/dropout", 1.0, "dropout: input should be less than 1"),
        (f"{TRAINING}/label_smoothing", -0.1, "label_smoothing: input should be greater than or equal to 0"),
        (f"{TRAINING}/evaluate_every", 0, "evaluate_every: input should be greater"),
        (f"{TRAINING}/max_length", 2, "max_length: input should be greater than or equal to 3"),
        (f"{TRAINING}/adam_betas", [0.9, 1.5], "adam_betas.1: input should be less than 1"),
        (f"{TRAINING}/adam_betas", [0.9], "adam_betas.1: is missing"),
        ("arms/csr/0/training", {"pairs": 0}, r"arms\.csr\.training\.pairs: input should be greater"),
        ("run/seeds", [2**32], "from 1 to 2³² − 1"),
        ("run/seeds", 3, r"write \[3\], or \[1, 2, 3\] for three seeds"),
        ("corpora/help/max_words", 0, "max_words: input should be greater"),
        ("corpora/help/max_ratio", 0.5, "max_ratio: input should be greater"),
        ("corpora/help/dev/held_out", 0, "held_out: input should be greater"),
        ("lexicons/unsupervised/embeddings/dimensions", 0, "dimensions: input should be greater"),
        ("lexicons/unsupervised/lexicon/top_k", -3, "top_k: input should be greater"),
        ("lexicons/unsupervised/mapping/keep_probability", 0, "keep_probability: input should be greater"),
        ("backbones/bible/small/layers", 0, "layers: input should be greater"),
        ("backbones/bible/small/heads", 5, "d_model 192 must be a multiple of heads 5"),
        (f"{EXPERIMENT}/codeswitch/noise/rate", 1.5, "rate: input should be less than or equal to 1"),
        (f"{EXPERIMENT}/decoding/beam_size", 0, "beam_size: input should be greater"),
        (f"{EXPERIMENT}/scores/samples", 0, "samples: input should be greater"),
        (f"{EXPERIMENT}/representation/sentences", 0, "sentences: input should be greater"),
        (f"{EXPERIMENT}/word_accuracy/low", 1000, "low must be less than high, got 1000 and 1000"),
        # values of the wrong type
        ("run/seeds", 1, "seeds: input should be a valid list, got 1"),
        ("run/seeds", [True], "seeds.0: input should be a number, got true"),
        ("run/zero_shot", 5, r"run\.zero_shot: input should be"),
        ("corpora/help/languages", ["de", "zh-Hans"], "unknown language 'zh-Hans': did you mean 'zh'"),
        ("run/seeds", [1.5], "seeds.0: input should be a valid integer"),
        ("run/arms", "finetune", "arms: input should be a valid list"),
        ("run/experiments", None, "experiments: input should be a valid list"),
        ("run/experiments", ["help-de-en"] * 2, "names something twice"),
        ("corpora", [], "corpora: wants a block of names and what they stand for"),
        ("corpora/help/languages", ["de"], "languages.1: is missing"),
        ("corpora/help/languages", [False, "en"], "languages.0: input should be a valid string, got false"),
        ("corpora/help/languages", "de-en", "languages: input should be a valid tuple"),
        (EXPERIMENT, None, "help-de-en: wants a block of keys, got null; leave the key out"),
        (TRAINING, [], "training: wants a block of keys"),
        ("lexicons/unsupervised/gold", "gold.tsv", "gold: wants a block of names and what they stand for"),
        ("backbones/bible/small", None, "kind small needs `small`"),
        ("backbones/bible/kind", "hub", "kind hub needs `model`"),
        (f"{EXPERIMENT}/templates", {"task": "Translate:"}, r"experiments\.help-de-en\.templates\.task: .* has \{source\} 0 times"),
        (f"{EXPERIMENT}/templates", {"task": '{"de": "{source}"}'}, r"templates\.task: there is no .*\{\{ and \}\} for braces of its own"),
        # names that nothing has
        (f"{EXPERIMENT}/lexicon", "unsupervized", "did you mean 'unsupervised'"),
        (f"{EXPERIMENT}/backbone", "mbart", r"'mbart' is not defined; there is bible"),
        (f"{EXPERIMENT}/scores/metrics", ["BLUE"], "'BLEU', 'chrF', .*got 'BLUE'; did you mean 'BLEU'"),
        (f"{EXPERIMENT}/scores/tokenize", "13b", "'13a'.*got '13b'"),
        (f"{EXPERIMENT}/decoding/compute_type", "int9", "'int8'.*got 'int9'"),
        (f"{TRAINING}/precision", "float16", "'auto', 'float32' or 'bfloat16'"),
        ("arms/csr/0/start", "nowhere", "'previous' or 'scratch'"),
        ("lexicons/unsupervised/gold", {"de_en": "x"}, "'de_en' is no pair of languages like 'de-en'"),
        ("corpora/help/train/columns", {"de": 4, "en": 3, "doc": 1}, "columns.doc: is no language of the corpus nor `document`; .*set doc"),
        ("corpora/help/dev", {"files": {"de": "a", "en": "b", "fr": "c"}}, "fr: is no language of the corpus; a recipe keeps the keys"),
        ("arms", {}, "'finetune' is not defined; there is nothing"),
        # text that is its own translation
        (f"{EXPERIMENT}/source", "en", "are not the languages of corpus"),
        ("corpora/help/train/columns", {"de": 4, "en": 4}, "both languages are read from 4"),
        ("corpora/help/dev", {"files": {"de": "same.txt", "en": "same.txt"}}, "both languages are read from 'same.txt'"),
        # names that a shell, or Snakemake, would read
        ("corpora/he;lp", HELP, "names are folders"),
        ("corpora/$(touch pwned)", HELP, "names are folders"),
        ("experiments/a b", DEFAULT["experiments"]["help-de-en"], "names are folders"),
        ("arms/`id`", DEFAULT["arms"]["csr"], "names are folders"),
        ("arms/--csr", DEFAULT["arms"]["csr"], "names are folders.* no - at the beginning"),
        ("backbones/{x}", DEFAULT["backbones"]["bible"], "names are folders"),
        ("corpora/help/test/näme", {"held_out": 5}, "letters, digits"),
        ("corpora/help/train/file", "{x}.tsv", "'{x}.tsv' has braces"),
        ("lexicons/unsupervised/gold/de-en", "a\0b", r"'a\\x00b' has braces or a NUL"),
    ],
)
def test_bad_configuration(path, value, said):
    with pytest.raises(InputError, match=said):
        config.load(changed(path, value))


@pytest.mark.parametrize("raw", [{}, [], None, "text", {"run": 1}, {1: 2}], ids=repr)
def test_a_configuration_that_is_something_else(raw):
    with pytest.raises(InputError, match=r"is missing|wants a block of keys"):
        config.load(raw)


def test_the_tokenisers_are_sacrebleus():
    assert set(get_args(scores.Tokenizer)) == set(sacrebleu.metrics.BLEU.TOKENIZERS)


def test_numbers_in_quotes_and_decimals_are_what_they_say(tmp_path):
    (tmp_path / "y.yaml").write_text('a: "012"\nb: 0.5\nc: 0\nd: 10\n', encoding="utf-8")
    check_files([tmp_path / "y.yaml"])


def test_recipes_in_the_wrong_order(tmp_path):
    (tmp_path / "below.yaml").write_text("run: {}\n", encoding="utf-8")
    (tmp_path / "upon.yaml").write_text("over: below.yaml\n", encoding="utf-8")
    check_files([tmp_path / "below.yaml", tmp_path / "upon.yaml"])
    with pytest.raises(
        InputError, match=r"upon\.yaml is laid over .*below\.yaml, which stands behind it; write --configfile .*below.* .*upon"
    ):
        check_files([tmp_path / "upon.yaml", tmp_path / "below.yaml"])


def test_nothing_on_the_command_line_is_no_word():
    given = {"experiments": {"x": {"lexicon": "null", "source": "null", "comet": "~"}}, "run": {"arms": ["null"]}}
    ours = {"experiments": {"x": {"lexicon": "null", "comet": "~"}}}
    assert with_nulls(given, ours) == {"experiments": {"x": {"lexicon": None, "source": "null", "comet": None}}, "run": {"arms": ["null"]}}


def test_aliases_are_no_repetition(tmp_path):
    (tmp_path / "c.yaml").write_text("a: &x {b: 1, c: [1, 2]}\nd: *x\ne: &y [*y]\n")
    for path in (tmp_path / "c.yaml", "config.yaml", *Path("config").glob("*.yaml")):
        check_files([path])


@pytest.mark.parametrize(
    "content, said",
    [
        (b"run:\n\tseeds: [1]\n", "line 2, column 1"),
        (b"run: {seeds: [1\n", "line 2, column 1"),
        (b"run: [finetun\xfc]\n", "can't decode byte 0xfc"),
        (b"", "has no keys at its top level"),
        (b"- a\n", "has no keys at its top level"),
        (None, "no such file"),
        (b"run:\n  seeds: [1]\n  seeds: [2]\n", "line 3: 'seeds' stands here and in line 2"),
        (b"a: 1\nb: {c: 1, c: 2}\na: 2\n", "line 3: 'a' stands here and in line 1"),
        (b"a: [{b: 1,\n b: 2}]\n", "line 2: 'b' stands here and in line 1"),
        (b"run: {seeds: [012]}", "line 1: YAML reads 012 as 10"),
        (b"a: 1\nb:\n  beam_size: 1:30\n", "line 3: YAML reads 1:30 as 90"),
    ],
)
def test_files_that_are_no_configuration_or_say_something_else(tmp_path, content, said):
    if content is not None:
        (tmp_path / "c.yaml").write_bytes(content)
    with pytest.raises(InputError, match=rf"c\.yaml[:,] .*{said}"):
        check_files([tmp_path / "c.yaml"])


def test_a_recipe_without_the_one_below_it(tmp_path):
    (tmp_path / "below.yaml").write_text("corpora: {help: {languages: [fr, en]}}\n")
    above = tmp_path / "above.yaml"
    above.write_text("over: below.yaml\nrun: {seeds: none}\n")
    with pytest.raises(InputError, match=r"(?s)run\.seeds: .*above\.yaml is laid over \S*below\.yaml, which is not named; put it before"):
        config.load(yaml.safe_load(above.read_text()), [above])
    with pytest.raises(InputError, match=r"run\.seeds: ") as refused:
        config.load(yaml.safe_load(above.read_text()), [tmp_path / "below.yaml", above])
    assert "laid over" not in str(refused.value)
