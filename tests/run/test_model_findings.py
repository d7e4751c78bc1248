"""What preflight finds of models: whether they are there, know the languages, and can be decoded and scored."""

import errno
import io
import json
import shutil

import sentencepiece
from configurations import DEFAULT, changed, planned, with_recipes
from looks import found, moses
from tiny_decoders import small_decoder
from tiny_models import manual_pairs, small_m2m100, small_model, small_t5

from workflow_scripts.models import engines
from workflow_scripts.run import model_findings


def test_a_ready_made_backbone_that_will_not_be_taken_is_reported_before_it_is_pretrained():
    assert found(DEFAULT, "backbones.bible.small.ready").startswith("ok ")
    line = found(changed("backbones/bible/small/ffn", 256), "backbones.bible.small.ready")
    assert line.startswith("note") and "was made with other settings, so the backbone is pretrained here" in line


def test_layers_that_a_retrievals_model_has_not_are_found(folder):
    raw = changed("run/experiments", ["pairs"])
    raw["aligned"] = {"pairs": {"test": {"own": {"languages": ["de", "en"], **moses(folder, "de", "en")}}}}
    raw["backbones"]["mine"] = {"kind": "hub", "model": str(folder / "model/model")}
    models = {"bible": {"backbone": "bible", "retrieval": {"layers": [0]}}, "mine": {"backbone": "mine", "retrieval": {"part": "decoder"}}}
    raw["experiments"]["pairs"] = {"task": "retrieval", "corpus": "pairs", "models": models, "retrieval": {"layer": 2}}
    bible, mine = map(str, model_findings.layers(planned(raw).experiments["pairs"]))
    assert bible == "ok     experiments.pairs.models.bible: measures 2, 0 of its layers, 0 to 2"
    assert mine.startswith("WRONG") and "layer: 2 is none of the model's layers, 0 (the embeddings) to 1" in mine


def test_text_that_a_backbone_does_not_read_is_reported():
    raw = changed("backbones/bible/small/text/fr", "resources/bible/de.txt.xz")
    found = model_findings.of_backbone(planned(raw).backbones["bible"])
    notes = [str(finding) for finding in found if "not read" in finding.said]
    assert len(notes) == 1 and notes[0].startswith("note   backbones.bible.small.text: fr: not read, as nothing in this run has them")


def test_a_model_in_a_folder_must_know_the_languages(folder):
    raw = changed("backbones/bible", {"kind": "hub", "model": str(folder / "model/model")})
    assert "its tokenizer knows de and en" in found(raw, "backbones.bible.model")
    raw["corpora"]["help"] |= {"languages": ["cs", "en"], "train": {"files": {"cs": str(folder / "de"), "en": str(folder / "en")}}}
    raw["experiments"]["help-de-en"]["source"] = "cs"
    raw["lexicons"]["unsupervised"]["gold"] = {}
    assert "has no tag cs_CZ for 'cs'" in found(raw, "backbones.bible.model")


def test_a_checkpoint_of_fairseq_is_looked_at_before_the_run():
    raw = changed("backbones/bible", {"kind": "fairseq", "model": "tests/data/fairseq/mbart"})
    assert found(raw, "backbones.bible.model").startswith("ok ")
    for model, said in (("xlmr", "is an encoder (XLM-R), which cannot write text"), ("none", "none: no such file")):
        raw["backbones"]["bible"]["model"] = f"tests/data/fairseq/{model}"
        line = found(raw, "backbones.bible.model")
        assert line.startswith("WRONG") and said in line
    raw["backbones"]["bible"] |= {"model": "tests/data/fairseq/mbart", "decoder_layers": 99}
    line = found(raw, "backbones.bible.model")
    assert line.startswith("WRONG") and "decoder_layers: 99 are asked for" in line


def test_a_vocabulary_that_cannot_be_cut_down_is_found_before_the_run(tmp_path):
    for kind, made in (("m2m100", small_m2m100(tmp_path, "m2m100")), ("byt5", small_t5(tmp_path / "bytes", "byt5"))):
        raw = changed("backbones/bible", {"kind": "hub", "model": str(made), "trim": True})
        line = found(raw, "backbones.bible.trim")
        if kind == "byt5":
            assert line == "note   backbones.bible.trim: ByT5 reads bytes, so there is nothing to trim"
        else:
            assert line.startswith("WRONG") and "(M2M100Tokenizer) cannot be trimmed; leave `trim` out" in line


def test_a_head_that_a_family_lacks_is_found_before_the_run(tmp_path):
    bart, gemma = small_model(tmp_path, "bart"), small_decoder(tmp_path / "gemma")
    raw = changed("backbones/bible", {"kind": "hub"})
    columns = {"document": "article", "question": "question", "answer": "answer", "start": "start", "passage": "passage"}
    questions = {"file": "resources/qamr/en.tsv.xz", "header": True, "columns": columns}
    test = {"de": {"language": "de", "file": "resources/xquad/de.json.xz"}}
    raw["labelled"] = {"asked": {"unit": "question", "language": "en", "train": questions, "dev": {"held_out": 0.1}, "test": test}}
    tags = {"file": "resources/universal-dependencies/en.train.conllu.xz"}
    raw["labelled"]["tags"] = {
        "unit": "word",
        "language": "en",
        "labels": ["NOUN", "X"],
        "train": tags,
        "dev": {"held_out": 0.1},
        "test": {"en": {"held_out": 0.1}},
    }
    raw["arms"]["plain"] = [{"data": "task", "epochs": 1}]
    for corpus, task in (("asked", "answering"), ("tags", "labelling")):
        raw["experiments"][task] = {"task": task, "corpus": corpus, "backbone": "bible", "arms": ["plain"]}
    lacks = "which has no head for answering; those that have one:"
    knows = "its tokenizer knows"
    for task, model, verdict, said in (
        ("answering", bart, "WRONG", lacks),
        ("answering", gemma, "ok", knows),
        ("labelling", gemma, "ok", knows),
    ):
        raw["run"] |= {"experiments": [task], "arms": ["plain"]}
        raw["backbones"]["bible"]["model"] = str(model)
        line = found(raw, "backbones.bible.model")
        assert line.startswith(verdict) and said in line


def test_a_model_without_a_mask_restores_no_masks(tmp_path):
    for kind in ("m2m100", "nllb"):
        (tmp_path / kind).mkdir()
        small_m2m100(tmp_path / kind, kind)
    raw = changed("backbones/bible", {"kind": "hub", "model": str(tmp_path / "m2m100/model")})
    raw["lexicons"]["pieces"] = {"unit": "piece", "backbone": "bible"}
    raw["arms"]["released"] = [{"data": "released", "updates": 1000, "lexicon": "pieces"}, {"data": "task", "updates": 1000}]
    for arms, masked in ((["finetune", "csr", "mask"], "arms.mask (mask)"), (["released"], "arms.released (released)")):
        raw["run"]["arms"] = arms
        said = f"its vocabulary (M2M-100 or NLLB) has no mask, so it cannot restore the text of {masked}; leave such arms out"
        assert said in found(raw, "backbones.bible.model")
    raw["run"]["arms"] = ["finetune", "csr", "random"]
    assert found(raw, "backbones.bible.model").startswith("ok")
    raw["run"]["arms"], raw["backbones"]["bible"]["model"] = ["mask"], str(tmp_path / "nllb/model")
    assert found(raw, "backbones.bible.model").startswith("ok")


def test_weights_that_are_cut_off_or_lack_a_part_are_found_before_the_run(folder, tmp_path):
    model = shutil.copytree(folder / "model/model", tmp_path / "model")
    raw = changed("backbones/bible", {"kind": "hub", "model": str(model)})
    index = {"weight_map": {"a": "model.safetensors", "b": "model-00002-of-00002.safetensors"}}
    (model / "model.safetensors.index.json").write_text(json.dumps(index))
    assert "model-00002-of-00002.safetensors is not there; download or copy" in found(raw, "backbones.bible.model")
    weights = model / "model.safetensors"
    with weights.open("r+b") as file:
        file.truncate(weights.stat().st_size // 2)
    assert f"{weights}: is no whole file of weights" in found(raw, "backbones.bible.model")
    weights.unlink()
    (model / "model.safetensors.index.json").rename(model / "pytorch_model.bin.index.json")
    assert "pytorch_model.bin.index.json: model-00002-of-00002.safetensors, model" in found(raw, "backbones.bible.model")
    (model / "pytorch_model.bin.index.json").unlink()
    (model / "model-00002-of-00002.safetensors").touch()
    assert "no weights (model.safetensors or pytorch_model.bin, or their .index.json) is there" in found(raw, "backbones.bible.model")
    (model / "model-00002-of-00002.safetensors").unlink()
    (model / "pytorch_model.bin").write_bytes(b"no weights\n")
    assert "pytorch_model.bin: is no whole file of weights" in found(raw, "backbones.bible.model")


def test_a_model_that_is_not_here_is_reported_with_how_to_get_it(monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    raw = changed("backbones/bible", {"kind": "hub", "model": "nobody/mbart-large-cc25-of-nobody", "revision": "v1"})
    line = found(raw, "backbones.bible.model")
    assert line.startswith("WRONG") and "run `hf download nobody/mbart-large-cc25-of-nobody --revision v1` where there is network" in line
    raw["corpora"]["help"] |= {"languages": ["pl", "en"], "train": {"file": "x.tsv", "columns": {"pl": 1, "en": 2}}}
    raw["experiments"]["help-de-en"]["source"] = "pl"
    raw["lexicons"]["unsupervised"]["gold"] = {}
    assert "does not know pl; facebook/mbart-large-50 knows twice" in found(raw, "backbones.bible.model")
    raw["backbones"]["bible"]["model"] = "facebook/mbart-large-50"
    assert "network" in found(raw, "backbones.bible.model")
    raw["corpora"]["help"] |= {"languages": ["da", "en"], "train": {"file": "x.tsv", "columns": {"da": 1, "en": 2}}}
    raw["experiments"]["help-de-en"]["source"] = "da"
    assert "mbart-large-50 does not know da; NLLB knows 200" in found(raw, "backbones.bible.model")
    mistyped = changed("backbones/bible", {"kind": "hub", "model": "./mymodel"})
    assert "neither a folder that is there nor a model's id (owner/name)" in found(mistyped, "backbones.bible.model")
    file = changed("backbones/bible", {"kind": "hub", "model": "resources/backbones/bible/ready.json"})
    assert "ready.json: is a file; name the folder that it lies in" in found(file, "backbones.bible.model")
    file = changed("backbones/bible", {"kind": "hub", "model": "resources/README.md"})  # which looks like an id of the hub
    assert "README.md: is a file; name the folder that it lies in" in found(file, "backbones.bible.model")


def test_a_run_goes_on_without_bleus_tokeniser_and_this_is_reported(monkeypatch):
    def no_network(*_, **__):
        raise OSError("no network")

    monkeypatch.setattr("sacrebleu.metrics.BLEU.__init__", no_network)
    (said,) = map(str, model_findings.tokenisers(planned(DEFAULT)))
    assert said.startswith("note") and "13a: is not to be had (OSError: no network); otherwise" in said and "no BLEU for en" in said


def test_a_tokeniser_that_is_downloaded_is_named_with_its_place(monkeypatch, tmp_path):
    def no_network(*_, **__):
        raise OSError("no network")

    monkeypatch.setattr("urllib.request.urlopen", no_network)
    monkeypatch.setattr("sacrebleu.tokenizers.tokenizer_spm.SACREBLEU_DIR", str(tmp_path))
    plans = planned(changed("experiments/help-de-en/scores/tokenize", "flores200"))
    (said,) = map(str, model_findings.tokenisers(plans))
    place = tmp_path / "models/flores200sacrebleuspm"
    assert said.startswith("note   BLEU's tokeniser flores200: is not to be had (OSError: no network); download https://tinyurl.com/")
    assert "tinyurl.com/flores200sacrebleuspm where there is network" in said
    assert f"put it at {place}; otherwise the report will have no BLEU for en" in said
    # the message names a folder that cannot be written to
    refused = OSError(errno.EROFS, "Read-only file system", str(place))
    with monkeypatch.context() as patched:
        patched.setattr("urllib.request.urlopen", lambda *_, **__: (_ for _ in ()).throw(refused))
        (said,) = map(str, model_findings.tokenisers(plans))
    assert f"flores200: {place}: cannot be written: Read-only file system; make " in said and "network" not in said
    # with the file there it is taken
    lines = [line for side in manual_pairs(200) for line in side]
    trained = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(lines), model_writer=trained, vocab_size=300, minloglevel=2)
    place.write_bytes(trained.getvalue())
    (said,) = map(str, model_findings.tokenisers(plans))
    assert said == "ok     BLEU's tokeniser flores200: is there for en"


def test_decoding_on_a_gpu_needs_a_library_of_its_own(monkeypatch):
    jobs = {"decoding": {"gpu": 1}}
    monkeypatch.setattr(engines, "why_not_on_gpu", lambda: "no cuBLAS")
    assert [str(each) for each in model_findings.gpu_decoding(planned(DEFAULT), jobs)] == ["note   decoding on a GPU: no cuBLAS"]
    assert not list(model_findings.gpu_decoding(planned(DEFAULT), {"decoding": {}}))
    raw = changed("experiments/help-de-en/decoding", {"engine": "huggingface"})
    assert not list(model_findings.gpu_decoding(planned(raw), jobs))
    # a GPU of this machine that PyTorch uses would train for hours, and end at decoding
    monkeypatch.setattr(model_findings, "gpu_here", lambda: 80.0)
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    assert [str(each) for each in model_findings.gpu_decoding(planned(DEFAULT), {})] == ["WRONG  decoding on a GPU: no cuBLAS"]
    assert not list(model_findings.gpu_decoding(planned(raw), {}))
    on_slurm = {"decoding": {"gpu": 1, "slurm_partition": "gpu"}}
    assert [each.verdict for each in model_findings.gpu_decoding(planned(DEFAULT), on_slurm)] == ["note"]
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    assert not list(model_findings.gpu_decoding(planned(DEFAULT), {}))


def test_texts_that_are_generated_are_decoded_on_a_gpu_too(tmp_path, monkeypatch):
    monkeypatch.setattr(engines, "why_not_on_gpu", lambda: "no cuBLAS")
    assert len(list(model_findings.gpu_decoding(planned(with_recipes("stories")), {"generation_decoding": {"gpu": 1}}))) == 1


def test_a_pytorch_for_cpus_is_reported_where_jobs_ask_for_gpus(monkeypatch):
    jobs = {"finetune": {"gpu": 1}, "decoding": {"gpu": 1}, "scores": {}}
    for cuda, wanted in ((None, "a GPU is asked for by decoding, finetune; install a CUDA build"), ("13.0", "is a build for GPUs")):
        monkeypatch.setattr("torch.version.cuda", cuda)
        (said,) = map(str, model_findings.gpu_build(jobs))
        assert wanted in said and said.startswith("ok" if cuda else "note")
    assert not list(model_findings.gpu_build({"scores": {}}))


def test_a_run_goes_on_without_comets_model_and_this_is_reported(folder):
    raw = changed("experiments/help-de-en/comet", {})
    (said,) = map(str, model_findings.comet(planned(raw)))
    assert said.startswith("note") and "hf download Unbabel/wmt22-comet-da" in said
    raw = changed("experiments/help-de-en/comet", {"model": str(folder / "model")})
    (said,) = map(str, model_findings.comet(planned(raw)))
    assert said.startswith("ok ")
