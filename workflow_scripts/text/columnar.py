"""columnar: reads parallel text from Parquet files, whose columns have names; a few thousand rows at a time."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from workflow_scripts.stage import InputError
from workflow_scripts.text.files import missing_file, packing
from workflow_scripts.text.language_codes import matching

SUFFIXES = (".parquet",)


def parquet_rows(path: Path, columns: Mapping[str, int | str], languages: tuple[str, str]) -> Iterator[dict[str, Any]]:
    """The rows of a Parquet file: what stands in the columns of the two `languages`, and in that of the `document` if `columns` name one.

    If `columns` name no column for a language, the one with its name is read. This may be a key of the objects in a column, such as
    `translation.de` in many datasets of the Hugging Face hub.

    Raises `InputError` for a file that cannot be read, and for columns that are not there.
    """
    from pyarrow import ArrowException, parquet

    if packing(path):
        raise InputError(f"{path}: Parquet is packed inside; unpack the file, so that its name ends in .parquet")
    try:
        file = parquet.ParquetFile(path)
        places = {".".join(keys): keys for keys in _places(file.schema_arrow)}
        chosen = {name: _column(path, name, columns, [*places]) for name in (*languages, *({"document"} & columns.keys()))}
        for batch in file.iter_batches(4096, columns=sorted({*chosen.values()})):
            for row in batch.to_pylist():
                yield {name: _value(row, places[column]) for name, column in chosen.items()}
    except FileNotFoundError:
        raise InputError(missing_file(path)) from None
    except (ArrowException, OSError) as error:
        raise InputError(f"{path}: cannot be read as Parquet ({str(error).splitlines()[0]}); get the file once more") from None


def _places(schema: Any) -> Iterator[tuple[str, ...]]:
    """The columns that can be read: the name of each, before it those of the columns that it is inside of. A name may have dots itself."""
    from pyarrow import types

    for field in schema:
        if types.is_struct(field.type):
            yield from ((field.name, *inner) for inner in _places(field.type))
        else:
            yield (field.name,)


def _column(path: Path, name: str, columns: Mapping[str, int | str], names: list[str]) -> str:
    """The column of a language, or of the documents."""
    column = columns.get(name)
    there = f"it has {', '.join(names)}"
    if column is not None:
        if column not in names:
            raise InputError(f"{path}: there is no column {column!r} for {name!r}; columns of Parquet have names, and {there}")
        return str(column)
    codes = {column.rpartition(".")[2]: column for column in reversed(names)}
    if not (matches := matching(codes, name)):
        raise InputError(f"{path}: has no column that is called like {name!r}; {there}: name one of them as `columns: {{{name}: …}}`")
    return codes[matches[0]]


def _value(row: Any, keys: tuple[str, ...]) -> Any:
    for key in keys:
        row = row and row[key]
    return row
