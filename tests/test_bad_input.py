"""Bad configurations and bad text: a clear error or the right handling for each, never a traceback, never a command run."""

import bz2
import gzip
import json
import lzma
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest
import sacrebleu
import warm
import yaml
import zstandard
from configurations import DEFAULT, changed
from tiny_models import manual_pairs, small_model

from workflow_scripts.evidence import representation, scores
from workflow_scripts.lexicon import embeddings, lexicon, vectors
from workflow_scripts.models import decoding
from workflow_scripts.noise import codeswitch
from workflow_scripts.run import config
from workflow_scripts.run.loading import check_files
from workflow_scripts.stage import InputError, read_json
from workflow_scripts.text.corpus import Corpus, held_out, train
from workflow_scripts.text.files import missing_file, read_lines
from workflow_scripts.text.parallel import Documents, Source, read_pairs
from workflow_scripts.text.word_lists import read_dictionary
from workflow_scripts.training import training
from workflow_scripts.training.job import Job

ROOT = Path(__file__).resolve().parent.parent

# ---------------------------------------------------------------------------------------------
# configuration: a key, a value that it cannot have, what is said

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
        # names that nothing has
        (f"{EXPERIMENT}/lexicon", "unsupervized", "did you mean 'unsupervised'"),
        (f"{EXPERIMENT}/backbone", "mbart", r"'mbart' is not defined; there is bible"),
        (f"{EXPERIMENT}/scores/metrics", ["BLUE"], "'BLEU', 'chrF', 'TER', .*got 'BLUE'"),
        (f"{EXPERIMENT}/scores/tokenize", "13b", "'13a'.*got '13b'"),
        (f"{EXPERIMENT}/decoding/compute_type", "int9", "'int8'.*got 'int9'"),
        (f"{TRAINING}/precision", "float16", "'auto', 'float32' or 'bfloat16'"),
        ("arms/csr/0/start", "nowhere", "'previous' or 'scratch'"),
        ("lexicons/unsupervised/gold", {"de_en": "x"}, "'de_en' is no pair of languages like 'de-en'"),
        ("corpora/help/train/columns", {"de": 4, "en": 3, "doc": 1}, "doc is no language of the corpus nor `document`"),
        ("corpora/help/dev", {"files": {"de": "a", "en": "b", "fr": "c"}}, "dev: fr is no language of the corpus$"),
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


@pytest.mark.parametrize(
    "text, said",
    [
        ("run:\n  seeds: [1]\n  seeds: [2]\n", "line 3: 'seeds' stands here and in line 2"),
        ("a: 1\nb: {c: 1, c: 2}\na: 2\n", "line 3: 'a' stands here and in line 1"),
        ("a: [{b: 1,\n b: 2}]\n", "line 2: 'b' stands here and in line 1"),
    ],
)
def test_a_key_that_stands_twice(tmp_path, text, said):
    (tmp_path / "c.yaml").write_text(text)
    with pytest.raises(InputError, match=said):
        check_files([tmp_path / "c.yaml"])


def test_aliases_are_no_repetition(tmp_path):
    (tmp_path / "c.yaml").write_text("a: &x {b: 1, c: [1, 2]}\nd: *x\ne: &y [*y]\n")
    check_files([tmp_path / "c.yaml", "config.yaml", *Path("config").glob("*.yaml")])


@pytest.mark.parametrize(
    "content, said",
    [
        (b"run:\n\tseeds: [1]\n", "line 2, column 1"),
        (b"run: {seeds: [1\n", "line 2, column 1"),
        (b"run: [finetun\xfc]\n", "can't decode byte 0xfc"),
        (b"", "has no keys at its top level"),
        (b"- a\n", "has no keys at its top level"),
        (None, "No such file"),
    ],
    ids=["tab", "open", "latin1", "empty", "list", "missing"],
)
def test_files_that_are_no_configuration(tmp_path, content, said):
    if content is not None:
        (tmp_path / "c.yaml").write_bytes(content)
    with pytest.raises(InputError, match=rf"(?s)c\.yaml: .*{said}"):
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


# ---------------------------------------------------------------------------------------------
# text: a corpus of sixty good pairs, with one thing wrong

GERMAN, ENGLISH = manual_pairs(61)


def lines(side: list[str]) -> bytes:
    return "".join(f"{line}\n" for line in side).encode()


GOOD = lines(GERMAN[:60]), lines(ENGLISH[:60])
ROWS = b"".join(f"{a}\t{b}\n".encode() for a, b in zip(GERMAN[:60], ENGLISH[:60], strict=True))
JSON = b"".join(json.dumps({"de": a, "en": b}).encode() + b"\n" for a, b in zip(GERMAN[:60], ENGLISH[:60], strict=True))


def clean(folder: Path, source: Source, languages: tuple[str, str] = ("de", "en")) -> tuple[list[str], list[str], dict]:
    """The two sides that are kept of a corpus, and the report."""
    dev = {code: str(folder / f"dev.{code}") for code in languages}
    for path, line in zip(dev.values(), (GERMAN[60], ENGLISH[60]), strict=True):
        Path(path).write_bytes(lines([line]))
    outputs = folder / "out/train.a", folder / "out/train.b"
    try:
        train((), (), *outputs, folder / "out/corpus.json", settings=Corpus(languages, source, Source(files=dev), {}))
    except InputError:
        assert not list(folder.glob("out/*")), "a refused corpus leaves files behind"
        raise
    return *(list(read_lines(path)) for path in outputs), read_json(folder / "out/corpus.json")


def moses(folder: Path, german: bytes, english: bytes) -> Source:
    for name, content in (("x.de", german), ("x.en", english)):
        (folder / name).write_bytes(content)
    return Source(files={"de": str(folder / "x.de"), "en": str(folder / "x.en")})


@pytest.mark.parametrize(
    "german, english, said",
    [
        (b"", b"", "no training pair left of 0"),
        (b"\n\n\n", b"\n\n\n", r"no training pair left of 3 \({'empty side': 3}\)"),
        (b"  \t\n", "\u3000\n".encode(), "no training pair left of 1"),
        (b"Eins.\rZwei.\r" * 500, b"One.\rTwo.\r" * 500, r"do its lines end in \\n"),
        (GOOD[0], lines(ENGLISH[:59]), r"x\.en ends after line 59, .*x\.de goes on at line 60"),
        (GOOD[0], GOOD[1] + b"one more\n", r"x\.de ends after line 60, .*x\.en goes on at line 61"),
        (GOOD[1], GOOD[0], "exchange the columns or files of de and en"),
        (GOOD[0], GOOD[0], r"no training pair left of 60 \({'identical sides': 60}\)"),
        (b"gut\nM\xfcller\n" + GOOD[0], b"good\nMiller\n" + GOOD[1], r"x\.de, line 2: not UTF-8 \(byte 0xfc\); .*iconv -f latin1"),
        ("\n".join(GERMAN).encode("utf-16"), GOOD[1], r"x\.de, line 1: not UTF-8 \(byte 0xff\); .*iconv -f utf-16"),
        (b"\xed\xa0\x80\n" + GOOD[0], b"x\n" + GOOD[1], "line 1: not UTF-8"),
    ],
    ids=["empty", "blank", "only-spaces", "cr-only", "short-en", "long-en", "swapped", "itself", "latin1", "utf-16", "surrogate"],
)
def test_text_that_is_refused(tmp_path, german, english, said):
    with pytest.raises(InputError, match=said):
        clean(tmp_path, moses(tmp_path, german, english))


@pytest.mark.parametrize(
    "german, english, kept, first",
    [
        (GOOD[0].replace(b"\n", b"\r\n"), GOOD[1], 60, GERMAN[0]),
        (b"\xef\xbb\xbf" + GOOD[0], b"\xef\xbb\xbf" + GOOD[1], 60, GERMAN[0]),
        (GOOD[0].rstrip(b"\n"), GOOD[1], 60, GERMAN[0]),
        (b"Das\0Haus\0\n" + GOOD[0], b"The house\n" + GOOD[1], 61, "DasHaus"),
        (b"\0\0\n" + GOOD[0], b"text\n" + GOOD[1], 60, GERMAN[0]),
        ("\u200b\u200d\ufeff\n".encode() + GOOD[0], b"text\n" + GOOD[1], 60, GERMAN[0]),
        (b"wort " * 200_000 + b"\n" + GOOD[0], b"word\n" + GOOD[1], 60, GERMAN[0]),
        (b"w" * 1_000_000 + b"\n" + GOOD[0], b"v" * 999_999 + b"\n" + GOOD[1], 61, "w" * 1_000_000),
        ("😀👍🏽👨‍👩‍👧 lacht\n".encode() + GOOD[0], "😀 laughs\n".encode() + GOOD[1], 61, "😀👍🏽👨‍👩‍👧 lacht"),
        ("\u202eabc\u202c שלום\n".encode() + GOOD[0], b"hello\n" + GOOD[1], 61, "\u202eabc\u202c שלום"),
        (b"a\x01\x1b[31m\n" + GOOD[0], "b\x85c\u2028d\x0be\n".encode() + GOOD[1], 61, "a\x01\x1b[31m"),
        (b"ein\tZwei\n" + GOOD[0], b"one\ttwo\n" + GOOD[1], 61, "ein Zwei"),
        ("e\u0301\n".encode() + GOOD[0], b"e\n" + GOOD[1], 61, "é"),
        (b"</s> <mask> de_DE\n" + GOOD[0], b"$(touch pwned) `id`; {x}\n" + GOOD[1], 61, "</s> <mask> de_DE"),
    ],
    ids=[
        "crlf",
        "bom",
        "no-end",
        "nul",
        "only-nul",
        "zero-width",
        "long-line",
        "long-word",
        "emoji",
        "bidi",
        "control",
        "tab",
        "nfd",
        "special",
    ],
)
def test_text_that_is_handled(tmp_path, german, english, kept, first):
    a, b, report = clean(tmp_path, moses(tmp_path, german, english))
    assert (len(a), len(b), a[0]) == (kept, kept, first) and report["read"] == kept + sum(report["removed"].values())
    assert not any(set("\r\0\t\x0b\x85\u2028") & set(line) for line in (*a, *b))


def test_text_that_runs_from_right_to_left(tmp_path):
    (tmp_path / "x.ar").write_text("".join(f"هذا هو الملف رقم {i}.\n" for i in range(30)), encoding="utf-8")
    (tmp_path / "x.en").write_text("".join(f"This is file number {i}.\n" for i in range(30)), encoding="utf-8")
    files = {code: str(tmp_path / f"x.{code}") for code in ("ar", "en")}
    assert len(clean(tmp_path, Source(files=files), ("ar", "en"))[0]) == 30
    swapped = Source(files={"ar": files["en"], "en": files["ar"]})
    with pytest.raises(InputError, match=r"the Arabic side is written in Latin script; .*exchange the columns"):
        train((), (), tmp_path / "a", tmp_path / "b", tmp_path / "c", settings=Corpus(("ar", "en"), swapped, swapped, {}))


@pytest.mark.parametrize(
    "name, content, said",
    [
        (".gz", gzip.compress(ROWS)[:-20], r"cannot be read as \.gz: Compressed file ended"),
        (".xz", lzma.compress(ROWS)[:-20], r"cannot be read as \.xz: Compressed file ended"),
        (".zst", zstandard.compress(ROWS)[:-20], r"cannot be read as \.zst: the compressed file is cut off"),
        (".zst", zstandard.compress(ROWS) + zstandard.compress(ROWS)[:40], r"after line 60: cannot be read as \.zst: .* cut off"),
        (".gz", b"plain text", r"x\.tsv\.gz, after line 0: cannot be read as \.gz"),
        (".zst", b"plain text", r"x\.tsv\.zst, after line 0: cannot be read as \.zst"),
        (".xz", b"", r"x\.tsv\.xz, after line 0: cannot be read as \.xz"),
        ("", b"one column\n", r"x\.tsv, line 1: 1 column\(s\), but `columns` asks for column 2"),
        ("", ROWS.replace(b"\t", b","), r"x\.tsv, line 1: 1 column"),
    ],
    ids=["gz-cut", "xz-cut", "zst-cut", "zst-second-frame-cut", "not-gz", "not-zst", "empty-xz", "one-column", "commas"],
)
def test_tables_that_are_refused(tmp_path, name, content, said):
    path = tmp_path / f"x.tsv{name}"
    path.write_bytes(content)
    with pytest.raises(InputError, match=said):
        clean(tmp_path, Source(file=str(path), columns={"de": 1, "en": 2}))


def test_empty_lines_of_a_table_are_passed_over(tmp_path):
    path = tmp_path / "x.tsv"
    path.write_bytes(b"\n" + ROWS + b"one column\n")
    with pytest.raises(InputError, match=r"x\.tsv, line 62: 1 column"):
        clean(tmp_path, Source(file=str(path), columns={"de": 1, "en": 2}))
    path.write_bytes(b"\n" + ROWS.replace(b"\n", b"\n\n", 3) + b"\n")
    assert clean(tmp_path, Source(file=str(path), columns={"de": 1, "en": 2}))[0] == GERMAN[:60]


@pytest.mark.parametrize("suffix, compress", [(".gz", gzip.compress), (".xz", lzma.compress), (".zst", zstandard.compress)])
def test_compressed_files_in_several_parts(tmp_path, suffix, compress):
    path = tmp_path / f"x.tsv{suffix}"
    path.write_bytes(compress(ROWS[:1000]) + compress(ROWS[1000:]))
    assert clean(tmp_path, Source(file=str(path), columns={"de": 1, "en": 2}))[0] == GERMAN[:60]


@pytest.mark.parametrize("packed, said", [(bz2.compress(ROWS), "bzip2"), (b"PK\x03\x04\xff\xa0", "zip")])
def test_files_that_are_packed_in_other_ways(tmp_path, packed, said):
    (tmp_path / "x.tsv").write_bytes(packed)
    with pytest.raises(InputError, match=rf"x\.tsv: is packed as {said}, which is not read; unpack it"):
        clean(tmp_path, Source(file=str(tmp_path / "x.tsv"), columns={"de": 1, "en": 2}))


@pytest.mark.parametrize(
    "row",
    [
        b'{"de": null, "en": "x"}',
        b'{"de": 5, "en": "x"}',
        b'{"de": {"x": "y"}, "en": "x"}',
        b'{"de": NaN, "en": "x"}',
        b'["de", "en"]',
        b'{"de": "cut off',
        rb'{"de": "half a pair \ud800", "en": "x"}',
        b"[" * 100_000,
        b'{"de": "a", "en": "b", "n": ' + b"9" * 5000 + b"}",
    ],
    ids=["null", "number", "deeper", "nan", "list", "cut", "surrogate", "nested", "huge-number"],
)
def test_json_lines_that_are_refused(tmp_path, row):
    path = tmp_path / "x.jsonl"
    path.write_bytes(JSON[: JSON.index(b"\n") + 1] + row + b"\n" + JSON)
    with pytest.raises(InputError, match=r"x\.jsonl, line 2: not a JSON object"):
        clean(tmp_path, Source(file=str(path), columns={"de": "de", "en": "en"}))


def test_empty_lines_among_json_lines_are_passed_over(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_bytes(JSON[: JSON.index(b"\n") + 1] + b"\n \n" + JSON[JSON.index(b"\n") + 1 :])
    pairs = list(read_pairs(Source(file=str(path), columns={"de": "de", "en": "en"}), ("de", "en")))
    assert len(pairs) == 60 and [pair.line for pair in pairs[:2]] == [1, 4]


def test_the_columns_of_parallel_text_may_be_named_by_a_header(tmp_path):
    path = tmp_path / "x.tsv"
    path.write_bytes(b"id\tenglish\tgerman\n" + b"".join(b"%d\t%b\t%b\n" % (n, e.encode(), g.encode()) for n, g, e in NUMBERED))
    source = Source(file=str(path), columns={"de": "german", "en": "english"}, header=True)
    pairs = list(read_pairs(source, ("de", "en")))
    assert [(pair.a, pair.b) for pair in pairs] == [(g, e) for _, g, e in NUMBERED] and pairs[0].line == 2
    with pytest.raises(InputError, match=r"numbers from 1, or names in its first line with `header: true`"):
        list(read_pairs(replace(source, header=False), ("de", "en")))
    with pytest.raises(InputError, match="there is no column 'deutsch' for 'de'; the header has id, english, german"):
        list(read_pairs(replace(source, columns={"de": "deutsch", "en": "english"}), ("de", "en")))


NUMBERED = [(1, "Ein Haus.", "A house."), (2, "Ein Baum.", "A tree.")]


def test_a_missing_file_is_answered_with_the_nearest_name(tmp_path):
    (tmp_path / "train.de").touch()
    assert missing_file(tmp_path / "trian.de").endswith(f"no such file; did you mean {tmp_path / 'train.de'}?")
    assert "no such file; check the path" in missing_file(tmp_path / "nothing.like.it")
    assert f"there is no folder {tmp_path / 'data'}" in missing_file(tmp_path / "data/train.de")
    assert "write / between folders" in missing_file("data\\train.de")


DOC = "<doc id=1>\n<Article>\nOne.\n</Article>\n<ZH-REF1>\n一。\n</ZH-REF1>\n</doc>\n"


@pytest.mark.parametrize(
    "name, content, said",
    [
        ("x.jsonl", '{"a": "One.", "b": "一"}\n{"a": [], "b": "二"}\n', r"x\.jsonl, line 2: the document has no sentence; .*empty: remove"),
        ("x.jsonl", '{"a": "One.", "b": "一"}\n{"a": "Two", "b": " "}\n', r"x\.jsonl, line 2: the summary is empty; correct the file"),
        ("x.jsonl", '{"a": ["One", 2], "b": "一"}\n', r"x\.jsonl, line 1: not a JSON object"),
        ("x.jsonl", '{"a": {"x": "y"}, "b": "一"}\n', r"x\.jsonl, line 1: not a JSON object .*a is an object; name a key inside: a\.x"),
        ("x.jsonl", '{"a": "One", "c": "一"}\n', r"x\.jsonl, line 1: not a JSON object"),
        ("x.tsv", "One\t一\n</s> \t二\n", r"x\.tsv, line 2: the document has no sentence"),
        ("ncls", DOC + "<doc id=2>\n<Article>\nTwo.\n</Article>\n</doc>\n", r"ncls, line 9: the document has no <ZH-REF>; it has Article"),
        ("ncls", DOC + DOC.replace("One.", ""), r"ncls, line 9: the document has no sentence"),
        ("ncls", DOC + "<doc id=2>\n<Article>\nTwo.\n", r"ncls, line 9: the document 2 has no end \(</Article>\)"),
        ("ncls", DOC + "Two.\n", r"ncls, line 9: expected <doc id=…>, got 'Two\.'"),
        ("ncls", DOC.replace("</Article>\n", "</Article>\nmore\n"), r"ncls, line 5: expected a tag or </doc>, got 'more'"),
    ],
)
def test_documents_that_are_refused(tmp_path, name, content, said):
    path = tmp_path / name
    path.write_text(content, encoding="utf-8")
    columns = {"x.jsonl": {"en": "a", "zh": "b"}, "x.tsv": {"en": 1, "zh": 2}, "ncls": {"en": "Article", "zh": "ZH-REF"}}[name]
    source = Source(file=str(path), columns=columns, format="ncls" if name == "ncls" else None)
    with pytest.raises(InputError, match=said):
        list(read_pairs(source, ("en", "zh"), Documents("en")))


def test_documents_without_text_may_be_removed(tmp_path):
    (tmp_path / "x.en").write_text("One is here.\n\nTwo is here.\n")
    (tmp_path / "x.de").write_text("Eins\nnichts\n\n")
    files = {code: str(tmp_path / f"x.{code}") for code in ("en", "de")}
    settings = Corpus(("en", "de"), Source(files=files), Source(files=files), {}, documents=Documents("en", empty="remove"))
    train((), (), tmp_path / "t.en", tmp_path / "t.de", tmp_path / "corpus.json", settings=settings)
    report = read_json(tmp_path / "corpus.json")
    assert (report["read"], report["kept"], report["removed"]["empty side"]) == (3, 1, 2)
    settings.documents.empty = "refuse"
    with pytest.raises(InputError, match=r"x\.en, line 2: the document has no sentence"):
        train((), (), tmp_path / "u.en", tmp_path / "u.de", tmp_path / "u.json", settings=settings)
    assert not list(tmp_path.glob("u.*"))


@pytest.mark.parametrize(
    "make, said",
    [
        (lambda path: path.mkdir(), "is a folder, a text file was expected"),
        (lambda path: path.symlink_to(path), "Too many levels of symbolic links"),
        (lambda path: path.symlink_to("nowhere"), "no such file; check the path in the configuration"),
        (lambda path: path.symlink_to("/dev/null"), "no training pair left of 0"),
        (lambda path: path.symlink_to("/proc/self/mem"), r"after line 0: cannot be read as \.tsv: .*Input/output error"),
    ],
    ids=["folder", "loop", "dangling", "null", "bad-disk"],
)
def test_paths_that_lead_nowhere(tmp_path, make, said):
    make(tmp_path / "x.tsv")
    with pytest.raises(InputError, match=said):
        clean(tmp_path, Source(file=str(tmp_path / "x.tsv"), columns={"de": 1, "en": 2}))


def test_a_dev_set_without_text(tmp_path):
    source = moses(tmp_path, b"\n", "\u200b\n".encode())
    with pytest.raises(InputError, match="no sentence left for 'dev'; is the file empty"):
        held_out(tmp_path / "d.de", tmp_path / "d.en", name="dev", settings=Corpus(("de", "en"), source, source, {}))


# ---------------------------------------------------------------------------------------------
# what stages are given by hand


@pytest.fixture(scope="module")
def given(tmp_path_factory):
    """A folder with some text, an empty file and a model."""
    folder = tmp_path_factory.mktemp("given")
    for name, content in (("de", GOOD[0]), ("en", GOOD[1]), ("short", lines(ENGLISH[:9])), ("empty", b""), ("dictionary", b"haus house\n")):
        (folder / name).write_bytes(content)
    small_model(folder)
    return folder


def finetune(folder: Path, out: Path, start: str = "model", languages: tuple[str, str] = ("de", "en"), **changes) -> None:
    text = {"train_source": "de", "train_target": "en", "dev_source": "de", "dev_target": "en"}
    files = {name: folder / changes.pop(name, file) for name, file in text.items()}
    settings = training.Training(**{"updates": 1, "batch_tokens": 500, "max_length": 64, **changes})
    outputs = (out / name for name in ("model", "curve.tsv", "report.json", "checkpoints"))
    training.translate(Job(folder / start, *outputs), languages=languages, settings=settings, **files)


@pytest.mark.parametrize(
    "stage, said",
    [
        (lambda f, o: embeddings.main(f / "empty", o / "x.vec", language="de"), "only 0 words occur 4 times or more"),
        (lambda f, o: codeswitch.main(*[f / "empty"] * 6, o / "x", languages=("de", "en")), "empty: no words to switch"),
        (
            lambda f, o: codeswitch.main(*[f / n for n in ("de", "en", "de", "en", "empty", "empty")], o / "x", languages=("de", "en")),
            "empty: the lexicon has no entries",
        ),
        (
            lambda f, o: lexicon.main(o / "ab", o / "ba", o / "r", languages=("de", "en"), dictionary=f / "empty"),
            "empty: is empty",
        ),
        (lambda f, o: lexicon.main(o / "ab", o / "ba", o / "r", languages=("de", "en")), "give either --mapped-a and --mapped-b, or"),
        (lambda f, o: read_dictionary(f / "de"), "de, line 1: expected two words"),
        (lambda f, o: vectors.read_vectors(f / "de"), "de, line 1: expected a word2vec header"),
        (lambda f, o: finetune(f, o, train_source="empty", train_target="empty"), "empty: is empty"),
        (lambda f, o: finetune(f, o, dev_source="empty", dev_target="empty"), "empty: is empty"),
        (lambda f, o: finetune(f, o, train_target="short"), "de has 60 lines, .*short 9; they must be aligned"),
        (lambda f, o: finetune(f, o, start="nowhere"), "nowhere: no such folder; a model in Hugging Face's format"),
        (lambda f, o: finetune(f, o, start=f), r"config\.json: cannot be read \(.*No such file.*download or copy the model again"),
        (lambda f, o: finetune(f, o, languages=("cs", "en")), "no tag cs_CZ for 'cs'"),
        (lambda f, o: finetune(f, o, batch_tokens=5), "more than a batch of 5 tokens; raise batch_tokens"),
        (lambda f, o: decoding.main(f / "model", f / "empty", o / "hyp", languages=("de", "en")), "empty: is empty"),
        (lambda f, o: decoding.main(f / "gone", f / "de", o / "hyp", languages=("de", "en")), "gone: no such folder"),
        (
            lambda f, o: decoding.main(
                f / "model", f / "de", o / "hyp", languages=("de", "en"), settings=decoding.Decoding(compute_type="float16", device="cpu")
            ),
            "compute_type float16 on cpu: .*; set it to auto",
        ),
        (lambda f, o: scores.aligned(f / "empty", f / "empty"), "empty are empty; decode again"),
        (lambda f, o: scores.aligned(f / "short", f / "en"), "short has 9 lines, .*en 60; decode again"),
        (
            lambda f, o: representation.main(f / "model", f / "de", f / "short", o / "x.json", o / "x.npz", languages=("de", "en")),
            "short 9; they must be aligned",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_stages_say_what_they_need(given, tmp_path, stage, said):
    with pytest.raises(InputError, match=said):
        stage(given, tmp_path)
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and "checkpoints" not in path.parts]


# ---------------------------------------------------------------------------------------------
# from the command line

NASTY = "a b/c \"d\" 'e' $(touch pwned) `touch pwned`; touch pwned & *?[x] ü😀\n-n.tsv"


def snakemake(folder: Path, content: dict, *arguments: str) -> subprocess.CompletedProcess:
    (folder / "bad.yaml").write_text(yaml.safe_dump(content), encoding="utf-8")
    files = ["--configfile", str(ROOT / "config.yaml"), str(folder / "bad.yaml")]
    command = [
        warm.python(),
        "-m",
        "snakemake",
        "-s",
        str(ROOT / "Snakefile"),
        "--directory",
        str(folder),
        "--cores",
        "1",
        *arguments,
        *files,
    ]
    environment = {**warm.environment(), "PATH": warm.path()}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)


def test_a_path_that_a_shell_would_read_is_only_a_path(tmp_path):
    (tmp_path / NASTY).parent.mkdir()
    (tmp_path / NASTY).write_bytes(b"".join(b"page %d\t" % (i // 5) + row + b"\n" for i, row in enumerate(ROWS.splitlines())))
    source = {"file": NASTY, "columns": {"document": 1, "de": 2, "en": 3}}
    content = changed("corpora/help/train", source)
    content["corpora"]["help"] |= {"dev": {"held_out": 9}, "test": {"pages": {"held_out": 9}}}
    content["lexicons"]["unsupervised"]["gold"] = {"de-en": NASTY}
    done = snakemake(tmp_path, content, "results/corpora/help.de-en/corpus.json")
    assert done.returncode == 0, done.stderr[-3000:]
    report = read_json(tmp_path / "results/corpora/help.de-en/corpus.json")
    assert list(report["checksums"]) == [NASTY] and report["read"] == 60
    assert not list(tmp_path.rglob("pwned*")) and not (ROOT / "pwned").exists()


def test_all_that_is_wrong_is_told_by_snakemake_without_a_traceback(tmp_path):
    content = changed("run/seeds", [1, 1])
    content["arms"]["$(touch pwned)"] = content["arms"]["csr"]
    content["corpora"]["help"]["train"]["columns"]["en"] = 4
    done = snakemake(tmp_path, content, "-n")
    told = done.stdout + done.stderr
    assert done.returncode == 1 and "Traceback" not in told
    assert all(said in told for said in ("run.seeds: [1, 1]", "names are folders", "both languages are read from 4"))
    # with the line of the file that lies on top, though config.yaml has the key too
    (line,) = {number for number, text in enumerate((tmp_path / "bad.yaml").read_text().splitlines(), 1) if text == "  seeds:"}
    assert f"bad.yaml, line {line})" in told
    assert not list(tmp_path.rglob("pwned*"))
