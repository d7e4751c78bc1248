"""Run by COMET's Python: makes tiny models in COMET's own format, and lets COMET itself score with them.

tiny.py make TEXT        tiny/encoder, tiny/regression and tiny/unified, as if downloaded to the hub's cache
tiny.py predict CHECKPOINT SOURCES HYPOTHESES REFERENCES        the scores, as JSON
"""

import json
import sys
from pathlib import Path

import torch
from comet import load_from_checkpoint
from comet.models import RegressionMetric, UnifiedMetric
from huggingface_hub.constants import HF_HUB_CACHE
from pytorch_lightning import LightningModule, Trainer
from pytorch_lightning.core.saving import save_hparams_to_yaml
from sentencepiece import SentencePieceTrainer
from transformers import XLMRobertaConfig, XLMRobertaTokenizer


def make(text: str) -> None:
    """An encoder in the shape of XLM-R, without weights, and two models over it with random ones."""
    torch.manual_seed(1)
    encoder = in_cache("encoder")
    SentencePieceTrainer.train(input=text, model_prefix=str(encoder / "pieces"), vocab_size=300)
    tokenizer = XLMRobertaTokenizer(str(encoder / "pieces.model"))
    # its slow form alone, as some encoders on the hub are
    tokenizer.save_pretrained(encoder)
    shape = {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 48, "initializer_range": 0.5}
    XLMRobertaConfig(vocab_size=len(tokenizer), max_position_embeddings=130, **shape).save_pretrained(encoder)
    shared = {"pretrained_model": "tiny/encoder", "load_pretrained_weights": False, "hidden_sizes": [16]}
    save(RegressionMetric(**shared), in_cache("regression"))
    save(UnifiedMetric(**shared, word_layer=2, word_level_training=True), in_cache("unified"))


def in_cache(name: str) -> Path:
    """A folder of the hub's cache for the model tiny/`name`."""
    repository, commit = Path(HF_HUB_CACHE) / f"models--tiny--{name}", f"{len(name):040}"
    (repository / "refs").mkdir(parents=True)
    (repository / "refs/main").write_text(commit)
    (repository / "snapshots" / commit).mkdir(parents=True)
    return repository / "snapshots" / commit


def save(model: LightningModule, folder: Path) -> None:
    trainer = Trainer(logger=False, accelerator="cpu")
    trainer.strategy.connect(model)
    trainer.save_checkpoint(folder / "checkpoints/model.ckpt")
    save_hparams_to_yaml(folder / "hparams.yaml", model.hparams)


def predict(checkpoint: str, *paths: str) -> None:
    sides = [Path(path).read_text(encoding="utf-8").splitlines() for path in paths]
    samples = [dict(zip(("src", "mt", "ref"), sentence, strict=True)) for sentence in zip(*sides, strict=True)]
    json.dump(load_from_checkpoint(checkpoint).predict(samples, gpus=0, progress_bar=False).scores, sys.stdout)


if __name__ == "__main__":
    {"make": make, "predict": predict}[sys.argv[1]](*sys.argv[2:])
