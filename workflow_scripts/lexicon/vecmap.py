"""vecmap: maps the embeddings of two languages with VecMap's own program, for users who have it.

VecMap (https://github.com/artetxem/vecmap) is the implementation by the authors of the mapping method. Its licence
is GPL-3.0 and it is on no package registry, so it is neither shipped nor imported here. `mapping.engine: vecmap`
runs its `map_embeddings.py` as a process of its own, from a clone that the user names:

1. Write both embeddings as word2vec text, and the dictionary if there is one, into a temporary folder.
2. Run `map_embeddings.py` with the options for the mode (`options`).
3. Read the mapped embeddings.

The mapping is then judged like our own (`mapping.map_once`).
"""

from __future__ import annotations

import importlib.util
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from workflow_scripts.lexicon.vectors import read_vectors, write_vectors
from workflow_scripts.stage import InputError

RECOMMENDED = (
    "--normalize unit center unit --whiten --src_reweight 0.5 --trg_reweight 0.5 --src_dewhiten src --trg_dewhiten trg "
    "--self_learning --vocabulary_cutoff 20000 --csls 10"
)
"""The settings that VecMap recommends and that its options `--identical` and `--unsupervised` stand for (its README). There is no such
option for numerals, so they are written out."""


class Program(NamedTuple):
    """VecMap's program, and how it is to be run."""

    clone: str | None = None
    """The folder that VecMap is in; if it is None, the environment variable VECMAP names the folder."""
    more_options: str = ""
    """Options beside those for the mode and the seed, as on a command line."""
    device: str = "auto"
    """Whether it computes on a GPU: `auto` does if the vectors are there and CuPy is installed, `cuda` insists on it, `cpu` does not."""


def map_embeddings(
    program: Program,
    words_a: list[str],
    a: torch.Tensor,
    words_b: list[str],
    b: torch.Tensor,
    *,
    start: str,
    dictionary: list[tuple[str, str]],
    seed: int,
) -> tuple[torch.Tensor, torch.Tensor]:
    """`a` and `b` (words × dimensions) in one space, by VecMap.

    `start` is a `mapping.mode`, `dictionary` the pairs of words for the modes that start from one.

    Raises `InputError` if there is no VecMap, if it fails, or if it does not return the same words.
    """
    script = find_program(program.clone)
    with tempfile.TemporaryDirectory(prefix="vecmap-") as name:
        folder = Path(name)
        inputs, outputs = ([folder / f"{side}.{what}.vec" for side in "ab"] for what in ("input", "output"))
        for path, words, vectors in zip(inputs, (words_a, words_b), (a, b), strict=True):
            write_vectors(path, words, vectors.cpu().numpy())
        pairs = folder / "dictionary"
        pairs.write_text("".join(f"{x} {z}\n" for x, z in dictionary), encoding="utf-8")
        on_gpu = program.device == "cuda" or (program.device == "auto" and a.is_cuda and importlib.util.find_spec("cupy"))
        more = [*_split(program.more_options), *(["--cuda"] if on_gpu else [])]
        # `--seed` stands last, since `--normalize` would take the files for its own values
        line = [sys.executable, script, *options(start, pairs), *more, "--seed", seed, *inputs, *outputs]
        _run([str(part) for part in line], folder, threads=torch.get_num_threads())
        mapped = [_read(path, words) for path, words in zip(outputs, (words_a, words_b), strict=True)]
    mapped_a, mapped_b = (torch.from_numpy(side).to(a.device) for side in mapped)
    return mapped_a, mapped_b


def _split(more_options: str) -> list[str]:
    try:
        return shlex.split(more_options)
    except ValueError as error:
        raise InputError(f"mapping.vecmap_options: {more_options!r} is no part of a command line ({error})") from None


def find_program(clone: str | None) -> Path:
    """VecMap's `map_embeddings.py` in the folder `clone`, or in `$VECMAP`; raises `InputError` if it is not there."""
    named = clone or os.environ.get("VECMAP")
    way_out = (
        "get VecMap with `git clone https://github.com/artetxem/vecmap`, and name its folder as mapping.vecmap "
        "or in the environment variable VECMAP; or take mapping.engine: own"
    )
    if not named:
        raise InputError(f"mapping.engine vecmap: no folder of VecMap is named; {way_out}")
    program = Path(named).expanduser() / "map_embeddings.py"
    if not program.is_file():
        raise InputError(f"mapping.engine vecmap: {program} is not there; {way_out}")
    return program.resolve()


def options(start: str, dictionary: Path) -> list[str]:
    """The options of `map_embeddings.py` for a `mapping.mode`."""
    return {
        "unsupervised": ["--unsupervised"],
        "identical": ["--identical"],
        "numerals": ["--init_numerals", *RECOMMENDED.split()],
        "semi_supervised": ["--semi_supervised", str(dictionary)],
        "supervised": ["--supervised", str(dictionary)],
    }[start]


def _run(line: list[str], folder: Path, threads: int) -> None:
    print(f"vecmap: {shlex.join(line)}", flush=True)
    cores = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), str(threads))
    log = folder / "log"
    with open(log, "w", encoding="utf-8") as file:
        # without our PYTHONPATH, since VecMap has modules with names as common as `embeddings`, which lie beside its program
        surroundings = {**os.environ, **cores, "PYTHONPATH": "", "PYTHONSAFEPATH": ""}
        done = subprocess.run(line, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT, env=surroundings, cwd=folder)
    output = log.read_text(encoding="utf-8", errors="replace")
    print(output, end="", flush=True)
    if done.returncode:
        last = " | ".join([part.strip() for part in output.splitlines() if part.strip()][-_LAST_LINES:])
        raise InputError(f"VecMap ({line[1]}) failed with exit status {done.returncode}; its last lines: {last or '(none)'}")


_LAST_LINES = 5
"""So many lines of a failed VecMap stand in the error; all of them stand in the log."""


def _read(path: Path, words: list[str]) -> np.ndarray:
    if not path.exists():
        raise InputError("VecMap ended without an error, but did not write the mapped embeddings; see the log")
    back, vectors = read_vectors(path)
    if back != words:
        raise InputError(f"VecMap was given {len(words)} words and returned {len(back)}, or others; is this VecMap's map_embeddings.py?")
    return vectors
