"""Beam search by CTranslate2 and by Hugging Face."""

import ctypes
import json
import shutil
from pathlib import Path

import ctranslate2
import pytest
import torch
from safetensors.torch import load_file, save_file
from tiny_decoders import small_decoder
from tiny_models import manual_pairs, small_encoder, small_model, small_t5
from transformers import AutoConfig, AutoModelForSeq2SeqLM, MBartForConditionalGeneration

from workflow_scripts import registry
from workflow_scripts.models import decoding, engines
from workflow_scripts.models.decoding import Decoding, computed_in
from workflow_scripts.models.engines import number_formats
from workflow_scripts.models.recognition import longest_row, network_config
from workflow_scripts.models.sga import FILE
from workflow_scripts.models.tokenisation import load_codec
from workflow_scripts.stage import InputError, read_json
from workflow_scripts.training import training
from workflow_scripts.training.job import TrainingJob
from workflow_scripts.training.settings import Training

SENTENCES = 12


@pytest.fixture(scope="module", params=["mbart", "cc25", "mbart50", "nllb", "m2m100", "bart"])
def model(request, tmp_path_factory):
    """A model that has learnt a little, so that hypotheses are not noise."""
    folder = tmp_path_factory.mktemp(request.param)
    german, english = manual_pairs(SENTENCES)
    for code, lines in (("de", german), ("en", english)):
        (folder / f"t.{code}").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    settings = Training(
        updates=300,
        batch_tokens=300,
        learning_rate=1e-2,
        warmup_updates=5,
        dropout=0.0,
        label_smoothing=0.0,
        max_length=64,
        evaluate_every=300,
        bleu_sentences=0,
        checkpoint="last",
    )
    text = {"train_source": "t.de", "train_target": "t.en", "dev_source": "t.de", "dev_target": "t.en"}
    files = (folder / name for name in ("out/model", "out/curve.tsv", "out/training.json", "out/c"))
    job = TrainingJob(small_model(folder, request.param), *files, threads=1)
    training.translate(job, languages=("de", "en"), settings=settings, **{k: folder / v for k, v in text.items()})
    return folder


def test_all_that_translates_takes_its_threads(tmp_path, monkeypatch):
    """Models that write at once and `generate` can learn the number of threads in no other way."""
    taken = []
    monkeypatch.setattr(torch, "set_num_threads", taken.append)
    codec = load_codec(folder := small_model(tmp_path))
    decoding.translator(folder, codec, 3, Decoding())
    (folder / FILE).touch()
    decoding.translator(folder, codec, 2, Decoding())
    decoding.translator(folder, codec, 0, Decoding())
    assert taken == [3, 2]


def translate(folder, **settings):
    output = folder / "hyp"
    decoding.main(
        folder / "out/model",
        folder / "t.de",
        output,
        languages=("de", "en"),
        threads=1,
        settings=Decoding(max_length=120, compute_type="float32", **settings),
    )
    return output.read_text().splitlines()


@pytest.mark.parametrize("make", [small_model, small_decoder])
@pytest.mark.parametrize("engine", ["ctranslate2", "huggingface"])
def test_no_line_goes_through_the_vocabulary(tmp_path, monkeypatch, make, engine):
    """That of a published model takes longer to list than a line to translate, and speed is measured line by line."""
    codec = load_codec(model := make(tmp_path))
    with decoding.translator(model, codec, 1, Decoding(engine=engine, max_length=8, beam_size=2)) as translate:
        found = translate(["Öffnen Sie die Datei."], ("de", "en"), 1)
        monkeypatch.setattr(codec.tokenizer, "get_vocab", lambda: pytest.fail("all pieces were listed for a line"))
        assert translate(["Öffnen Sie die Datei."], ("de", "en"), 1)[0][0].text == found[0][0].text


def agree(one, other):
    """Hypotheses that are the same, or the same up to where the longest allowed one was cut."""
    return sum(bool(a) and (a.startswith(b) or b.startswith(a)) for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("beam_size", [5, 1])
def test_both_engines_give_the_same_translations(model, beam_size):
    fast, slow = (translate(model, engine=engine, beam_size=beam_size) for engine in ("ctranslate2", "huggingface"))
    assert len(fast) == len(slow) == SENTENCES and len(set(fast)) > 1 and all(fast)
    assert agree(fast, slow) >= SENTENCES - 2
    assert not any(special in line for line in fast for special in ("</s>", "en_XX", "eng_Latn", "__en__", "<pad>"))


def test_sentences_longer_than_the_model_are_cut(model):
    (model / "long.de").write_text("Öffnen Sie die Datei und drucken Sie das Fenster. " * 60 + "\n", encoding="utf-8")
    for engine in ("ctranslate2", "huggingface"):
        settings = Decoding(max_length=1000, beam_size=1, engine=engine)
        decoding.main(model / "out/model", model / "long.de", model / "long", languages=("de", "en"), threads=1, settings=settings)
        assert len((model / "long").read_text().splitlines()) == 1


@pytest.mark.parametrize("engine", ["ctranslate2", "huggingface"])
def test_all_that_the_beam_holds_with_scores(model, engine):
    best, table = model / "best", model / "n_best.tsv"
    settings = Decoding(max_length=120, beam_size=3, engine=engine)
    decoding.main(model / "out/model", model / "t.de", best, languages=("de", "en"), n_best=table, threads=1, settings=settings)
    header, *rows = (line.split("\t") for line in table.read_text().splitlines())
    assert header == ["line", "rank", "score", "hypothesis"] and len(rows) == 3 * SENTENCES
    assert [row[:2] for row in rows[:4]] == [["1", "1"], ["1", "2"], ["1", "3"], ["2", "1"]]
    for start in range(0, len(rows), 3):
        scores = [float(row[2]) for row in rows[start : start + 3]]
        assert scores == sorted(scores, reverse=True) and max(scores) <= 0
    assert [row[3] for row in rows[::3]] == best.read_text().splitlines()


def test_a_source_without_a_tag_is_read_under_that_of_what_was_learnt(tmp_path):
    (tmp_path / "t").write_text("Öffnen Sie die Datei.\n", encoding="utf-8")
    start, settings = small_model(tmp_path), Decoding(beam_size=1, max_length=5)
    with pytest.raises(InputError, match="no tag el_GR for 'el'"):
        decoding.main(start, tmp_path / "t", tmp_path / "none", languages=("el", "en"), threads=1, settings=settings)
    for code in ("el", "de"):
        decoding.main(start, tmp_path / "t", tmp_path / code, languages=(code, "en"), learnt_from="de", threads=1, settings=settings)
    assert (tmp_path / "el").read_text("utf-8") == (tmp_path / "de").read_text("utf-8")
    with pytest.raises(InputError, match="no tag el_GR for 'el'"):  # what is written needs one of its own
        decoding.main(start, tmp_path / "t", tmp_path / "none", languages=("de", "el"), learnt_from="de", threads=1, settings=settings)


def test_an_encoder_and_outputs_that_cannot_be_written_are_refused_before_the_model_is_used(tmp_path):
    (tmp_path / "t.de").write_text("Eins.\n", encoding="utf-8")
    encoder = small_encoder(tmp_path, "xlmr")
    with pytest.raises(InputError, match=r"is an encoder .*, which writes no text"):
        decoding.main(encoder, tmp_path / "t.de", tmp_path / "hyp", languages=("de", "en"))
    for output, said in (
        (tmp_path, "is a folder"),
        (tmp_path / "x.en.gz", r"is written as plain text; take \.gz off"),
        (tmp_path / "t.de", "is the source"),
    ):
        with pytest.raises(InputError, match=said):
            decoding.main(encoder, tmp_path / "t.de", output, languages=("de", "en"))
    with pytest.raises(InputError, match="is the source"):
        decoding.main(encoder, tmp_path / "t.de", tmp_path / "hyp", report=tmp_path / "t.de", languages=("de", "en"))
    with pytest.raises(NotADirectoryError):
        decoding.main(encoder, tmp_path / "t.de", tmp_path / "t.de/hyp", languages=("de", "en"))
    assert (tmp_path / "t.de").read_text(encoding="utf-8") == "Eins.\n"


def test_an_output_must_be_asked_for(tmp_path):
    with pytest.raises(InputError, match="--n-best"):
        decoding.main(tmp_path, tmp_path, languages=("de", "en"))


@pytest.mark.parametrize("engine", ["ctranslate2", "huggingface"])
@pytest.mark.parametrize("family", ["mbart", "mbart50"])
def test_lengths_have_limits(tmp_path, family, engine):
    """A model that would say nothing, or else one word for ever: it says that word as often as it must."""
    start = small_model(tmp_path, family)
    network, tokenizer = MBartForConditionalGeneration.from_pretrained(start), load_codec(start).tokenizer
    network.final_logits_bias[0, tokenizer.eos_token_id] = 200
    network.final_logits_bias[0, tokenizer.convert_tokens_to_ids("▁die")] = 100
    network.save_pretrained(start)
    (tmp_path / "t.de").write_text("Öffnen Sie die Datei.\nDrucken Sie das Fenster.\n", encoding="utf-8")
    for least in (0, 20):
        settings = Decoding(max_length=40, min_length=least, beam_size=2, engine=engine, compute_type="float32")
        decoding.main(start, tmp_path / "t.de", tmp_path / "hyp", languages=("de", "en"), threads=1, settings=settings)
        lines = (tmp_path / "hyp").read_text(encoding="utf-8").splitlines()
        assert len(lines) == 2 and all(set(line.split()) <= {"die"} and least - 3 <= len(line.split()) <= least for line in lines)


def test_a_text_that_must_be_longer_than_it_can_be_is_refused(model, tmp_path):
    (tmp_path / "t.de").write_text("Drucken Sie das Fenster.\n", encoding="utf-8")
    positions = AutoConfig.from_pretrained(model / "out/model").max_position_embeddings
    for settings, longest in ((Decoding(min_length=9, max_length=8), 8), (Decoding(min_length=5000, max_length=6000), positions - 2)):
        with pytest.raises(InputError, match=f"min_length: {settings.min_length} is more than the {longest} pieces"):
            decoding.main(model / "out/model", tmp_path / "t.de", tmp_path / "hyp", languages=("de", "en"), settings=settings)


def test_huggingface_holds_the_budget_and_the_precision(model, monkeypatch):
    seen = []
    kind = AutoModelForSeq2SeqLM._model_mapping[type(AutoConfig.from_pretrained(model / "out/model"))]
    generate = kind.generate

    def spy(network, **given):
        seen.append((given["input_ids"].numel(), network.dtype))
        return generate(network, **given)

    monkeypatch.setattr(kind, "generate", spy)
    many = translate(model, engine="huggingface")
    assert len(seen) == 1 and seen[0][1] == torch.float32
    few = translate(model, engine="huggingface", batch_tokens=100)
    assert len(seen) > 4 and max(tokens for tokens, _ in seen[1:]) <= 100 and agree(many, few) >= SENTENCES - 2
    decoding.main(
        model / "out/model",
        model / "t.de",
        model / "hyp",
        languages=("de", "en"),
        threads=1,
        settings=Decoding(max_length=5, engine="huggingface", compute_type="bfloat16"),
    )
    assert seen[-1][1] == torch.bfloat16


def test_penalties_that_a_model_brings_are_not_heeded(model, tmp_path):
    """BART's `generation_config.json` forbids repeated trigrams; CTranslate2 does not read it, so `generate` must not either."""
    plain = translate(model, engine="huggingface")
    copy = shutil.copytree(model / "out/model", tmp_path / "out/model")
    shutil.copy(model / "t.de", tmp_path)
    penalties = {"repetition_penalty": 9.0, "no_repeat_ngram_size": 1, "length_penalty": 3.0, "min_length": 25}
    given = read_json(copy / "generation_config.json")
    (copy / "generation_config.json").write_text(json.dumps(given | penalties))
    assert translate(tmp_path, engine="huggingface") == plain


def test_what_runs_over_in_float16_is_not_decoded_in_it(monkeypatch):
    t5, decoder, mbart = (registry.entry("family", name) for name in ("mt5", "decoder", "mbart"))
    kinds = {"float16", "float32", "bfloat16"}
    assert [number_formats("auto", form, False) for form in (t5, decoder, mbart)] == [["float32"]] * 3
    # a decoder's copy is compared, and made anew where it differs
    assert [number_formats("auto", form, kinds) for form in (t5, decoder, mbart)] == [["float32"], ["float16", "float32"], ["float16"]]
    assert number_formats("bfloat16", t5, kinds) == ["bfloat16"] and number_formats("int8", t5, False) == ["int8"]
    gpu, auto = torch.device("cuda"), Decoding()
    for there, instead in (True, torch.bfloat16), (False, torch.float32):
        monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation, there=there: there)
        assert [computed_in(auto, gpu, form) for form in (t5, decoder, mbart)] == [instead, instead, torch.float16]
    assert computed_in(auto, torch.device("cpu"), decoder) == torch.float32
    assert computed_in(Decoding(compute_type="float16"), gpu, decoder) == torch.float16
    with pytest.raises(InputError, match=r"decoding\.compute_type float16: mT5 runs over in float16; set it to auto"):
        number_formats("float16", t5, kinds)


def test_a_gpu_without_cuda_12s_library_is_refused_before_decoding(model, monkeypatch):
    if can_load("libcublas.so.12"):
        pytest.skip("CUDA 12 is here")
    monkeypatch.setattr(engines, "pick_device", lambda wanted: torch.device("cuda"))
    with pytest.raises(InputError, match="pip install nvidia-cublas-cu12`, or set engine: huggingface"):
        translate(model, engine="ctranslate2")


def test_the_library_is_found_in_its_package(tmp_path, monkeypatch):
    if can_load("libcublas.so.12"):
        pytest.skip("CUDA 12 is here")
    (tmp_path / "nvidia_cublas_cu12-12.9.dist-info").mkdir()
    (tmp_path / "nvidia_cublas_cu12-12.9.dist-info/METADATA").write_text("Metadata-Version: 2.1\nName: nvidia-cublas-cu12\nVersion: 12.9\n")
    folder = tmp_path / "nvidia/cublas/lib"
    folder.mkdir(parents=True)
    monkeypatch.syspath_prepend(tmp_path)
    assert "libcublas.so.12" in engines.why_not_on_gpu()  # the package is there, its files are not
    some_library = next((Path(ctranslate2.__file__).parents[1] / "ctranslate2.libs").glob("libgomp*"))
    for name in ("libcublas.so.12", "libcublasLt.so.12"):
        shutil.copy(some_library, folder / name)
    assert engines.why_not_on_gpu() == ""
    assert str(folder / "libcublas.so.12") in Path("/proc/self/maps").read_text()


def can_load(library):
    try:
        return bool(ctypes.CDLL(library))
    except OSError:
        return False


@pytest.mark.parametrize("engine", ["ctranslate2", "huggingface"])
def test_rows_without_a_piece_change_nothing_and_are_never_written(model, tmp_path, engine):
    """Embeddings are often rounded up to a multiple of 8 or 64; here the rows that no piece has are the likeliest of all."""
    plain = translate(model, engine=engine)
    padded = shutil.copytree(model, tmp_path / "padded")
    pad_embeddings(padded / "out/model")
    assert translate(padded, engine=engine) == plain


def pad_embeddings(folder):
    network = AutoModelForSeq2SeqLM.from_pretrained(folder)
    rows = len(network.get_input_embeddings().weight)
    network.resize_token_embeddings(rows + 1, pad_to_multiple_of=64, mean_resizing=False)
    with torch.no_grad():
        network.get_input_embeddings().weight[rows:] = 4 * network.get_input_embeddings().weight.mean(dim=0)
        if hasattr(network, "final_logits_bias"):
            network.final_logits_bias[:, rows:] = 50
    network.save_pretrained(folder)


@pytest.mark.parametrize("engine", ["ctranslate2", "huggingface"])
def test_a_source_without_text_stays_empty(model, tmp_path, engine, capsys):
    lines = (model / "t.de").read_text("utf-8").splitlines()[:3]
    texts = {"with": ["", lines[0], " \t", lines[1], "\u200b\ufeff", lines[2]], "without": lines, "nothing": ["", "\u00a0"]}
    found = {}
    for name, sources in texts.items():
        (tmp_path / name).write_text("".join(f"{line}\n" for line in sources), encoding="utf-8")
        settings = Decoding(max_length=20, beam_size=2, engine=engine, compute_type="float32")
        files = {"hypotheses": tmp_path / "hyp", "n_best": tmp_path / "n_best"}
        decoding.main(model / "out/model", tmp_path / name, **files, languages=("de", "en"), threads=1, settings=settings)
        found[name] = (tmp_path / "hyp").read_text("utf-8").splitlines()
    assert found["with"] == ["", found["without"][0], "", found["without"][1], "", found["without"][2]] and all(found["without"])
    assert found["nothing"] == ["", ""]
    assert (tmp_path / "n_best").read_text("utf-8").splitlines()[1:] == ["1\t1\t0.0000\t", "2\t1\t0.0000\t"]
    assert "'empty_sources': 3" in capsys.readouterr().out


def test_a_lost_weight_is_no_random_one(model, tmp_path):
    folder = shutil.copytree(model, tmp_path / "lost")
    weights = load_file(folder / "out/model/model.safetensors")
    del weights["model.decoder.layers.0.fc1.weight"]
    save_file(weights, folder / "out/model/model.safetensors", {"format": "pt"})
    for engine in ("ctranslate2", "huggingface"):
        with pytest.raises(InputError, match=r"out/model: its weights do not fit .* \(it lacks model\.decoder\.layers\.0\.fc1\.weight\)"):
            translate(folder, engine=engine)


@pytest.mark.parametrize("engine", ["ctranslate2", "huggingface"])
def test_lines_that_are_longer_than_the_model_reads_are_named(tmp_path, capsys, engine):
    model, source, report = small_model(tmp_path), tmp_path / "t.de", tmp_path / "t.json"
    longest = longest_row(AutoConfig.from_pretrained(model))
    whole = load_codec(model).encode(["Datei " * longest], "de", 10 * longest)[0]
    source.write_text(f"Kurz.\n{'Datei ' * longest}\nNoch eine.\n")
    settings = Decoding(beam_size=1, max_length=4, engine=engine)
    decoding.main(model, source, tmp_path / "t.hyp", report=report, languages=("de", "en"), threads=1, settings=settings)
    said = read_json(report)
    assert len(whole) > longest and (said["sentences"], said["longest"], said["too_long"]) == (3, longest, [2])
    assert said["unknown"] == {"de": {"share": 0, "word": ""}}
    assert f"WARNING: {source}: 1 line(s) have more than the {longest:,} pieces that the model reads" in capsys.readouterr().out


@pytest.mark.parametrize("engine", ["ctranslate2", "huggingface"])
@pytest.mark.parametrize("kind", ["mbart", "m2m100", "mt5", "gemma3_text"])
def test_translations_without_an_end_are_named(tmp_path, capsys, engine, kind):
    make = {"gemma3_text": small_decoder, "mt5": small_t5}.get(kind, small_model)
    said, written = unfinished(make(tmp_path, kind), tmp_path, capsys, engine, min_length=2, max_length=2)
    assert said == [1, 3] and "translations of 2 line(s) have as many pieces as they may have, and no end: 1, 3;" in written


@pytest.mark.parametrize("engine", ["ctranslate2", "huggingface"])
def test_translations_that_end_are_not_named(tmp_path, capsys, engine):
    model = small_model(tmp_path)
    weights = load_file(model / "model.safetensors")
    weights["final_logits_bias"] = torch.zeros(1, network_config(model).vocab_size)
    weights["final_logits_bias"][0, load_codec(model).tokenizer.eos_token_id] = 1e4
    save_file(weights, model / "model.safetensors", {"format": "pt"})
    said, written = unfinished(model, tmp_path, capsys, engine, min_length=2, max_length=9)
    assert said == [] and "no end" not in written


def unfinished(model, folder, capsys, engine, **lengths):
    """The lines, of three with an empty one, whose translations have no end, and what was printed."""
    source, report = folder / "t.de", folder / "t.json"
    source.write_text("Die Datei.\n\nEine Zelle.\n")
    settings = Decoding(beam_size=1, engine=engine, **lengths)
    decoding.main(model, source, folder / "t.hyp", report=report, languages=("de", "en"), threads=1, settings=settings)
    return read_json(report)["unfinished"], capsys.readouterr().out
