"""prompt_files: trained prompts in a file of some megabytes, a generator made of such a file and its backbone, and what writes with it.

The file is safetensors. Its metadata, under `crossgap`, is JSON: the settings of SGA, the name of the backbone and the checksum of its
weights. Prompts mean nothing to other weights, so a backbone with another checksum is refused. The checksum is that of the numbers, not of
a file: it is the same in whatever format and split a model was stored.
"""

import contextlib
import hashlib
import json
import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from workflow_scripts.device import pick_device
from workflow_scripts.models.decoding import Decoding, Translate, computed_in
from workflow_scripts.models.families import longest_output
from workflow_scripts.models.networks import load_network
from workflow_scripts.models.prompts import Generator, make_generator
from workflow_scripts.models.refining import write
from workflow_scripts.models.search import Hypothesis
from workflow_scripts.models.sga import BLOCK, FILE, SGA
from workflow_scripts.models.tokenisation import Codec
from workflow_scripts.stage import InputError, from_plain


def save_prompts(model: Generator, path: Path) -> None:
    """Write what a generator has besides its encoder."""
    from safetensors.torch import save_file

    metadata = {
        "backbone": model.backbone,
        "checksum": checksum_of(model.encoder),
        "frozen": model.frozen,
        "length_width": model.length_width,
        BLOCK: asdict(model.settings),
    }
    weights = {name: weight.contiguous().cpu() for name, weight in model.state_dict().items() if not name.startswith("encoder.")}
    save_file(weights, path, metadata={"format": "pt", "crossgap": json.dumps(metadata)})


def read_prompts(path: Path) -> tuple[dict[str, torch.Tensor], dict[str, Any]]:
    """The weights in a file of prompts, and what it says of them; raises `InputError` for another kind of file."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, "pt") as file:
            metadata = json.loads((file.metadata() or {})["crossgap"])
            return {name: file.get_tensor(name) for name in file.keys()}, metadata  # noqa: SIM118 (it is no dictionary)
    except (OSError, SafetensorError, KeyError, ValueError) as error:
        raise InputError(f"{path}: is no file of prompts that Crossgap wrote ({type(error).__name__}: {error})") from None


def load_generator(folder: Path, codec: Codec, prompts: Path | None = None) -> Generator:
    """The generator in a folder, or the one that a backbone's `folder` becomes by a file of `prompts`.

    Raises `InputError` where the prompts were trained with other weights.
    """
    path = prompts or folder / FILE
    weights, metadata = read_prompts(path)
    settings = from_plain(SGA, metadata[BLOCK])
    encoder = load_network(folder, "text", dropout=0.0, attention_dropout=0.0, seed=0, new_head=False)
    if (checksum := checksum_of(encoder)) != metadata["checksum"]:
        partner = f"the backbone {metadata['backbone']!r}" if metadata["frozen"] else "an encoder that was trained together with it"
        raise InputError(
            f"{path}: was trained with {partner}, whose weights have the checksum {metadata['checksum'][:16]}…; those in {folder} have "
            f"{checksum[:16]}…. Give the folder of {'that backbone' if metadata['frozen'] else 'the trained model'}"
        )
    model = make_generator(encoder, codec, settings, metadata["frozen"], metadata["length_width"], str(folder))
    model.backbone = metadata["backbone"]
    if wrong := weights.keys() ^ {name for name in model.state_dict() if not name.startswith("encoder.")}:
        raise InputError(f"{path}: does not have the weights that its settings ask for ({', '.join(sorted(wrong))}); copy the file again")
    model.load_state_dict(weights, strict=False)  # the encoder's own are there
    return model


def checksum_of(encoder: Any) -> str:
    """SHA-256 of the names and numbers (float32) of a model's weights; of weights that are shared, once."""
    digest = hashlib.sha256()
    for name, weight in sorted(encoder.named_parameters()):
        digest.update(f"{name}{tuple(weight.shape)}".encode())
        digest.update(weight.detach().to("cpu", torch.float32).contiguous().numpy().data)
    return digest.hexdigest()


@contextlib.contextmanager
def with_generator(model: Path, codec: Codec, settings: Decoding, prompts: Path | None = None, seed: int = 1) -> Iterator[Translate]:
    """Translate by CTC or SGA. There is one text for each line, without a score; how often lines were denoised is told at the end.

    Of the settings, those of the beam, `length_penalty` and `min_length` mean nothing here.
    """
    device = pick_device(settings.device)
    generator = load_generator(model, codec, prompts).to(device, dtype=computed_in(settings, device))
    often = {"iterations": settings.iterations, "alignment_iterations": settings.alignment_iterations}
    denoised = Counter[int]()
    longest = min(settings.max_length, longest_output(generator.config))

    def translate(rows: list[list[int]], languages: tuple[str, str], n_best: int) -> list[list[Hypothesis]]:
        written = write(generator, rows, codec.tokenizer.pad_token_id, settings.batch_tokens, longest=longest, **often)
        denoised.update(each.iterations for each in written)
        return [[Hypothesis(math.nan, text)] for text in codec.decode([each.ids for each in written])]

    yield Translate(codec, generator.longest_source, translate)
    print({"lines by how often they were denoised": dict(sorted(denoised.items()))})
