"""How much of a text a vocabulary lacks."""

import json
import shutil

import pytest
from tiny_models import manual_pairs, small_model

from workflow_scripts.models.reading import NOTED, REFUSED, unknown_in
from workflow_scripts.models.tokenisation import load_codec
from workflow_scripts.text.files import read_lines

RUSSIAN, CHINESE = (list(read_lines(f"resources/parallel-ud/pud.{code}.txt.xz"))[:200] for code in ("ru", "zh"))


@pytest.mark.parametrize("family", ["mbart", "cc25", "nllb", "m2m100", "bart", "bert"])
def test_a_script_that_is_lacking_is_distinguished_from_one_that_is_there(tmp_path, family):
    codec = load_codec(small_model(tmp_path, family))
    known = unknown_in(codec, manual_pairs(300)[0])
    assert known.share < NOTED
    for lines, word in ((RUSSIAN, "«Если"), (CHINESE, CHINESE[0].split()[0][:30])):
        found = unknown_in(codec, lines)
        assert found.share > REFUSED and found.word == word
    mixed = unknown_in(codec, [*manual_pairs(300)[0], *RUSSIAN[:20]])
    assert NOTED < mixed.share < REFUSED and f"{mixed.share:.1%}" in mixed.said("de")
    assert unknown_in(codec, []).share == 0.0


def test_bytes_lack_nothing(tmp_path):
    model = shutil.copytree(small_model(tmp_path), tmp_path / "bytes")
    content = json.loads((model / "tokenizer.json").read_text("utf-8"))
    # a byte for each of the last pieces, which keeps the ids
    for number in range(256):
        content["model"]["vocab"][-1 - number][0] = f"<0x{number:02X}>"
    content["model"]["byte_fallback"] = True
    (model / "tokenizer.json").write_text(json.dumps(content), encoding="utf-8")
    found = unknown_in(load_codec(model), RUSSIAN)
    assert found.pieces > 10_000 and not found.unknown and found.word == ""
