"""Finetuning a VECO that was exported to BART's form, and an mBART of the same shape: what the form costs.

python -m benchmarks.exported results/backbones/veco-writer/model results/backbones/mbart-small/model \
    results/corpora/help.de-en/train de en [updates] [batch tokens] [threads]

One JSON line: target tokens per second of both, the median of three runs in turn of the updates that `training` makes, each a process
of its own (`update`); their ratio; and their numbers of weights.
"""

import json
import sys
from pathlib import Path
from statistics import median

from safetensors import safe_open

from benchmarks.update import OURS, ROUNDS, apart


def main(
    exported: str, peer: str, text: str, source: str, target: str, updates: str = "60", tokens: str = "500", threads: str = "1"
) -> None:
    """Print the comparison."""
    found: dict[str, list[int]] = {exported: [], peer: []}
    for _ in range(ROUNDS):
        for model, speeds in found.items():
            speeds.append(apart(model, text, source, target, updates, tokens, threads, OURS)["speed"])
    ours, other = (median(speeds) for speeds in found.values())
    line = {"unit": "target tokens/s", "ours": ours, "peer": other, "ratio": round(ours / other, 2)}
    print(json.dumps({**line, "weights": [weights(model) for model in found], "batch_tokens": int(tokens), "threads": int(threads)}))


def weights(model: str) -> int:
    """How many weights a model has; the output layer's bias of BART and mBART is none, it stays zero."""
    with safe_open(Path(model) / "model.safetensors", "np") as file:
        names = [name for name in file.keys() if name != "final_logits_bias"]  # noqa: SIM118 (no mapping)
        return sum(file.get_tensor(name).size for name in names)


if __name__ == "__main__":
    main(*sys.argv[1:])
