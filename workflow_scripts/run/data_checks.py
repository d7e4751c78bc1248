"""data_checks: checks of the configuration's data to acquire: where they come from, in which languages, and what is joined.

As in `consistency`, each problem is a line that names the key, what is wrong with it, and what would be right.
"""

from collections.abc import Iterator

from workflow_scripts.config.configuration import Config
from workflow_scripts.names import is_name, undefined
from workflow_scripts.run.text_checks import language_problems, read_twice
from workflow_scripts.run.uses import sources_of
from workflow_scripts.text.acquisition import ORIGINS, Data, languages_of
from workflow_scripts.text.fetching import base_name, is_archive
from workflow_scripts.text.parallel import Source, needs_columns, problem_of_columns


def data_problems(config: Config) -> Iterator[str]:
    """Every line tells a problem of the data to acquire; while there is one, the files that the data stand for are unknown."""
    for name, corpus in config.corpora.items():
        for part, source in sources_of(corpus).items():
            if source.data:
                yield from _data_taken_problems(f"corpora.{name}.{part}", source, config.data)
    for name, data in config.data.items():
        where = f"data.{name}"
        if not is_name(name):
            yield f"{where}: names are files: letters, digits, - and _ only"
        given = [origin for origin in ORIGINS if getattr(data, origin)]
        if len(given) != 1:
            yield f"{where}: needs one origin of {', '.join(ORIGINS)}; it has {' and '.join(given) or 'none'}"
            continue
        yield from _origin_problems(where, given[0], data)
        yield from _sides_problems(where, data)
        yield from _data_column_problems(where, data)
        yield from _checksum_problems(where, data)
        for code in dict.fromkeys(languages_of(data) or ()):
            yield from language_problems(where, code)
        yield from _join_problems(where, data, config.data)


def _data_taken_problems(where: str, source: Source, known: dict[str, Data]) -> Iterator[str]:
    """A source that takes acquired data must name a block of `data`, and no file of its own."""
    yield from undefined(f"{where}.data", source.data or "", known)
    if source.file or source.files or source.held_out:
        yield f"{where}: `data` takes the place of `file`, `files` and `held_out`; give one of them"


def _origin_problems(where: str, origin: str, data: Data) -> Iterator[str]:
    """The settings of a block of data must suit its origin."""
    if origin != "url" and (data.member or data.lines):
        yield f"{where}: member and lines are for `url`"
    if data.lines and data.member:
        yield f"{where}.lines: cannot be taken from an archive's member"
    for url in (data.url.values() if isinstance(data.url, dict) else [data.url or ""]) if data.lines else ():
        if is_archive(name := base_name(url)) or name.endswith((".zst", ".bz2", ".7z")):
            yield f"{where}.lines: can be taken from a plain, .gz or .xz file; {name} is packed otherwise: leave `lines` out"
    if origin in ("mtdata", "sacrebleu", "join") and not data.languages:
        yield f"{where}.languages: is missing; {origin} gives parallel text"
    if origin in ("huggingface", "debian") and data.languages:
        yield f"{where}.languages: {origin} takes none"
    if data.debian and len(data.debian.packages) != 2:
        yield f"{where}.debian.packages: names the packages of two languages, got {data.debian.packages}"


def _sides_problems(where: str, data: Data) -> Iterator[str]:
    """Settings that are given for each language must have all languages and no others."""
    for key in ("url", "member"):
        sides = getattr(data, key)
        if isinstance(sides, dict) and sorted(sides) != sorted(data.languages or ()):
            yield f"{where}.{key}: is given for {', '.join(sides)}; `languages` are {list(data.languages or ())}"


def _data_column_problems(where: str, data: Data) -> Iterator[str]:
    """Parallel text is in two languages, and only where one file has both of them in columns can these be chosen."""
    languages = list(languages_of(data) or ())
    if len({*languages}) < len(languages):
        yield f"{where}.languages: {languages} is one language twice"
    if not (columns := data.columns):
        return
    names = [base_name(data.url), str(data.member or "")] if isinstance(data.url, str) else []
    named = next((name for name in names if not needs_columns(name)), None)
    if not names or isinstance(data.member, dict):
        yield f"{where}.columns: is for one `url` of a file with both languages in columns or keys; leave it out"
    elif not languages:
        yield f"{where}.columns: is for parallel text, whose `languages` are missing"
    elif missing := [code for code in languages if code not in columns]:
        yield f"{where}.columns: nothing is said about {', '.join(missing)}; it has {dict(columns)}"
    elif twice := read_twice(columns, languages):
        yield f"{where}.columns: {twice}"
    elif named and (problem := next(problem_of_columns(named, columns), "")):
        yield f"{where}.columns: {problem}"
    elif unknown := columns.keys() - {*languages, "document"}:
        yield f"{where}.columns: {', '.join(sorted(unknown))} is no language of the data nor `document`"


def _checksum_problems(where: str, data: Data) -> Iterator[str]:
    """Checksums must belong to the files that are downloaded, and be such as SHA-256 has."""
    if isinstance(data.sha256, dict) and not (isinstance(data.url, dict) and data.sha256.keys() <= data.url.keys()):
        yield f"{where}.sha256: a checksum for each language needs a `url` for each"
    if isinstance(data.url, dict) and isinstance(data.sha256, str):
        yield f"{where}.sha256: needs one for each of {', '.join(data.url)}"
    for checksum in data.sha256.values() if isinstance(data.sha256, dict) else [data.sha256 or "0" * 64]:
        if len(checksum) != 64 or set(checksum.lower()) - set("0123456789abcdef"):
            yield f"{where}.sha256: {checksum!r} is no SHA-256, which has 64 hexadecimal digits"


def _join_problems(where: str, data: Data, known: dict[str, Data]) -> Iterator[str]:
    """Data can only be joined from other data in the same languages, which are not joined themselves."""
    for other in data.join:
        yield from undefined(f"{where}.join", other, known)
        if other in known and (known[other].join or languages_of(known[other]) != data.languages):
            yield f"{where}.join: {other!r} must be parallel text in {list(data.languages or ())}, and not joined itself"
