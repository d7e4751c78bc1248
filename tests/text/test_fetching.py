"""Downloads and archives, from a server on the loopback address."""

import gzip
import io
import lzma
import os
import tarfile
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
import zstandard
from served import Handler, Server, acquired, sha256, tar

from workflow_scripts.stage import InputError, read_json
from workflow_scripts.text import fetching
from workflow_scripts.text.acquisition import Data, suffix
from workflow_scripts.text.fetching import Absent, size_of
from workflow_scripts.text.files import read_lines

pytestmark = pytest.mark.usefixtures("surroundings")


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


def test_a_wrong_checksum_is_refused(server, tmp_path):
    server.files["/words.txt"] = b"other words"
    data = Data(url=f"{server.url}/words.txt", sha256="0" * 64)
    with pytest.raises(InputError, match=f"has the SHA-256 {sha256(b'other words')}, expected is {'0' * 64}"):
        acquired(tmp_path / "out", data)
    assert not list((tmp_path / "out").iterdir()) and not list((tmp_path / "cache").rglob("words.txt*"))


def test_a_web_page_in_place_of_the_file_is_an_error(server, tmp_path):
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


def test_a_missing_checksum_is_an_error_and_costs_no_second_download(server, tmp_path):
    server.files["/words.txt"] = content = b"dog Hund\n"
    data = Data(url=f"{server.url}/words.txt")
    with pytest.raises(InputError, match=f"add `sha256: {sha256(content)}`, in a block with `each`"):
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


@pytest.mark.parametrize("status", [403, 405, 501])
def test_a_server_that_refuses_to_tell_the_size_alone_is_asked_for_the_file(server, status, monkeypatch):
    monkeypatch.setattr(Handler, "do_HEAD", lambda handler: handler.send_error(status))
    server.files["/x.tsv"] = b"a\tb\n"
    assert size_of(f"{server.url}/x.tsv") == 4
    with pytest.raises(Absent, match="the server says 404"):
        size_of(f"{server.url}/y.tsv")


def test_a_busy_server_is_asked_again_and_a_missing_file_is_not(server, tmp_path):
    server.files["/a.txt"] = b"text\n"
    server.failures = 2
    assert acquired(tmp_path, Data(url=f"{server.url}/a.txt", sha256=sha256(b"text\n"))).exists() and len(server.requests) == 3
    with pytest.raises(
        InputError, match=r"the server says 404 Not Found\); correct the address; or get the file elsewhere, with the SHA-256 1"
    ):
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


@pytest.mark.parametrize("name", ["en.txt.xz", "en.txt.gz", "en.txt"])
def test_the_first_lines_are_asked_for_again_where_a_download_breaks_off_or_the_server_is_busy(name, server, tmp_path):
    text = "".join(f"line {n} {os.urandom(40).hex()}\n" for n in range(2_000)).encode()
    pack = {".xz": lzma.compress, ".gz": gzip.compress}.get(Path(name).suffix, bytes)
    server.files[f"/{name}"] = pack(text)
    head = b"".join(text.splitlines(keepends=True)[:1_900])
    server.failures, server.cuts = 1, [1_000]
    assert acquired(tmp_path, Data(url=f"{server.url}/{name}", lines=1_900, sha256=sha256(head))).read_bytes() == head
    assert [asked for _, asked in server.requests] == [None] * fetching.ATTEMPTS


@pytest.mark.parametrize("lines", [None, 1])
def test_a_server_that_stays_busy_may_be_asked_later(lines, server, tmp_path):
    server.failures = fetching.ATTEMPTS
    with pytest.raises(InputError, match=r"the server says 503 .*\); try again later; or get the file elsewhere, with the SHA-256 1"):
        acquired(tmp_path, Data(url=f"{server.url}/a.txt", sha256="1" * 64, lines=lines))
    with pytest.raises(InputError, match=r"the server says 404 Not Found\); correct the address"):
        acquired(tmp_path, Data(url=f"{server.url}/a.txt", sha256="1" * 64, lines=lines))
    assert len(server.requests) == fetching.ATTEMPTS + 1


# ---------------------------------------------------------------------------------------------
# archives


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


def test_names_in_capitals_are_those_of_packed_files_too(server, tmp_path):
    for name, content in (
        ("A.TGZ", tar(a=b"text\n")),
        ("A.TXT.GZ", gzip.compress(b"text\n")),
        ("A.TXT.ZST", zstandard.compress(b"text\n")),
    ):
        server.files[f"/{name}"] = content
        assert list(read_lines(acquired(tmp_path / name, Data(url=f"{server.url}/{name}", sha256=sha256(content))))) == ["text"]
        data = Data(url=f"{server.url}/{name}", sha256=sha256(content), languages=("de", "en"), columns={"de": 1, "en": 1})
        assert list(read_lines(acquired(tmp_path / f"pairs {name}", data))) == ["block 0\ttext\ttext"]


def test_a_link_in_an_archive_is_not_followed(server, tmp_path):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        link = tarfile.TarInfo("passwords")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
    server.files["/bad.tgz"] = packed.getvalue()
    with pytest.raises(InputError, match="has no file 'passwords'"):
        acquired(tmp_path, Data(url=f"{server.url}/bad.tgz", sha256=sha256(packed.getvalue()), member="passwords"))


def test_what_is_no_archive_is_an_error(server, tmp_path):
    server.files["/bad.tgz"] = b"no archive"
    with pytest.raises(InputError, match="cannot be read as an archive"):
        acquired(tmp_path, Data(url=f"{server.url}/bad.tgz", sha256=sha256(b"no archive"), member="a"))
