"""What makes the processor wait for a GPU in the loops beside `test_loop`'s: decoders, adapters, VECO, SGA and CTC, heads."""

from collections import Counter
from dataclasses import replace

import pytest
import torch
from test_loop import SETTINGS
from tiny_decoders import small_decoder
from tiny_models import manual_pairs, small_encoder, small_model

from benchmarks.gpu.counts import Counted
from workflow_scripts.models.sga import SGA
from workflow_scripts.models.tokenisation import load_codec
from workflow_scripts.models.veco import load_stack
from workflow_scripts.tasks import finetuning, head
from workflow_scripts.tasks.answering import ANSWERING
from workflow_scripts.tasks.classification import CLASSIFICATION
from workflow_scripts.tasks.head_model import Reader, load_text_head
from workflow_scripts.tasks.head_settings import TextHeadSettings
from workflow_scripts.tasks.labelling import LABELLING
from workflow_scripts.text.examples import Example
from workflow_scripts.text.files import write_lines
from workflow_scripts.training import generating, veco_losses
from workflow_scripts.training.adapter import adapt
from workflow_scripts.training.bitext import Bitext
from workflow_scripts.training.callbacks import Watch
from workflow_scripts.training.job import TrainingJob
from workflow_scripts.training.loop import load_model, train
from workflow_scripts.training.masks import known_masks, with_padding_known
from workflow_scripts.training.objective import Part, Text
from workflow_scripts.training.pretraining_settings import Pretraining, Veco
from workflow_scripts.training.rows import Dev, ParallelText
from workflow_scripts.training.segments import held_back, read
from workflow_scripts.training.writing import as_ctc

SHORT = replace(SETTINGS, updates=3, evaluate_every=3, log_every=3, max_length=30)


@pytest.fixture
def waits(monkeypatch) -> list[dict[str, int]]:
    """The waits of each update that is made in the test."""
    counted, by_update = Counted(), []

    def at_begin(self, args, state, control, **_):
        counted.__enter__()

    def at_end(self, args, state, control, **_):
        counted.__exit__(None, None, None)
        by_update.append(dict(counted.waits))
        counted.waits = Counter()

    for watch in (Watch, veco_losses.CrossAttentionFirst):
        monkeypatch.setattr(watch, "on_step_begin", at_begin, raising=False)
    monkeypatch.setattr(Watch, "on_step_end", at_end)
    return by_update


def translations(folder, codec):
    """Rows of translations."""
    for name, side in zip("ab", manual_pairs(40), strict=True):
        write_lines(folder / name, side)
    return ParallelText(folder / "a", folder / "b", ("de", "en"), codec, SHORT)


@pytest.mark.parametrize("adapter", [{}, {"kind": "lora", "rank": 2}], ids=["all weights", "LoRA"])
@pytest.mark.parametrize("kind", ["gemma3_text", "llama", "mbart"])
@pytest.mark.parametrize("packed", [False, True], ids=["padded", "packed"])
def test_decoders_and_adapters_wait_for_nothing(tmp_path, waits, kind, adapter, packed):
    start = small_model(tmp_path) if kind == "mbart" else small_decoder(tmp_path, kind, sliding_window=128)
    codec = load_codec(start)
    rows, settings = translations(tmp_path, codec), replace(SHORT, packed=packed, batch_tokens=256)
    network = load_model(start, settings, 1)
    if adapter:
        network = adapt(network, adapter, 1).network
    train(network, codec, rows, [Dev(rows.epoch(0)[:4], "en")], tmp_path / "checkpoints", 1, settings)
    assert waits == [{}] * 3


def test_veco_waits_for_nothing(tmp_path, waits):
    model = small_encoder(tmp_path, "xlm-roberta")
    codec, (german, english) = load_codec(model), manual_pairs(40)
    block = Pretraining(training=SHORT)
    parts = [
        Part.write(
            tmp_path, name, Text({"de": german[some]}, [Bitext("help.de-en", {"de": german[some], "en": english[some]})], {"de": [1]})
        )
        for name, some in (("train", slice(5, None)), ("dev", slice(5)))
    ]
    text, dev = read(parts[0], codec, block, seed=1), held_back(parts[1], codec, block, seed=1)
    veco_losses.train(load_stack(model, cross=True), codec, text, dev, tmp_path / "checkpoints", 1, SHORT, veco=Veco())
    assert waits == [{}] * 3


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        # PyTorch's CTC reads lengths of positions and of labels
        (as_ctc(SGA()), {"_ctc_loss": 1}),
        (SGA(prompt_length=4, drafts=2, noise="released", guide="detached", reads="source"), {"_ctc_loss": 3}),
        # how many pieces are masked is drawn
        (SGA(prompt_length=4, alignment="mask_predict", denoising=False), {"nonzero": 1}),
    ],
    ids=["ctc", "sga", "mask-predict"],
)
def test_generators_wait_for_what_must_be_known(tmp_path, waits, settings, expected):
    model = small_encoder(tmp_path, "xlm-roberta")
    codec = load_codec(model)
    rows = translations(tmp_path, codec)
    network, kept = generating.open_generator(model, codec, rows, SHORT, 1, frozen=bool(settings.prompt_length), sga=settings)
    generating.train_generator(network, codec, kept, [Dev(rows.epoch(0)[:4], "en")], tmp_path / "checkpoints", 1, SHORT, 0, {})
    assert waits == [expected] * 3


def rows_of(task, folder, number):
    """A table of so many examples, and the labels."""
    sentences, _ = manual_pairs(number)
    kinds = {
        "classification": lambda at, text: f"{'ab'[at % 2]}\t{text}\t",
        "labelling": lambda at, text: f"{' '.join('ab'[at % 2] for _ in text.split())}\t{text}\t",
        "answering": lambda at, text: f"0:{len(text.split()[0])}\t{sentences[at - 1]}\t{text}",
    }
    write_lines(folder / "table.tsv", (kinds[task.name](at, text) for at, text in enumerate(sentences)))
    return folder / "table.tsv", [] if task.name == "answering" else ["a", "b"]


@pytest.mark.parametrize(
    ("task", "kind"),
    [
        *((task, kind) for task in (CLASSIFICATION, LABELLING, ANSWERING) for kind in ("bert", "xlm-roberta", "m2m100")),
        (CLASSIFICATION, "mbart"),
        (CLASSIFICATION, "mt5"),
        (CLASSIFICATION, "gemma3_text"),
    ],
    ids=lambda one: getattr(one, "name", one),
)
def test_heads_wait_for_nothing(tmp_path, waits, task, kind):
    start = small_decoder(tmp_path, kind) if kind == "gemma3_text" else small_model(tmp_path, kind)
    table, labels = rows_of(task, tmp_path, 12)
    named = {task.named: labels} if task.named else {}
    chosen = task.finetuning(batch_size=4, max_length=60, device="cpu")
    settings = task.finetune_settings(language="en", epochs=1, **named, **{task.key: chosen})
    job = TrainingJob(start, tmp_path / "model", tmp_path / "curve", tmp_path / "report", tmp_path / "checkpoints")
    prepared = head.prepare(task, job, (table,), (table,), settings)
    finetuning.train_head(job, chosen, prepared, tmp_path / "checkpoints")
    # transformers' head of mBART looks for the ends of texts
    expected = {"unique_consecutive": 1, "index": 1, "index_put": 1} if (task, kind) == (CLASSIFICATION, "mbart") else {}
    assert len(waits) >= 3 and all(found == expected for found in waits)


@pytest.mark.parametrize("kind", ["bert", "mbart", "gemma3_text", "qwen2"])
def test_what_a_batch_says_of_its_padding_changes_nothing(tmp_path, kind):
    """The masks are those that transformers makes when it has asked, bit for bit."""
    start = small_model(tmp_path, kind) if kind in ("bert", "mbart") else small_decoder(tmp_path, kind, sliding_window=4)
    network = load_text_head(start, ["a", "b"], TextHeadSettings(dropout=0.0, attention_dropout=0.0), 1).train()
    reader = Reader(start, 60, "en")
    for texts in (["a house", "a house and a garden"], ["a house", "a house"]):
        batch = reader.collate(reader.rows([Example("a", text, "") for text in texts], "en", ["a", "b"]))
        batch.pop("labels")
        usual = network(**batch).logits
        with known_masks(network):
            known = network(**with_padding_known(batch)).logits
        assert torch.equal(usual, known), texts
