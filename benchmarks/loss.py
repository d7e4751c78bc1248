"""The loss in chunks against the plain one, at the size of mBART: seconds and peak memory of loss and gradients.

python -m benchmarks.loss [tokens ...]

One JSON line per number of tokens (1,024 and 4,096) and quantity. Ours and the peer run in processes of
their own; memory is what the loss adds to states, matrix and its gradient.
"""

import json
import sys
import time

import torch

from benchmarks import apart, peak_gb
from workflow_scripts.training.loss import linear_smoothed_loss, smoothed_loss

VOCABULARY, DIMENSIONS = 250_027, 1_024


def main(sizes: list[int]) -> None:
    """Print two lines per size."""
    for tokens in sizes:
        found = {which: apart("loss", str(tokens), which) for which in ("ours", "peer")}
        for quantity in ("seconds", "gb"):
            ours, peer = found["ours"][quantity], found["peer"][quantity]
            line = {"case": f"loss of {tokens} tokens", "quantity": quantity, "ours": ours, "peer": peer, "ratio": round(ours / peer, 3)}
            print(json.dumps({**line, "device": found["ours"]["device"], "losses": [found[which]["loss"] for which in found]}), flush=True)


def case(tokens: int, which: str) -> dict:
    """Loss and gradients, once to warm up on a few tokens and once to measure."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    on_gpu = device.type == "cuda"
    dtype = torch.bfloat16 if on_gpu else torch.float32
    torch.manual_seed(1)
    weight = torch.randn(VOCABULARY, DIMENSIONS, device=device).mul_(0.02).requires_grad_()
    weight.grad = torch.zeros_like(weight)
    bias = torch.zeros(1, VOCABULARY, device=device)
    labels = torch.randint(0, VOCABULARY, (1, tokens), device=device)
    states = torch.randn(1, tokens, DIMENSIONS, device=device)

    def run(count: int) -> float:
        some = states[:, :count].detach().requires_grad_()
        if which == "ours":
            value = linear_smoothed_loss(some, weight, bias, labels[:, :count], 0.2, None, dtype)
        else:
            value = smoothed_loss(some.to(dtype) @ weight.to(dtype).T + bias.to(dtype), labels[:, :count], 0.2, None)
        value.backward()
        return float(value.detach())

    before = peak_gb(on_gpu)
    run(8)
    started = time.perf_counter()
    value = run(tokens)
    seconds = time.perf_counter() - started
    return {"seconds": round(seconds, 2), "gb": round(peak_gb(on_gpu) - before, 2), "loss": round(value, 4), "device": device.type}


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[2] in ("ours", "peer"):
        print(json.dumps(case(int(sys.argv[1]), sys.argv[2])))
    else:
        main([int(tokens) for tokens in sys.argv[1:]] or [1_024, 4_096])
