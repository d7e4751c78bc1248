"""prompt_files: trained prompts in a file of some megabytes, a generator made of such a file and its backbone, and what writes with it.

The file is safetensors. Its metadata, under `crossgap`, is JSON: the settings of SGA, the name of the backbone, the checksum of its
weights, and what a piece sees of its row (`PromptedEncoder.sees`). Prompts mean nothing to other weights, so a backbone with another
checksum is refused. The checksum is that of the numbers, not of a file: it is the same in whatever format and split a model was stored.
"""

import contextlib
import json
import math
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from workflow_scripts.device import pick_device
from workflow_scripts.models.decoding import Decoding, Translate, computed_in, longest_text
from workflow_scripts.models.networks import load_network
from workflow_scripts.models.prompts import PromptedEncoder, check_encoder, check_reading, checksum_of
from workflow_scripts.models.refining import losses, write
from workflow_scripts.models.search import Hypothesis
from workflow_scripts.models.sga import BLOCK, FILE, SGA
from workflow_scripts.models.tokenisation import Codec
from workflow_scripts.stage import InputError, from_plain


def make_generator(
    encoder: Any, codec: Codec, settings: SGA, frozen: bool = True, length_width: int = 1, where: str = ""
) -> PromptedEncoder:
    """A generator of a masked language model and its codec, in which a class of lengths has `length_width` lengths.

    Raises as `check_encoder` and `check_reading` do; `where` names the model in messages.
    """
    check_encoder(encoder.config, codec, settings, where)
    blank = codec.tokenizer.get_vocab()[settings.blank]
    model = PromptedEncoder(encoder, settings, blank, codec.tokenizer.mask_token_id, losses, frozen, length_width)
    check_reading(model, where)
    return model


def read_prompts(path: Path) -> tuple[dict[str, torch.Tensor], dict[str, Any]]:
    """The weights in a file of prompts, and what it says of them; raises `InputError` for another kind of file."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, "pt") as file:
            metadata = json.loads((file.metadata() or {})["crossgap"])
            return {name: file.get_tensor(name) for name in file.keys()}, metadata  # noqa: SIM118 (it is no dictionary)
    except (OSError, SafetensorError, KeyError, ValueError) as error:
        raise InputError(f"{path}: is no file of prompts that Crossgap wrote ({type(error).__name__}: {error})") from None


def load_generator(folder: Path, codec: Codec, prompts: Path | None = None) -> PromptedEncoder:
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
    # what older files do not say: pieces were counted as the entry of their family says, and saw their whole row
    if (learnt := metadata.get("sees", {"first_position": codec.form.reserved_positions, "window": 0})) != model.sees:
        raise InputError(
            f"{path}: was trained by a version of Crossgap that counted the positions of a {model.config.model_type} in another way, or "
            f"left its sliding windows out ({learnt}, now {model.sees}); train it again"
        )
    if wrong := weights.keys() ^ {name for name in model.state_dict() if not name.startswith("encoder.")}:
        raise InputError(f"{path}: does not have the weights that its settings ask for ({', '.join(sorted(wrong))}); copy the file again")
    model.load_state_dict(weights, strict=False)  # the encoder's own are there
    return model


@contextlib.contextmanager
def with_generator(model: Path, codec: Codec, settings: Decoding, prompts: Path | None = None, seed: int = 1) -> Iterator[Translate]:
    """Translate by CTC or SGA. There is one text for each line, without a score; how often lines were denoised is printed at the end.

    Of the settings, those of the beam, `length_penalty` and `min_length` mean nothing here.
    """
    device = pick_device(settings.device)
    generator = load_generator(model, codec, prompts).to(device, dtype=computed_in(settings, device, codec.form))
    often = {"iterations": settings.iterations, "alignment_iterations": settings.alignment_iterations}
    denoised = Counter[int]()
    longest = longest_text(generator.config, settings)

    def translate(rows: list[list[int]], languages: tuple[str, str], n_best: int) -> list[list[Hypothesis]]:
        written = write(generator, rows, codec.tokenizer.pad_token_id, settings.batch_tokens, longest=longest, **often)
        denoised.update(each.iterations for each in written)
        texts = codec.decode([each.ids for each in written])
        return [[Hypothesis(math.nan, text, each.ended)] for text, each in zip(texts, written, strict=True)]

    yield Translate(codec, generator.longest_source, translate)
    print({"lines by how often they were denoised": dict(sorted(denoised.items()))})
