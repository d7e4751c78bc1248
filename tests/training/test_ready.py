"""A backbone that is kept ready-made, and the one that is shipped."""

import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
import yaml
from safetensors.torch import load_file
from snakemake.utils import update_config
from test_workflow import snakemake
from tiny_models import manual_pairs

from workflow_scripts import plugins
from workflow_scripts.run import backbone_inputs, config
from workflow_scripts.run.jobs import Job
from workflow_scripts.stage import InputError, read_json, write_json
from workflow_scripts.tasks.plan import Plans
from workflow_scripts.training import backbone, ready
from workflow_scripts.training.backbone import Backbone
from workflow_scripts.training.pretraining import pretrain
from workflow_scripts.training.pretraining_settings import Pretraining, Texts
from workflow_scripts.training.settings import Training
from workflow_scripts.training.small import Small, build_model


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with texts and a backbone that was pretrained on them, and what makes another one of other settings."""
    folder = tmp_path_factory.mktemp("ready")
    texts = {}
    for code, lines in zip(("de", "en"), manual_pairs(400), strict=True):
        texts[code] = folder / f"text.{code}"
        texts[code].write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    (folder / "held_out").write_text("Nothing of the kind.\n", encoding="utf-8")

    def make(name: str, copy: Path | None = None, training: dict | None = None, seed: int = 1, **changes) -> Path:
        few = {"updates": 4, "batch_tokens": 400, "warmup_updates": 1, "max_length": 64, "evaluate_every": 2, "checkpoint": "last"}
        small = Small(
            text={code: str(path) for code, path in texts.items()},
            training=Training(**few | (training or {})),
            **{"vocabulary": 300, "d_model": 16, "layers": 1, "heads": 2, "ffn": 32, "dev_lines": 20, **changes},
        )
        small.ready = copy and str(copy)
        output = folder / name
        backbone.main(
            output / "model",
            output / "backbone.json",
            output / "curve.tsv",
            languages=("de", "en"),
            held_out=(folder / "held_out",),
            checkpoints=output / "checkpoints",
            settings=Backbone("small", small=small, seed=seed),
        )
        return output

    pretrained = make("pretrained")
    ready.main(pretrained, folder / "copy")
    return folder, pretrained, make


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / "model/model.safetensors")


def test_another_seed_is_another_backbone_with_the_same_pieces(made):
    folder, pretrained, make = made
    other = make("other", folder / "copy", seed=2)
    assert (other / "checkpoints").exists()  # the copy of seed 1 was not taken
    own, theirs = weights(pretrained), weights(other)
    assert own.keys() == theirs.keys() and not any(torch.equal(own[name], theirs[name]) for name in own if name.endswith("q_proj.weight"))
    assert read_json(other / "backbone.json")["made_from"]["seed"] == 2
    assert (other / "model/tokenizer.json").read_bytes() == (pretrained / "model/tokenizer.json").read_bytes()


def test_the_copy_is_the_backbone_up_to_half_precision(made):
    folder, pretrained, make = made
    taken = make("taken", folder / "copy")
    assert not (taken / "checkpoints").exists()  # nothing was trained
    own, copied = weights(pretrained), weights(taken)
    assert own.keys() == copied.keys() and all(tensor.dtype == torch.float32 for tensor in copied.values())
    for name, tensor in own.items():
        torch.testing.assert_close(copied[name], tensor, rtol=2**-10, atol=2**-24)
    assert (taken / "curve.tsv").read_bytes() == (pretrained / "curve.tsv").read_bytes()
    assert (taken / "model/tokenizer.json").read_bytes() == (pretrained / "model/tokenizer.json").read_bytes()
    said, before = read_json(taken / "backbone.json"), read_json(pretrained / "backbone.json")
    assert said["ready"] == str(folder / "copy") and said["denoising_loss"] == before["denoising_loss"]
    # where it was pretrained is not where the copy is taken, which costs nothing
    assert (before["device"], before["processes"]) == ("cpu", 1) and not {"device", "machine", "processes"} & said.keys()


def test_a_copy_is_taken_whatever_was_looked_at_meanwhile(made):
    folder, _, make = made
    taken = make("watched", folder / "copy", training={"loss_every": 1, "log_every": 1})
    assert read_json(taken / "backbone.json")["ready"] == str(folder / "copy")


def test_a_copy_that_was_made_from_something_else_is_not_taken(made, capsys):
    folder, _, make = made
    wider = make("wider", folder / "copy", ffn=48)
    assert "ready" not in read_json(wider / "backbone.json")
    assert "was made with other settings; the backbone is pretrained here" in capsys.readouterr().out
    assert weights(wider)["model.encoder.layers.0.fc1.weight"].shape[0] == 48


def test_a_backbone_that_goes_on_from_another_one_is_kept_as_well(made, tmp_path, capsys):
    folder, pretrained, make = made
    training = Training(updates=2, batch_tokens=400, warmup_updates=1, max_length=64, evaluate_every=2, checkpoint="last")
    text = {code: str(folder / f"text.{code}") for code in ("de", "en")}

    def go_on(start: Path, name: str, copy: Path | None = None) -> dict:
        output = tmp_path / name
        backbone.main(
            output / "model",
            output / "backbone.json",
            output / "curve.tsv",
            languages=("de", "en"),
            start=start / "model",
            held_out=(folder / "held_out",),
            checkpoints=output / "checkpoints",
            settings=Backbone(
                "continued", continued=Pretraining(text=text, dev_lines=20, training=training, ready=copy and str(copy)), from_="pretrained"
            ),
        )
        return read_json(output / "backbone.json")

    assert "ready" not in go_on(pretrained, "further")
    ready.main(tmp_path / "further", tmp_path / "copy")
    # the same backbone in another folder, as in another clone: its start is where it is now
    shutil.copytree(pretrained, tmp_path / "elsewhere")
    assert go_on(tmp_path / "elsewhere", "there", tmp_path / "copy")["start"] == str(tmp_path / "elsewhere/model")
    said = go_on(pretrained, "taken", tmp_path / "copy")
    assert said["ready"] == str(tmp_path / "copy") and said["start"] == str(pretrained / "model")
    # from another model it is another backbone
    assert "ready" not in go_on(make("narrower", ffn=24), "other", tmp_path / "copy")
    assert "was made with other start; the backbone is pretrained here" in capsys.readouterr().out


def test_a_model_from_elsewhere_is_no_backbone_to_keep(made, tmp_path):
    _, pretrained, _ = made
    shutil.copytree(pretrained, tmp_path / "hub")
    report = read_json(pretrained / "backbone.json")
    del report["made_from"]
    write_json(tmp_path / "hub/backbone.json", report)
    with pytest.raises(InputError, match="was not pretrained here"):
        ready.main(tmp_path / "hub", tmp_path / "copy")


def test_plugins_and_the_files_that_their_settings_name_are_what_a_backbone_is_made_from(monkeypatch, tmp_path):
    def origin(words: str = "a") -> dict:
        (tmp_path / "words").write_text(words, "utf-8")
        block = Pretraining(objective_settings={"words": str(tmp_path / "words")})
        return ready.made_from(block, *MBART, Texts(("de",)), 1)

    assert not {"plugin", "objective_files", "family_plugin"} & origin().keys()
    known = ready.registry.entry
    monkeypatch.setattr(ready.registry, "entry", lambda *named: replace(known(*named), plugin="x.py"))
    found = []
    for sha256, words in (("1", "a"), ("2", "a"), ("2", "b")):
        monkeypatch.setattr(plugins, "_PLUGINS", {"x.py": plugins.Plugin("x.py", (), (), (), sha256)})
        found.append(origin(words))
    assert [(each["plugin"], each["family_plugin"]) for each in found] == [("1", "1"), ("2", "2"), ("2", "2")]
    assert found[0]["objective_files"] == found[1]["objective_files"] != found[2]["objective_files"]


MBART = ("mbart", "denoising")


@pytest.mark.parametrize(
    "recipe, kinds", [(None, {"bible": MBART}), ("config/small-sga.yaml", {"manual-xlmr": ("xlmr", "mlm"), "manual-mbart": MBART})]
)
def test_a_recipe_takes_what_is_shipped(recipe, kinds, tmp_path):
    """Settings and text are still those of the copy, to what the recipe holds out; otherwise every user would pretrain it again."""
    settings = yaml.safe_load(Path("config.yaml").read_text(encoding="utf-8"))
    if recipe:
        update_config(settings, yaml.safe_load(Path(recipe).read_text(encoding="utf-8")))
    loaded = config.load(settings)
    jobs = [Job(Plans(loaded), SimpleNamespace(backbone=name)) for name in kinds]
    texts = [(backbone_inputs.backbone_task_text(job), backbone_inputs.backbone_held_out(job)) for job in jobs]
    wanted = sorted({path for both in texts for paths in both for path in paths})
    snakemake(tmp_path, "--cores", "1", *wanted, "--configfile", "config.yaml", *([recipe] if recipe else []))
    for name, job, both in zip(kinds, jobs, texts, strict=True):
        block = loaded.backbones[name]
        record = read_json(Path(block.small.ready) / "ready.json")
        task_text, held_out = (tuple(tmp_path / path for path in paths) for paths in both)
        languages = tuple(backbone_inputs.backbone_languages(job))
        origin = ready.made_from(block.small, *kinds[name], Texts(languages, task_text, held_out), block.seed)
        assert not ready.differences(record, origin), name
        if not recipe:  # the others are made in the same way, which takes half a minute for each
            own = made_vocabulary(block, languages, task_text, held_out)
            shipped = pieces(Path(block.small.ready) / "tokenizer.json")
            # SentencePiece rounds as well
            assert len(own & shipped) > 0.98 * len(own | shipped), own ^ shipped


def made_vocabulary(block: Backbone, languages: tuple[str, ...], task_text: tuple[Path, ...], held_out: tuple[Path, ...]) -> set[str]:
    """The pieces that the backbone's command learns before it pretrains."""

    class Learnt(Exception):
        pass

    def stop_after_the_vocabulary(lines: list[str], folder: Path) -> Path:
        start = build_model(block.small, block.family or "mbart", languages, lines, task_text, folder, block.seed)
        raise Learnt(pieces(start / "tokenizer.json"))

    with pytest.raises(Learnt) as learnt:
        pretrain(block.small, block.objective, Texts(languages, task_text, held_out), stop_after_the_vocabulary, "small", None)
    return learnt.value.args[0]


def pieces(tokenizer: Path) -> set[str]:
    return {piece for piece, _ in read_json(tokenizer)["model"]["vocab"]}


@pytest.mark.parametrize("shipped", sorted(Path("resources/backbones").iterdir()), ids=lambda path: path.name)
def test_what_is_shipped_has_learnt(shipped):
    record, tensors = read_json(shipped / "ready.json"), load_file(shipped / "model.safetensors")
    # a bias that is not trained is in the file, too
    assert sum(tensor.numel() for key, tensor in tensors.items() if key != "final_logits_bias") == record["parameters"]
    assert all(torch.isfinite(tensor).all() for tensor in tensors.values())
    assert record[f"{record['objective']}_loss"] < 0.6 * record["unigram_loss"]
