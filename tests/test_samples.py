"""The sample reports that ship: what is said of them. `report/test_sample_pages.py` makes the pages of each."""

import json
import re
import zipfile

import pytest

from docs.site import samples
from workflow_scripts.errors import InputError

PACKS = sorted(samples.packs(), key=lambda path: path.stat().st_size)


def parts():
    """Name → the part about it in the list of samples."""
    text = samples.LIST.read_text(encoding="utf-8")
    return {found[1]: found[0] for found in re.finditer(r"## ([\w-]+)\n.*?(?=\n## |\Z)", text, flags=re.DOTALL)}


def test_every_sample_is_in_the_list_with_its_licences():
    assert PACKS and parts().keys() == {path.stem for path in PACKS}
    for path in PACKS:
        about = parts()[path.stem].split("\n\n")[1]
        assert parts()[path.stem].strip() == samples.part(path, about).strip()
        assert samples.about_pack(path)["licences"] and path.stat().st_size <= samples.MOST_BYTES


@pytest.mark.parametrize("path", PACKS, ids=lambda path: path.stem)
def test_a_sample_names_no_folder_of_a_machine(path):
    assert samples.of_a_machine(path) == {}


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """An empty list of samples in another folder."""
    (tmp_path / "README.md").write_text("# Sample reports\n", encoding="utf-8")
    monkeypatch.setattr(samples, "SAMPLES", tmp_path)
    monkeypatch.setattr(samples, "LIST", tmp_path / "README.md")
    return tmp_path


def test_a_sample_is_added_and_put_in_the_place_of_an_older_one(elsewhere):
    for name, about in (("one", "What was asked."), ("two", "More."), ("one", "What was asked better.")):
        samples.add(PACKS[0], name, about)
    said = (elsewhere / "README.md").read_text(encoding="utf-8")
    assert re.findall(r"^## (.*)$", said, flags=re.M) == ["one", "two"] and "asked better." in said and "asked.\n" not in said
    assert (elsewhere / "one.zip").read_bytes() == PACKS[0].read_bytes()


def test_what_is_no_sample_is_refused(elsewhere, tmp_path, monkeypatch):
    with pytest.raises(InputError, match="part of an address"):
        samples.add(PACKS[0], "Two words", "x")
    (tmp_path / "text.zip").write_text("no zip", encoding="utf-8")
    with pytest.raises(InputError, match="is no pack"):
        samples.add(tmp_path / "text.zip", "one", "x")
    for changed, said in (({"licences": ""}, "whose the texts are"), ({"at": "/home/me/run/x"}, r"pack\.json names a folder .*/home/me/")):
        with zipfile.ZipFile(PACKS[0]) as file, zipfile.ZipFile(tmp_path / "other.zip", "w", zipfile.ZIP_DEFLATED) as other:
            for info in file.infolist():
                content = file.read(info)
                other.writestr(info, json.dumps(json.loads(content) | changed) if info.filename == "pack.json" else content)
        with pytest.raises(InputError, match=said):
            samples.add(tmp_path / "other.zip", "one", "x")
    monkeypatch.setattr(samples, "MOST_BYTES", 10)
    with pytest.raises(InputError, match="a sample at most 10"):
        samples.add(PACKS[0], "one", "x")
    assert not [*elsewhere.glob("one*")]
