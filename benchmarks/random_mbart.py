r"""An mBART of random numbers with the pieces of a real one, to measure with where no weights are to be had.

python -m benchmarks.random_mbart facebook/mbart-large-cc25 /tmp/small 192 2                           # width, layers on either side
python -m benchmarks.random_mbart facebook/mbart-large-cc25 /tmp/small-trimmed 192 2 TEXT [TEXT …]     # trimmed to these files
"""

import sys
import tempfile
from pathlib import Path
from typing import Any

from transformers import AutoTokenizer, MBartConfig, MBartForConditionalGeneration, set_seed

from workflow_scripts.models.networks import save_model
from workflow_scripts.models.tokenisation import Codec
from workflow_scripts.models.trimming import trim
from workflow_scripts.text.files import read_lines


def main(tokenizer: str, output: str, width: str = "1024", layers: str = "12", *text: str) -> None:
    """Write the model to the folder `output`."""
    set_seed(1)
    codec = Codec(AutoTokenizer.from_pretrained(tokenizer), "mbart")
    parts = {f"{side}_{what}": number for side in ("encoder", "decoder") for what, number in shape(int(width), int(layers)).items()}
    settings: dict[str, Any] = {**parts, "scale_embedding": True, "normalize_before": True, "tokenizer_class": "MBartTokenizer"}
    network = MBartForConditionalGeneration(MBartConfig(vocab_size=len(codec.tokenizer), d_model=int(width), **settings))
    with tempfile.TemporaryDirectory() as folder:
        if text:
            codec, _ = trim(network, codec, (line for path in text for line in read_lines(Path(path))), Path(folder))
        save_model(network, codec.tokenizer, Path(output))
    print(f"{output}: {sum(p.numel() for p in network.parameters()) / 1e6:.1f} million parameters, {network.config.vocab_size:,} pieces")


def shape(width: int, layers: int) -> dict[str, int]:
    """Heads of 64, and a feed-forward layer four times as wide, as in mBART."""
    return {"layers": layers, "attention_heads": max(1, width // 64), "ffn_dim": 4 * width}


if __name__ == "__main__":
    main(*sys.argv[1:])
