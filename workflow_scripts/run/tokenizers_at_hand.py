"""tokenizers_at_hand: the tokenizers of models on this machine, which all looks of preflight share.

One of 250,000 pieces takes some six seconds to read.
"""

import functools
from dataclasses import replace
from pathlib import Path

from workflow_scripts.errors import InputError
from workflow_scripts.models.tokenisation import Codec, load_codec


def codec_in(folder: Path, documents: bool = False) -> Codec:
    """As `load_codec`; a folder that has not changed is read once. The codec is the caller's own, the tokenizer in it is shared."""
    files = ((path.name, path.stat()) for path in sorted(folder.glob("*")) if path.is_file())
    return replace(_read(folder, tuple((name, about.st_size, about.st_mtime_ns) for name, about in files)), documents=documents)


def codec_at_hand(folder: Path | None, documents: bool = False) -> Codec | None:
    """The same; None where there is no folder, or none that can be read, which the findings of the model say."""
    try:
        return codec_in(folder, documents) if folder else None
    except InputError:
        return None


@functools.lru_cache(8)
def _read(folder: Path, files: tuple[tuple[str, int, int], ...]) -> Codec:
    """Of the files of a folder as they are now."""
    return load_codec(folder)
