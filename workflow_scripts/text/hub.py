"""hub: a dataset of the Hugging Face hub, written as JSON lines."""

import csv
import itertools
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from workflow_scripts.stage import InputError
from workflow_scripts.storage import refused_file
from workflow_scripts.text.fetching import first_cause, is_offline
from workflow_scripts.text.files import read_lines, whole_characters, write_lines


@dataclass
class HuggingFace:
    """A dataset of the Hugging Face hub."""

    dataset: str
    """Id of the dataset (owner/name)."""
    config: str = "default"
    """Name of the subset (config)."""
    split: str = "train"
    """Name of the split."""
    files: list[str] = field(default_factory=list)
    """Names or patterns of files in the dataset (.parquet, .jsonl, .csv, .tsv). They replace the hub's Parquet copy of the split."""
    revision: str | None = None
    """Commit or tag on the hub. Set it to make the run repeatable."""


def patterns_of(wanted: HuggingFace) -> tuple[list[str], str | None]:
    """The files of the dataset that are read, by patterns, and their revision: by default those of the hub's own Parquet copy."""
    patterns = wanted.files or [f"{wanted.config}/{wanted.split}/*.parquet"]
    return patterns, wanted.revision if wanted.files or wanted.revision else "refs/convert/parquet"


def download_command(wanted: HuggingFace) -> str:
    """The command that brings the dataset into the hub's cache, to be typed where there is network."""
    patterns, revision = patterns_of(wanted)
    included = " ".join(f"--include '{pattern}'" for pattern in patterns)
    return f"hf download {wanted.dataset} --repo-type dataset{f' --revision {revision}' if revision else ''} {included}"


def download_dataset(wanted: HuggingFace, output: Path) -> dict[str, Any]:
    """Write the rows of a dataset to `output`, one JSON object per line, and return what to record: id, revision and files.

    Files are kept in the hub's own cache (`HF_HOME`).

    Raises:
        InputError: The hub has no such dataset or file, refuses access, or cannot be reached; or a file cannot be read.
    """
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import GatedRepoError, HFValidationError, RepositoryNotFoundError, RevisionNotFoundError
    from huggingface_hub.utils import filter_repo_objects

    patterns, revision = patterns_of(wanted)
    try:
        folder = Path(
            snapshot_download(
                wanted.dataset,
                repo_type="dataset",
                revision=revision,
                allow_patterns=patterns,
                local_files_only=is_offline("HF_HUB_OFFLINE"),
                etag_timeout=30,
            )
        )
    except (HFValidationError, GatedRepoError, RepositoryNotFoundError, RevisionNotFoundError) as error:
        raise InputError(
            f"the hub has no dataset {wanted.dataset} {revision or ''} that you may read ({type(error).__name__}); "
            "check the name, or run `hf auth login`"
        ) from None
    except Exception as error:  # the hub's client raises many kinds of errors: no network, a proxy, a busy server
        if isinstance(error, OSError) and (refusal := refused_file(error)):
            raise InputError(f"{wanted.dataset}: {refusal}") from None
        raise InputError(
            f"{wanted.dataset} is not in the Hugging Face cache, and cannot be downloaded ({first_cause(error)}); "
            f"run `{download_command(wanted)}` where there is network, with the same HF_HOME"
        ) from None
    files_there = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    # by the patterns' meaning when they were downloaded: * stands for / as well
    files = sorted(files_there[name] for name in filter_repo_objects(files_there, allow_patterns=patterns))
    if not files:
        raise InputError(
            f"{wanted.dataset}: has no {' or '.join(patterns)} in {revision or 'its main branch'}; check config and split, or name `files`"
        )
    rows = itertools.chain.from_iterable(map(_rows, files))
    write_lines(output, (json.dumps(row, ensure_ascii=False, default=str) for row in rows))
    names = [str(path.relative_to(folder)) for path in files]
    return {"huggingface": wanted.dataset, "revision": folder.name, "files": names}


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    """The rows of a dataset's file. Class numbers are replaced by the names of the classes."""
    if path.suffix == ".parquet":
        from pyarrow import ArrowException, parquet

        try:
            file = parquet.ParquetFile(path)
            about = json.loads((file.schema_arrow.metadata or {}).get(b"huggingface", b"{}"))
            features = about.get("info", {}).get("features", {})
            names = {key: names for key, kind in features.items() if (names := _class_names(kind))}
            for batch in file.iter_batches():
                for row in batch.to_pylist():
                    yield row | {key: _named(row[key], known) for key, known in names.items()}
        except (ArrowException, OSError) as error:
            raise InputError(f"{path}: cannot be read as Parquet ({error}); delete the file, so that it is downloaded again") from None
    elif path.suffix in (".csv", ".tsv"):
        csv.field_size_limit(sys.maxsize)
        # in tables with tabs, a quotation mark is a character like others
        form: dict[str, Any] = {"strict": True} if path.suffix == ".csv" else {"delimiter": "\t", "quoting": csv.QUOTE_NONE}
        way_out = "leave `files` out, which reads the hub's own Parquet copy, or download and correct it"
        with open(path, encoding="utf-8-sig", newline="") as lines:
            reader = csv.DictReader(lines, **form)
            try:
                for row in reader:
                    if None in row:
                        raise InputError(f"{path}, line {reader.line_num}: has more columns than the header; {way_out}")
                    yield row
            except csv.Error as error:
                raise InputError(f"{path}, after line {reader.line_num}: cannot be read as a table ({error}); {way_out}") from None
            except UnicodeDecodeError as error:
                problem = f"{path}, after line {reader.line_num}: not UTF-8 (byte {error.object[error.start]:#04x})"
                raise InputError(f"{problem}; {way_out}") from None
    else:
        # as they are: the starts of answers count the characters of the file
        for number, line in enumerate(read_lines(path, normalise=False), 1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
                whole_characters(json.dumps(row, ensure_ascii=False))
                yield row
            except ValueError as error:
                raise InputError(f"{path}, line {number}: is no JSON ({error}); .parquet, .csv, .tsv and JSON lines are read") from None


def _class_names(kind: Any) -> list[str]:
    """The names of the classes of a feature, such as a label, or of the items of a list, such as tags; none where it has no classes."""
    if not isinstance(kind, dict):
        return []
    return kind["names"] if kind.get("_type") == "ClassLabel" else _class_names(kind.get("feature"))


def _named(value: Any, names: list[str]) -> Any:
    """The class of a number, or the classes of a list of them; −1 stands for no label and stays."""
    if isinstance(value, list):
        return [_named(item, names) for item in value]
    return value if value is None or value < 0 else names[value]
