"""Files of a dataset of the hub, whose rows are read as their publishers mean them."""

import errno
import json

import pyarrow
import pytest
from pyarrow import parquet

from workflow_scripts.stage import InputError
from workflow_scripts.text.hub import HuggingFace, _rows, download_dataset


def test_in_a_table_with_tabs_a_quotation_mark_is_a_character(tmp_path):
    path = tmp_path / "part.tsv"
    path.write_text('\ufeffen\tde\n"Yes\tJa"\nHe said "no\tEr sagte "nein\nlast\tletzte\n', encoding="utf-8")
    assert list(_rows(path)) == [{"en": '"Yes', "de": 'Ja"'}, {"en": 'He said "no', "de": 'Er sagte "nein'}, {"en": "last", "de": "letzte"}]


def test_in_a_table_with_commas_quotation_marks_hold_a_cell_together(tmp_path):
    path = tmp_path / "part.csv"
    path.write_text('en,de\n"Yes, he\nsaid","Ja, sagte ""er"""\n', encoding="utf-8")
    assert list(_rows(path)) == [{"en": "Yes, he\nsaid", "de": 'Ja, sagte "er"'}]


def test_blank_lines_among_json_are_passed_over_and_what_is_no_json_is_named_with_its_line(tmp_path):
    path = tmp_path / "part.jsonl"
    path.write_text('{"en": "Yes"}\n \n\n{"en": "No"}\n\n', encoding="utf-8")
    assert list(_rows(path)) == [{"en": "Yes"}, {"en": "No"}]
    path.write_text('{"en": "Yes"}\n\n{"en"\n', encoding="utf-8")
    with pytest.raises(InputError, match=r"part\.jsonl, line 3: is no JSON"):
        list(_rows(path))
    path.write_text('{"en": {"of": "half a pair \\ud83d"}}\n', encoding="utf-8")
    with pytest.raises(InputError, match=r"part\.jsonl, line 1: .*surrogates"):
        list(_rows(path))


def test_json_lines_keep_their_characters_since_answers_are_counted_in_them(tmp_path):
    text = "cafe\u0301 \ufeff২"
    (tmp_path / "part.jsonl").write_text(json.dumps({"context": text}, ensure_ascii=False) + "\n", encoding="utf-8")
    assert list(_rows(tmp_path / "part.jsonl")) == [{"context": text}]


@pytest.mark.parametrize(
    "name, content, said",
    [
        ("part.csv", "text\nyes\nGrüße\n".encode("latin-1"), r"part\.csv, after line \d: not UTF-8 \(byte 0xfc\); leave `files` out"),
        ("part.csv", b'a,text\n0,"open and never closed\n1,x\n', r"part\.csv, after line \d: cannot be read as a table"),
        ("part.csv", b'a,text\n1,"Hallo" sagte er\n', r"part\.csv, after line 1: cannot be read as a table"),
        ("part.csv", b"a,text\n1,a,b with a comma\n", r"part\.csv, line 2: has more columns than the header; leave `files` out"),
        ("part.tsv", b"a\tb\n1\t2\t3\n", r"part\.tsv, line 2: has more columns than the header"),
        ("part.parquet", b"version https://git-lfs.github.com/spec/v1\n", r"part\.parquet: cannot be read as Parquet"),
    ],
)
def test_what_is_no_table_is_named(tmp_path, name, content, said):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=said):
        list(_rows(tmp_path / name))


def test_patterns_of_files_mean_what_they_meant_when_they_were_downloaded(tmp_path, monkeypatch):
    monkeypatch.setattr("huggingface_hub.snapshot_download", lambda *_, **__: str(tmp_path / "snapshot"))
    for name in ("data/train.jsonl", "data/more/train.jsonl", "dev.json"):
        (tmp_path / "snapshot" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "snapshot" / name).write_text('{"a": 1}\n')
    made = download_dataset(HuggingFace("o/n", files=["*.jsonl"]), tmp_path / "out.jsonl")
    assert made["files"] == ["data/more/train.jsonl", "data/train.jsonl"]
    with pytest.raises(InputError, match=r"has no /data/\*\.jsonl in its main branch"):
        download_dataset(HuggingFace("o/n", files=["/data/*.jsonl"]), tmp_path / "out.jsonl")


def test_a_cache_that_cannot_be_written_to_is_an_error_that_names_its_variable(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HOME", str(tmp_path))

    def refused(*_, **__):
        raise OSError(errno.EROFS, "Read-only file system", str(tmp_path / "hub/datasets--o--n"))

    monkeypatch.setattr("huggingface_hub.snapshot_download", refused)
    with pytest.raises(InputError, match=r"o/n: .*datasets--o--n: cannot be written: .* writable, or set HF_(HOME|HUB_CACHE) to another"):
        download_dataset(HuggingFace("o/n"), tmp_path / "out.jsonl")


def test_numbers_of_classes_become_their_names_in_lists_too(tmp_path):
    about = {
        "label": {"_type": "ClassLabel", "names": ["no", "yes"]},
        "tags": {"_type": "List", "feature": {"_type": "ClassLabel", "names": ["O", "B-PER"]}},
    }
    rows = {"label": [1, -1], "tags": [[0, 1], []], "words": [["by", "Ann"], []]}
    table = pyarrow.table(rows).replace_schema_metadata({"huggingface": json.dumps({"info": {"features": about}})})
    parquet.write_table(table, tmp_path / "part.parquet")
    assert list(_rows(tmp_path / "part.parquet")) == [
        {"label": "yes", "tags": ["O", "B-PER"], "words": ["by", "Ann"]},
        {"label": -1, "tags": [], "words": []},
    ]
