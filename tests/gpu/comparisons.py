"""Each stage that can use a GPU, run there and on the CPU, and how far apart its results may be.

`make test-gpu` compares a GPU with the CPU, and `make test` the CPU with itself, so that the comparisons are known to work. Models are
tiny and in float32 on both; dropout is off, as devices draw other random numbers.
"""

import dataclasses
import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from phases import TINY, finetune, phase_files
from planted import SMALL, p_at_1, planted
from tiny_models import MANUAL, manual_pairs, small_encoder, small_model

from workflow_scripts import registry
from workflow_scripts.evidence import analysis, cka, comet, layerwise, representation, separability, spectra, speed
from workflow_scripts.lexicon import lexicon, mapping
from workflow_scripts.lexicon.vectors import read_vectors, write_vectors
from workflow_scripts.models import decoding, refining
from workflow_scripts.models.networks import load_network
from workflow_scripts.models.prompt_files import make_generator
from workflow_scripts.models.sga import SGA
from workflow_scripts.models.tokenisation import load_codec
from workflow_scripts.stage import read_json
from workflow_scripts.tasks import answering, classification, labelling, ranking, retrieval
from workflow_scripts.tasks import head as commands
from workflow_scripts.tasks.head_task import HeadTask
from workflow_scripts.text import labelled
from workflow_scripts.text.files import read_lines, write_lines
from workflow_scripts.text.labelled import Labelled
from workflow_scripts.text.labelled_source import LabelledSource
from workflow_scripts.training.job import TrainingJob
from workflow_scripts.training.settings import Training

NO_DROPOUT = {"dropout": 0.0, "attention_dropout": 0.0}
Where = tuple[Path, str]
"""The folder of one run, and its device."""


def both(folder: Path, device: str) -> list[Where]:
    """A run on the CPU and one on the device."""
    places = [(folder / "reference", "cpu"), (folder / "device", device)]
    for place, _ in places:
        place.mkdir()
    return places


def near(one: Any, other: Any, relative: float, absolute: float, where: str = "") -> None:
    """Fails where two reports have other keys, or a number that differs by more; words are not compared."""
    if isinstance(one, dict):
        assert one.keys() == other.keys(), where
        for key in one.keys() - {"provenance", "settings", "seconds", "checksums"}:
            near(one[key], other[key], relative, absolute, f"{where}.{key}")
    elif isinstance(one, list):
        assert len(one) == len(other), where
        for number, (a, b) in enumerate(zip(one, other, strict=True)):
            near(a, b, relative, absolute, f"{where}[{number}]")
    elif isinstance(one, (int, float)) and not isinstance(one, bool):
        assert other == pytest.approx(one, rel=relative, abs=absolute, nan_ok=True), where


def columns(curve: Path, *names: str) -> dict[str, list[float]]:
    """Columns of a learning curve, without what was not measured."""
    head, *rows = (line.split("\t") for line in read_lines(curve))
    return {name: [float(row[head.index(name)]) for row in rows if row[head.index(name)]] for name in names}


def same_share(one: Path, other: Path) -> float:
    """The share of lines that two files have in common, line by line."""
    pairs = list(zip(read_lines(one), read_lines(other), strict=True))
    return sum(a == b for a, b in pairs) / len(pairs)


# ---------------------------------------------------------------------------------------------
# training


def training(folder: Path, device: str) -> None:
    """The losses of a phase in float32, with either loss, at once and in parts, are those of the CPU."""
    files = phase_files(folder)
    settings = {**TINY, **NO_DROPOUT, "updates": 12, "evaluate_every": 6, "checkpoint": "last", "bleu_sentences": 0, "loss_every": 0}
    variants: dict[str, dict[str, Any]] = {
        "reference": {"device": "cpu"},
        "automatic": {},
        "plain": {"loss": "plain"},
        "parts": {"micro_batch_tokens": 150},
    }
    found = {}
    for name, changes in variants.items():
        finetune(*files, folder / name, Training(**{"device": device, "precision": "float32", **settings, **changes}))
        found[name] = columns(folder / name / "curve.tsv", "loss", "dev_loss")
        assert read_json(folder / name / "training.json")["device"].startswith(changes.get("device", device))
    assert len(found["reference"]["loss"]) >= 6 and len(found["reference"]["dev_loss"]) == 2
    for name, losses in found.items():
        near(found["reference"], losses, 2e-3, 0, name)


# ---------------------------------------------------------------------------------------------
# heads

HEAD = {**NO_DROPOUT, "batch_size": 16, "learning_rate": 1e-3, "patience": 0, "precision": "float32"}
TAGS = ["ADJ", "ADP", "ADV", "AUX", "CCONJ", "DET", "INTJ", "NOUN", "NUM", "PART", "PRON", "PROPN", "PUNCT", "SCONJ", "SYM", "VERB", "X"]


def tables(folder: Path, settings: Labelled, rows: int) -> Path:
    """The parts `train`, `dev` and `en` of labelled text, with so many rows each."""
    for part in ("train", "dev", "test/en"):
        name = part.removeprefix("test/")
        labelled.main(folder / name, folder / f"{name}.text", folder / f"{name}.json", part=part, settings=settings)
        lines = (folder / name).read_text("utf-8").splitlines(keepends=True)
        (folder / f"{name}.tsv").write_text("".join(lines[:rows]), "utf-8")
    return folder


def head(folder: Path, device: str, task: HeadTask, start: Path, text: Path, labels: Sequence[str] = (), **block: Any) -> None:
    """Finetuning of a head: the losses are those of the CPU, and so is what one and the same model says."""
    found = []
    for place, where in both(folder, device):
        here = task.finetuning(**HEAD, **block, device=where)
        settings = task.finetune_settings(language="en", epochs=2, **({task.named: [*labels]} if labels else {}), **{task.key: here})
        outputs = [place / name for name in ("model", "curve.tsv", "training.json", "checkpoints")]
        commands.finetune(task, TrainingJob(start, *outputs), train=(text / "train.tsv",), dev=(text / "dev.tsv",), settings=settings)
        found.append(columns(place / "curve.tsv", "loss", "dev_loss"))
        model, predictions = folder / "reference/model", place / "predictions"
        named = {"testsets": ("en",), "languages": ("en",), "train": text / "train.tsv", "labels": json.dumps([*labels])}
        commands.predict(task, model, (text / "en.tsv",), predictions, **named, settings=here)
    near(*found, 5e-3, 0)
    assert len(found[0]["dev_loss"]) == 2
    one, other = (place / "predictions/en.hyp" for place in (folder / "reference", folder / "device"))
    if task is ranking.RANKING:
        near(*([float(line) for line in read_lines(path)] for path in (one, other)), 1e-2, 1e-3)
    else:
        assert same_share(one, other) >= 0.95


def classifying(folder: Path, device: str) -> None:
    """A classifier's losses and labels, and the probabilities of the labels."""
    rows = [line.split("\t") for line in read_lines(MANUAL)]
    sides = [[row[2] for row in rows if row[0].startswith(start)][:48] for start in ("swriter/", "scalc/")]
    lines = [f"{label}\t{text}\t" for pair in zip(*sides, strict=True) for label, text in zip(("Writer", "Calc"), pair, strict=True)]
    for name, part in (("train.tsv", lines[:48]), ("dev.tsv", lines[48:72]), ("en.tsv", lines[72:])):
        write_lines(folder / name, part)
    head(folder, device, classification.CLASSIFICATION, small_model(folder), folder, ("Writer", "Calc"), max_length=40)
    tables = [
        [line.split("\t") for line in read_lines(folder / place / "predictions/en.probabilities.tsv")] for place in ("reference", "device")
    ]
    near(*([[float(value) for value in row] for row in table[1:]] for table in tables), 1e-2, 1e-3)


def tagging(folder: Path, device: str) -> None:
    """A tagger's losses and tags."""
    source = {part: LabelledSource(file=f"resources/universal-dependencies/en.{part}.conllu.xz") for part in ("train", "dev", "test")}
    settings = Labelled(language="en", labels=TAGS, train=source["train"], dev=source["dev"], test={"en": source["test"]}, unit="word")
    text = tables(folder, settings, 40)
    head(folder, device, labelling.LABELLING, small_encoder(folder, "bert"), text, TAGS, max_length=64)


def marking(folder: Path, device: str) -> None:
    """The losses and the spans of a model that answers questions."""
    columns = {"document": "article", "question": "question", "answer": "answer", "start": "start", "passage": "passage"}
    train = LabelledSource(file="resources/qamr/en.tsv.xz", columns=columns, header=True)
    test = LabelledSource(held_out=0.05)
    settings = Labelled(language="en", train=train, dev=test, test={"en": test}, unit="question")
    text = tables(folder, settings, 24)
    head(folder, device, answering.ANSWERING, small_encoder(folder, "xlm-roberta"), text, max_length=64, stride=16)


def grading(folder: Path, device: str) -> None:
    """A ranker's losses and scores."""
    grades = ["0", "1", "2"]
    files = {"queries": "en.questions.tsv.xz", "documents": "en.sentences.tsv.xz", "file": "answers.tsv.xz"}
    train = LabelledSource(**{key: f"resources/xquad-r/{name}" for key, name in files.items()}, header=True, language="en")
    test = LabelledSource(held_out=0.1)
    settings = Labelled(language="en", labels=grades, unit="query", train=train, dev=test, test={"en": test})
    text = tables(folder, settings, 48)
    head(folder, device, ranking.RANKING, small_encoder(folder, "bert"), text, grades, max_length=48)


# ---------------------------------------------------------------------------------------------
# decoding and words


def translating(folder: Path, device: str) -> None:
    """Both engines write what they write on the CPU, but for a line in twenty, as rounding may change a choice of the beam."""
    german = manual_pairs(40)[0]
    write_lines(folder / "source", german)
    model = small_model(folder)
    for engine in ("ctranslate2", "huggingface"):
        (folder / engine).mkdir()
        for place, where in both(folder / engine, device):
            settings = decoding.Decoding(engine=engine, compute_type="float32", max_length=12, device=where)
            decoding.main(model, folder / "source", place / "hyp", languages=("de", "en"), settings=settings)
        assert same_share(folder / engine / "reference/hyp", folder / engine / "device/hyp") >= 0.95


def mapping_words(folder: Path, device: str) -> None:
    """The mapping of planted vectors finds the right words as often as on the CPU, to half a point; on a GPU in each precision."""
    sides, order = planted(0.05, 1000, 30)
    write_vectors(folder / "a.vec", sides.words_a, sides.a.numpy())
    write_vectors(folder / "b.vec", sides.words_b, sides.b.numpy())
    found = {}
    for place, where in both(folder, device):
        others = () if where == "cpu" else (("float16", "float32"), ("float32", "bfloat16"))
        for matrix, product in (("float32", "float32"), *others):
            settings = dataclasses.replace(SMALL, matrix=matrix, product=product, device=where)
            outputs = [place / name for name in ("a.vec", "b.vec", "mapping.json")]
            mapping.main(folder / "a.vec", folder / "b.vec", *outputs, settings=settings)
            assert read_json(outputs[2])["device"].startswith(where) and read_json(outputs[2])["good"]
            a, b = (mapping.torch.from_numpy(read_vectors(path, None)[1]) for path in outputs[:2])
            found[place.name, matrix, product] = p_at_1(a, b, order)
    reference = found["reference", "float32", "float32"]
    assert reference > 0.9 and all(abs(value - reference) <= 0.005 for value in found.values()), found


def looking_up(folder: Path, device: str) -> None:
    """The candidates of planted vectors are the CPU's, to half a point."""
    sides, order = planted(0.05)
    # in the same space, so that no mapping is needed
    rows = order.argsort()
    write_vectors(folder / "a.vec", sides.words_a, sides.a.numpy())
    write_vectors(folder / "b.vec", [sides.words_b[i] for i in rows.tolist()], (sides.a + 0.1 * sides.b[rows]).numpy())
    for place, where in both(folder, device):
        settings = lexicon.Lexicon(device=where, align=False)
        outputs = [place / name for name in ("ab.tsv", "ba.tsv", "lexicon.json")]
        lexicon.main(*outputs, languages=("de", "en"), mapped_a=folder / "a.vec", mapped_b=folder / "b.vec", settings=settings)
    first = [
        {row[0]: row[1] for row in (line.split("\t") for line in read_lines(folder / place / "ab.tsv")) if row[2] == "1"}
        for place in ("reference", "device")
    ]
    assert len(first[0]) == len(sides.words_a) == len(first[1])
    assert sum(first[0][word] == first[1][word] for word in first[0]) >= 0.995 * len(first[0])


# ---------------------------------------------------------------------------------------------
# what is measured of models


def parallel(folder: Path) -> tuple[Path, Path]:
    """Forty lines of text in German and in English."""
    for code, lines in zip(("de", "en"), manual_pairs(40), strict=True):
        write_lines(folder / f"text.{code}", lines)
    return folder / "text.de", folder / "text.en"


def two_models(folder: Path) -> tuple[Path, Path]:
    """A tiny mBART and one of another family, of the same shape."""
    made = []
    for family in ("mbart", "mbart50"):
        (folder / family).mkdir()
        made.append(small_model(folder / family, family))
    return made[0], made[1]


def reports(folder: Path, device: str, run: Callable[[Path, str], None]) -> list[dict[str, Any]]:
    """What a stage reports from both runs, without provenance; `run` takes the file and the device."""
    found = []
    for place, where in both(folder, device):
        run(place / "report.json", where)
        found.append(json.loads((place / "report.json").read_text("utf-8")))
    return found


def distances(folder: Path, device: str) -> None:
    """The distances of the two languages."""
    text, model = parallel(folder), small_model(folder)

    def run(output: Path, where: str) -> None:
        settings = representation.Representation(device=where)
        representation.main(model, *text, output, output.with_suffix(".npz"), languages=("de", "en"), settings=settings)

    near(*reports(folder, device, run), 1e-3, 1e-3)


def alignment(folder: Path, device: str) -> None:
    """CKA of two models and of two languages."""
    text, models = parallel(folder), two_models(folder)

    def run(output: Path, where: str) -> None:
        subject = analysis.Subject(models, ("one", "other"), text, ("de", "en"), parallel=True)
        cka.main(output, subject, settings=cka.Cka(samples=50, device=where))

    near(*reports(folder, device, run), 0, 5e-3)


def singular_values(folder: Path, device: str) -> None:
    """Singular values and distances of weights."""
    models = two_models(folder)

    def run(output: Path, where: str) -> None:
        spectra.main(output, models=models, names=("one", "other"), base="one", settings=spectra.Spectra(device=where))

    near(*reports(folder, device, run), 1e-3, 1e-4)


def numbers_of_layers(folder: Path, device: str) -> None:
    """A number for the states of each layer."""
    analysis.analysis("mean-size", label="mean size of states")(lambda states: float(abs(states).mean()))
    text, model = parallel(folder), small_model(folder)

    def run(output: Path, where: str) -> None:
        subject = analysis.Subject((model,), ("one",), text, ("de", "en"))
        layerwise.main(output, subject, measure="mean-size", settings=layerwise.Layerwise(device=where))

    try:
        near(*reports(folder, device, run), 1e-3, 1e-4)
    finally:
        registry.forget("analysis", "mean-size")


def languages_apart(folder: Path, device: str) -> None:
    """How clearly the languages lie apart; a text or two may fall on the other side of a border."""
    text, model = parallel(folder), small_model(folder)

    def run(output: Path, where: str) -> None:
        subject = analysis.Subject((model,), ("one",), text, ("de", "en"), parallel=True)
        separability.main(output, subject, settings=separability.Separability(samples=50, device=where))

    near(*reports(folder, device, run), 0.02, 0.05)


def neighbours(folder: Path, device: str) -> None:
    """The nearest sentences of the other language."""
    text, model = parallel(folder), small_model(folder)
    write_lines(folder / "gold", (f"{i}\t{i}" for i in range(40)))
    for place, where in both(folder, device):
        options = {"testsets": ("de",), "languages": ("de-en",)}
        retrieval.search(
            model, text[:1], text[1:], (folder / "gold",), place / "found", **options, settings=retrieval.Retrieval(device=where)
        )
    rows = [[line.split("\t") for line in read_lines(folder / place / "found/de.hyp")] for place in ("reference", "device")]
    assert sum(a[0] == b[0] for a, b in zip(*rows, strict=True)) >= 0.95 * len(rows[0])
    near(*([float(row[1]) for row in side] for side in rows), 1e-2, 1e-2)


def timing(folder: Path, device: str) -> None:
    """The same arm is timed in the same ways; how fast it is differs, and how good it is hardly."""
    text, model = parallel(folder), small_model(folder)

    def run(output: Path, where: str) -> None:
        settings = speed.Speed(sentences=4, repeats=1, beams=[2], device=where)
        speed.main(output, (model,), *text, arms=("csr",), languages=("de", "en"), max_length=6, settings=settings)

    one, other = reports(folder, device, run)
    timed_ways = [[(row["arm"], row["way"], row["batched"]) for row in report["rows"]] for report in (one, other)]
    assert timed_ways[0] == timed_ways[1] and len(timed_ways[0]) == 4 and all(row["sentences_per_second"] > 0 for row in other["rows"])
    assert (other["device"] == "cpu") is (device == "cpu")


def scoring(folder: Path, device: str) -> None:
    """COMET's scores; its environment is that of `make test-comet`, where it has been made."""
    environment = Path("results/environments/comet.json")
    if not environment.exists() or not read_json(environment)["python"]:
        pytest.skip("COMET's environment is not there: run make test-comet first")
    import test_with_comet

    python = Path(read_json(environment)["python"])
    german, english = manual_pairs(60)
    test_with_comet.write(folder, german, english, english[1:] + english[:1])
    test_with_comet.call(folder, python, "tests/comet/tiny.py", "make", folder / "references")
    found = [test_with_comet.scored(folder, "tiny/regression", device=where)["segments"] for where in ("cpu", device)]
    near(*found, 1e-3, 1e-3)


COMPARISONS: dict[type, Callable[[Path, str], None]] = {
    Training: training,
    classification.Classification: classifying,
    labelling.Labelling: tagging,
    answering.Answering: marking,
    ranking.Ranking: grading,
    decoding.Decoding: translating,
    mapping.Mapping: mapping_words,
    lexicon.Lexicon: looking_up,
    representation.Representation: distances,
    cka.Cka: alignment,
    spectra.Spectra: singular_values,
    separability.Separability: languages_apart,
    layerwise.Layerwise: numbers_of_layers,
    retrieval.Retrieval: neighbours,
    speed.Speed: timing,
    comet.Comet: scoring,
}
"""Settings with a `device` → the comparison of their stage."""

LOSS_OF_BFLOAT16 = 0.02
"""By how much, relatively, a loss in bfloat16 may differ from that in float32 over a tiny phase."""


def bfloat16_is_near(folder: Path, device: str) -> None:
    """The loss in bfloat16 goes the way of that in float32."""
    files = phase_files(folder)
    settings = {
        **TINY,
        **NO_DROPOUT,
        "updates": 12,
        "evaluate_every": 6,
        "checkpoint": "last",
        "bleu_sentences": 0,
        "loss_every": 0,
        "device": device,
    }
    found = []
    for precision in ("float32", "bfloat16"):
        finetune(*files, folder / precision, Training(**settings, precision=precision))
        found.append(columns(folder / precision / "curve.tsv", "loss", "dev_loss"))
    near(*found, LOSS_OF_BFLOAT16, 0)
    assert found[0] != found[1] and all(math.isfinite(value) for value in found[1]["loss"])


def writing_at_once_is_near(folder: Path, device: str) -> None:
    """SGA's alignment and denoising write what they write on the CPU, but for a text in twenty."""
    model = small_encoder(folder, "xlm-roberta")
    codec = load_codec(model)
    rows = codec.encode(manual_pairs(40)[0], "de", 16)
    found = []
    for where in ("cpu", device):
        encoder = load_network(model, "text", **NO_DROPOUT, seed=1)
        generator = make_generator(encoder, codec, SGA(prompt_length=2)).to(where)
        found.append(refining.write(generator, rows, codec.tokenizer.pad_token_id))
    assert sum(one == other for one, other in zip(*found, strict=True)) >= 0.95 * len(rows)


OTHERS = (bfloat16_is_near, writing_at_once_is_near)
"""Comparisons of parts of stages."""
