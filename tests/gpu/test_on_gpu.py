"""A GPU does what the CPU does, in every stage that can use one, and takes the memory that preflight says: make test-gpu."""

import copy
import json
import signal
import subprocess
import sys
from dataclasses import replace
from functools import partial

import comparisons
import pytest
import torch
from comparisons import COMPARISONS, OTHERS, columns, near, same_share
from phases import TINY as SMALL_PHASE
from phases import finetune, phase_files
from sacrebleu import corpus_chrf
from test_loop import SETTINGS as PLAIN
from test_loop import a_phase
from test_mixed_precision import PRECISIONS, a_network, gradients
from test_workflow import ROOT, TINY, lay_out, snakemake, write_config
from tiny_models import manual_pairs

from workflow_scripts.lexicon.mapping import normalise
from workflow_scripts.models import decoding, engines
from workflow_scripts.models.batches import collate
from workflow_scripts.run.estimates import Shape, training_memory
from workflow_scripts.similarity import Similarities, neighbourhoods
from workflow_scripts.stage import read_json
from workflow_scripts.tasks.experiment import of_training
from workflow_scripts.text.files import read_lines, write_lines
from workflow_scripts.training.adapter import adapt
from workflow_scripts.training.callbacks import Watch
from workflow_scripts.training.graphs import WARM, recorder
from workflow_scripts.training.launching import ON_ONE_NODE
from workflow_scripts.training.loop import pick_loss, train
from workflow_scripts.training.masks import known_masks
from workflow_scripts.training.micro_batches import parts_that_fit, try_part
from workflow_scripts.training.mixed_precision import mixed_precision
from workflow_scripts.training.rows import Dev, split_batch
from workflow_scripts.training.settings import Training

SHORT = {**SMALL_PHASE, "updates": 12, "evaluate_every": 6, "checkpoint": "last", "loss_every": 0}


@pytest.mark.parametrize("kind", COMPARISONS, ids=lambda kind: kind.__name__)
def test_a_stage_is_near_the_cpu(tmp_path, kind):
    COMPARISONS[kind](tmp_path, "cuda")


@pytest.mark.parametrize("compare", OTHERS, ids=lambda compare: compare.__name__)
def test_a_part_of_a_stage_is_near_the_cpu(tmp_path, compare):
    compare(tmp_path, "cuda")


# ---------------------------------------------------------------------------------------------
# the whole workflow


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """The results of the tiny experiment with every stage on the GPU."""
    content = copy.deepcopy(TINY)
    experiment, backbone = content["experiments"]["tiny"], content["backbones"]["tiny"]["small"]
    lexicon = content["lexicons"]["tiny"]
    experiment["representation"] = lexicon["lexicon"] = {"device": "cuda"}
    for block in (experiment["training"], experiment["decoding"], backbone["training"], lexicon["mapping"]):
        block["device"] = "cuda"
    folder = lay_out(tmp_path_factory.mktemp("gpu"))
    snakemake(folder, "--configfile", str(ROOT / "config.yaml"), write_config(folder, content), "--cores", "2")
    return folder / "results"


def test_the_whole_workflow_runs_on_the_gpu(done):
    reports = [read_json(path) for path in done.glob("runs/tiny/*/seed1/*/training.json")]
    assert len(reports) == 3 and all(report["device"].startswith("cuda") for report in reports)
    has_bfloat16 = torch.cuda.is_bf16_supported(including_emulation=False)
    assert {report["precision"] for report in reports} == {"bfloat16" if has_bfloat16 else "float32"}
    assert all(report["micro_batch_tokens"] == 800 for report in reports)
    assert read_json(done / "lexicons/tiny.en-de/tiny/mapping.json")["device"].startswith("cuda")
    assert (done / "report.html").stat().st_size and list(read_lines(done / "runs/tiny/csr/seed1/pages.hyp"))


# ---------------------------------------------------------------------------------------------
# training


def command(folder, start, out, settings: dict) -> list[str]:
    """The module and the arguments of a finetuning phase in a process of its own."""
    out.mkdir()
    text = {f"{part}-{side}": folder / f"{part}.{code}" for part in ("train", "dev") for side, code in (("source", "de"), ("target", "en"))}
    outputs = {"model": out / "model", "curve": out / "curve.tsv", "report": out / "training.json", "checkpoints": out / "checkpoints"}
    flags = [str(part) for name, path in {"start": start, **text, **outputs}.items() for part in (f"--{name}", path)]
    return ["workflow_scripts.training.training", "translate", *flags, "--languages", "de", "en", "--settings", json.dumps(settings)]


def test_a_killed_phase_goes_on_from_its_checkpoint(tmp_path):
    files, out = phase_files(tmp_path), tmp_path / "killed"
    settings = {**SHORT, "updates": 16, "evaluate_every": 4, "bleu_sentences": 0, "log_every": 1, "device": "cuda"}
    finetune(*files, tmp_path / "whole", Training(**settings))
    call = command(*files, out, settings)
    killed = subprocess.run([sys.executable, "tests/signalled.py", "update 9/", str(int(signal.SIGKILL)), "-m", *call])
    assert killed.returncode == -signal.SIGKILL and list(out.glob("checkpoints/*/checkpoint-8"))
    done = subprocess.run([sys.executable, "-m", *call], check=True, capture_output=True, text=True)
    assert "continuing from" in done.stdout
    near(*(columns(tmp_path / name / "curve.tsv", "loss", "dev_loss") for name in ("whole", "killed")), 5e-3, 0)


def test_all_gpus_of_the_node_share_the_work(tmp_path):
    """Under torchrun with NCCL, a process for each GPU, the losses are those of one; with one GPU this starts NCCL at least."""
    files, gpus = phase_files(tmp_path), torch.cuda.device_count()
    settings = {**SHORT, **comparisons.NO_DROPOUT, "bleu_sentences": 0, "device": "cuda", "precision": "float32"}
    finetune(*files, tmp_path / "one", Training(**settings))
    run = ["-m", "torch.distributed.run", *ON_ONE_NODE, "--nproc-per-node", str(gpus), "-m", "--"]
    done = subprocess.run([sys.executable, *run, *command(*files, tmp_path / "all", settings)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-4000:]
    assert read_json(tmp_path / "all/training.json")["processes"] == gpus
    near(*(columns(tmp_path / name / "curve.tsv", "loss", "dev_loss") for name in ("one", "all")), 5e-3, 0)


def test_all_gpus_of_the_node_share_the_weights(tmp_path):
    """By FSDP, with the losses of one GPU, in float32 and in bfloat16; the model that is handed on is whole."""
    files, gpus = phase_files(tmp_path), torch.cuda.device_count()
    if gpus < 2:
        pytest.skip("there is one GPU here, so nothing is shared")
    for precision, off in (("float32", 5e-3), ("bfloat16", 5e-2)):
        settings = {**SHORT, **comparisons.NO_DROPOUT, "device": "cuda", "precision": precision}
        finetune(*files, tmp_path / f"one-{precision}", Training(**settings))
        run = ["-m", "torch.distributed.run", *ON_ONE_NODE, "--nproc-per-node", str(gpus), "-m", "--"]
        line = [sys.executable, *run, *command(*files, tmp_path / f"all-{precision}", {**settings, "sharded": True})]
        done = subprocess.run(line, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-4000:]
        said = read_json(tmp_path / f"all-{precision}/training.json")
        assert said["processes"] == gpus and said["weights_of_each_process"] < said["parameters"] * 1.2 / gpus
        near(*(columns(tmp_path / f"{name}-{precision}" / "curve.tsv", "loss", "dev_loss") for name in ("one", "all")), off, 0)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_a_layer_that_computes_again_learns_the_same(tmp_path, precision):
    files = phase_files(tmp_path)
    for name, again in (("kept", False), ("again", True)):
        settings = {**SHORT, **comparisons.NO_DROPOUT, "bleu_sentences": 0, "device": "cuda", "precision": precision}
        finetune(*files, tmp_path / name, Training(**settings, gradient_checkpointing=again))
    near(*(columns(tmp_path / name / "curve.tsv", "loss", "dev_loss") for name in ("kept", "again")), 5e-2, 0)


@pytest.mark.parametrize("number", [20, 200])  # up to 3,072 ids CUDA sums gradients of embeddings by another kernel
@pytest.mark.parametrize("family", ["mbart", "xlm-roberta"])
def test_gradients_in_bfloat16_are_near_for_each_weight(tmp_path, family, number):
    """Of thousands of tokens as well, whose sums go into one row of an embedding and into the normalisations."""
    rows = [[5 + (at * 7 + row) % 90 for at in range(40)] for row in range(number)]
    network, batch = a_network(tmp_path, family, [(ids, ids) for ids in rows])
    tensors = {name: tensor.cuda() for name, tensor in batch.items()}
    exact, rough = (gradients(network.cuda(), tensors, precision) for precision in PRECISIONS)
    whole = sum(float(gradient.square().sum()) for gradient in exact.values()) ** 0.5
    errors = {name: float((exact[name] - rough[name]).norm() / exact[name].norm()) for name in exact if exact[name].norm() > 1e-3 * whole}
    assert exact.keys() == rough.keys() and len(errors) > 5 and max(errors.values()) < 0.15, errors


@pytest.mark.parametrize("family", ["mbart", "mt5", "xlm-roberta"])
@pytest.mark.parametrize(
    "changes",
    [{}, {"loss": "plain"}, {"packed": True, "batch_tokens": 256}, {"packed": True, "batch_tokens": 256, "recorded": True}],
    ids=lambda changes: "-".join(changes),
)
def test_no_update_waits_for_the_gpu(tmp_path, monkeypatch, family, changes):
    """PyTorch raises an error where the processor would have to wait.

    The first update may, since libraries get ready in it, and so may those up to the recording.
    """
    network, codec, rows = a_phase(tmp_path, family)
    seen, may_wait = [], WARM + 1 if "recorded" in changes else 1

    def at_begin(self, args, state, control, **_):
        torch.cuda.set_sync_debug_mode("error" if state.global_step >= may_wait else "default")

    def at_end(self, args, state, control, **_):
        torch.cuda.set_sync_debug_mode("default")
        seen.append(state.global_step)

    monkeypatch.setattr(Watch, "on_step_begin", at_begin, raising=False)
    monkeypatch.setattr(Watch, "on_step_end", at_end)
    settings = replace(PLAIN, **changes, device="cuda")
    try:
        train(network, codec, rows, [Dev(rows.epoch(0)[:4], "en")], tmp_path / "checkpoints", 1, settings)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert seen == [*range(1, 7)]


PACKED = {**SHORT, "packed": True, "batch_tokens": 512, "bleu_sentences": 0, "log_every": 1, "device": "cuda"}


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize("loss", ["chunked", "plain"])
def test_recorded_updates_are_those_without(tmp_path, precision, loss):
    files = phase_files(tmp_path)
    settings = {**PACKED, **comparisons.NO_DROPOUT, "precision": precision, "loss": loss}
    for name in ("plain", "recorded"):
        finetune(*files, tmp_path / name, Training(**settings, recorded=name == "recorded"))
    near(*(columns(tmp_path / name / "curve.tsv", "loss", "dev_loss") for name in ("plain", "recorded")), 5e-3, 0)


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("adapter", [{}, {"kind": "lora", "rank": 4}], ids=["all weights", "LoRA"])
@pytest.mark.parametrize("family", ["mbart", "xlm-roberta", "mt5", "gemma3_text"])
def test_recorded_updates_of_every_kind_are_those_without(tmp_path, monkeypatch, family, adapter, precision):
    """Of encoders, decoders and both together, also where most weights are not learnt; replayed from the fourth update on."""
    own = {
        "packed": True,
        "batch_tokens": 256,
        "max_length": 24,
        "log_every": 1,
        "learning_rate": 5e-3,
        "device": "cuda",
        "precision": precision,
    }
    settings = replace(PLAIN, **comparisons.NO_DROPOUT, **own)
    monkeypatch.setattr("test_loop.SETTINGS", settings)
    losses = []
    for name in ("plain", "recorded"):
        (tmp_path / name).mkdir()
        network, codec, rows = a_phase(tmp_path / name, family)
        if adapter:
            network = adapt(network, adapter, 1).network
        chosen = replace(settings, recorded=name == "recorded")
        history = train(network, codec, rows, [Dev(rows.epoch(0)[:4], "en")], tmp_path / name / "checkpoints", 1, chosen)
        losses.append([entry["loss"] for entry in history if "loss" in entry])
    assert len(losses[0]) == 6
    near(*losses, 5e-3, 0)


def test_an_update_of_another_shape_among_recorded_ones_changes_none():
    """Five updates of one shape, of which two are replayed, one of another shape, and a replay behind it."""
    network = wide_model(Shape(500, 64, 128, 1, 1, 64)).eval()  # without dropout
    recorded = recorder(network, pick_loss(network, Training(recorded=True, packed=True, loss="plain"), "float32"))
    found = []
    with known_masks(network):
        for update in (recorded, recorded.step):
            for number, rows in enumerate((4, 4, 4, 4, 4, 2, 4)):
                batch = {name: tensor.cuda() for name, tensor in collate([([5 + number] * 64, [6 + number] * 64)] * rows, 1).items()}
                del batch["attention_mask"]
                loss = update({**batch, "items": torch.tensor(64.0 * rows).cuda()}).clone()
                found.append([loss, *(weight.grad.clone() for weight in network.parameters())])
                network.zero_grad(set_to_none=True)
    assert recorded.replayed == 3
    torch.testing.assert_close(found[:7], found[7:], rtol=1e-3, atol=1e-5)


def test_dropout_of_recorded_updates_is_drawn_anew():
    """One batch with a learning rate of nothing: each replay has other random numbers, and so another loss."""
    network = wide_model(Shape(500, 64, 128, 1, 1, 64)).train()
    network.config.dropout = 0.3
    for module in network.modules():
        if hasattr(module, "dropout") and isinstance(module.dropout, float):
            module.dropout = 0.3
    loss = pick_loss(network, Training(recorded=True, packed=True), "float32")
    recorded = recorder(network, loss)
    batch = {name: tensor.cuda() for name, tensor in collate([([5] * 64, [6] * 64)] * 4, 1).items()} | {"items": torch.tensor(256.0).cuda()}
    del batch["attention_mask"]
    losses = set()
    with known_masks(network):
        for _ in range(8):
            losses.add(round(float(recorded(batch)), 5))
            network.zero_grad(set_to_none=True)
    assert recorded.replayed == 5 and len(losses) == 8


# ---------------------------------------------------------------------------------------------
# memory

WIDE = Shape(8_000, 512, 2048, 6, 6, 512)


def wide_model(shape: Shape):
    from transformers import MBartConfig, MBartForConditionalGeneration

    heads = {"encoder_attention_heads": 8, "decoder_attention_heads": 8, "decoder_ffn_dim": shape.encoder_ffn_dim}
    return MBartForConditionalGeneration(MBartConfig(**shape._asdict(), **heads, dropout=0.1, attention_dropout=0.0)).cuda()


@pytest.mark.parametrize(
    ("tokens", "changes"),
    [(8_192, {}), (32_768, {}), (8_192, {"precision": "float32"}), (8_192, {"loss": "plain"})],
)
def test_memory_is_what_preflight_estimates(tokens, changes):
    """An update of a model with 50 million parameters, with the optimiser, takes what the estimate says, within 20 %."""
    settings = Training(batch_tokens=tokens, attention_dropout=0.0, dropout=0.1, **changes)
    precision = "bfloat16" if settings.precision == "auto" else settings.precision
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    network = wide_model(WIDE).train()
    optimizer = torch.optim.AdamW(network.parameters(), fused=True)
    loss = pick_loss(network, settings, precision)
    rows = [([5] * 64, [6] * 64)] * (tokens // 64)
    batch = collate(rows, 1)
    for _ in range(3):
        tensors = {name: tensor.cuda() for name, tensor in batch.items()}
        labels = tensors.pop("labels")
        with mixed_precision(network, precision):
            loss(network(**tensors), labels, labels.numel()).backward()
        optimizer.step()
        optimizer.zero_grad()
    # the estimate's first term is for CUDA itself and what its allocator keeps, which PyTorch does not count
    estimate = training_memory(WIDE, of_training("finetune", "x", "x", settings, 1), 1) - 1e9
    taken = torch.cuda.max_memory_allocated()
    print(f"{tokens} tokens, {changes}: {taken / 1e9:.2f} GB allocated, {estimate / 1e9:.2f} GB estimated")
    assert taken == pytest.approx(estimate, rel=0.2)


def test_what_fits_is_found_on_a_gpu_with_little_memory():
    """A limit on this process's memory stands in for a small GPU; after the search, all that it tried is free again."""
    network = wide_model(Shape(8_000, 512, 2048, 2, 2, 512))
    settings = Training()
    attempt = partial(try_part, network, partial(collate, pad=1), pick_loss(network, settings, "float32"), "float32", False)
    updates = [[([5] * 64, [6] * 64)] * 512]
    limit = torch.cuda.memory_allocated() + 3 * 2**30
    torch.cuda.set_per_process_memory_fraction(limit / torch.cuda.get_device_properties(0).total_memory)
    try:
        before = torch.cuda.memory_allocated()
        parts = parts_that_fit(attempt, updates, 1)
        assert parts > 1 and torch.cuda.memory_allocated() == before
        attempt(split_batch(updates[0], parts)[0])
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)


# ---------------------------------------------------------------------------------------------
# decoding and mapping


def test_ctranslate2_finds_its_libraries_or_names_the_way_out():
    reason = engines.why_not_on_gpu()
    assert not reason, reason


@pytest.mark.parametrize("compute_type", ["auto", "float16", "int8_float16", "bfloat16"])
def test_ctranslate2_translates_in_every_precision(tmp_path, compute_type):
    import ctranslate2

    if compute_type != "auto" and compute_type not in ctranslate2.get_supported_compute_types("cuda"):
        pytest.skip(f"this GPU has no {compute_type}")
    write_lines(tmp_path / "source", manual_pairs(40)[0])
    for name, settings in (
        ("reference", decoding.Decoding(device="cpu", compute_type="float32", max_length=24)),
        ("gpu", decoding.Decoding(device="cuda", compute_type=compute_type, max_length=24)),
    ):
        # a model that has learnt to restore text; one with random weights is undecided everywhere, and rounding would choose
        decoding.main(
            ROOT / "resources/backbones/manual-mbart", tmp_path / "source", tmp_path / name, languages=("de", "de"), settings=settings
        )
    if compute_type != "bfloat16":
        assert same_share(tmp_path / "reference", tmp_path / "gpu") > 0.3
    # bfloat16 keeps two or three digits of a beam's scores, so that most lines differ in something; those of other sentences have 24
    reference, written = (list(read_lines(tmp_path / name)) for name in ("reference", "gpu"))
    assert corpus_chrf(written, [reference]).score > 40


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_products_of_similarities(dtype):
    """The nearest words by a product in float32 are the CPU's, and by one in bfloat16 nearly all."""
    x = normalise(torch.randn(3000, 300))
    z = normalise(x + 0.3 * torch.randn(3000, 300) / 300**0.5)
    sure = (x @ z.T).argmax(dim=1)
    found = (x.cuda().to(dtype) @ z.cuda().to(dtype).T).float().argmax(dim=1).cpu()
    assert float((found == sure).float().mean()) >= {torch.float32: 0.999, torch.bfloat16: 0.98}[dtype]
    similarities = [Similarities(x.to(where), z.to(where), "float32") for where in ("cpu", "cuda")]
    means = []
    for product, where in zip(similarities, ("cpu", "cuda"), strict=True):
        product.replace_rows(x.to(where))
        means.append(neighbourhoods(product, 10).nearest_x.cpu())
    assert torch.allclose(*means, atol=1e-4)
