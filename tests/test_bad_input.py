"""Bad input of stages and of the command line: a clear error for each, never a traceback, never a command run."""

import subprocess
from pathlib import Path

import pytest
import warm
import yaml
from configurations import changed
from tiny_models import manual_pairs, small_model

from workflow_scripts.evidence import representation, scores
from workflow_scripts.lexicon import embeddings, lexicon, vectors
from workflow_scripts.models import decoding
from workflow_scripts.noise import codeswitch
from workflow_scripts.stage import InputError, read_json
from workflow_scripts.text.word_lists import read_dictionary
from workflow_scripts.training import training
from workflow_scripts.training.job import TrainingJob

ROOT = Path(__file__).resolve().parent.parent

GERMAN, ENGLISH = manual_pairs(60)

# ---------------------------------------------------------------------------------------------
# what stages are given by hand


@pytest.fixture(scope="module")
def given(tmp_path_factory):
    """A folder with some text, an empty file and a model."""
    folder = tmp_path_factory.mktemp("given")
    text = {"de": GERMAN, "en": ENGLISH, "short": ENGLISH[:9], "empty": [], "dictionary": ["haus house"]}
    for name, lines in text.items():
        (folder / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    small_model(folder)
    return folder


def lexicons(folder: Path) -> dict[str, Path]:
    return {"lexicon_ab": folder / "empty", "lexicon_ba": folder / "empty"}


def finetune(folder: Path, out: Path, start: str = "model", languages: tuple[str, str] = ("de", "en"), **changes) -> None:
    text = {"train_source": "de", "train_target": "en", "dev_source": "de", "dev_target": "en"}
    files = {name: folder / changes.pop(name, file) for name, file in text.items()}
    settings = training.Training(**{"updates": 1, "batch_tokens": 500, "max_length": 64, **changes})
    outputs = (out / name for name in ("model", "curve.tsv", "report.json", "checkpoints"))
    training.translate(TrainingJob(folder / start, *outputs), languages=languages, settings=settings, **files)


@pytest.mark.parametrize(
    "stage, said",
    [
        (lambda f, o: embeddings.main(f / "empty", o / "x.vec", language="de"), "only 0 words occur 4 times or more"),
        (lambda f, o: codeswitch.main(*[f / "empty"] * 4, o / "x", **lexicons(f), languages=("de", "en")), "empty: no words to switch"),
        (
            lambda f, o: codeswitch.main(*[f / n for n in ("de", "en") * 2], o / "x", **lexicons(f), languages=("de", "en")),
            "empty: the lexicon has no entries",
        ),
        (lambda f, o: lexicon.main(o / "ab", o / "ba", o / "r", languages=("de", "en"), dictionary=f / "empty"), "empty: is empty"),
        (lambda f, o: lexicon.main(o / "ab", o / "ba", o / "r", languages=("de", "en")), "give either --mapped-a and --mapped-b, or"),
        (lambda f, o: read_dictionary(f / "de"), "de, line 1: expected two words"),
        (lambda f, o: vectors.read_vectors(f / "de"), "de, line 1: expected a word2vec header"),
        (lambda f, o: finetune(f, o, train_source="empty", train_target="empty"), "empty: is empty"),
        (lambda f, o: finetune(f, o, dev_source="empty", dev_target="empty"), "empty: is empty"),
        (lambda f, o: finetune(f, o, train_target="short"), "de has 60 lines, .*short 9; they must be aligned"),
        (lambda f, o: finetune(f, o, start="nowhere"), "nowhere: no such folder; a model in Hugging Face's format"),
        (lambda f, o: finetune(f, o, start=f), r"no config\.json is there; it holds other folders, and a model is in .*model; name that"),
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
        (lambda f, o: scores.parallel_lines(f / "empty", f / "empty"), "empty are empty; decode again"),
        (lambda f, o: scores.parallel_lines(f / "short", f / "en"), "short has 9 lines, .*en 60; decode again"),
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
    command = [warm.python(), "-m", "snakemake", "-s", str(ROOT / "Snakefile"), "--directory", str(folder), "--cores", "1", *arguments]
    environment = {**warm.environment(), "PATH": warm.path()}
    return subprocess.run([*command, *files], cwd=ROOT, env=environment, capture_output=True, text=True)


def test_a_path_that_a_shell_would_read_is_only_a_path(tmp_path):
    (tmp_path / NASTY).parent.mkdir()
    rows = (f"page {i // 5}\t{a}\t{b}\n" for i, (a, b) in enumerate(zip(GERMAN, ENGLISH, strict=True)))
    (tmp_path / NASTY).write_text("".join(rows), encoding="utf-8")
    source = {"file": NASTY, "columns": {"document": 1, "de": 2, "en": 3}}
    content = changed("corpora/help/train", source)
    content["corpora"]["help"] |= {"dev": {"held_out": 9}, "test": {"pages": {"held_out": 9}}}
    content["lexicons"]["unsupervised"]["gold"] = {"de-en": NASTY}
    done = snakemake(tmp_path, content, "results/corpora/help.de-en/corpus.json")
    assert done.returncode == 0, done.stderr[-3000:]
    report = read_json(tmp_path / "results/corpora/help.de-en/corpus.json")
    assert list(report["checksums"]) == [NASTY] and report["read"] == 60
    assert not list(tmp_path.rglob("pwned*")) and not (ROOT / "pwned").exists()


def test_all_that_is_wrong_is_reported_by_snakemake_without_a_traceback(tmp_path):
    content = changed("run/seeds", [1, 1])
    content["arms"]["$(touch pwned)"] = content["arms"]["csr"]
    content["corpora"]["help"]["train"]["columns"]["en"] = 4
    done = snakemake(tmp_path, content, "-n")
    output = done.stdout + done.stderr
    assert done.returncode == 1 and "Traceback" not in output
    assert all(said in output for said in ("run.seeds: [1, 1]", "names are folders", "both languages are read from 4"))
    # with the line of the file that lies on top, though config.yaml has the key too
    (line,) = {number for number, text in enumerate((tmp_path / "bad.yaml").read_text().splitlines(), 1) if text == "  seeds:"}
    assert f"bad.yaml, line {line})" in output
    assert not list(tmp_path.rglob("pwned*"))
