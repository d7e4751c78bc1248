"""The built-in small mBART, and loading one that exists."""

import errno
import json
import shutil
from dataclasses import asdict

import pytest
import torch
from safetensors.torch import load_file, save_file
from tiny_models import manual_pairs, small_encoder, small_model
from transformers import AutoModel

from workflow_scripts.models.folders import located
from workflow_scripts.models.networks import save_model
from workflow_scripts.models.tokenisation import load_codec
from workflow_scripts.models.tokenizer import load_tokenizer
from workflow_scripts.models.veco import CROSS, has_cross_attention, load_stack
from workflow_scripts.stage import InputError, checksums, read_json
from workflow_scripts.tasks.answering import Answering
from workflow_scripts.tasks.classification import Classification
from workflow_scripts.tasks.head_model import load_text_head, load_token_head
from workflow_scripts.text.corpus import leak_key
from workflow_scripts.training import backbone
from workflow_scripts.training import small as small_models
from workflow_scripts.training.backbone import Backbone, Use, load_from_hub
from workflow_scripts.training.loop import load_model
from workflow_scripts.training.pretraining import denoised, own_documents
from workflow_scripts.training.settings import Training
from workflow_scripts.training.small import Small, build_model, evenly_spaced


def parallel(folder):
    german, english = manual_pairs(300)
    for code, lines in (("de", german), ("en", english)):
        (folder / f"mono.{code}").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return german, english


def small(folder, **changes) -> Small:
    training = Training(
        updates=120,
        batch_tokens=500,
        learning_rate=1e-2,
        warmup_updates=5,
        dropout=0.1,
        max_length=64,
        evaluate_every=60,
        checkpoint="last",
    )
    text = {code: str(folder / f"mono.{code}") for code in ("de", "en")}
    return Small(
        **{
            "text": text,
            "vocabulary": 400,
            "d_model": 32,
            "layers": 1,
            "heads": 2,
            "ffn": 64,
            "dev_lines": 20,
            "training": training,
            **changes,
        }
    )


def test_a_vocabulary_that_is_smaller_than_the_alphabet_is_refused(tmp_path):
    lines = ["".join(chr(0x4E00 + 40 * row + place) for place in range(40)) for row in range(50)]
    with pytest.raises(InputError, match=r"vocabulary: 300 is less than the 2\d\d\d characters and signs that the text needs; raise it"):
        build_model(Small(text={}, vocabulary=300), "mbart", ("zh", "en"), lines, (), tmp_path, 1)


def test_a_vocabulary_is_learnt_from_all_parts_of_a_large_text(tmp_path, monkeypatch):
    lines = [str(number) for number in range(10)]
    assert list(evenly_spaced(lambda: lines, 10)) == list(evenly_spaced(lambda: lines, 11)) == lines
    assert list(evenly_spaced(lambda: lines, 4)) == ["0", "3", "5", "8"]
    german, english = manual_pairs(300)
    task = tmp_path / "task.en"
    task.write_text("".join(f"{line}\n" for line in english), "utf-8")
    monkeypatch.setattr(small_models, "_LINES", 200)
    build_model(Small(text={}, vocabulary=300), "mbart", ("de", "en"), german, (task,), tmp_path, 1)
    read = (tmp_path / "vocabulary.txt").read_text("utf-8").splitlines()
    assert len(read) == 200 and len({*read} & {*german}) >= 90 and len({*read} & {*english}) >= 90


def test_a_vocabulary_is_learnt_from_lines_of_any_length(tmp_path):
    """SentencePiece would leave out what has more than 16,384 bytes, without a word."""
    german, english = (" ".join(side) for side in manual_pairs(700))
    assert len(german.encode()) > 16_384 < len(english.encode())
    start = build_model(Small(text={}, vocabulary=600), "mbart", ("de", "en"), [german, english], (), tmp_path, 1)
    assert len(load_codec(start).tokenizer) >= 600
    assert (tmp_path / "vocabulary.txt").read_text("utf-8").replace("\n", "") == german + english


def run(folder, settings, **arguments):
    out = folder / "out"
    backbone.main(
        out / "model",
        out / "backbone.json",
        out / "curve.tsv",
        **{"languages": ("de", "en"), "checkpoints": out / "c", "threads": 1, "settings": settings, **arguments},
    )
    return read_json(out / "backbone.json")


def test_a_checkpoint_of_fairseq_is_a_backbone(tmp_path):
    task = tmp_path / "task.de"
    task.write_text("Der Hund sieht den Baum.\n", "utf-8")
    settings = Backbone(kind="fairseq", model="tests/data/fairseq/mbart", trim=True, decoder_layers=2)
    said = run(tmp_path, settings, task_text=(task,))
    assert said["fairseq"] == {"form": "mbart", "tensors": said["fairseq"]["tensors"], "decoder_layers_left_out": 1}
    assert said["family"] == "mbart" and said["vocabulary"] < said["vocabulary_before_trimming"] and len(said["checksums"]) == 3
    codec = load_codec(tmp_path / "out/model")
    assert codec.decode(codec.pieces(["Der Hund sieht den Baum."], 60)) == ["Der Hund sieht den Baum."]
    assert [path.name for path in (tmp_path / "out").iterdir() if path.name.startswith(".")] == []
    settings = Backbone(kind="fairseq", model="tests/data/fairseq/xlmr/old.pt")
    with pytest.raises(InputError, match="is an encoder"):
        run(tmp_path, settings)
    assert run(tmp_path, settings, encoder_will_do=True)["family"] == "xlm-roberta"


def flags(folder, settings, **files):
    """The flags by which a command line says what `run` is given."""
    out = folder / "out"
    files |= {"output": [out / "model"], "report": [out / "backbone.json"], "curve": [out / "curve.tsv"], "checkpoints": [out / "c"]}
    given = {**files, "languages": ["de", "en"], "threads": [1], "settings": [json.dumps(asdict(settings))]}
    return [str(part) for name, values in given.items() for part in (f"--{name.replace('_', '-')}", *values)]


def lines_of(*arguments):
    return [line for line, _ in own_documents(*arguments)]


def test_no_line_is_read_in_two_languages_and_no_held_out_sentence_at_all(tmp_path):
    german, english = parallel(tmp_path)
    forbidden = {leak_key(german[0]), leak_key(english[1])}
    sides = [lines_of(small(tmp_path), code, forbidden) for code in ("de", "en")]
    rows = [{lines.index(line) for line in side} for lines, side in zip((german, english), sides, strict=True)]
    assert rows[0] and rows[1] and not rows[0] & rows[1]
    assert german[0] not in sides[0] and english[1] not in sides[1]


def test_a_break_inside_a_line_shifts_no_other_line(tmp_path):
    parallel(tmp_path)
    lines = (tmp_path / "mono.de").read_text().splitlines()
    (tmp_path / "mono.de").write_text("\n".join([f"{lines[0]} </s> {lines[1]}", *lines[1:]]) + "\n")
    assert lines_of(small(tmp_path), "de", set()) == [*lines[:2], *lines[2::2]]


def test_lines_are_shared_out_among_the_languages_that_have_text(tmp_path):
    german, _ = parallel(tmp_path)
    shape = small(tmp_path)
    assert len(lines_of(shape, "de", set())) >= len({*german[::2]}) and shape.lines_needed == 2 * shape.lines_per_language


def test_denoising_beats_the_unigram_model(tmp_path):
    german, english = parallel(tmp_path)
    (tmp_path / "dev.de").write_text(f"{german[0]}\n")
    report = run(
        tmp_path, Backbone(kind="small", small=small(tmp_path)), task_text=(tmp_path / "mono.de",), held_out=(tmp_path / "dev.de",)
    )
    assert report["denoising_loss"] < report["unigram_loss"]
    assert report["family"] == "mbart" and report["sentences"]["de"] <= 150
    assert report["checksums"] == checksums(tmp_path / f"mono.{code}" for code in ("de", "en"))
    codec = load_codec(tmp_path / "out" / "model")
    assert len(codec.tokenizer) == report["vocabulary"] and codec.tag("en") != codec.tag("de")


def test_the_tasks_own_text_can_stand_in(tmp_path):
    german, english = parallel(tmp_path)
    shape = small(tmp_path, text={"de": "task", "en": str(tmp_path / "mono.en")})
    files = (tmp_path / "mono.de", tmp_path / "mono.en")
    assert lines_of(shape, "de", set(), files) == german[::2]
    assert lines_of(shape, "en", set(), files) == english[1::2]


def test_missing_text_and_short_text_are_refused(tmp_path):
    parallel(tmp_path)
    with pytest.raises(InputError, match="no text for tr"):
        run(tmp_path, Backbone(kind="small", small=small(tmp_path)), languages=("de", "tr"))
    with pytest.raises(InputError, match="at least 4000 are needed"):
        run(tmp_path, Backbone(kind="small", small=small(tmp_path, dev_lines=1000)))


@pytest.mark.parametrize("family", ["cc25", "mbart50", "nllb", "m2m100"])
def test_a_folder_in_the_hubs_format_is_loaded(tmp_path, family):
    folder = small_model(tmp_path, family)
    report = run(tmp_path, Backbone(kind="hub", model=str(folder)))
    assert report["family"] == {"cc25": "mbart", "mbart50": "mbart50"}.get(family, "m2m100")
    assert load_codec(tmp_path / "out" / "model").encode(["Datei"], "de") == load_codec(folder).encode(["Datei"], "de")
    assert report["revision"] is None and report["checksums"] == checksums(folder.iterdir())


@pytest.mark.parametrize(
    "make, kept, said",
    [
        (
            small_model,
            lambda name: "encoder.layers" not in name,
            r"it lacks model\.encoder\.layers\.0\.fc1\.bias, .* and 13 more\); download",
        ),
        (small_encoder, lambda name: "layer.0" not in name, r"it lacks encoder\.layer\.0\.\S+, .* and 13 more"),
        (small_encoder, lambda name: "lm_head" not in name, None),
    ],
    ids=["mbart", "xlmr", "no-head"],
)
def test_weights_that_a_folder_lacks_are_not_drawn(tmp_path, make, kept, said):
    folder = make(tmp_path, "mbart" if make is small_model else "xlm-roberta")
    weights = load_file(folder / "model.safetensors")
    save_file({name: weight for name, weight in weights.items() if kept(name)}, folder / "model.safetensors", {"format": "pt"})
    settings = Backbone(kind="hub", model=str(folder))
    if said is None:
        load_from_hub(settings, Use(("de", "en"), encoder_will_do=True), tmp_path / "copy")
        return
    with pytest.raises(InputError, match=said):
        load_from_hub(settings, Use(("de", "en"), encoder_will_do=True), tmp_path / "copy")
    save_file({f"module.{name}": weight for name, weight in weights.items()}, folder / "model.safetensors", {"format": "pt"})
    with pytest.raises(InputError, match=r"it lacks .* more, and has module\.\S+, which no such model has"):
        load_from_hub(settings, Use(("de", "en"), encoder_will_do=True), tmp_path / "copy")
    (folder / "model.safetensors").write_bytes(b"no weights\n")
    with pytest.raises(InputError, match=r"model\.safetensors: is no whole file of weights"):
        load_from_hub(settings, Use(("de", "en"), encoder_will_do=True), tmp_path / "copy")


@pytest.mark.parametrize("revision", [None, "v1"])
def test_of_the_hubs_model_the_commit_is_recorded(tmp_path, monkeypatch, revision):
    commit, cached = "0123456789" * 4, tmp_path / "hub/models--somebody--mbart"
    shutil.copytree(small_model(tmp_path), cached / "snapshots" / commit)
    (cached / "refs").mkdir()
    (cached / "refs" / (revision or "main")).write_text(commit)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    report = run(tmp_path, Backbone(kind="hub", model="somebody/mbart", revision=revision))
    assert (report["model"], report["revision"], report["settings"]["revision"]) == ("somebody/mbart", commit, revision)


def test_a_model_that_is_not_to_be_had_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(InputError, match=r"nobody/nothing.*hf download"):
        run(tmp_path, Backbone(kind="hub", model="nobody/nothing"))


def test_lines_are_noised_anew_in_each_round_and_each_of_them_alone():
    lines = manual_pairs(50)[0]
    settings = {"code": "de", "noise": Small().noise, "seed": 1}
    first, second = denoised(lines, 0, [0, 2], **settings)
    assert len(first) == len(lines) and sum("<mask>" in noised for noised in first) > 45 and first != second
    assert list(denoised(lines[30:], 30, [2, 0], **settings)) == [second[30:], first[30:]]


def test_a_tab_in_the_text_does_not_end_the_noised_half(tmp_path):
    (tmp_path / "mono.de").write_text("Eine Zeile\tmit Tabulator\n" * 3)
    assert set(lines_of(small(tmp_path, disjoint=False), "de", set())) == {"Eine Zeile mit Tabulator"}


def test_the_model_of_an_arm_is_taken_over(tmp_path):
    (tmp_path / "train.de").write_text("Öffnen Sie die Datei.\nDas Fenster.\n")
    (tmp_path / "test.de").write_text("öffnen Sie die Datei!\nEtwas anderes.\n")
    texts = {"task_text": (tmp_path / "train.de",), "held_out": (tmp_path / "test.de",)}
    start = small_model(tmp_path)
    report = run(tmp_path, Backbone(kind="arm", from_="help-de-en/csr/seed1/pretext"), start=start, **texts)
    assert (report["kind"], report["family"], report["start"], report["held_out_seen"]) == ("arm", "mbart", str(start), 1)
    before, after = (load_file(folder / "model.safetensors") for folder in (start, tmp_path / "out/model"))
    assert all(torch.equal(after[name], tensor) for name, tensor in before.items() if name in after) and after
    with pytest.raises(InputError, match="needs --start"):
        run(tmp_path, Backbone(kind="arm"))


def test_an_arm_that_lost_its_decoder_makes_a_backbone_without_one(tmp_path):
    start = small_model(tmp_path)
    network = load_text_head(start, ["a", "b"], Classification(parts="encoder"), seed=1)
    network.save_pretrained(tmp_path / "head")
    load_codec(start).tokenizer.save_pretrained(tmp_path / "head")
    run(tmp_path, Backbone(kind="arm", from_="topics/finetune/seed1/finetune"), start=tmp_path / "head")
    encoder = load_text_head(tmp_path / "out/model", ["c", "d"], Classification(parts="encoder"), seed=1).base_model.encoder
    assert all(torch.equal(a, b) for a, b in zip(encoder.parameters(), network.base_model.encoder.parameters(), strict=True))
    with pytest.raises(InputError, match="lost its decoder"):
        load_model(tmp_path / "out/model", Training(), 1)


def test_an_arms_head_is_kept_where_it_is_asked_for_and_read_by_the_same_task(tmp_path):
    encoder = small_encoder(tmp_path, "xlm-roberta")
    network = load_token_head(encoder, "answering", [], Answering(), seed=1)
    save_model(network, load_codec(encoder).tokenizer, tmp_path / "head")

    def heads(**asked):
        settings = Backbone(kind="arm", from_="squad/finetune/seed1/finetune", **asked)
        report = run(tmp_path, settings, start=tmp_path / "head", encoder_will_do=True)
        assert report["family"] == "xlm-roberta"
        found = load_token_head(tmp_path / "out/model", "answering", [], Answering(), seed=2)
        body = zip(found.base_model.parameters(), network.base_model.parameters(), strict=True)
        assert all(torch.equal(mine, theirs) for mine, theirs in body)
        names = [name for name, _ in network.named_parameters() if not name.startswith(network.base_model_prefix)]
        mine, theirs = (dict(one.named_parameters()) for one in (found, network))
        return [torch.equal(mine[name], theirs[name]) for name in names if theirs[name].ndim > 1]

    assert heads(with_head=True) == [True] and heads() == [False]


def test_an_encoder_without_a_pooler_is_the_same_each_time(tmp_path):
    """The hash of its weights is in the checkpoints of all that is trained from it."""
    plain = small_encoder(tmp_path, "xlm-roberta")
    found = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        load_from_hub(Backbone(kind="hub", model=str(plain)), Use(("de", "en"), encoder_will_do=True), tmp_path / f"copy{seed}")
        found.append(load_file(tmp_path / f"copy{seed}/model.safetensors"))
    assert found[0].keys() == found[1].keys() and all(torch.equal(found[1][name], weight) for name, weight in found[0].items())
    assert not any("pooler" in name for name in found[0])


def test_a_veco_from_a_folder_keeps_its_cross_attention_where_its_head_is_kept(tmp_path):
    plain = small_encoder(tmp_path, "xlm-roberta")
    stack = load_stack(plain, cross=True, seed=3)
    save_model(stack, load_tokenizer(plain), tmp_path / "veco")
    wanted = {name: weight for name, weight in stack.state_dict().items() if CROSS in name}
    settings = Backbone(kind="hub", model=str(tmp_path / "veco"))
    load_from_hub(settings, Use(("de", "en"), encoder_will_do=True, keep_head=True), tmp_path / "whole")
    found = load_stack(tmp_path / "whole", cross=True).state_dict()
    assert has_cross_attention(tmp_path / "whole") and all(torch.equal(found[name], weight) for name, weight in wanted.items())
    load_from_hub(settings, Use(("de", "en"), encoder_will_do=True), tmp_path / "alone")
    assert not any(CROSS in name for name in load_file(tmp_path / "alone/model.safetensors")) and not has_cross_attention(
        tmp_path / "alone"
    )
    (tmp_path / "train.de").write_text("Das Fenster.\n")
    # of an arm's phase `veco`: a conversion needs what it has trained
    run(
        tmp_path,
        Backbone(kind="arm", from_="x/veco/seed1/pretext"),
        start=tmp_path / "veco",
        task_text=(tmp_path / "train.de",),
        encoder_will_do=True,
    )
    taken = load_stack(tmp_path / "out/model", cross=True).state_dict()
    assert has_cross_attention(tmp_path / "out/model") and all(torch.equal(taken[name], weight) for name, weight in wanted.items())


def test_a_cache_that_cannot_be_written_to_is_reported_with_its_variable(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HOME", str(tmp_path))

    def refused(*_, **__):
        raise OSError(errno.EROFS, "Read-only file system", str(tmp_path / "hub/models--o--n"))

    monkeypatch.setattr("huggingface_hub.snapshot_download", refused)
    with pytest.raises(InputError, match=r"backbone 'o/n': .*models--o--n: cannot be written: .*, or set HF_(HOME|HUB_CACHE) to another"):
        located("o/n", None)


@pytest.mark.parametrize("kind", ["bert", "xlm-roberta"])
def test_a_head_that_a_published_encoder_lacks_is_not_made_up(tmp_path, kind):
    """As encoders of sentences lack it: SGA would freeze a random one, and a conversion would fold it into the output layer."""
    start = small_encoder(tmp_path, kind)
    AutoModel.from_pretrained(start, add_pooling_layer=False).save_pretrained(tmp_path / "bare")
    load_tokenizer(start).save_pretrained(tmp_path / "bare")
    run(tmp_path, Backbone(model=str(tmp_path / "bare")), encoder_will_do=True, keep_head=True)
    made = (tmp_path / "out").rename(tmp_path / "made") / "model"
    (architecture,) = read_json(made / "config.json")["architectures"]
    assert architecture.endswith("Model") and not [
        name for name in load_file(made / "model.safetensors") if name.startswith(("cls.", "lm_head."))
    ]
    for model, head in ((made, "dropped"), (start, "folded")):
        said = run(tmp_path, Backbone(kind="converted", to="encoder-decoder"), start=model)
        assert said["head"] == head and ("head_explained" in said) == (head == "folded")
        assert read_json(tmp_path / "out/model/config.json")["tie_word_embeddings"] == (head == "dropped")
        run(tmp_path, Backbone(kind="converted", to="encoder"), start=model, encoder_will_do=True)
        (architecture,) = read_json(tmp_path / "out/model/config.json")["architectures"]
        assert architecture == ("XLMRobertaModel" if head == "dropped" else "XLMRobertaForMaskedLM")


def test_an_adapter_of_a_backbone_that_was_trained_does_not_stay_beside_another(tmp_path):
    (tmp_path / "out/adapter").mkdir(parents=True)
    (tmp_path / "out/adapter/crossgap.json").write_text("{}")
    run(tmp_path, Backbone(model=str(small_model(tmp_path))))
    assert not (tmp_path / "out/adapter").exists()
