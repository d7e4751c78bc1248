"""What is measured on the dev set: texts of any length are written whole."""

from types import SimpleNamespace

import pytest
import torch
from tiny_models import small_t5

from workflow_scripts.models.networks import load_network
from workflow_scripts.models.tokenisation import load_codec
from workflow_scripts.text.files import write_lines
from workflow_scripts.training.rows import aligned_dev
from workflow_scripts.training.settings import Training
from workflow_scripts.training.too_long import Room
from workflow_scripts.training.validation import dev_score

SOURCES = ["一艘渡轮沉没了。", "会议推迟到秋天。", "不。"]
TARGETS = ["Паром затонул у берега ранним утром в понедельник.", "Заседание было перенесено на осень этого года.", "Нет."]


def test_a_perfect_model_has_the_best_dev_score_though_targets_are_longer_than_sources(tmp_path):
    start = small_t5(tmp_path, "byt5")
    codec, network = load_codec(start), load_network(start, "text", dropout=0.0, attention_dropout=0.0, seed=1)
    for code, lines in (("zh", SOURCES), ("ru", TARGETS)):
        write_lines(tmp_path / f"dev.{code}", lines)
    dev = aligned_dev(tmp_path / "dev.zh", tmp_path / "dev.ru", ("zh", "ru"), codec, Room(200, leave_out=True))
    assert any(len(labels) > 1.2 * max(len(read) for read, _ in dev.rows) + 10 for _, labels in dev.rows)
    answers, limits = {tuple(read): list(labels) for read, labels in dev.rows}, []

    def perfect(input_ids, attention_mask, max_new_tokens, **_):
        limits.append(max_new_tokens)
        texts = [
            answers[tuple(row[:length])][:max_new_tokens] for row, length in zip(input_ids.tolist(), attention_mask.sum(1), strict=True)
        ]
        longest = max(map(len, texts))
        return SimpleNamespace(sequences=torch.tensor([text + [codec.pad] * (longest - len(text)) for text in texts]))

    network.generate = perfect
    assert dev_score(network, codec, dev, Training(precision="float32")) == pytest.approx(100)
    assert limits == [max(len(labels) for _, labels in dev.rows) + 10]
