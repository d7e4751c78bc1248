"""folders: whether a folder is a model in Hugging Face's format whose files are whole; where it is not, what it is instead, and what to do.

All that loads a model asks here, and so does preflight. Nothing but the beginnings of files is read.
"""

import json
import zipfile
from pathlib import Path
from typing import Any

from workflow_scripts.models.foreign_code import check_code
from workflow_scripts.stage import InputError, in_one_line
from workflow_scripts.storage import refused_file

WEIGHTS = ("model.safetensors", "pytorch_model.bin")
"""The files of a model's weights, as transformers looks for them."""
INDEX = ".index.json"
"""What is added to their names where they are in several parts, which the index then names."""
TOKENIZER_FILES = ("tokenizer.json", "sentencepiece.bpe.model", "vocab.txt")
"""One of these has the pieces of a model's vocabulary."""
_POINTER = b"version https://git-lfs"
_OTHERS = ("*.gguf", "*.h5", "*.msgpack", "*.onnx", "*.ckpt", "*.pt", "*.pth", "*.safetensors", "*.bin")


def check_folder(folder: Path) -> None:
    """Raise `InputError` for a folder without ``config.json``, one whose files git LFS has not fetched, and code that is not trusted."""
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder; a model in Hugging Face's format is needed")
    for path in sorted(folder.iterdir()):
        if path.is_file() and path.stat().st_size < 1024 and path.read_bytes().startswith(_POINTER):
            raise InputError(
                f"{path}: is a pointer of git LFS in the place of the file; install git-lfs and run `git lfs pull` there, or download the "
                "model with `hf download`"
            )
    if not (folder / "config.json").exists() or not (folder / "config.json").stat().st_size:
        there = "no config.json is there" if any(folder.iterdir()) else "the folder is empty"
        raise InputError(f"{folder}: {there}; {_instead(folder)}")
    check_code(folder, _read(folder / "config.json"))


def check_free(folder: Path) -> None:
    """Raise `InputError` where a model is to be written and there are files: the whole folder would be replaced, and they would be lost."""
    if not folder.name or folder.is_file() or (folder.is_dir() and any(folder.iterdir())):
        raise InputError(f"{folder}: is there already, and a model would take the place of all that is in it; name a new folder")


def check_replaceable(folder: Path) -> None:
    """Raise `InputError` as `check_free` does, unless the folder has a model: that of an earlier job is replaced."""
    if not (folder.name and (folder / "config.json").is_file()):
        check_free(folder)


def check_weights(folder: Path) -> None:
    """Raise `InputError` for a folder without weights, for files of weights that are cut off, and for parts that are not there."""
    from safetensors import SafetensorError, safe_open

    check_folder(folder)
    if quantised := _read(folder / "config.json").get("quantization_config"):
        kind = quantised.get("quant_method", "of few bits") if isinstance(quantised, dict) else "of few bits"
        raise InputError(f"{folder}: its weights are quantised ({kind}), and cannot be trained; take the model that they were made from")
    if not any((folder / f"{name}{end}").exists() and (folder / f"{name}{end}").stat().st_size for name in WEIGHTS for end in ("", INDEX)):
        what = "weights (model.safetensors or pytorch_model.bin, or their .index.json)"
        others = sorted({path.name for pattern in _OTHERS for path in folder.glob(pattern) if path.stat().st_size})
        there = f", only {', '.join(others[:3])}" if others and not (folder / "adapter_config.json").exists() else ""
        raise InputError(f"{folder}: no {what} is there{there}; {_instead(folder)}")
    for path in sorted(folder.glob("*.safetensors")):
        try:
            with safe_open(path, "np"):
                pass
        except SafetensorError as error:
            raise InputError(f"{path}: is no whole file of weights ({error}); download or copy the model again") from None
    for path in sorted(folder.glob("pytorch_model*.bin")):
        with path.open("rb") as file:
            old = file.read(1) == b"\x80"  # pickled as a whole, as by torch before 1.6
        if not (old or zipfile.is_zipfile(path)):
            raise InputError(f"{path}: is no whole file of weights; download or copy the model again")
    for index in (path for name in WEIGHTS if (path := folder / (name + INDEX)).exists()):
        if lost := sorted(part for part in parts_in(index) if not (folder / part).exists()):
            raise InputError(f"{index}: {', '.join(lost)} is not there; download or copy the model again")


def parts_in(index: Path) -> set[str]:
    """The files that an index of weights names. Raises `InputError` where it is none."""
    try:
        return {*json.loads(index.read_text(encoding="utf-8"))["weight_map"].values()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise InputError(f"{index}: is no index of weights; download or copy the model again") from None


def check_tokenizer(folder: Path, files: tuple[str, ...] = TOKENIZER_FILES) -> None:
    """Raise `InputError` where no tokenizer is there, none of these `files`.

    transformers makes an empty one of nothing, to which all text is unknown.
    """
    if not any((folder / name).exists() and (folder / name).stat().st_size for name in files):
        what = f"no tokenizer ({' or '.join(files)}) is there"
        if (folder / "trainer_state.json").exists():
            raise InputError(
                f"{folder}: {what}, as it is a checkpoint of transformers' Trainer; copy the tokenizer's files there from the model that "
                "the training started from"
            )
        raise InputError(f"{folder}: {what}; download or copy the model again")


def _instead(folder: Path) -> str:
    """What a folder is that is no model as a whole, and what to do."""
    if (adapter := folder / "adapter_config.json").exists():
        base = _read(adapter).get("base_model_name_or_path") or "another model"
        return (
            f"it is an adapter of {base}, without that model's weights; merge the two "
            f"(`python -m workflow_scripts.training.adapter --adapter {folder} --output NEW`; --base names another copy of the model), and "
            "name NEW"
        )
    if (folder / "snapshots").is_dir():
        inside = _snapshot(folder)
        said = "it is a model's folder in the Hugging Face cache"
        return f"{said}; name the folder of its files, {inside}" if inside else f"{said}, without files; run `hf download` again"
    if any(folder.glob("*.gguf")):
        return "it has GGUF, llama.cpp's form for a model in use, which is not trained; take the model that it was made from"
    # a checkpoint's number tells which is the newest
    models = sorted((path.parent for path in folder.glob("*/config.json")), key=lambda path: (len(path.name), path.name))
    what = ""
    if any((folder / name).exists() for name in ("trainer_state.json", "optimizer.pt")):
        what = "it is a checkpoint of transformers' Trainer, "
    elif any(path.name.startswith("checkpoint-") for path in models):
        what = "it is a folder of the Trainer's checkpoints, "
    if models:
        return f"{what or 'it holds other folders, '}and a model is in {models[-1]}; name that"
    if what:
        return f"{what}without the model itself; give the folder that `save_model` has written"
    return "download or copy the model again"


def _snapshot(folder: Path) -> Path | None:
    """The folder of files in a model's folder of the cache: that of the branch `main`, otherwise the newest."""
    main = folder / "refs" / "main"
    named = folder / "snapshots" / main.read_text(encoding="utf-8").strip() if main.is_file() else None
    if named and (named / "config.json").exists():
        return named
    there = sorted((path.parent for path in folder.glob("snapshots/*/config.json")), key=lambda path: path.stat().st_mtime)
    return there[-1] if there else None


def _read(path: Path) -> dict[str, Any]:
    try:
        read = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return read if isinstance(read, dict) else {}


def licence_of(folder: Path) -> dict[str, Any]:
    """What a model's card, or else its ``config.json``, says of the licence (`license`, `license_name`, `license_link`); {} where they say
    nothing."""
    import yaml

    card = folder / "README.md"
    text = card.read_text(encoding="utf-8", errors="replace") if card.is_file() else ""
    try:
        said = yaml.safe_load(text.split("---")[1]) if text.startswith("---") else None
    except yaml.YAMLError:
        said = None
    for each in (said, _read(folder / "config.json")):
        if isinstance(each, dict) and each.get("license"):
            return {key: each[key] for key in ("license", "license_name", "license_link") if each.get(key)}
    return {}


def accept_first(model: str) -> str:
    """What a user must do before the hub hands out a model with a licence to accept."""
    return f"its licence must be accepted first: do so on https://huggingface.co/{model}, then run `hf auth login`"


def located(model: str, revision: str | None) -> tuple[str, str | None]:
    """The folder of a model, downloaded from the hub if need be, and the commit of the hub's; raises `InputError` where there is none."""
    if Path(model).is_dir():
        return model, None
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import GatedRepoError

    try:
        local = snapshot_download(model, revision=revision, ignore_patterns=["*.msgpack", "*.h5", "*.ot", "rust_model*"])
    except Exception as error:  # the hub's client raises many kinds of errors: model not there, no network, no access
        if isinstance(error, GatedRepoError):
            raise InputError(f"backbone {model!r}: {accept_first(model)}") from None
        if isinstance(error, OSError) and (said := refused_file(error)):
            raise InputError(f"backbone {model!r}: {said}") from None
        raise InputError(
            f"backbone {model!r} is neither a folder nor available from the Hugging Face hub ({in_one_line(error)}); where there "
            f"is network run `hf download {model}`, with the same HF_HOME, then set HF_HUB_OFFLINE=1"
        ) from None
    return local, Path(local).name
