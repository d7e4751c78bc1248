"""Acquisition from a server on the loopback address: what is served is what a mirror, a hub or a web server would."""

import gzip
import hashlib
import io
import json
import lzma
import os
import subprocess
import sys
import tarfile
import threading
import zipfile
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from workflow_scripts.stage import InputError, read_json
from workflow_scripts.text import acquisition, fetching
from workflow_scripts.text.acquisition import Data, Debian, columns_of, main, suffix
from workflow_scripts.text.files import read_lines
from workflow_scripts.text.parallel import Source, read_pairs

COMMIT = "c" * 40


class Server(ThreadingHTTPServer):
    """Serves `files` by path, counts requests, and fails as it is told to."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.files: dict[str, bytes] = {}
        self.requests: list[tuple[str, str | None]] = []
        self.cuts: list[int] = []
        self.failures = 0
        self.url = f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        server, asked = self.server, self.headers["Range"]
        if self.command == "GET":
            server.requests.append((self.path, asked))
        if server.failures:
            server.failures -= 1
            return self.send_error(503)
        if self.path not in server.files:
            return self.send_error(404)
        content = server.files[self.path]
        start = int(asked.removeprefix("bytes=").rstrip("-")) if asked else 0
        if asked and start >= len(content):
            return self.send_error(416)
        self.send_response(206 if asked else 200)
        self.send_header("Content-Length", str(len(content) - start))
        self.send_header("ETag", f'"{sha256(content)}"')
        self.send_header("X-Repo-Commit", COMMIT)  # as the Hugging Face hub does
        self.end_headers()
        if self.command == "GET":
            # cut: the connection ends in the midst of the content
            self.wfile.write(content[start : start + server.cuts.pop(0)] if server.cuts else content[start:])
            self.close_connection = True

    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    with Server() as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture(autouse=True)
def surroundings(tmp_path, monkeypatch):
    """A cache of the test's own, no proxy, and no waiting."""
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)
    monkeypatch.delenv("CROSSGAP_OFFLINE", raising=False)
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    monkeypatch.setenv("CROSSGAP_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(fetching, "_PAUSE", 0.0)


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def acquired(folder: Path, data: Data, **options) -> Path:
    output = folder / f"it{suffix(data)}"
    main(output, folder / "it.json", settings=data, **options)
    return output


def pairs(path: Path, data: Data) -> list[tuple[str, str]]:
    a, b = acquisition.languages_of(data)
    return [(pair.a, pair.b) for pair in read_pairs(Source(file=str(path), columns=columns_of(data)), (a, b))]


def tar(**members: bytes) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return packed.getvalue()


# ---------------------------------------------------------------------------------------------
# one file


def test_a_file_is_downloaded_once(server, tmp_path):
    server.files["/words.txt"] = content = b"dog Hund\ncat Katze\n"
    data = Data(url=f"{server.url}/words.txt", sha256=sha256(content), licence="CC0", citation="Nobody 2020")
    assert acquired(tmp_path / "one", data).read_bytes() == content
    assert acquired(tmp_path / "two", replace(data, licence="", citation="")).read_bytes() == content and len(server.requests) == 1
    assert not {"licence", "citation"} & read_json(tmp_path / "two/it.json").keys()  # an empty licence would look like none
    report = read_json(tmp_path / "one/it.json")
    assert (report["sha256"], report["bytes"], report["licence"], report["citation"]) == (sha256(content), 19, "CC0", "Nobody 2020")
    assert report["origin"] == {"kind": "url", "url": data.url, "sha256": data.sha256} and len(report["date"]) == 10


def test_without_an_origin_it_says_what_there_is(tmp_path):
    with pytest.raises(InputError, match="nothing says where the data come from; give one of url, "):
        acquired(tmp_path, Data())


def test_a_wrong_checksum_is_refused(server, tmp_path):
    server.files["/words.txt"] = b"other words"
    data = Data(url=f"{server.url}/words.txt", sha256="0" * 64)
    with pytest.raises(InputError, match=f"has the SHA-256 {sha256(b'other words')}, expected is {'0' * 64}"):
        acquired(tmp_path / "out", data)
    assert not list((tmp_path / "out").iterdir()) and not list((tmp_path / "cache").rglob("words.txt*"))


def test_a_web_page_in_place_of_the_file_is_told(server, tmp_path):
    server.files["/big"] = b"\n<!DOCTYPE html><p>Virus scan warning"
    with pytest.raises(InputError, match="the server sent a web page"):
        acquired(tmp_path, Data(url=f"{server.url}/big", sha256="0" * 64))


def test_a_file_in_the_cache_that_was_changed_is_refused(server, tmp_path):
    server.files["/a.tsv"] = b"a\tb\n"
    data = Data(url=f"{server.url}/a.tsv", sha256=sha256(b"a\tb\n"))
    acquired(tmp_path, data)
    fetching.cached_path(data.url, data.sha256).write_bytes(b"changed")
    with pytest.raises(InputError, match=f"has the SHA-256 {sha256(b'changed')}, expected is {data.sha256}"):
        acquired(tmp_path, data)


def test_a_missing_checksum_is_told_and_costs_no_second_download(server, tmp_path):
    server.files["/words.txt"] = content = b"dog Hund\n"
    data = Data(url=f"{server.url}/words.txt")
    with pytest.raises(InputError, match=f"add `sha256: {sha256(content)}`"):
        acquired(tmp_path, data)
    data.sha256 = sha256(content)
    assert acquired(tmp_path, data).read_bytes() == content and len(server.requests) == 1


def test_a_download_that_breaks_off_goes_on_where_it_was(server, tmp_path):
    server.files["/long.txt"] = content = os.urandom(300_000)
    server.cuts = [100_000, 50_000]
    path = acquired(tmp_path, Data(url=f"{server.url}/long.txt", sha256=sha256(content)))
    assert path.read_bytes() == content
    assert [asked for _, asked in server.requests] == [None, "bytes=100000-", "bytes=150000-"]


def test_a_download_that_always_breaks_off_is_an_error_and_the_next_run_goes_on(server, tmp_path):
    server.files["/long.txt"] = content = os.urandom(300_000)
    server.cuts = [70_000] * fetching.ATTEMPTS
    data = Data(url=f"{server.url}/long.txt", sha256=sha256(content))
    with pytest.raises(InputError, match="cannot be downloaded"):
        acquired(tmp_path, data)
    assert acquired(tmp_path, data).read_bytes() == content and server.requests[-1][1] == "bytes=210000-"


def test_a_busy_server_is_asked_again_and_a_missing_file_is_not(server, tmp_path):
    server.files["/a.txt"] = b"text\n"
    server.failures = 2
    assert acquired(tmp_path, Data(url=f"{server.url}/a.txt", sha256=sha256(b"text\n"))).exists() and len(server.requests) == 3
    with pytest.raises(InputError, match="the server says 404 Not Found"):
        acquired(tmp_path, Data(url=f"{server.url}/b.txt", sha256="1" * 64))
    assert len(server.requests) == 4


@pytest.mark.parametrize("forbidden", [True, False])
def test_without_network_it_says_where_to_put_the_file_and_takes_it(forbidden, tmp_path, monkeypatch):
    with Server() as gone:
        url = f"{gone.url}/get.php?f=corpus/en-de.tsv.gz"
    if forbidden:
        monkeypatch.setenv("CROSSGAP_OFFLINE", "1")
    content = gzip.compress(b"dog\tHund\n")
    data = Data(url=url, sha256=sha256(content))
    with pytest.raises(InputError) as error:
        acquired(tmp_path, data)
    place = Path(str(error.value).partition("put it at ")[2].partition(" and run")[0])
    assert data.sha256 in str(error.value) and place.name == "en-de.tsv.gz" and suffix(data) == ".tsv.gz"
    place.write_bytes(content)
    assert acquired(tmp_path, data).read_bytes() == content


def test_the_first_lines_of_a_long_file(server, tmp_path):
    text = "".join(f"line {n} {os.urandom(40).hex()}\n" for n in range(50_000))
    server.files["/en.txt.xz"] = lzma.compress(text.encode(), preset=0)
    head = "".join(text.splitlines(keepends=True)[:20]).encode()
    data = Data(url=f"{server.url}/en.txt.xz", lines=20, sha256=sha256(head))
    assert acquired(tmp_path, data).read_bytes() == head and suffix(data) == ".txt"
    acquired(tmp_path, data)
    assert len(server.requests) == 1
    with pytest.raises(InputError, match="expected is"):
        acquired(tmp_path, Data(url=f"{server.url}/en.txt.xz", lines=21, sha256=sha256(head)))


# ---------------------------------------------------------------------------------------------
# archives and formats


def test_members_of_one_archive_are_downloaded_once(server, tmp_path):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("X-1/x.dev.tsv", "dev\n")
        archive.writestr("X-1/x.test.tsv", "test\n")
    server.files["/X-1.zip"] = packed.getvalue()
    for member, content in (("X-1/x.dev.tsv", b"dev\n"), ("./X-1/x.test.tsv", b"test\n")):
        data = Data(url=f"{server.url}/X-1.zip", sha256=sha256(packed.getvalue()), member=member)
        assert suffix(data) == ".tsv" and acquired(tmp_path, data).read_bytes() == content
    assert len(server.requests) == 1
    with pytest.raises(InputError, match=r"no file 'X-1/x.tset.tsv'; near it are X-1/x.test.tsv"):
        acquired(tmp_path, Data(url=data.url, sha256=data.sha256, member="X-1/x.tset.tsv"))
    with pytest.raises(InputError, match="holds 2 files, name one of them as `member`"):
        acquired(tmp_path, Data(url=data.url, sha256=data.sha256))
    both = Data(url=data.url, sha256=data.sha256, member="*/x.*.tsv")
    assert suffix(both) == ".tsv" and acquired(tmp_path, both).read_bytes() == b"dev\ntest\n"


def test_blocks_of_lines_of_several_members_are_documents_of_their_own(server, tmp_path):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name in ("a", "b"):
            archive.writestr(f"{name}.tsv", "".join(f"Hund {name} {n}\tdog {name} {n}\n" for n in range(50)))
    server.files["/x.zip"] = packed.getvalue()
    data = Data(url=f"{server.url}/x.zip", sha256=sha256(packed.getvalue()), member="*.tsv", languages=("de", "en"))
    documents = [line.split("\t")[0] for line in read_lines(acquired(tmp_path, data))]
    assert list(dict.fromkeys(documents)) == ["1 block 0", "1 block 1", "2 block 0", "2 block 1"] and len(documents) == 100


@pytest.mark.parametrize(
    "address, name",
    [
        ("https://zenodo.org/records/1/files/de-en.tsv.gz?download=1", "de-en.tsv.gz"),
        ("https://www.dropbox.com/s/x/de-en.TMX?dl=1", "de-en.TMX"),
        ("https://opus.nlpl.eu/download.php?f=SETIMES/v2/en-tr.tmx.gz", "en-tr.tmx.gz"),
        ("https://example.org/text", "text"),
        ("https://example.org/", "file"),
        (f"https://example.org/x?token={'a' * 300}", "a" * 100),
    ],
)
def test_the_name_of_a_file_is_found_in_its_address(address, name):
    assert fetching.base_name(address) == name


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


def test_packed_members_of_an_archive_are_read(server, tmp_path):
    members = {f"d/{n}.txt.gz": gzip.compress(f"line {n}\n".encode()) for n in (2, 1)} | {
        "x/train.tags.de.gz": gzip.compress(b"<url>\nok\n")
    }
    server.files["/p.tar.gz"] = content = tar(**members)
    known = {"url": f"{server.url}/p.tar.gz", "sha256": sha256(content)}
    for member, ending, text in (
        ("d/*.txt.gz", ".txt", b"line 1\nline 2\n"),  # in the order of their names, not of the archive
        (["d/1.txt.gz"], ".txt", b"line 1\n"),
        ("x/train.tags.de.gz", ".txt", None),
        ("d/1.txt.gz", ".txt.gz", members["d/1.txt.gz"]),
    ):
        made = acquired(tmp_path, Data(member=member, **known))
        assert made.name == f"it{ending}"
        if text is not None:
            assert made.read_bytes() == text


@pytest.mark.parametrize("name", ["../../escaped.txt", "/tmp/crossgap-escaped.txt"])
def test_an_archive_writes_nowhere_else(name, server, tmp_path):
    server.files["/bad.tgz"] = content = tar(**{name: b"text\n", "b": b"b\n"})
    before = {path for path in tmp_path.parent.iterdir()}
    acquired(tmp_path / "a/b", Data(url=f"{server.url}/bad.tgz", sha256=sha256(content), member=name))
    assert {path for path in tmp_path.parent.iterdir()} == before and not Path("/tmp/crossgap-escaped.txt").exists()
    assert {path.name for path in tmp_path.rglob("*escaped*")} == set() and [p.name for p in (tmp_path / "a").iterdir()] == ["b"]


def test_a_link_in_an_archive_is_not_followed(server, tmp_path):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        link = tarfile.TarInfo("passwords")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
    server.files["/bad.tgz"] = packed.getvalue()
    with pytest.raises(InputError, match="has no file 'passwords'"):
        acquired(tmp_path, Data(url=f"{server.url}/bad.tgz", sha256=sha256(packed.getvalue()), member="passwords"))


def test_what_is_no_archive_is_told(server, tmp_path):
    server.files["/bad.tgz"] = b"no archive"
    with pytest.raises(InputError, match="cannot be read as an archive"):
        acquired(tmp_path, Data(url=f"{server.url}/bad.tgz", sha256=sha256(b"no archive"), member="a"))


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
    assert pairs(acquired(tmp_path, train), train) == [("de & title", "en & title"), ("de one", "en one"), ("de two", "en two")]
    test = Data(**origin, member={code: [f"de-en/IWSLT14.TED.{part}.de-en.{code}.xml" for part in ("dev", "tst")] for code in ("de", "en")})
    sides = [pair[0] for pair in pairs(acquired(tmp_path, test), test)]
    assert sides == ["dev de & 1", "dev de 2", "tst de & 1", "tst de 2"]


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


# ---------------------------------------------------------------------------------------------
# other origins


def help_package(language: str, page: str) -> bytes:
    """A Debian package of the manual with one page, as dpkg-deb writes it."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:xz") as archive:
        info = tarfile.TarInfo(f"./usr/share/libreoffice/help/{language}/text/shared/main.html")
        info.size = len(page.encode())
        archive.addfile(info, io.BytesIO(page.encode()))
    content = b"!<arch>\n"
    for name, part in (("debian-binary", b"2.0\n"), ("control.tar.xz", b"odd"), ("data.tar.xz", packed.getvalue())):
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


def test_what_debian_does_not_have_is_told(server, tmp_path):
    server.files["/dists/bookworm/main/binary-all/Packages.xz"] = lzma.compress(
        b"Package: other\n\nPackage: libreoffice-help-nl\n\nPackage: libreoffice-help-en-us\n"
    )
    data = Data(debian=Debian({"en": "libreoffice-help-en", "de": "libreoffice-help-de"}, mirror=server.url))
    there = "has no package libreoffice-help-en; the manual is there as libreoffice-help-en-us, libreoffice-help-nl$"
    with pytest.raises(InputError, match=there):
        acquired(tmp_path, data)


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
    told = {"id": "tiny/xnli", "sha": COMMIT, "siblings": [{"rfilename": name}, {"rfilename": "de/test/0000.parquet"}]}
    server.files[f"{api}/revision/refs%2Fconvert%2Fparquet"] = json.dumps(told).encode()
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
