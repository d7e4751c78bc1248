"""acquisition: a piece of data named in the configuration, downloaded once, checked, and written as one file.

It comes from one of these origins: a URL with its checksum, mtdata's index, a dataset of the Hugging Face hub, a test set of
sacreBLEU, Debian's packages of LibreOffice's manual, or other data one after the other.

With `languages` the file is parallel text, whatever it was before (Moses files, TMX, IWSLT's XML, WMT's SGML): a TSV of
document and the two sides. Rows of a dataset become JSON lines. Anything else stays as it is. Beside the file stands a JSON
file of the same name with origin, size, SHA-256, licence, citation and date.
"""

import csv
import datetime
import html
import itertools
import json
import os
import shutil
import socket
import subprocess
import sys
import tarfile
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import regex

from workflow_scripts.limits import Positive
from workflow_scripts.stage import InputError, checksum, read_json, run, write_json
from workflow_scripts.text.corpus import Pair, Source, read_pairs
from workflow_scripts.text.fetching import (
    base_name,
    cache_folder,
    cached_path,
    extract,
    fetch,
    first_cause,
    is_archive,
    is_offline,
    open_packed,
)
from workflow_scripts.text.files import read_lines, write_lines
from workflow_scripts.text.help_pages import debian_package, index_path, index_url, paragraphs_of


@dataclass
class HuggingFace:
    """A dataset of the Hugging Face hub."""

    dataset: str
    """Its id (owner/name)."""
    config: str = "default"
    """The subset."""
    split: str = "train"
    """The split."""
    files: list[str] = field(default_factory=list)
    """Names or patterns of files in the dataset (.parquet, .jsonl, .csv, .tsv), instead of the hub's Parquet copy of the split."""
    revision: str | None = None
    """The commit or tag; naming one makes the run repeatable."""


@dataclass
class Debian:
    """Two translations of LibreOffice's manual, from Debian's packages."""

    packages: dict[str, str]
    """Language → package, e.g. {en: libreoffice-help-en-us, de: libreoffice-help-de}; the pairs are in this order."""
    suite: str = "bookworm"
    """Debian's release; its manual is that of LibreOffice 7.4."""
    mirror: str = "https://deb.debian.org/debian"
    """Where the packages are; https://snapshot.debian.org/archive/debian/<time> has a day's. `$CROSSGAP_DEBIAN_MIRROR` goes over it."""


@dataclass
class Data:
    """A piece of data: one origin, and what is made of it."""

    url: str | dict[str, str] | None = None
    """A file to download; or language → file, where the two sides of a text have one each."""
    sha256: str | dict[str, str] | None = None
    """The checksum of `url`, or language → checksum. Of other origins that of the file that is made (optional)."""
    member: str | list[str] | dict[str, str | list[str]] | None = None
    """A file inside the archive (.tar.*, .tgz, .zip); several, one after the other; or language → file or files."""
    lines: Positive | None = None
    """Download the first lines of `url` only (plain, .gz or .xz); `sha256` is theirs."""
    mtdata: str | None = None
    """A dataset by mtdata's id, e.g. Statmt-europarl-9-lit-eng; `languages` are in the same order."""
    huggingface: HuggingFace | None = None
    """A dataset of the Hugging Face hub."""
    sacrebleu: str | None = None
    """A test set by sacreBLEU's name, e.g. wmt19; `languages` are source and target."""
    debian: Debian | None = None
    """LibreOffice's manual in two languages."""
    join: list[str] = field(default_factory=list)
    """Names of other data with the same `languages`, one after the other."""
    languages: tuple[str, str] | None = None
    """The two languages of parallel text."""
    columns: dict[str, int | str] = field(default_factory=dict)
    """Language → column of a TSV file or key of JSON lines, where they are not the first two in the order of `languages`; and
    `document`, as in a corpus."""
    licence: str = ""
    """What the data may be used for."""
    citation: str = ""
    """Whom to cite."""


ORIGINS = ("url", "mtdata", "huggingface", "sacrebleu", "debian", "join")


def main(output: Path, report: Path, *, joined: tuple[Path, ...] = (), environment: Path | None = None, settings: Data = Data()) -> None:
    """Write the data to `output`, and what is known of them to `report`.

    Args:
        output: The file, with the suffix that `suffix` tells.
        report: A JSON file.
        joined: The files of the data that `join` names.
        environment: The file that says where mtdata's Python is.
        settings: What to acquire.

    Raises:
        InputError: The data cannot be had, or are not what the configuration says.
    """
    socket.setdefaulttimeout(60)  # for sacreBLEU, which sets none
    origin = next(name for name in ORIGINS if getattr(settings, name))
    output.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=output.parent, prefix=f".{output.name}.") as folder:
        made = Path(folder) / output.name
        if origin == "url":
            told = _from_url(settings, made)
        elif origin == "mtdata":
            told = _from_mtdata(settings, made, environment)
        elif origin == "huggingface":
            told = _from_hub(settings.huggingface, made)
        elif origin == "sacrebleu":
            told = _from_sacrebleu(settings, made)
        elif origin == "debian":
            told = _from_debian(settings.debian, made)
        else:
            told = _from_others(settings, made, joined)
        found = checksum(made)
        if origin != "url" and settings.sha256 not in (None, found):
            raise InputError(f"{output.name}: has the SHA-256 {found}, expected is {settings.sha256}; its origin has changed")
        os.replace(made, output)
    write_json(
        report,
        {
            "origin": {"kind": origin, **told},
            "file": output.name,
            "bytes": output.stat().st_size,
            "sha256": found,
            "licence": settings.licence,
            "citation": settings.citation,
            "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d"),
            "settings": asdict(settings),
        },
    )


def suffix(data: Data) -> str:
    """How the file's name ends: what it is made into, and whether it is packed."""
    if data.languages or data.debian:
        return ".tsv.zst"
    if data.huggingface:
        return ".jsonl.zst"
    name = data.member if isinstance(data.member, str) else base_name(data.url) if isinstance(data.url, str) else ""
    if is_archive(name) or isinstance(data.member, list):
        return ".txt"
    path = Path(name.lower())
    packed = path.suffix if path.suffix in (".gz", ".xz", ".zst") else ""
    kind = path.stem if packed else path.name
    kind = {".jsonl": ".jsonl", ".ndjson": ".jsonl", ".tsv": ".tsv"}.get(Path(kind).suffix, ".txt")
    return kind + ("" if data.lines else packed)


def languages_of(data: Data) -> tuple[str, str] | None:
    """The languages of parallel text, in the order of its columns."""
    return tuple(data.debian.packages) if data.debian else data.languages


def columns_of(data: Data) -> dict[str, int]:
    """Where document and sides stand in the file of parallel text."""
    languages = languages_of(data)
    return {"document": 1, languages[0]: 2, languages[1]: 3} if languages else {}


def needed(data: Data) -> dict[str, Path]:
    """What is asked of the network, and where a cache has it: for a look beforehand. mtdata's own URLs are not known here."""
    if data.url:
        urls, sums = _by_side(data.url), _by_side(data.sha256)
        return {url: cached_path(url, sums.get(side) or "<checksum>", data.lines) for side, url in urls.items()}
    if data.sacrebleu:
        dataset, folder = _test_set(data)
        return {dataset.data[0]: folder / f"{folder.name}.{'-'.join(data.languages)}.src"}
    if data.debian:
        return {index_url(data.debian.suite, _mirror(data.debian)): index_path(data.debian.suite)}
    if data.huggingface:
        from huggingface_hub import constants

        name = data.huggingface.dataset
        return {f"{constants.ENDPOINT}/api/datasets/{name}": Path(constants.HF_HUB_CACHE, f"datasets--{name.replace('/', '--')}")}
    return {}


# ---------------------------------------------------------------------------------------------
# origins: each writes its file, and returns what to record


def _from_url(settings: Data, made: Path) -> dict[str, Any]:
    urls, sums, members = map(_by_side, (settings.url, settings.sha256, settings.member))
    fetched = {side: fetch(url, sums.get(side), settings.lines) for side, url in urls.items()}
    files: dict[str, list[Path]] = {}
    for side in members if isinstance(settings.member, dict) else urls:
        path, wanted = fetched.get(side) or fetched[""], members.get(side) or members.get("")
        names = wanted if isinstance(wanted, list) else [wanted]
        packed = wanted or is_archive(path.name)  # a server's link need not end as the archive does
        files[side] = [extract(path, name, made.parent / "members" / side) for name in names] if packed else [path]
    if settings.languages:
        _write_pairs(made, _parallel(files, settings, made.parent))
    elif len(files[""]) == 1 and not _is_tagged(files[""][0]):
        shutil.copyfile(files[""][0], made)
    else:
        write_lines(made, itertools.chain.from_iterable(map(_lines, files[""])))
    return {"url": urls if len(urls) > 1 else urls[""], "sha256": settings.sha256}


def _by_side(given: Any) -> dict[str, Any]:
    """Language → what is given for it; one for all stands under the empty name."""
    return given if isinstance(given, dict) else {"": given}


def _parallel(files: dict[str, list[Path]], settings: Data, folder: Path) -> Iterator[Pair]:
    """The pairs of one file, or of one for each language."""
    languages = settings.languages
    if "" not in files:
        sides = {code: str(folder / f"{code}.txt") for code in languages}
        for code, path in sides.items():
            write_lines(Path(path), itertools.chain.from_iterable(map(_lines, files[code])))
        yield from read_pairs(Source(files=sides), languages)
        return
    for path in files[""]:
        if ".tmx" in path.name:
            yield from _read_tmx(path, languages)
        else:
            columns = settings.columns or dict(zip(languages, (1, 2), strict=True))
            yield from read_pairs(Source(file=str(path), columns=columns), languages)


def _from_mtdata(settings: Data, made: Path, environment: Path | None) -> dict[str, Any]:
    python = read_json(environment) if environment else {"python": sys.executable, "reason": None}
    if python["reason"]:
        raise InputError(f"mtdata: {python['reason']}")
    raw = made.with_suffix(".mtdata.tsv")
    # its cache goes beside ours, unless the user has one; messages are not to be wrapped
    surroundings = {"MTDATA": str(cache_folder() / "mtdata"), **os.environ, "COLUMNS": "1000"}
    Path(surroundings["MTDATA"]).mkdir(parents=True, exist_ok=True)
    with open(raw, "wb") as file:
        command = [python["python"], "-m", "mtdata", "--no-pbar", "echo", settings.mtdata]
        done = subprocess.run(command, stdout=file, stderr=subprocess.PIPE, text=True, errors="replace", env=surroundings)
    sys.stderr.write(done.stderr)
    if done.returncode or not raw.stat().st_size:
        said = (done.stderr.strip().splitlines() or ["without a word"])[-1]
        raise InputError(
            f"mtdata cannot give {settings.mtdata} ({said}); `mtdata list -l {'-'.join(settings.languages)} -id` lists what it knows. "
            f"Without network, run `mtdata cache` elsewhere and copy its folder to {surroundings['MTDATA']}"
        )
    columns = dict(zip(settings.languages, (1, 2), strict=True))
    _write_pairs(made, read_pairs(Source(file=str(raw), columns=columns), settings.languages))
    return {"mtdata": settings.mtdata}


def _from_hub(wanted: HuggingFace, made: Path) -> dict[str, Any]:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import GatedRepoError, HFValidationError, RepositoryNotFoundError, RevisionNotFoundError

    patterns = wanted.files or [f"{wanted.config}/{wanted.split}/*.parquet"]
    revision = wanted.revision if wanted.files or wanted.revision else "refs/convert/parquet"
    included = " ".join(f"--include '{pattern}'" for pattern in patterns)
    download = f"hf download {wanted.dataset} --repo-type dataset{f' --revision {revision}' if revision else ''} {included}"
    try:
        folder = Path(
            snapshot_download(
                wanted.dataset,
                repo_type="dataset",
                revision=revision,
                allow_patterns=patterns,
                local_files_only=is_offline(),
                etag_timeout=30,
            )
        )
    except (HFValidationError, GatedRepoError, RepositoryNotFoundError, RevisionNotFoundError) as error:
        raise InputError(
            f"the hub has no dataset {wanted.dataset} {revision or ''} that you may read ({type(error).__name__}); "
            "check the name, or run `hf auth login`"
        ) from None
    except (OSError, ValueError) as error:
        raise InputError(
            f"{wanted.dataset} is not in the Hugging Face cache, and cannot be downloaded ({first_cause(error)}); run `{download}` "
            "where there is network, with the same HF_HOME"
        ) from None
    files = sorted({path for pattern in patterns for path in folder.glob(pattern)})
    if not files:
        raise InputError(
            f"{wanted.dataset}: has no {' or '.join(patterns)} in {revision or 'its main branch'}; check config and split, or name `files`"
        )
    rows = itertools.chain.from_iterable(map(_rows, files))
    write_lines(made, (json.dumps(row, ensure_ascii=False, default=str) for row in rows))
    names = [str(path.relative_to(folder)) for path in files]
    return {"huggingface": wanted.dataset, "revision": folder.name, "files": names}


def _from_sacrebleu(settings: Data, made: Path) -> dict[str, Any]:
    dataset, folder = _test_set(settings)
    name, pair = settings.sacrebleu, "-".join(settings.languages)
    try:
        if is_offline() and not needed(settings)[dataset.data[0]].exists():
            raise OSError("offline, by CROSSGAP_OFFLINE or HF_HUB_OFFLINE")
        sides = [dataset.get_source_file(pair), dataset.get_reference_files(pair)[0]]
    except (OSError, EOFError, tarfile.TarError, SystemExit) as error:  # it ends the process over a wrong checksum
        raise InputError(
            f"sacreBLEU cannot download {name} ({error}). Run `sacrebleu -t {name} -l {pair} --echo src` where there is network, and copy "
            f"~/.sacrebleu/{name} to {folder}, whatever is there now; it downloads {', '.join(dataset.data)}"
        ) from None
    _write_pairs(made, read_pairs(Source(files=dict(zip(settings.languages, sides, strict=True))), settings.languages))
    return {"sacrebleu": name, "pair": pair, "url": dataset.data, "citation": dataset.citation}


def _test_set(settings: Data) -> tuple[Any, Path]:
    """A test set of sacreBLEU, and its folder."""
    from sacrebleu.dataset import DATASETS
    from sacrebleu.utils import SACREBLEU_DIR

    name, pair = settings.sacrebleu, "-".join(settings.languages)
    if name not in DATASETS or pair not in DATASETS[name].langpairs:
        known = sorted(each for each, one in DATASETS.items() if pair in one.langpairs)
        raise InputError(f"sacreBLEU has no test set {name!r} for {pair}; for {pair} it has {', '.join(known) or 'none'}")
    return DATASETS[name], Path(SACREBLEU_DIR, name)


def _from_debian(wanted: Debian, made: Path) -> dict[str, Any]:
    found = {code: debian_package(name, wanted.suite, _mirror(wanted)) for code, name in wanted.packages.items()}
    write_lines(made, map("\t".join, paragraphs_of(*found.values())))
    packages = {code: {"file": path.name, "sha256": checksum(path)} for code, path in found.items()}
    return {"debian": wanted.suite, "packages": packages}


def _mirror(wanted: Debian) -> str:
    return (os.environ.get("CROSSGAP_DEBIAN_MIRROR") or wanted.mirror).rstrip("/")


def _from_others(settings: Data, made: Path, joined: tuple[Path, ...]) -> dict[str, Any]:
    def pairs() -> Iterator[Pair]:
        for name, path in zip(settings.join, joined, strict=True):
            for pair in read_pairs(Source(file=str(path), columns=columns_of(settings)), settings.languages):
                yield pair._replace(document=f"{name} {pair.document}")

    _write_pairs(made, pairs())
    return {"join": settings.join}


# ---------------------------------------------------------------------------------------------
# formats


def _write_pairs(path: Path, pairs: Iterable[Pair]) -> None:
    if not write_lines(path, (f"{pair.document}\t{pair.a}\t{pair.b}" for pair in pairs)):
        raise InputError(f"{path.name}: no line of text was found")


_SEGMENT = regex.compile(r"<seg[^>]*>(.*?)</seg>", regex.IGNORECASE)
_TAGGED = regex.compile(r"<(title|description)>(.*?)</\1>")


def _is_tagged(path: Path) -> bool:
    return path.suffix in (".xml", ".sgm", ".sgml") or path.name.startswith("train.tags.")


def _lines(path: Path) -> Iterator[str]:
    """The sentences of a file: the segments of IWSLT's and WMT's XML, or the lines.

    Of IWSLT's train.tags files the talks' text, titles and descriptions, as is usual; not the other tagged lines. These
    files are no well-formed XML.
    """
    if not _is_tagged(path):
        yield from read_lines(path)
    elif path.name.startswith("train.tags."):
        for line in map(str.strip, read_lines(path)):
            if tagged := _TAGGED.match(line):
                yield tagged[2].strip()
            elif not line.startswith("<"):
                yield line
    else:
        for line in read_lines(path):
            yield from (html.unescape(found).strip() for found in _SEGMENT.findall(line))


def _read_tmx(path: Path, languages: tuple[str, str]) -> Iterator[Pair]:
    """The pairs of a translation memory; its languages may have a region (en-GB)."""
    from lxml import etree

    number = 0
    try:
        with open_packed(path) as file:
            for _, unit in etree.iterparse(file, tag="{*}tu", recover=True, resolve_entities=False, huge_tree=True):
                texts: dict[str, str] = {}
                for variant in unit.iter("{*}tuv"):
                    code = variant.get("{http://www.w3.org/XML/1998/namespace}lang") or variant.get("lang") or ""
                    text = " ".join("".join(part for segment in variant.iter("{*}seg") for part in segment.itertext()).split())
                    texts.setdefault(regex.split(r"[-_]", code.lower())[0], text)
                unit.clear()
                while unit.getprevious() is not None:
                    del unit.getparent()[0]
                if all(texts.get(code) for code in languages):
                    yield Pair(f"block {number // 40}", *(texts[code] for code in languages), number + 1)
                    number += 1
    except (etree.LxmlError, OSError, EOFError) as error:
        raise InputError(f"{path}: cannot be read as TMX: {error}") from None


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    """The rows of a dataset's file; numbers of classes by their names."""
    if path.suffix == ".parquet":
        from pyarrow import parquet

        file = parquet.ParquetFile(path)
        about = json.loads((file.schema_arrow.metadata or {}).get(b"huggingface", b"{}"))
        features = about.get("info", {}).get("features", {})
        names = {key: kind["names"] for key, kind in features.items() if isinstance(kind, dict) and kind.get("_type") == "ClassLabel"}
        for batch in file.iter_batches():
            for row in batch.to_pylist():
                # −1 stands for no label
                yield row | {key: known[row[key]] for key, known in names.items() if row[key] is not None and row[key] >= 0}
    elif path.suffix in (".csv", ".tsv"):
        with open(path, encoding="utf-8", newline="") as file:
            yield from csv.DictReader(file, delimiter="," if path.suffix == ".csv" else "\t")
    else:
        for number, line in enumerate(read_lines(path), 1):
            try:
                yield json.loads(line)
            except ValueError as error:
                raise InputError(f"{path}, line {number}: is no JSON ({error}); .parquet, .csv, .tsv and JSON lines are read") from None


if __name__ == "__main__":
    run(main)
