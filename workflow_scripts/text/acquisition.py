"""acquisition: downloads a piece of data that the configuration names, checks it, and writes it as one file.

It comes from one of these origins: a URL with its checksum, mtdata's index, a dataset of the Hugging Face hub, a test set of
sacreBLEU, Debian's packages of LibreOffice's manual, or a concatenation of other data.

With `languages` the result is parallel text, in whatever format the data were before (any that a corpus reads): a TSV
file with the columns document, first side and second side. Rows of a dataset become JSON lines. Anything else stays as it is. Next to
the file, a JSON file of the same name records origin, size, SHA-256 and date, and licence and citation where they are given.
"""

import datetime
import itertools
import os
import shutil
import socket
import subprocess
import sys
import tarfile
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from workflow_scripts.number_types import Positive
from workflow_scripts.stage import InputError, last_line, read_json, run, write_json
from workflow_scripts.storage import checksum
from workflow_scripts.text.fetching import (
    Unreachable,
    base_name,
    cache_folder,
    cached_path,
    extract,
    fetch,
    is_archive,
    is_offline,
    way_out,
)
from workflow_scripts.text.files import in_step, kind_of, packing, read_lines, write_lines
from workflow_scripts.text.help_pages import debian_package, index_path, index_url, paragraphs_of
from workflow_scripts.text.hub import HuggingFace, download_command, download_dataset
from workflow_scripts.text.parallel import Pair, Source, block_of, clean_text, needs_columns, read_pairs
from workflow_scripts.text.sides import Sentence, is_tagged, plain_sentences, sentences_of
from workflow_scripts.text.tag_columns import CONLLU


@dataclass
class Debian:
    """LibreOffice's manual in two languages, from Debian's packages."""

    packages: dict[str, str]
    """Language → package, such as {en: libreoffice-help-en-us, de: libreoffice-help-de}. Columns have this order."""
    suite: str = "bookworm"
    """Debian release; bookworm has the manual of LibreOffice 7.4."""
    mirror: str = "https://deb.debian.org/debian"
    """URL of the mirror. https://snapshot.debian.org/archive/debian/<time> has the packages of a given day. The environment variable
    `CROSSGAP_DEBIAN_MIRROR` overrides this setting."""


@dataclass
class Data:
    """Data to acquire: its origin, exactly one, and how it is read."""

    url: str | dict[str, str] | None = None
    """URL of a file to download. For parallel text in two files: language → URL."""
    sha256: str | dict[str, str] | None = None
    """SHA-256 of the downloaded file, or language → SHA-256. For other origins it is that of the resulting file, and optional."""
    member: str | list[str] | dict[str, str | list[str]] | None = None
    """File in the archive (.tar.*, .tgz, .zip), a list of files to concatenate, or language → file or files. Names may have shell
    wildcards; all matching files are concatenated in order of name."""
    lines: Positive | None = None
    """Number of lines to download from the start of `url` (plain, .gz or .xz). `sha256` is then that of these lines."""
    mtdata: str | None = None
    """Id of a dataset in mtdata, such as Statmt-europarl-9-lit-eng. `languages` must have the same order."""
    huggingface: HuggingFace | None = None
    """A dataset on the Hugging Face hub."""
    sacrebleu: str | None = None
    """Name of a test set in sacreBLEU, such as wmt19. `languages` are source and target."""
    debian: Debian | None = None
    """LibreOffice's manual in two languages, from Debian packages."""
    join: list[str] = field(default_factory=list)
    """Names of other data with the same `languages`, to be concatenated."""
    languages: tuple[str, str] | None = None
    """Both languages of parallel text."""
    header: bool = False
    """Whether the first line of a TSV file names its columns; for `columns` by name, and so that it is no pair."""
    columns: dict[str, int | str] = field(default_factory=dict)
    """Language → column number of a TSV file, key of JSON lines, or language code in files that name their languages. `document` is
    allowed too, as in a corpus. By default the first two columns, in the order of `languages`."""
    licence: str = ""
    """Licence of the data, shown in the report."""
    citation: str = ""
    """Publication to cite for the data, shown in the report."""


ORIGINS = ("url", "mtdata", "huggingface", "sacrebleu", "debian", "join")


def main(output: Path, report: Path, *, joined: tuple[Path, ...] = (), environment: Path | None = None, settings: Data = Data()) -> None:
    """Write the data to `output`, and their origin, size, checksum and licence to `report`.

    Args:
        output: The file to write; its suffix must be the one that `suffix` returns.
        report: The JSON file to write.
        joined: The files of the data that `join` names, in the same order.
        environment: JSON file with the path of mtdata's Python (written by the module `environment`).
        settings: What to acquire.

    Raises:
        InputError: The data cannot be downloaded, or differ from what the configuration says.
    """
    socket.setdefaulttimeout(60)  # for sacreBLEU, which sets none
    if not (origin := next((name for name in ORIGINS if getattr(settings, name)), None)):
        raise InputError(f"{output}: nothing says where the data come from; give one of {', '.join(ORIGINS)}")
    output.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=output.parent, prefix=f".{output.name}.") as folder:
        content = Path(folder) / output.name
        if origin == "url":
            provenance = _from_url(settings, content)
        elif origin == "mtdata":
            provenance = _from_mtdata(settings, content, environment)
        elif settings.huggingface:
            provenance = download_dataset(settings.huggingface, content)
        elif origin == "sacrebleu":
            provenance = _from_sacrebleu(settings, content)
        elif settings.debian:
            provenance = _from_debian(settings.debian, content)
        else:
            provenance = _from_others(settings, content, joined)
        digest = checksum(content)
        if origin != "url" and settings.sha256 and str(settings.sha256).lower() != digest:
            raise InputError(f"{output.name}: has the SHA-256 {digest}, expected is {settings.sha256}; its origin has changed")
        os.replace(content, output)
    write_json(
        report,
        {
            "origin": {"kind": origin, **provenance},
            "file": output.name,
            "bytes": output.stat().st_size,
            "sha256": digest,
            # in a run neither is given: the report takes both from the configuration
            **{key: value for key in ("licence", "citation") if (value := getattr(settings, key))},
            "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d"),
            "settings": {key: value for key, value in asdict(settings).items() if key not in ("licence", "citation")},
        },
    )


def suffix(data: Data) -> str:
    """The suffix of the resulting file: its format, and its compression if it stays compressed."""
    if data.languages or data.debian:
        return ".tsv.zst"
    if data.huggingface:
        return ".jsonl.zst"
    name = data.member if isinstance(data.member, str) else base_name(data.url) if isinstance(data.url, str) else ""
    if isinstance(data.member, list):
        kinds = {kind_of(member) for member in data.member}
        name = f"files{kinds.pop()}" if len(kinds) == 1 else ""
    if is_archive(name):
        return ".txt"
    name = name.lower()
    kind = kind_of(name) if kind_of(name) in (".jsonl", ".tsv", ".json", ".conllu") else ".txt"
    # what several files or tags are made of is not packed; a pattern may name several
    return kind + ("" if data.lines or is_tagged(Path(name)) or set("*?[") & set(name) else packing(Path(name)))


def languages_of(data: Data) -> tuple[str, str] | None:
    """The languages of parallel text in the order of its columns; None for other data, and where not two are named."""
    if data.debian and len(data.debian.packages) == 2:
        first, second = data.debian.packages
        return first, second
    return data.languages


def columns_of(data: Data) -> dict[str, int | str]:
    """Column numbers of document and sides in the resulting TSV file; empty for data that are not parallel text."""
    languages = languages_of(data)
    return {"document": 1, languages[0]: 2, languages[1]: 3} if languages else {}


def _both(data: Data) -> tuple[str, str]:
    if data.languages is None:
        raise InputError("parallel text needs `languages`, its two languages")
    return data.languages


def needed(data: Data) -> dict[str, Path]:
    """Addresses that would be downloaded → where a cache keeps them; asked before a run. mtdata's addresses are not included."""
    if data.url:
        urls, sums = _by_side(data.url), _by_side(data.sha256)
        return {url: cached_path(url, sums.get(side) or "<checksum>", data.lines) for side, url in urls.items()}
    if data.sacrebleu:
        dataset, folder = _test_set(data)
        # subsets, such as wmt14/full, are files of one folder with their names
        return {dataset.data[0]: folder / f"{str(data.sacrebleu).replace('/', '_')}.{'-'.join(_both(data))}.src"}
    if data.debian:
        return {index_url(data.debian.suite, _mirror(data.debian)): index_path(data.debian.suite)}
    if data.huggingface:
        from huggingface_hub import constants

        name = data.huggingface.dataset
        return {f"{constants.ENDPOINT}/api/datasets/{name}": Path(constants.HF_HUB_CACHE, f"datasets--{name.replace('/', '--')}")}
    return {}


def by_hand(data: Data, url: str, error: Unreachable) -> str:
    """What to do where an address of `needed` cannot be reached."""
    place, sums = needed(data)[url], _by_side(data.sha256)
    if data.sacrebleu:
        return _sacrebleu_by_hand(data, place.parent)
    if data.huggingface:
        return f"run `{download_command(data.huggingface)}` where there is network, with the same HF_HOME"
    side = next((side for side, address in _by_side(data.url).items() if address == url), "") if data.url else ""
    return way_out(error, f"with the SHA-256 {sums[side]}" if sums.get(side) else "as it is", place)


def _sacrebleu_by_hand(data: Data, folder: Path) -> str:
    name, pair = data.sacrebleu, "-".join(_both(data))
    return (
        f"run `sacrebleu -t {name} -l {pair} --echo src` where there is network, and copy ~/.sacrebleu/{name} to {folder}, "
        "replacing what is there now"
    )


# ---------------------------------------------------------------------------------------------
# origins: each writes the file, and returns what to record about it


def _from_url(settings: Data, output: Path) -> dict[str, Any]:
    urls, sums, members = map(_by_side, (settings.url, settings.sha256, settings.member))
    fetched = {side: fetch(url, sums.get(side), settings.lines) for side, url in urls.items()}
    passed: Counter[str] = Counter()
    files: dict[str, list[Path]] = {}
    for side in members if isinstance(settings.member, dict) else urls:
        path, wanted = fetched.get(side) or fetched[""], members.get(side) or members.get("")
        names = wanted if isinstance(wanted, list) else [wanted]
        packed = wanted or is_archive(path.name)  # the address of a download need not end like an archive's name
        files[side] = [member for name in names for member in extract(path, name, output.parent / "members" / side)] if packed else [path]
    if settings.languages:
        _write_pairs(output, _parallel(files, settings, passed))
    elif len(files[""]) == 1 and not is_tagged(files[""][0]) and packing(files[""][0]) == packing(output):
        shutil.copyfile(files[""][0], output)
    else:
        write_lines(output, _put_together(files[""], settings.header))
    counts = {"passed_over": dict(passed)} if passed else {}
    return {"url": urls if len(urls) > 1 else urls[""], "sha256": settings.sha256, **counts}


_OF_WORDS = (*CONLLU, ".conll", ".iob", ".iob2", ".bio")
"""Suffixes of files with a word a line, whose sentences end with an empty line."""


def _put_together(paths: list[Path], header: bool) -> Iterator[str]:
    """The lines of files that become one. Raises `InputError` for several files of JSON that is no line each.

    Sentences of words are kept apart by an empty line. Of a `header`, only the first file's is kept.
    """
    for number, path in enumerate(paths, 1):
        kind = kind_of(path)
        if kind == ".json" and len(paths) > 1:
            problem = f"{path.name}: is one of {len(paths)} JSON files, which cannot be put together"
            raise InputError(f"{problem}; name one member, or several data sets")
        # characters stay as they are: the starts of answers count them
        lines = plain_sentences(path) if is_tagged(path) else read_lines(path, normalise=False)
        line, in_sentences = "", kind in _OF_WORDS
        for line in itertools.islice(lines, int(header and number > 1 and kind != ".jsonl"), None):
            # a table of texts has no empty lines, and some readers refuse them
            in_sentences |= kind == ".tsv" and not line.strip()
            yield line
        # the last sentence of a file may lack the empty line that ends it
        if in_sentences and line.strip() and number < len(paths):
            yield ""


def _by_side(setting: Any) -> dict[str, Any]:
    """Language → its value; a single value for both languages has the empty string as its key."""
    return setting if isinstance(setting, dict) else {"": setting}


def _parallel(files: dict[str, list[Path]], settings: Data, passed: Counter[str]) -> Iterator[Pair]:
    """The pairs of files with both languages, one after the other, or of two files with one language each.

    Lines without a document are blocks of lines, numbered anew in each file; so the number of the file tells them apart.
    """
    languages = _both(settings)
    if "" not in files:
        yield from _of_two_sides(files, languages)
        return
    usual: dict[str, int | str] = dict(zip(languages, (1, 2), strict=True))
    several = len(files[""]) > 1
    for number, path in enumerate(files[""], 1):
        columns = settings.columns or (usual if needs_columns(str(path)) else {})
        for pair in read_pairs(Source(file=str(path), columns=columns, header=settings.header), languages, passed=passed):
            yield pair._replace(document=f"{number} {pair.document}") if several and "document" not in columns else pair


def _of_two_sides(files: dict[str, list[Path]], languages: tuple[str, str]) -> Iterator[Pair]:
    """The pairs of files with one language each, and the documents of the first side. Each side's files are read one after the other."""

    def of_side(code: str) -> Iterator[Sentence]:
        for number, path in enumerate(files[code], 1):
            for document, text in sentences_of(path):
                yield f"{number} {document}" if document and len(files[code]) > 1 else document, text

    for number, (document, a), (_, b) in in_step(*languages, of_side):
        yield Pair(block_of(number) if document is None else document, clean_text(a), clean_text(b), number)


def _from_mtdata(settings: Data, output: Path, environment: Path | None) -> dict[str, Any]:
    languages = _both(settings)
    python = read_json(environment) if environment else {"python": sys.executable, "reason": None}
    if python["reason"]:
        raise InputError(f"mtdata: {python['reason']}")
    raw = output.with_suffix(".mtdata.tsv")
    # mtdata's cache is put next to ours unless the user has set one; COLUMNS keeps its messages on one line
    surroundings = {"MTDATA": str(cache_folder() / "mtdata"), **os.environ, "COLUMNS": "1000"}
    Path(surroundings["MTDATA"]).mkdir(parents=True, exist_ok=True)
    with open(raw, "wb") as file:
        command: list[str] = [str(python["python"]), "-m", "mtdata", "--no-pbar", "echo", str(settings.mtdata)]
        done = subprocess.run(command, stdout=file, stderr=subprocess.PIPE, text=True, errors="replace", env=surroundings)
    sys.stderr.write(done.stderr)
    if done.returncode or not raw.stat().st_size:
        raise InputError(
            f"mtdata cannot give {settings.mtdata} ({last_line(done.stderr)}); "
            f"`mtdata list -l {'-'.join(languages)} -id` lists what it knows. "
            f"Without network, run `mtdata cache` elsewhere and copy its folder to {surroundings['MTDATA']}"
        )
    columns: dict[str, int | str] = dict(zip(languages, (1, 2), strict=True))
    _write_pairs(output, read_pairs(Source(file=str(raw), columns=columns), languages))
    return {"mtdata": settings.mtdata}


def _from_sacrebleu(settings: Data, output: Path) -> dict[str, Any]:
    from portalocker.exceptions import LockException

    dataset, folder = _test_set(settings)
    name, languages = settings.sacrebleu, _both(settings)
    pair = "-".join(languages)
    try:
        if is_offline() and not needed(settings)[dataset.data[0]].exists():
            raise OSError("offline, by CROSSGAP_OFFLINE")
        # of several references the first by its name: sacreBLEU has them in another order in each process
        sides = [dataset.get_source_file(pair), min(dataset.get_reference_files(pair))]
    # sacreBLEU exits on a wrong checksum, and waits a minute for another job that downloads the same file
    except (OSError, EOFError, tarfile.TarError, SystemExit, LockException) as error:
        raise InputError(
            f"sacreBLEU cannot download {name} ({error}); {_sacrebleu_by_hand(settings, folder)}; it downloads {', '.join(dataset.data)}"
        ) from None
    _write_pairs(output, read_pairs(Source(files=dict(zip(languages, sides, strict=True))), languages))
    return {"sacrebleu": name, "pair": pair, "url": dataset.data, "citation": dataset.citation}


def _test_set(settings: Data) -> tuple[Any, Path]:
    """sacreBLEU's entry for the test set, and the folder of its files."""
    from sacrebleu.dataset import DATASETS
    from sacrebleu.utils import SACREBLEU_DIR

    name, pair = settings.sacrebleu, "-".join(_both(settings))
    if name not in DATASETS or pair not in DATASETS[name].langpairs:
        known = sorted(testset for testset, entry in DATASETS.items() if pair in entry.langpairs)
        raise InputError(f"sacreBLEU has no test set {name!r} for {pair}; for {pair} it has {', '.join(known) or 'none'}")
    return DATASETS[name], Path(SACREBLEU_DIR, name)


def _from_debian(wanted: Debian, output: Path) -> dict[str, Any]:
    archives = {code: debian_package(name, wanted.suite, _mirror(wanted)) for code, name in wanted.packages.items()}
    write_lines(output, map("\t".join, paragraphs_of(*archives.values())))
    packages = {code: {"file": path.name, "sha256": checksum(path)} for code, path in archives.items()}
    return {"debian": wanted.suite, "packages": packages}


def _mirror(wanted: Debian) -> str:
    return (os.environ.get("CROSSGAP_DEBIAN_MIRROR") or wanted.mirror).rstrip("/")


def _from_others(settings: Data, output: Path, joined: tuple[Path, ...]) -> dict[str, Any]:
    def pairs() -> Iterator[Pair]:
        for name, path in zip(settings.join, joined, strict=True):
            for pair in read_pairs(Source(file=str(path), columns=columns_of(settings)), _both(settings)):
                yield pair._replace(document=f"{name} {pair.document}")

    _write_pairs(output, pairs())
    return {"join": settings.join}


def _write_pairs(path: Path, pairs: Iterable[Pair]) -> None:
    if not write_lines(path, (f"{pair.document}\t{pair.a}\t{pair.b}" for pair in pairs)):
        raise InputError(f"{path.name}: no line of text was found")


if __name__ == "__main__":
    run(main)
