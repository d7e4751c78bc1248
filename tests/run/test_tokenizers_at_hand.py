"""Tokenizers that preflight's looks share."""

import os
import shutil
from pathlib import Path

from workflow_scripts.models.templates import Templates
from workflow_scripts.run.tokenizers_at_hand import codec_in

MODEL = Path("resources/backbones/bible")


def test_a_folder_is_read_once_and_again_when_it_has_changed(tmp_path):
    folder = tmp_path / "model"
    shutil.copytree(MODEL, folder)
    first, second = codec_in(folder), codec_in(folder, documents=True)
    assert first.tokenizer is second.tokenizer and (first.documents, second.documents) == (False, True)
    os.utime(folder / "config.json", ns=(1, 1))
    assert codec_in(folder).tokenizer is not first.tokenizer


def test_each_caller_has_a_codec_of_its_own():
    codec_in(MODEL).templates = Templates(prefix="translate: ")
    assert codec_in(MODEL).templates == Templates()
