r"""VECO's pretraining against a straightforward loop with the same losses: tokens of x and y per second.

python -m benchmarks.veco resources/bible/de.txt.xz resources/bible/en.txt.xz [updates] [batch tokens] [layers] [width] [rounds]

Both make a model of random weights learn IS-MLM both ways, CS-MLM both ways and TLM from the same translations, masked alike. The
straightforward loop takes as many pairs as make an update of the same size on average, in random order, pads them, and calls
transformers' model five times: each side as an encoder, each as a decoder, and both as one row. Both score masked positions alone.
On a CPU one thread is used and its own time counts, so that other programs do not; on a GPU (bfloat16 there) it is the clock's. Prints a
JSON line for each round, in which the two take turns, and one for the medians.
"""

import json
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

LEARNING_RATE, MAX_LENGTH, PIECES = 1e-4, 128, 8000


def main(
    german: str,
    english: str,
    updates: str = "20",
    tokens: str = "2000",
    layers: str = "4",
    width: str = "256",
    rounds: str = "3",
) -> None:
    """Print the comparison."""
    from workflow_scripts.device import keep_memory, pick_device

    device = pick_device("auto")
    if device.type == "cpu":
        torch.set_num_threads(1)
    keep_memory()
    with tempfile.TemporaryDirectory() as folder:
        start, rows = prepare(Path(folder), german, english, int(layers), int(width))
        found: dict[str, list[float]] = {"ours": [], "plain": []}
        for number in range(int(rounds)):
            for which, make in (("ours", our_loop), ("plain", plain_loop)):
                found[which].append(make(start, rows, int(updates), int(tokens), device))
            print(json.dumps({"round": number, **{which: round(speeds[-1]) for which, speeds in found.items()}}), flush=True)
    ours, plain = median(found["ours"]), median(found["plain"])
    shape = {"layers": int(layers), "width": int(width), "updates": int(updates), "batch_tokens": int(tokens), "device": str(device)}
    print(json.dumps({"unit": "tokens/s", "ours": round(ours), "plain": round(plain), "ratio": round(ours / plain, 2), **shape}))


def prepare(folder: Path, german: str, english: str, layers: int, width: int) -> tuple[Path, Any]:
    """A model with random weights, and masked rows of all pairs."""
    from workflow_scripts.models.tokenisation import load_codec
    from workflow_scripts.noise.masking import Masking
    from workflow_scripts.text.files import read_lines
    from workflow_scripts.training.bitext import Bitext
    from workflow_scripts.training.objective import Part, Text
    from workflow_scripts.training.pretraining_settings import Pretraining
    from workflow_scripts.training.segments import read
    from workflow_scripts.training.settings import Training
    from workflow_scripts.training.small import Small, build_model

    sides = {code: list(read_lines(Path(path)))[:6000] for code, path in (("de", german), ("en", english))}
    shape = Small(vocabulary=PIECES, d_model=width, layers=layers, heads=max(1, width // 64), ffn=4 * width)
    (folder / "model").mkdir()
    start = build_model(shape, "xlmr", ("de", "en"), [line for side in sides.values() for line in side], (), folder / "model", 1)
    part = Part.write(folder, "train", Text({}, [Bitext("bible.de-en", sides)]))
    block = Pretraining(masking=Masking(), training=Training(max_length=MAX_LENGTH))
    return start, read(part, load_codec(start), block, seed=1)


def our_loop(start: Path, text: Any, updates: int, tokens: int, device: torch.device) -> float:
    """Tokens per second of the code that pretrains."""
    from workflow_scripts.models.veco import load_stack
    from workflow_scripts.training.mixed_precision import mixed_precision
    from workflow_scripts.training.pretraining_settings import Veco
    from workflow_scripts.training.segments import alternating_updates
    from workflow_scripts.training.settings import Training
    from workflow_scripts.training.veco_losses import collate, forward_guesses, update_loss

    veco, network = Veco(), load_stack(start, cross=True, dropout=0.1, attention_dropout=0.1).to(device).train()
    forward_guesses(network, causal=True)
    precision = "bfloat16" if device.type == "cuda" else "float32"
    loss = update_loss(network, Training(label_smoothing=0.0), precision)
    plan = list(alternating_updates(text, tokens, updates + 1, seed=1))

    def one(batch: Any) -> Tensor:
        made = {name: value.to(device) for name, value in collate(batch, 1, 0, veco).items()}
        labels = made.pop("labels")
        return loss(network(**made), labels, labels.numel())

    with mixed_precision(network, precision):
        return timed(network, plan, one, [sum(len(ids) for ids, _ in batch.rows) for batch in plan], device)


def plain_loop(start: Path, text: Any, updates: int, tokens: int, device: torch.device) -> float:
    """Tokens per second of the straightforward loop."""
    from transformers import XLMRobertaConfig, XLMRobertaForCausalLM

    from workflow_scripts.training.segments import begin_of_second

    config = XLMRobertaConfig.from_pretrained(start, is_decoder=True, add_cross_attention=True, use_cache=False)
    network: Any = XLMRobertaForCausalLM.from_pretrained(start, config=config)
    network.to(device).train()
    rows = text.epoch(0)
    size = max(1, round(tokens / float(np.mean([len(ids) for ids, _ in rows]))))
    order = np.random.default_rng(1).permutation(len(rows))
    plan = [[rows[i] for i in order[at : at + size]] for at in range(0, (updates + 1) * size, size)]

    def padded(some: list[tuple[Any, Any]]) -> tuple[Tensor, Tensor, Tensor]:
        ids, goals = (
            pad_sequence([torch.tensor(row[side], dtype=torch.long) for row in some], batch_first=True, padding_value=fill)
            for side, fill in ((0, 1), (1, -100))
        )
        return ids.to(device), (ids != 1).to(device), goals.to(device)

    def score(states: Tensor, goals: Tensor) -> Tensor:
        return F.cross_entropy(network.lm_head(states[goals != -100]), goals[goals != -100])

    @torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda")
    def one(batch: list[tuple[Any, Any]]) -> Tensor:
        places = [begin_of_second(ids, 0) for ids, _ in batch]
        x, x_seen, x_goal = padded([(ids[:at], labels[:at]) for (ids, labels), at in zip(batch, places, strict=True)])
        y, y_seen, y_goal = padded([(ids[at:], labels[at:]) for (ids, labels), at in zip(batch, places, strict=True)])
        both, seen, goal = padded(batch)

        def both_ways(mask: Tensor) -> Tensor:
            return mask[:, None, None].expand(-1, 1, mask.shape[1], -1)

        stack = network.roberta
        x_states = stack(input_ids=x, attention_mask=both_ways(x_seen)).last_hidden_state
        y_states = stack(input_ids=y, attention_mask=both_ways(y_seen)).last_hidden_state
        crossed = [
            stack(input_ids=ids, attention_mask=mask.long(), encoder_hidden_states=memory.detach(), encoder_attention_mask=other.long())
            for ids, mask, memory, other in ((y, y_seen, x_states, x_seen), (x, x_seen, y_states, y_seen))
        ]
        joined = stack(input_ids=both, attention_mask=both_ways(seen)).last_hidden_state
        states = (x_states, y_states, *(one.last_hidden_state for one in crossed), joined)
        return sum(score(*each) for each in zip(states, (x_goal, y_goal, y_goal, x_goal, goal), strict=True))  # type: ignore[return-value]

    return timed(network, plan, one, [sum(len(ids) for ids, _ in batch) for batch in plan], device)


def timed(network: Any, plan: list[Any], one: Any, sizes: list[int], device: torch.device) -> float:
    """Tokens per second of updates; the first, which warms up, does not count."""
    optimiser = torch.optim.AdamW(network.parameters(), LEARNING_RATE, fused=True)
    clock = time.perf_counter if device.type == "cuda" else time.process_time
    begun = 0.0
    for number, batch in enumerate(plan):
        if number == 1:
            if device.type == "cuda":
                torch.cuda.synchronize()
            begun = clock()
        loss = one(batch)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    if device.type == "cuda":
        torch.cuda.synchronize()
    return sum(sizes[1:]) / (clock() - begun)


if __name__ == "__main__":
    main(*sys.argv[1:])
