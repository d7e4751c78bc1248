"""A generator of a plugin: how its phase is trained, what its model says of itself, and what is wrong with it in a configuration."""

import json
import re
from dataclasses import dataclass
from pathlib import Path

import pytest
from configurations import changed
from phases import TINY, finetune, phase_files
from safetensors.torch import load_file
from tiny_models import small_model

from workflow_scripts import plugins, registry
from workflow_scripts.models import decoding
from workflow_scripts.report.experimental_setup import written
from workflow_scripts.run import arms
from workflow_scripts.run.config import load
from workflow_scripts.run.jobs import Job
from workflow_scripts.stage import InputError, read_json
from workflow_scripts.tasks.plan import Plans
from workflow_scripts.training.generator import register_generator
from workflow_scripts.training.loop import load_model
from workflow_scripts.training.method import Method
from workflow_scripts.training.settings import Training
from workflow_scripts.training.training import _method_of


@dataclass
class Frozen:
    """Settings of a generator."""

    part: str = "encoder"
    """The part of the model that stays as it is."""


def frozen(settings):
    """A phase that trains all but a part of the model."""

    def opened(*given):
        network = load_model(*given)
        network.get_submodule(f"model.{settings.part}.layers").requires_grad_(False)
        return network

    return Method(load=opened)


@pytest.fixture
def half(door, monkeypatch):
    """The registry with a generator as a plugin's."""
    monkeypatch.setattr(
        plugins, "_PLUGINS", {"half.py": plugins.Plugin("half.py", (Path(__file__),), (("generator", "half"),), (), sha256="f00d" * 16)}
    )
    monkeypatch.setattr(registry, "LOADING", ["half.py"])
    register_generator("half", learn=frozen, label="half a model", settings=Frozen)
    registry.LOADING.clear()


def test_a_phase_is_trained_as_the_generator_says_and_its_model_knows_it(half, tmp_path, monkeypatch):
    folder, _ = phase_files(tmp_path)
    start = small_model(tmp_path)
    settings = Training(**{**TINY, "updates": 2, "evaluate_every": 2, "checkpoint": "last"})
    finetune(folder, start, tmp_path / "out", settings, generator="half", generator_settings='{"part": "decoder"}')
    before, after = (load_file(where / "model.safetensors") for where in (start, tmp_path / "out/model"))
    same = {name for name in after if name in before and (before[name] == after[name]).all()}
    assert any("decoder.layers" in name for name in same) and not any("encoder.layers" in name and "weight" in name for name in same)
    said = read_json(tmp_path / "out/training.json")
    assert said["generator"] == "half" and said["generator_settings"] == {"part": "decoder"} and len(said["generator_plugin"]) == 64
    assert "written by half a model" in written(said)
    # it writes by an engine, and without the plugin one line says which is missing
    options = {"languages": ("de", "en"), "threads": 1, "settings": decoding.Decoding(max_length=4, beam_size=1)}
    decoding.main(tmp_path / "out/model", folder / "dev.de", tmp_path / "hyp", **options)
    assert len((tmp_path / "hyp").read_text("utf-8").splitlines()) == len((folder / "dev.de").read_text("utf-8").splitlines())
    monkeypatch.setattr(plugins, "_PLUGINS", {})
    del registry._ENTRIES["generator"]["half"]
    with pytest.raises(InputError, match=r"out/model: was trained with a generator of the plugin half\.py: .* name the plugin"):
        decoding.main(tmp_path / "out/model", folder / "dev.de", tmp_path / "hyp", **options)


def test_a_file_that_the_settings_name_decides_what_is_trained(half, tmp_path):
    found = []
    for content in ("a", "b"):
        (tmp_path / "part").write_text(content)
        found.append(_method_of(registry.entry("generator", "half"), json.dumps({"part": str(tmp_path / "part")})).about)
    assert found[0] != found[1] and found[0]["generator_plugin"] == found[1]["generator_plugin"]
    assert "generator_files" not in _method_of(registry.entry("generator", "half"), '{"part": "decoder"}').about


def test_the_generator_of_the_documentation_trains_the_decoder_alone(door, tmp_path):
    (code,) = re.findall(
        r"^```python\n(from crossgap import generator.*?)^```", Path("docs/extend.md").read_text(encoding="utf-8"), flags=re.M | re.S
    )
    exec(code, {})
    method = registry.entry("generator", "half").learn(None)
    network = method.load(small_model(tmp_path), Training(), 1, False)
    learns = {name for name, weight in network.named_parameters() if weight.requires_grad}
    assert learns and not any(".encoder." in name or "shared" in name for name in learns)
    assert any(".decoder.layers." in name for name in learns)


def configured(**phase):
    raw = changed("arms/half", [{"data": "task", "updates": 4200, **phase}])
    raw["run"]["arms"] = ["finetune", "half"]
    return raw


class Wildcards(dict):
    """The wildcards of a job."""

    __getattr__ = dict.__getitem__


def test_jobs_that_use_it_read_its_file_and_no_others(half):
    config = load(configured(generator="half", generator_settings={"part": "decoder"}))
    mine, other = (Wildcards(experiment="help-de-en", arm=arm, seed="1", testset="pages") for arm in ("half", "finetune"))
    assert arms.task_flags(Job(Plans(config), mine)) == ["--generator", "half", "--generator-settings", '{"part": "decoder"}']
    assert arms.generator_plugin(Job(Plans(config), mine)) == arms.writing_plugin(Job(Plans(config), mine)) == {"plugin": [__file__]}
    assert arms.generator_plugin(Job(Plans(config), other)) == arms.writing_plugin(Job(Plans(config), other)) == {}
    assert arms.speed_plugin(Job(Plans(config), mine)) == {"plugin": [__file__]}


@pytest.mark.parametrize(
    ("phase", "said"),
    [
        ({"generator": "halves"}, "input should be 'autoregressive', 'sga', 'ctc' or 'half'"),
        ({"generator": "half", "generator_settings": {"parts": "decoder"}}, "arms.half.generator_settings: 'parts' is not defined"),
        ({"generator": "half", "sga": {"prompt_length": 3}}, "arms.half.sga: is for phases with generator: sga or ctc"),
        ({"generator_settings": {"part": "decoder"}}, "arms.half.generator_settings: is for phases with generator: half"),
    ],
)
def test_one_clear_line_for_each_mistake(half, phase, said):
    with pytest.raises(InputError) as error:
        load(configured(**phase))
    assert said in str(error.value)
