"""Acquisition from a server on the loopback address: data of all origins and formats become what the pipeline reads."""

import gzip
import io
import json
import lzma
import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from served import COMMIT, acquired, sha256, tar

from workflow_scripts.stage import InputError, read_json
from workflow_scripts.text import acquisition, help_pages
from workflow_scripts.text.acquisition import Data, Debian, columns_of
from workflow_scripts.text.files import read_lines
from workflow_scripts.text.parallel import Source, read_pairs

pytestmark = pytest.mark.usefixtures("surroundings")


def pairs(path: Path, data: Data) -> list[tuple[str, str]]:
    a, b = acquisition.languages_of(data)
    return [(pair.a, pair.b) for pair in read_pairs(Source(file=str(path), columns=columns_of(data)), (a, b))]


def test_without_an_origin_it_says_what_there_is(tmp_path):
    with pytest.raises(InputError, match="nothing says where the data come from; give one of url, "):
        acquired(tmp_path, Data())


# ---------------------------------------------------------------------------------------------
# formats


def test_blocks_of_lines_of_several_members_are_documents_of_their_own(server, tmp_path):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name in ("a", "b"):
            archive.writestr(f"{name}.tsv", "".join(f"Hund {name} {n}\tdog {name} {n}\n" for n in range(50)))
    server.files["/x.zip"] = packed.getvalue()
    data = Data(url=f"{server.url}/x.zip", sha256=sha256(packed.getvalue()), member="*.tsv", languages=("de", "en"))
    documents = [line.split("\t")[0] for line in read_lines(acquired(tmp_path, data))]
    assert list(dict.fromkeys(documents)) == ["1 block 0", "1 block 1", "2 block 0", "2 block 1"] and len(documents) == 100


def test_several_members_keep_their_format_and_their_characters(server, tmp_path):
    packed, row = io.BytesIO(), json.dumps({"context": "cafe\u0301"}, ensure_ascii=False)
    with zipfile.ZipFile(packed, "w") as archive:
        for name in ("a", "b"):
            archive.writestr(f"{name}.jsonl", f"{row}\n")
    server.files["/x.zip"] = packed.getvalue()
    for member in (["a.jsonl", "b.jsonl"], "*.jsonl"):
        data = Data(url=f"{server.url}/x.zip", sha256=sha256(packed.getvalue()), member=member)
        assert acquisition.suffix(data) == ".jsonl"
        assert list(read_lines(acquired(tmp_path, data), normalise=False)) == [row, row]
    assert acquisition.suffix(Data(url="x.zip", member=["a.jsonl", "b.txt"])) == ".txt"


@pytest.mark.parametrize(
    "name, members, header, expected",
    [
        ("conllu", ["1\tDatei\tDatei\tNOUN"], False, ["1\tDatei\tDatei\tNOUN", "", "1\tDatei\tDatei\tNOUN"]),
        ("conllu", ["1\tDatei", ""], False, ["1\tDatei", "", "1\tDatei", ""]),
        ("iob2", ["Datei O"], False, ["Datei O", "", "Datei O"]),
        # sentences of words in a table, and a table of texts
        ("tsv", ["Datei\tO", "", "neu\tO"], False, ["Datei\tO", "", "neu\tO", "", "Datei\tO", "", "neu\tO"]),
        ("tsv", ["text\tlabel", "one\tyes"], True, ["text\tlabel", "one\tyes", "one\tyes"]),
        ("csv", ["text\tlabel", "one\tyes"], True, ["text\tlabel", "one\tyes", "one\tyes"]),
        ("txt", ["one", "", "two"], False, ["one", "", "two", "one", "", "two"]),
    ],
)
def test_members_are_put_together_as_their_format_allows(server, tmp_path, name, members, header, expected):
    data = Data(**two_members(server, name, "".join(f"{line}\n" for line in members)), header=header)
    assert list(read_lines(acquired(tmp_path, data), normalise=False)) == expected


def test_several_members_of_json_are_refused(server, tmp_path):
    with pytest.raises(InputError, match=r"^a\.json: is one of 2 JSON files, which cannot be put together; name one member"):
        acquired(tmp_path, Data(**two_members(server, "json", '{"data": []}')))


def two_members(server, suffix: str, content: str) -> dict[str, str]:
    """Where an archive of two files with the same content is."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name in ("a", "b"):
            archive.writestr(f"{name}.{suffix}", content)
    server.files["/x.zip"] = packed.getvalue()
    return {"url": f"{server.url}/x.zip", "sha256": sha256(packed.getvalue()), "member": f"*.{suffix}"}


def test_columns_of_a_table_may_be_named_by_its_first_line(server, tmp_path):
    table = b"english\tgerman\none\teins\n"
    server.files["/x.tsv"] = table
    data = Data(f"{server.url}/x.tsv", sha256(table), languages=("de", "en"), columns={"de": "german", "en": "english"}, header=True)
    assert pairs(acquired(tmp_path, data), data) == [("eins", "one")]


def test_a_file_keeps_its_format_behind_parameters_and_in_its_first_lines(server, tmp_path):
    rows = [{"de": "eins", "en": "one"}, {"de": "zwei", "en": "two"}]
    content = "".join(f"{json.dumps(row)}\n" for row in rows).encode()
    server.files["/q.jsonl?download=1"] = content
    head = content.splitlines(keepends=True)[0]
    data = Data(
        url=f"{server.url}/q.jsonl?download=1", lines=1, sha256=sha256(head), languages=("de", "en"), columns={"de": "de", "en": "en"}
    )
    assert pairs(acquired(tmp_path, data), data) == [("eins", "one")]
    server.files["/page.txt.xz"] = b"<html>please log in</html>"
    with pytest.raises(InputError, match="cannot be downloaded"):
        acquired(tmp_path, Data(url=f"{server.url}/page.txt.xz", lines=1, sha256="0" * 64))


def test_iwslts_archives_become_parallel_text(server, tmp_path):
    def talk(text):
        return (
            f"<url>http://www.ted.com/x</url>\n<reviewer>A</reviewer>\n<title>{text} & title</title>\n {text} one\n{text} two \n".encode()
        )

    def xml(text):
        return f'<?xml version="1.0"?>\n<mteval>\n<doc docid="1">\n<seg id="1"> {text} &amp; 1 </seg>\n<seg id="2">{text} 2</seg>\n</doc>'.encode()

    members = {f"de-en/train.tags.de-en.{code}": talk(code) for code in ("de", "en")}
    members |= {f"de-en/IWSLT14.TED.{part}.de-en.{code}.xml": xml(f"{part} {code}") for part in ("dev", "tst") for code in ("de", "en")}
    server.files["/uc?id=12&confirm=t"] = content = tar(**members)
    origin = {"url": f"{server.url}/uc?id=12&confirm=t", "sha256": sha256(content), "languages": ("de", "en")}
    train = Data(**origin, member={code: f"de-en/train.tags.de-en.{code}" for code in ("de", "en")})
    made = acquired(tmp_path, train)
    assert pairs(made, train) == [("de & title", "en & title"), ("de one", "en one"), ("de two", "en two")]
    assert {line.split("\t")[0] for line in read_lines(made)} == {"talk 1"}
    test = Data(**origin, member={code: [f"de-en/IWSLT14.TED.{part}.de-en.{code}.xml" for part in ("dev", "tst")] for code in ("de", "en")})
    made = acquired(tmp_path, test)
    assert [pair[0] for pair in pairs(made, test)] == ["dev de & 1", "dev de 2", "tst de & 1", "tst de 2"]
    # both files call their document 1
    assert [line.split("\t")[0] for line in read_lines(made)] == ["1 1", "1 1", "2 1", "2 1"]


def test_two_files_become_parallel_text_and_must_be_of_one_length(server, tmp_path):
    server.files |= {"/train.vi": b"mot\nhai\n", "/train.en": b"one\ntwo\n"}
    urls = {code: f"{server.url}/train.{code}" for code in ("vi", "en")}
    data = Data(url=urls, sha256={"vi": sha256(b"mot\nhai\n"), "en": sha256(b"one\ntwo\n")}, languages=("vi", "en"))
    assert pairs(acquired(tmp_path / "out", data), data) == [("mot", "one"), ("hai", "two")]
    server.files["/train.en"] = b"one\n"
    data.sha256["en"] = sha256(b"one\n")
    with pytest.raises(InputError, match="not aligned"):
        acquired(tmp_path / "other", data)
    assert not list((tmp_path / "other").iterdir())


def test_a_translation_memory_and_joined_data(server, tmp_path):
    unit = '<tu><tuv xml:lang="{}"><seg>one <bpt/>dog</seg></tuv><tuv xml:lang="lt"><seg>vienas šuo</seg></tuv></tu>'
    memory = (
        f'<?xml version="1.0"?><tmx version="1.4"><header/><body>{unit.format("en-GB")}{unit.format("fr")}{unit.format("EN")}</body></tmx>'
    )
    server.files["/en-lt.tmx.gz"] = packed = gzip.compress(memory.encode())
    data = Data(url=f"{server.url}/en-lt.tmx.gz", sha256=sha256(packed), languages=("lt", "en"))
    first = acquired(tmp_path / "one", data)
    assert pairs(first, data) == [("vienas šuo", "one dog")] * 2
    both = Data(join=["memory", "again"], languages=("lt", "en"))
    joined = acquired(tmp_path / "two", both, joined=(first, first))
    assert len(pairs(joined, both)) == 4
    assert {line.split("\t")[0] for line in read_lines(joined)} == {"memory block 0", "again block 0"}


def test_every_file_that_names_its_languages_becomes_parallel_text(server, tmp_path):
    unit = "<trans-unit><source>one dog</source><target>vienas šuo</target></trans-unit>"
    body = f"<body>{unit}<trans-unit><source>two</source></trans-unit></body>"
    xliff = f'<xliff version="1.2"><file original="a b" source-language="en" target-language="lit">{body}</file></xliff>'
    catalogue = 'msgid ""\nmsgstr "Language: lt\\n"\n\nmsgid "one dog"\nmsgstr "vienas šuo"\n'
    for name, content, said, document in (
        ("x.xlf", xliff, {"units that are not translated": 1}, "a b"),
        ("x.po", catalogue, None, "block 0"),
    ):
        server.files[f"/{name}"] = packed = content.encode()
        data = Data(url=f"{server.url}/{name}", sha256=sha256(packed), languages=("lt", "en"))
        made = acquired(tmp_path / name, data)
        assert [line.split("\t") for line in read_lines(made)] == [[document, "vienas šuo", "one dog"]]
        (report,) = (tmp_path / name).rglob("*.json")
        assert read_json(report)["origin"].get("passed_over") == said
    memory = '<tmx><tu><tuv xml:lang="en"><seg>bus</seg></tuv><tuv xml:lang="pt-PT"><seg>autocarro</seg></tuv><tuv xml:lang="pt"><seg>ônibus</seg></tuv></tu></tmx>'
    server.files["/x.tmx"] = memory.encode()
    data = Data(url=f"{server.url}/x.tmx", sha256=sha256(memory.encode()), languages=("en", "pt"), columns={"en": "en", "pt": "pt-PT"})
    assert pairs(acquired(tmp_path / "tmx", data), data) == [("bus", "autocarro")]


# ---------------------------------------------------------------------------------------------
# other origins


def help_package(language: str, page: str) -> bytes:
    """A Debian package of the manual with one page, as dpkg-deb writes it."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:xz") as archive:
        info = tarfile.TarInfo(f"./usr/share/libreoffice/help/{language}/text/shared/main.html")
        info.size = len(page.encode())
        archive.addfile(info, io.BytesIO(page.encode()))
    return debian_archive("data.tar.xz", packed.getvalue())


def debian_archive(data: str, packed: bytes) -> bytes:
    """A Debian package whose files are in the archive `data`."""
    content = b"!<arch>\n"
    for name, part in (("debian-binary", b"2.0\n"), ("control.tar.xz", b"odd"), (data, packed)):
        content += f"{name:16}{0:<12}{0:<6}{0:<6}{100644:<8}{len(part):<10}`\n".encode() + part + b"\n" * (len(part) % 2)
    return content


def test_the_manual_from_a_debian_mirror(server, tmp_path, monkeypatch):
    page = '<h1 id="h">{}</h1><p id="p1">{} <a>{}</a></p><p id="p2">LibreOffice</p><p>{}</p><p id="p3">{} {}</p>'
    texts = {
        "en-us": ("Files", "Open", "a file.", "Loose", "Open", "a file."),
        "de": ("Dateien", "Öffnen", "Sie.", "Lose", "Öffnen", "Sie."),
    }
    index = ""
    for language, words in texts.items():
        package = help_package(language, page.format(*words))
        server.files[f"/pool/{language}_1.deb"] = package
        index += f"Package: libreoffice-help-{language}\nDescription: manual\n of it\nFilename: pool/{language}_1.deb\nSHA256: {sha256(package)}\n\n"
    server.files["/dists/bookworm/main/binary-all/Packages.xz"] = lzma.compress(index.encode())
    data = Data(debian=Debian({"en": "libreoffice-help-en-us", "de": "libreoffice-help-de"}, mirror=server.url))
    path = acquired(tmp_path, data)
    assert list(read_lines(path)) == ["shared/main\tFiles\tDateien", "shared/main\tOpen a file.\tÖffnen Sie."]
    assert read_json(tmp_path / "it.json")["origin"]["packages"]["de"]["sha256"] == sha256(server.files["/pool/de_1.deb"])
    # what is in the cache does without the network; what is not says where to put it, and is taken from there
    monkeypatch.setenv("CROSSGAP_OFFLINE", "1")
    assert acquired(tmp_path, data).exists()
    (tmp_path / "cache/debian/bookworm/Packages.xz").unlink()
    with pytest.raises(InputError, match="apt-get download libreoffice-help-en-us"):
        acquired(tmp_path, data)
    for language in texts:
        (tmp_path / f"cache/debian/libreoffice-help-{language}_1_all.deb").write_bytes(server.files[f"/pool/{language}_1.deb"])
    assert len(list(read_lines(acquired(tmp_path, data)))) == 2


def test_what_debian_does_not_have_is_an_error(server, tmp_path):
    server.files["/dists/bookworm/main/binary-all/Packages.xz"] = lzma.compress(
        b"Package: other\n\nPackage: libreoffice-help-nl\n\nPackage: libreoffice-help-en-us\n"
    )
    data = Data(debian=Debian({"en": "libreoffice-help-en", "de": "libreoffice-help-de"}, mirror=server.url))
    there = "has no package libreoffice-help-en; the manual is there as libreoffice-help-en-us, libreoffice-help-nl$"
    with pytest.raises(InputError, match=there):
        acquired(tmp_path, data)


@pytest.mark.parametrize("suffix, magic", [("xz", b"\xfd7zXZ\0"), ("zst", b"\x28\xb5\x2f\xfd"), ("gz", b"\x1f\x8b")])
def test_a_broken_debian_package_is_an_error(tmp_path, suffix, magic):
    package = tmp_path / "help.deb"
    package.write_bytes(debian_archive(f"data.tar.{suffix}", magic + b"odd" * 50))
    with pytest.raises(InputError, match=r"help\.deb: cannot be read as a Debian package"):
        help_pages.pages(package)


def alone(folder: Path, data: dict, **environment) -> subprocess.CompletedProcess:
    """The stage in a process of its own, for libraries that read the environment when they are imported."""
    command = [sys.executable, "-m", "workflow_scripts.text.acquisition", "--output", folder / "it.zst", "--report", folder / "it.json"]
    surroundings = {**os.environ, "PYTHONPATH": ".", **environment}
    return subprocess.run([*command, "--settings", json.dumps(data)], env=surroundings, capture_output=True, text=True)


def test_a_dataset_of_the_hub(server, tmp_path):
    import pyarrow
    from pyarrow import parquet

    about = {"info": {"features": {"label": {"_type": "ClassLabel", "names": ["yes", "no"]}, "text": {"_type": "Value"}}}}
    table = pyarrow.table({"text": ["ein Satz", "noch einer"], "label": [1, -1], "translation": [{"de": "a", "en": "b"}] * 2})
    packed = io.BytesIO()
    parquet.write_table(table.replace_schema_metadata({"huggingface": json.dumps(about)}), packed)
    name = "de/validation/0000.parquet"
    api, files = "/api/datasets/tiny/xnli", "/datasets/tiny/xnli/resolve"
    listing = {"id": "tiny/xnli", "sha": COMMIT, "siblings": [{"rfilename": name}, {"rfilename": "de/test/0000.parquet"}]}
    server.files[f"{api}/revision/refs%2Fconvert%2Fparquet"] = json.dumps(listing).encode()
    listed = [{"type": "file", "path": name, "oid": "e" * 40, "size": len(packed.getvalue())}]
    server.files[f"{api}/tree/{COMMIT}?recursive=true&expand=false"] = json.dumps(listed).encode()
    server.files[f"{files}/{COMMIT}/{name}"] = packed.getvalue()
    hub = {"HF_ENDPOINT": server.url, "HF_HOME": str(tmp_path / "hub"), "HF_HUB_DISABLE_XET": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}
    data = {"huggingface": {"dataset": "tiny/xnli", "config": "de", "split": "validation"}}
    done = alone(tmp_path, data, **hub)
    assert done.returncode == 0, done.stderr + str(server.requests)
    rows = [json.loads(line) for line in read_lines(tmp_path / "it.zst")]
    assert rows[0] == {"text": "ein Satz", "label": "no", "translation": {"de": "a", "en": "b"}} and rows[1]["label"] == -1
    assert read_json(tmp_path / "it.json")["origin"]["revision"] == COMMIT
    # from the hub's own cache, and without it
    (tmp_path / "it.zst").unlink()
    assert alone(tmp_path, data, **hub, HF_HUB_OFFLINE="1").returncode == 0 and (tmp_path / "it.zst").exists()
    missing = alone(tmp_path, data, HF_HOME=str(tmp_path / "empty"), HF_HUB_OFFLINE="1")
    assert (
        missing.returncode == 1
        and "`hf download tiny/xnli --repo-type dataset --revision refs/convert/parquet --include 'de/validation/*.parquet'`"
        in missing.stderr
    )


def test_a_test_set_of_sacrebleu(tmp_path):
    data, folder = {"sacrebleu": "wmt19", "languages": ["lt", "en"]}, tmp_path / "sacrebleu/wmt19"
    offline = {"SACREBLEU": str(tmp_path / "sacrebleu"), "CROSSGAP_OFFLINE": "1"}
    refused = alone(tmp_path, data, **offline)
    assert refused.returncode == 1 and f"to {folder}," in refused.stderr and "wmt19/translation-task/test.tgz" in refused.stderr
    for field, text in (("src", "Labas rytas.\n"), ("ref", "Good morning.\n"), ("docid", "1\n"), ("genre", "news\n"), ("origlang", "lt\n")):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"wmt19.lt-en.{field}").write_text(text, encoding="utf-8")
    done = alone(tmp_path, data, **offline)
    assert done.returncode == 0, done.stderr
    assert list(read_lines(tmp_path / "it.zst")) == ["block 0\tLabas rytas.\tGood morning."]
    part = Data(sacrebleu="wmt14/full", languages=("de", "en"))
    assert {place.name for place in acquisition.needed(part).values()} == {"wmt14_full.de-en.src"}
    wrong = alone(tmp_path, {**data, "sacrebleu": "wmt09"}, **offline)
    assert wrong.returncode == 1 and "for lt-en it has wmt19" in wrong.stderr


def test_the_checksum_of_what_is_made_is_optional(server, tmp_path):
    first = acquired(tmp_path / "one", Data(join=["a"], languages=("de", "en")), joined=(parallel(tmp_path / "a.tsv"),))
    data = Data(join=["a"], languages=("de", "en"), sha256="0" * 64)
    with pytest.raises(InputError, match=f"has the SHA-256 {sha256(first.read_bytes())}, expected is 0000"):
        acquired(tmp_path / "two", data, joined=(tmp_path / "a.tsv",))
    data.sha256 = sha256(first.read_bytes()).upper()
    assert acquired(tmp_path / "two", data, joined=(tmp_path / "a.tsv",)).exists()


def parallel(path: Path) -> Path:
    path.write_text("d\tHund\tdog\n")
    return path
