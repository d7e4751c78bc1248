"""comet: scores hypotheses with COMET (Rei et al. 2020), a model that reads source, hypothesis and reference.

COMET needs older libraries than the other stages (transformers<5, numpy<2), so it has its own environment. The module
`environment` makes it with pip from envs/comet.txt, or Snakemake from envs/comet.yaml with ``--sdm conda``. `score` restarts
itself in the Python of this environment; therefore this module imports only what is installed there as well.

A run does not fail because of COMET. Without network, environment or model, the output says why there are no scores, and
what to do about it.

Checkpoints are those of Lightning. PyTorch (from 2.6 on) reads them with `weights_only`. It refuses a file with any Python
object other than tensors and plain values, so no code from a checkpoint runs. A checkpoint has neither tokeniser nor
encoder configuration (`pretrained_model` in hparams.yaml, e.g. xlm-roberta-large); these come from the hub's cache or from
`encoder`.
"""

import json
import subprocess
import sys
import warnings
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Literal

from workflow_scripts.number_types import Positive
from workflow_scripts.stage import InputError, in_one_line, read_json, run, write_json
from workflow_scripts.storage import checksum
from workflow_scripts.text.files import read_lines

if TYPE_CHECKING:
    from comet.models import CometModel


@dataclass
class Comet:
    """Settings of COMET."""

    model: str = "Unbabel/wmt22-comet-da"
    """COMET model: a Hugging Face id, a .ckpt file, or a folder with `hparams.yaml` and `checkpoints/model.ckpt`. Most papers of 2020 to
    2022 use Unbabel/wmt20-comet-da, formerly wmt-large-da-estimator-1719. Scores of different models are on different scales."""
    revision: str | None = None
    """Commit or tag on the hub. Set it to make the run repeatable."""
    encoder: str | None = None
    """Folder with configuration and tokeniser of the checkpoint's encoder. Needed where the hub cannot be reached."""
    batch_size: Positive = 16
    """Sentences per batch. Affects only time and memory."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Device for computing; `auto` takes a GPU if there is one."""


RENAMED = {"wmt-large-da-estimator-1719": "wmt20-comet-da"}
"""Older name of a model → its name on the hub. COMET's maintainer: they are the same model (https://github.com/Unbabel/COMET/issues/47)."""


def same_model(name: str, other: str) -> bool:
    """Whether two names are of one model: an id of the hub, a folder or file of that name, or its name before COMET 1.0."""
    ends = [Path(each).name.removesuffix(".ckpt") for each in (name, other)]
    first, second = (RENAMED.get(end, end) for end in ends)
    return first == second


class Unavailable(Exception):
    """COMET cannot be run here; the message says why and what to do."""


def score(
    sources: Path,
    hypotheses: Path,
    references: Path,
    output: Path,
    *,
    environment: Path | None = None,
    threads: int = 0,
    settings: Comet = Comet(),
) -> None:
    """Write the score of each sentence and their mean, the score of the system; or the reason why there are none.

    Scores are computed in full precision; those of `comet-score` may differ in the third digit, because it uses half precision.

    Args:
        sources: Source sentences, one per line.
        hypotheses: Translations of them.
        references: Reference translations.
        output: JSON file to write.
        environment: File written by the module `environment`. Without it, COMET must be installed for the Python that runs this.
        threads: CPU threads; 0 leaves the choice to torch.
        settings: Which model to use.
    """
    made = read_json(environment) if environment else {"python": None, "reason": None}
    if made["python"] and not Path(made["python"]).exists():
        made = {"python": None, "reason": f"there is no {made['python']}; run snakemake with --forcerun comet_environment"}
    if made["python"]:
        paths: list[str | Path] = ["--sources", sources, "--hypotheses", hypotheses, "--references", references, "--output", output]
        rest = ["--threads", str(threads), "--settings", json.dumps(asdict(settings))]
        sys.exit(subprocess.run([made["python"], "-m", "workflow_scripts.evidence.comet", *paths, *rest]).returncode)
    sides = [list(read_lines(path)) for path in (sources, hypotheses, references)]
    lengths = [len(side) for side in sides]
    try:
        if len(set(lengths)) > 1:
            raise Unavailable(f"{hypotheses} has {lengths[1]} lines, {sources} {lengths[0]}, {references} {lengths[2]}; decode again")
        if not lengths[0]:
            raise Unavailable(f"{references} has no sentences")
        if made["reason"]:
            raise Unavailable(made["reason"])
        scores = _predict(sides, threads, settings)
    except Unavailable as reason:
        print(f"no COMET: {reason}", file=sys.stderr)
        scores = {"value": None, "segments": None, "signature": None, "reason": str(reason)}
    write_json(output, {"model": settings.model, **scores, "sentences": lengths[0], "settings": asdict(settings)})


def _predict(sides: list[list[str]], threads: int, settings: Comet) -> dict:
    """The scores of the sentences; `sides` are sources, hypotheses and references. Raises `Unavailable`."""
    try:
        from comet import __version__
    except ImportError as error:
        raise Unavailable(f"COMET is not installed for {sys.executable} ({error}); its packages are in envs/comet.txt") from None
    import torch

    from workflow_scripts.device import pick_device

    try:
        device = pick_device(settings.device)
    except InputError as error:
        raise Unavailable(str(error)) from None
    if threads:
        torch.set_num_threads(threads)
    checkpoint, version = find_checkpoint(settings)
    model = load_model(checkpoint, settings)
    try:
        predicted = model.predict(
            [dict(zip(("src", "mt", "ref"), sentence, strict=True)) for sentence in zip(*sides, strict=True)],
            batch_size=settings.batch_size,
            gpus=int(device.type == "cuda"),
            progress_bar=False,
        )
    except torch.cuda.OutOfMemoryError as error:
        way_out = f"lower comet.batch_size ({settings.batch_size}), then run snakemake with --forcerun comet"
        raise Unavailable(f"the GPU's memory did not suffice ({in_one_line(error)}); {way_out}") from None
    except MemoryError:
        raise  # Snakemake tries again with more memory
    except Exception as error:  # whatever COMET, Lightning and PyTorch raise
        raise Unavailable(f"COMET failed ({in_one_line(error)}); mend that and run snakemake with --forcerun comet") from None
    return {
        "value": predicted.system_score,
        "segments": predicted.scores,
        "signature": f"model:{settings.model}|revision:{version}|precision:fp32|version:{__version__}",
        "reason": None,
    }


def find_checkpoint(settings: Comet) -> tuple[Path, str]:
    """Path of the model's checkpoint, and its version: the hub's commit or the file's checksum. Raises `Unavailable`."""
    from huggingface_hub import snapshot_download

    path = Path(settings.model).absolute()
    if path.is_file():
        return path, f"sha256-{checksum(path)[:12]}"
    try:
        folder = path if path.is_dir() else Path(snapshot_download(settings.model, revision=settings.revision))
    except Exception as error:  # the hub's client raises a dozen kinds for: not there, no network, no access
        raise Unavailable(
            f"comet.model {settings.model!r} is neither a file or folder nor available from the Hugging Face hub ({in_one_line(error)}); "
            f"where there is network run `hf download {settings.model}`, then snakemake with --forcerun comet"
        ) from None
    checkpoint = folder / "checkpoints/model.ckpt"
    if not checkpoint.is_file():
        raise Unavailable(f"comet.model {settings.model!r}: there is no {checkpoint}; it is no COMET model, or not all of it is there")
    return checkpoint, f"sha256-{checksum(checkpoint)[:12]}" if folder == path else folder.name


def load_model(checkpoint: Path, settings: Comet) -> "CometModel":
    """Load a checkpoint; `settings.encoder`, if given, replaces the encoder that the checkpoint names. Raises `Unavailable`."""
    import yaml
    from comet import load_from_checkpoint

    encoder = None
    try:
        # COMET reads the file in this way; of Python objects only tuples are allowed
        hyperparameters = yaml.full_load((checkpoint.parents[1] / "hparams.yaml").read_text(encoding="utf-8"))
        encoder = hyperparameters["pretrained_model"]
        with TemporaryDirectory() as folder, warnings.catch_warnings():
            # COMET accepts checkpoints with missing weights, which would then be random
            warnings.filterwarnings("error", message="Found keys that are in the model state dict but not in the checkpoint")
            if not settings.encoder:
                return load_from_checkpoint(checkpoint)
            # COMET looks for changed hyperparameters in the folder above the checkpoint's
            (Path(folder) / "hparams.yaml").write_text(yaml.dump({**hyperparameters, "pretrained_model": settings.encoder}))
            link = Path(folder) / "checkpoints/model.ckpt"
            link.parent.mkdir()
            link.symlink_to(checkpoint)
            return load_from_checkpoint(link, reload_hparams=True)
    except MemoryError:
        raise  # as above
    except Exception as error:  # whatever Lightning, PyTorch, transformers and the hub's client raise
        way_out = (
            f"; if it lacks its encoder, run `hf download {encoder} '*.json' '*.model' '*.txt'` where there is network, or name a "
            "folder with these files as comet.encoder; then run snakemake with --forcerun comet"
        )
        raise Unavailable(f"comet.model {settings.model!r} cannot be loaded ({in_one_line(error)}){way_out if encoder else ''}") from None


if __name__ == "__main__":
    run(score)
