"""What a masked language model loses with its head, and what is left of it when it is folded into an output layer.

python -m benchmarks.head resources/backbones/manual results/corpora/help.de-en/dev.de results/corpora/help.de-en/dev.en

For a VECO, an XLM-R or a BERT. 30 % of the pieces of each file's first 150 lines are masked, and guessed by the encoder's states. Prints
a JSON line: nats of a masked piece, and how many are guessed right, in per cent. `head` has the head, `dropped` the embeddings alone, as
in the authors' code of VECO, and `folded` the layer of `models.conversion`, fitted on rows that the model makes up.
"""

import json
import sys
from pathlib import Path

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from workflow_scripts.models.conversion import head_as_layer, made_up
from workflow_scripts.models.networks import head_states, output_layer
from workflow_scripts.models.tokenizer import load_tokenizer
from workflow_scripts.models.veco import encode, has_cross_attention, load_stack
from workflow_scripts.text.files import read_lines

LINES, MASKED, MAX_LENGTH, ROWS, FITTED = 150, 0.3, 100, 50, 100


def main(model: str, *files: str) -> None:
    """Print the comparison."""
    lines = [line for file in files for line in list(read_lines(Path(file)))[:LINES]]
    print(json.dumps({"model": model, **measured(Path(model), lines)}))


@torch.no_grad()
def measured(model: Path, lines: list[str]) -> dict[str, float]:
    """Masked pieces, the share of the head's variance that the fold explains, and for each form nats and per cent that are right."""
    stack, tokenizer = load_stack(model, cross=has_cross_attention(model)).eval(), load_tokenizer(model)
    random = torch.Generator().manual_seed(1)
    rows = made_up(stack, tokenizer.mask_token_id, random)[:FITTED]
    own = encode(stack, rows, torch.ones_like(rows, dtype=torch.bool)).flatten(0, 1)
    weight, bias, explained = head_as_layer(stack, own)

    def states_of(some: list[str]) -> tuple[Tensor, Tensor]:
        read = tokenizer(some, padding=True, truncation=True, max_length=MAX_LENGTH, return_tensors="pt")
        ids, seen = read["input_ids"], read["attention_mask"].bool()
        special = torch.isin(ids, torch.tensor(tokenizer.all_special_ids))
        hidden = seen & ~special & (torch.rand(ids.shape, generator=random) < MASKED)
        return encode(stack, ids.masked_fill(hidden, tokenizer.mask_token_id), seen)[hidden], ids[hidden]

    parts = [states_of(lines[at : at + ROWS]) for at in range(0, len(lines), ROWS)]
    states, pieces = (torch.cat(part) for part in zip(*parts, strict=True))
    embeddings, offset = output_layer(stack)
    scores = {
        "head": head_states(stack, states) @ embeddings.T + offset,
        "dropped": states @ embeddings.T,
        "folded": states @ weight.T + bias,
    }
    found = {"pieces": len(pieces), "explained": round(float(explained), 3)}
    for name, some in scores.items():
        found[f"{name}_nats"] = round(float(cross_entropy(some, pieces)), 3)
        found[f"{name}_right"] = round(100 * float((some.argmax(dim=1) == pieces).float().mean()), 1)
    return found


if __name__ == "__main__":
    main(*sys.argv[1:])
