"""docs/troubleshooting.md: each message that it explains is provoked here, and is one of the list that the site makes of the code."""

import io
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import torch
from configurations import changed
from tiny_models import manual_pairs, small_encoder, small_model

from docs.site import errors
from workflow_scripts import device, plugins, registry
from workflow_scripts.evidence import scores
from workflow_scripts.lexicon import embeddings, lexicon, vectors
from workflow_scripts.models import decoding
from workflow_scripts.noise import codeswitch
from workflow_scripts.report import pack
from workflow_scripts.run.config import check_folder, check_record, load
from workflow_scripts.stage import InputError, read_json
from workflow_scripts.text.corpus import Corpus, held_out, train
from workflow_scripts.text.files import read_lines
from workflow_scripts.text.parallel import Documents, Source, read_pairs
from workflow_scripts.text.word_lists import read_dictionary
from workflow_scripts.training import checkpoints, training
from workflow_scripts.training.job import TrainingJob

ROOT = Path(__file__).resolve().parent.parent
GUIDE = (ROOT / "docs/troubleshooting.md").read_text(encoding="utf-8")
GERMAN, ENGLISH = manual_pairs(60)
EXPERIMENT = "experiments/help-de-en"


def configured(path, value):
    return lambda folder: load(changed(path, value))


def written(folder: Path, name: str, content: bytes | list[str]) -> Path:
    """A file with these bytes or lines."""
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else "".join(f"{line}\n" for line in content).encode())
    return path


def pairs(folder: Path, german: list[str] | bytes = GERMAN, english: list[str] | bytes = ENGLISH) -> Source:
    return Source(files={"de": str(written(folder, "x.de", german)), "en": str(written(folder, "x.en", english))})


def read(source: Source) -> list:
    return list(read_pairs(source, ("de", "en"), Documents("de", "en")))


def corpus(folder: Path, source: Source, **settings) -> None:
    """The training text of a corpus with two files for dev."""
    dev = Source(files={"de": str(written(folder, "dev.de", GERMAN[:3])), "en": str(written(folder, "dev.en", ENGLISH[:3]))})
    train((), (), folder / "a", folder / "b", folder / "corpus.json", settings=Corpus(("de", "en"), source, dev, {}, **settings))


def finetune(folder: Path, languages=("de", "en"), **settings) -> None:
    """A phase on sixty pairs."""
    small_model(folder)
    de, en = written(folder, "t.de", GERMAN), written(folder, "t.en", ENGLISH)
    job = TrainingJob(folder / "model", *(folder / name for name in ("out", "curve.tsv", "report.json", "checkpoints")))
    made = training.Training(**{"updates": 1, "batch_tokens": 500, "max_length": 64, **settings})
    training.translate(job, languages=languages, settings=made, train_source=de, train_target=en, dev_source=de, dev_target=en)


def translate(folder: Path, model: Path) -> None:
    decoding.main(model, written(folder, "t.de", GERMAN[:2]), folder / "t.hyp", languages=("de", "en"))


def encoder(folder: Path) -> Path:
    small_encoder(folder, "xlmr")
    return folder / "model"


def damaged_model(folder: Path) -> Path:
    small_model(folder)
    weights = folder / "model/model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])
    return folder / "model"


def tmx(folder: Path) -> Source:
    unit = '<tu><tuv xml:lang="de"><seg>Datei & Ordner</seg></tuv><tuv xml:lang="en"><seg>file</seg></tuv></tu>'
    return Source(file=str(written(folder, "x.tmx", f"<tmx><body>{unit}</body></tmx>".encode())))


def word_file(folder: Path) -> Path:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as file:
        file.writestr("word/document.xml", "<x/>")
    return written(folder, "x.docx", made.getvalue())


def plugin(folder: Path, content: str) -> None:
    plugins.load([str(written(folder, "mine.py", content.encode()))])


def record_of_another_run(folder: Path) -> None:
    made = written(folder, "configuration.json", ["{}"])
    check_record(load(changed("run/seeds", [1])), made, folder / "metadata")


def two_at_one_phase(folder: Path) -> None:
    """A second process holds the lock, as a trainer does that was left behind."""
    (folder / "phase").mkdir()
    hold = f"import fcntl, sys\nf = open({str(folder / 'phase/lock')!r}, 'a+')\nfcntl.lockf(f, fcntl.LOCK_EX)\nprint(flush=True)\nsys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", hold], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        other.stdout.readline()
        try:
            with checkpoints.claimed(folder / "phase", {}):
                pass
        finally:
            other.stdin.close()


def without_gpu(folder: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.cuda, "is_available", lambda: False)
        device.pick_device("cuda")


PROVOKED = {
    # the configuration
    "…: unknown key…": configured(f"{EXPERIMENT}/training/max_lenght", 64),
    "…: is missing": configured("run/seeds", ...),
    "…: wants a block of keys, got …": configured("corpora/help/train", "text.tsv"),
    "…: holds test sets by name; write `…: {NAME: {…: …}}`": configured("corpora/help/test", {"held_out": 100}),
    "…: … is not defined…": configured(f"{EXPERIMENT}/backbone", "bibel"),
    "….task: there is no task …": configured(f"{EXPERIMENT}/task", "translating"),
    "…: is empty, nothing would be run": configured("run/arms", []),
    "…: … names something twice": configured("run/arms", ["csr", "csr"]),
    "run.seeds: … must be different whole numbers from 1 to 2³² − 1, at least one": configured("run/seeds", [1, 1]),
    "run.arms: all arms of an experiment need the same number of updates in all (of epochs, where the task counts those), or the comparison "
    "means nothing: … of …": configured("arms/csr/1/updates", 100),
    "…: an arm ends with its one `data: task` phase; those before it restore noised text, or learn by an objective": configured(
        "arms/csr", [{"data": "codeswitch", "updates": 4200}]
    ),
    "…: a phase has either updates or epochs": configured("arms/csr/1/epochs", 3),
    "….…: has …, where one belongs; a recipe keeps the keys of what it is laid over: set the other to null, or give the corpus a name of its "
    "own": configured("corpora/help/train/files", {"de": "x.de", "en": "x.en"}),
    "….…: … is column …, from which a language is read; a recipe keeps the keys of what it is laid over: set … to null, or give the corpus a "
    "name of its own": configured("corpora/help/train/columns/document", 4),
    "….languages: … is one language twice": configured("corpora/help/languages", ["de", "de"]),
    "….small: d_model … must be a multiple of heads …": configured("backbones/bible/small/heads", 5),
    "….max_length: … is more than the backbone's … positions": configured(f"{EXPERIMENT}/training/max_length", 4000),
    # files
    "…: no such file; …": lambda folder: list(read_lines(folder / "gone.txt")),
    "…: is a folder, a text file was expected": lambda folder: list(read_lines(folder)),
    "… ends after line …, … goes on at line …: the two sides are not aligned; both files need the same number of lines": lambda folder: (
        read(pairs(folder, english=ENGLISH[:50]))
    ),
    "…, line …: not UTF-8 (byte …); convert the file, e.g. iconv -f latin1 -t utf-8": lambda folder: read(
        pairs(folder, "Schließen\n".encode("latin1"))
    ),
    "…, line …: is binary data, or UTF-16 (byte …); convert text, e.g. iconv -f utf-16 -t utf-8": lambda folder: list(
        read_lines(written(folder, "x.txt", b"\x00\xff\x00\x01\n"))
    ),
    "…: is compressed, and its name does not say so; call it …": lambda folder: list(
        read_lines(written(folder, "x.txt", b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\xff"))
    ),
    "…: is …, which is not read; …": lambda folder: list(read_lines(word_file(folder))),
    "…: `columns` has no entry for …; it has …": lambda folder: read(Source(file=str(written(folder, "x.txt", GERMAN)))),
    "…, line …: is not well-formed XML (…), so text would be lost; …": lambda folder: read(tmx(folder)),
    "…, line …: … column(s), but `columns` asks for column …: …": lambda folder: read(
        Source(file=str(written(folder, "x.tsv", ["one\ttwo", "three"])), columns={"de": 1, "en": 2})
    ),
    "…: no training pair left of … (…); …": lambda folder: corpus(folder, pairs(folder), max_words=1),
    "…: held_out asks for … running sentences of …; give dev and test files of their own… (…)": lambda folder: held_out(
        folder / "a", folder / "b", name="dev", settings=Corpus(("de", "en"), pairs(folder), Source(held_out=1000), {})
    ),
    "…, line …: the … side reads as … and the … side as … (… of … chunks); exchange the columns or files of … and …": lambda folder: corpus(
        folder, pairs(folder, ENGLISH, GERMAN)
    ),
    # lexicons
    "…: only … words occur … times or more; give more text or lower embeddings.min_count": lambda folder: embeddings.main(
        written(folder, "t.de", GERMAN[:2]), folder / "x.vec", language="de"
    ),
    "…: is empty": lambda folder: lexicon.main(
        folder / "ab", folder / "ba", folder / "r", languages=("de", "en"), dictionary=written(folder, "list", b"")
    ),
    "…: the lexicon has no entries, nothing can be switched; look at lexicon.json, at lexicon.min_score, and at the mapping or the "
    "dictionary": lambda folder: codeswitch.main(
        *[written(folder, f"t.{code}", lines) for code, lines in (("de", GERMAN), ("en", ENGLISH))] * 2,
        folder / "out",
        languages=("de", "en"),
        lexicon_ab=written(folder, "ab", b""),
        lexicon_ba=written(folder, "ba", b""),
    ),
    "…, line …: expected two words, separated by a tab or a blank: …": lambda folder: read_dictionary(written(folder, "list", GERMAN[:5])),
    "…, line 1: expected a word2vec header 'rows dimensions', got …; put such a line above vectors without one, like GloVe's": lambda folder: (
        vectors.read_vectors(written(folder, "x.vec", GERMAN[:5]))
    ),
    # models and training
    "…: no such folder; a model in Hugging Face's format is needed": lambda folder: translate(folder, folder / "gone"),
    "…: is an encoder (…), which writes no text; name a model that has learnt to write": lambda folder: translate(folder, encoder(folder)),
    "…: is no whole file of weights (…); download or copy the model again": lambda folder: translate(folder, damaged_model(folder)),
    "the backbone's vocabulary has no tag … for …; choose a backbone that knows the language": lambda folder: finetune(
        folder, ("cs", "en")
    ),
    "a row has … pieces, more than a batch of … tokens; raise batch_tokens or lower max_length": lambda folder: finetune(
        folder, batch_tokens=5
    ),
    "…: all … rows have more than … pieces, and are left out; raise training.max_length, or set training.too_long: cut": lambda folder: (
        finetune(folder, max_length=3)
    ),
    "a GPU was …, but torch … cannot use it; install a CUDA build of torch (make setup TORCH=cuda), check the driver with nvidia-smi, or set "
    "device: cpu": without_gpu,
    "…: in use by …; wait for it to end, or stop it": two_at_one_phase,
    # results and plugins
    "… has … lines, …; decode again": lambda folder: scores.parallel_lines(
        written(folder, "h", ENGLISH[:5]), written(folder, "r", ENGLISH)
    ),
    "…: is damaged (…); delete it, and run the same command again": lambda folder: read_json(written(folder, "x.json", b'{"a": ')),
    "results/ was made with another configuration, and Snakemake's record of it (.snakemake) is not here, so that nothing tells what must be "
    "made again; bring .snakemake from where the run was, take another folder (--directory), or make all anew (--forceall). To keep what is "
    "there as it is, delete … and …": record_of_another_run,
    "…: is a file where the folder of the results belongs; move it away, or take another folder (--directory)": lambda folder: check_folder(
        written(folder, "results", b"")
    ),
    "…: has no scores.tsv; a finished run is packed (snakemake --cores all), or name its folder: --results": lambda folder: pack.write(
        folder / "x.zip", folder
    ),
    "plugin …: registers nothing; decorate a function of it, for example with crossgap.noise": lambda folder: plugin(folder, "x = 1\n"),
    "there is no …": lambda folder: registry.entry("noise", "shuffled"),
}
"""Message, with gaps → what provokes it."""


@pytest.mark.parametrize("message", PROVOKED)
def test_an_explained_message_is_provoked(message, tmp_path):
    with pytest.raises(InputError) as error:
        PROVOKED[message](tmp_path)
    pattern = ".*".join(map(re.escape, re.split(f"{errors.GAP}+", message)))
    assert re.search(pattern, str(error.value), flags=re.S), str(error.value)
    plugins.forget()


def test_the_guide_explains_just_these_messages_and_the_code_has_them():
    assert [*errors.explained()] == [*PROVOKED] and len(PROVOKED) >= 40
    known = {each.text for each in errors.messages()}
    assert [message for message in PROVOKED if message not in known] == []
