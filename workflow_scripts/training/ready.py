"""ready: a backbone that was pretrained before and is kept in a folder, in half precision.

Pretraining the demo's backbone takes minutes on every machine and comes out a little different on each. So it is kept ready-made in
``resources/backbones``, with a description of all that it was made from. It is taken only where settings, languages and texts are the
same; otherwise the backbone is pretrained. The command makes such a folder from a backbone that was pretrained here.
"""

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workflow_scripts import plugins, registry
from workflow_scripts.stage import InputError, atomic, is_first_process, read_json, run, write_json
from workflow_scripts.storage import checksum
from workflow_scripts.training.settings import ROUNDING_ONLY

if TYPE_CHECKING:
    from workflow_scripts.training.pretraining_settings import Pretraining, Texts


def main(backbone: Path, output: Path) -> None:
    """Write the ready-made copy of `backbone`, a folder like ``results/backbones/bible``, into the folder `output`.

    Its weights are rounded to half precision, in which they take half the room. Raises `InputError` where the backbone was not
    pretrained in the run.
    """
    import torch
    from safetensors.torch import load_file, save_file

    report = read_json(backbone / "backbone.json")
    if "made_from" not in report:
        raise InputError(f"{backbone}: was not pretrained here; only a backbone of kind small or continued can be kept ready-made")
    output.mkdir(parents=True, exist_ok=True)
    for path in sorted((backbone / "model").glob("*.json")):
        _copy(path, output / path.name)
    weights = load_file(backbone / "model" / "model.safetensors")
    save_file({name: tensor.to(torch.float16) for name, tensor in weights.items()}, output / "model.safetensors", {"format": "pt"})
    _copy(backbone / "curve.tsv", output / "curve.tsv")
    kept = {key: value for key, value in report.items() if key not in ("provenance", "settings", "kind", "languages", *RAN_ON)}
    write_json(output / "ready.json", kept)


RAN_ON = ("device", "machine", "processes")
"""What ``backbone.json`` says of where a backbone was pretrained, which is not where a ready-made one is taken."""
_LATER: dict[tuple[str, str], Any] = {
    ("masking", "unit"): "piece",
    ("training", "decay"): "polynomial",
    ("training", "adapter"): None,
    ("training", "packed"): False,
    ("training", "too_long"): None,  # the ready-made ones were made when rows that were cut kept their end mark
}
"""Settings that came later → what they are where nothing else is chosen: a backbone is the same as before there were such."""


def made_from(
    block: "Pretraining",
    family: str,
    objective: str,
    texts: "Texts",
    seed: int,
    start: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Everything that decides the result of pretraining, except for rounding: settings, languages, seed, and the contents of all texts.

    `start` is what the model was made from that a continued backbone goes on from.
    """
    settings = asdict(block)
    text = settings.pop("text")
    # the files stand for the corpora; without any, a backbone is the same as before there were such settings
    about_bitext = {name: settings.pop(name) for name in ("bitext", "bitext_pairs", "temperature", "direction", "pivot")}
    del settings["ready"]
    about_veco = settings.pop("veco")
    if not settings["objective_settings"]:
        del settings["objective_settings"]
    for (part, name), usual in _LATER.items():
        if settings[part][name] == usual:
            del settings[part][name]
    for name in (*ROUNDING_ONLY, "precision"):
        del settings["training"][name]
    origin: dict[str, Any] = {
        "family": family,
        "objective": objective,
        "settings": settings,
        "languages": list(texts.languages),
        "seed": seed,
        "text": {code: "task" if text[code] == "task" else checksum(text[code]) for code in texts.languages if code in text},
        "task_text": sorted(map(checksum, texts.task_text)),
        "held_out": sorted(map(checksum, texts.held_out)),
    }
    if objective == "veco":  # which draws the languages of monolingual text by the temperature as well
        origin["settings"] |= {"veco": about_veco, "temperature": about_bitext["temperature"]}
    if texts.bitext:
        origin["settings"] |= about_bitext
        origin |= {"bitext": list(map(checksum, texts.bitext)), "bitext_dev": list(map(checksum, texts.bitext_dev))}
    if start:
        origin["start"] = start
    by_plugins = plugins.trained_by("objective", registry.entry("objective", objective), block.objective_settings)
    if by_plugins:
        origin["plugin"] = by_plugins.pop("objective_plugin")
    origin |= by_plugins | plugins.trained_by("family", registry.entry("family", family), None)
    return json.loads(json.dumps(origin))  # as it is read again: with lists in place of tuples


def differences(shipped: dict[str, Any], wanted: dict[str, Any]) -> list[str]:
    """What a ready-made model, of which `ready.json` tells this, was made from otherwise than `wanted`, by the names of `made_from`."""
    return [key for key in wanted if shipped["made_from"].get(key) != wanted[key]]


def take(ready: Path, wanted: dict[str, Any], output: Path, curve: Path) -> dict[str, Any] | None:
    """Write the ready-made model and its learning curve, and return what its report says; None where it was made from something else.

    `wanted` is what `made_from` says of the backbone that is asked for.
    """
    import torch
    from safetensors.torch import load_file, save_file

    from workflow_scripts.models.conversion import add_generator
    from workflow_scripts.models.veco import has_cross_attention

    shipped = read_json(ready / "ready.json")
    if differs := differences(shipped, wanted):
        print(f"{ready}: was made with other {', '.join(differs)}; the backbone is pretrained here", flush=True)
        return None
    if not is_first_process():
        return shipped
    output.mkdir(parents=True, exist_ok=True)
    for path in sorted(ready.glob("*.json")):
        if path.name != "ready.json":
            _copy(path, output / path.name)
    weights = load_file(ready / "model.safetensors")
    save_file({name: tensor.to(torch.float32) for name, tensor in weights.items()}, output / "model.safetensors", {"format": "pt"})
    if has_cross_attention(output):
        add_generator(output)
    _copy(ready / "curve.tsv", curve)
    return {
        **{key: value for key, value in shipped.items() if key != "provenance"},
        "ready": str(ready),
        "pretrained": shipped["provenance"],
    }


def _copy(source: Path, target: Path) -> None:
    with atomic(target, "wb") as file:
        file.write(source.read_bytes())


if __name__ == "__main__":
    run(main)
