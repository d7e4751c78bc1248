"""Answers behind prompts are as likely as where each is read with its prompt in a row of its own."""

import pytest
import torch
from tiny_decoders import MULTIMODAL, small_decoder

from workflow_scripts.models.likelihood import log_probabilities
from workflow_scripts.models.networks import load_network
from workflow_scripts.models.tokenisation import load_codec

ANSWERS = [[5], [6, 7, 8], [9, 10]]


# these have layers that keep no keys
RECURRENT = {"qwen3_5_text": MULTIMODAL["qwen3_5"][1], "mamba": {"state_size": 4}}


@pytest.mark.parametrize("kind", ["gemma3_text", "gemma2", "llama", "bloom", *RECURRENT])
@pytest.mark.parametrize("answers", [ANSWERS, ANSWERS[:1]])
def test_answers_behind_prompts_are_as_likely_as_each_row_alone_says(tmp_path, kind, answers):
    folder = small_decoder(tmp_path, kind, **RECURRENT.get(kind, {}))
    network = load_network(folder, "text", dropout=0.0, attention_dropout=0.0, seed=1).eval()
    draw = torch.Generator().manual_seed(1)
    prompts = [torch.randint(3, 40, (length,), generator=draw).tolist() for length in (4, 90, 17, 5)]  # Gemma's window is 64
    found = log_probabilities(network, load_codec(folder), prompts, answers, tokens=100)
    for row, prompt in zip(found, prompts, strict=True):
        for score, answer in zip(row, answers, strict=True):
            with torch.no_grad():
                each = network(torch.tensor([[*prompt, *answer]])).logits[0, len(prompt) - 1 : -1].log_softmax(dim=-1)
            assert float(score) == pytest.approx(float(each[range(len(answer)), answer].sum()), abs=1e-3)
