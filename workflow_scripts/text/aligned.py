"""aligned: sentences in two languages with what translates what, for retrieval.

A test set has sentences to look up (the source side) and sentences among which their translations are looked for (the target
side). The formats:

===================================  ==========================================================================
what is named                        what translates what
===================================  ==========================================================================
`files`, a sentence a line           lines of the same number (Tatoeba as in LASER: ``tatoeba.deu-eng.deu``)
`file` with `columns`                the cells of a line of a TSV file
`files` and `order`                  line i of `order` is the number, from 0, of the target line (XTREME's Tatoeba)
`files` and `gold`                   pairs of ids; the files have id, tab, sentence (BUCC 2018); other sentences
                                     have no translation, and the pairs are to be mined
===================================  ==========================================================================
"""

from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from workflow_scripts.stage import InputError, checksums, resource, run, write_json
from workflow_scripts.text.files import read_lines, refuse_table, table_rows, write_lines
from workflow_scripts.text.graded import read_texts
from workflow_scripts.text.parallel import clean_text


@dataclass
class AlignedSource:
    """Files of both sides of a test set, and which sentences are translations."""

    languages: tuple[str, str]
    """Language of the query sentences, and language of the sentences to search."""
    files: dict[str, str] = field(default_factory=dict)
    """Language → file with one sentence per line. With `gold`, each line has an id, a tab and a sentence."""
    file: str | None = None
    """TSV file whose lines have both sides, instead of `files`."""
    columns: dict[str, int | str] = field(default_factory=dict)
    """Language → column of `file`: its number (from 1, as in `cut -f`) or its name in the header."""
    header: bool = False
    """Whether the first line of `file` names the columns."""
    quoted: bool = False
    """Whether `file` comes from a spreadsheet or Python's `csv`: cells may be quoted, and quotation marks inside are doubled."""
    order: str | None = None
    """File with the number of the translation, from 0, for each query sentence (XTREME's Tatoeba)."""
    gold: str | None = None
    """File of id pairs that are translations, separated by a tab (BUCC). All other sentences have no translation."""

    def paths(self) -> list[str]:
        """The files that this source names."""
        return [path for path in (self.file, *self.files.values(), self.order, self.gold) if path]

    def at_hand(self) -> "AlignedSource":
        """This with the embedded files where they really are."""
        named = ((key, getattr(self, key)) for key in ("file", "order", "gold"))
        paths: dict[str, Any] = {key: resource(path) for key, path in named if path}
        return replace(self, files={code: resource(path) for code, path in self.files.items()}, **paths)

    @property
    def language(self) -> str:
        """The language of the sentences that are looked up."""
        return self.languages[0]


@dataclass
class Aligned:
    """Sentences for retrieval, whose translations are searched."""

    test: dict[str, AlignedSource]
    """Test sets by name. All have `gold`, or none."""
    dev: dict[str, AlignedSource] = field(default_factory=dict)
    """Dev text for a test set with `gold`, by its name. It sets the score threshold above which pairs count as translations."""

    def parts(self) -> dict[str, AlignedSource]:
        """The test sets, and the dev text of each, by their names below the folder of this text."""
        return {f"{kind}/{name}": source for kind, sources in (("test", self.test), ("dev", self.dev)) for name, source in sources.items()}

    @property
    def mines(self) -> bool:
        """Whether pairs are mined from text of which not every sentence has a translation."""
        return any(source.gold for source in self.test.values())

    @property
    def language(self) -> str:
        """The language that is looked up in the first test set."""
        return next(iter(self.test.values())).language


def main(source: Path, target: Path, gold: Path, report: Path, *, settings: AlignedSource) -> None:
    """Write both sides, a sentence a line; `gold`, the numbers (from 0) of lines that are translations, a pair a line; and a report.

    Raises `InputError` naming file, line and value for sides of different length, empty sentences, ids that are unknown or stand
    twice, numbers that are none, or a file without pairs.
    """
    sides, pairs = read_aligned(settings)
    for path, lines in zip((source, target), sides, strict=True):
        write_lines(path, lines)
    write_lines(gold, (f"{i}\t{j}" for i, j in pairs))
    write_json(
        report,
        {
            "languages": list(settings.languages),
            "sentences": [len(side) for side in sides],
            "pairs": len(pairs),
            "repeated": [len(side) - len(set(side)) for side in sides],
            "checksums": checksums(settings.paths()),
            "source": asdict(settings),
        },
    )


def read_aligned(settings: AlignedSource) -> tuple[tuple[list[str], list[str]], list[tuple[int, int]]]:
    """Both sides, and the pairs of their lines that are translations, sorted; raises as `main` does."""
    if settings.file:
        sides = _read_tsv(Path(settings.file), settings)
    else:
        where = [Path(settings.files[code]) for code in settings.languages]
        if settings.gold:
            named = [read_texts(path) for path in where]
            pairs = _read_gold(Path(settings.gold), [list(side) for side in named], where)
            first, second = (list(side.values()) for side in named)
            return (first, second), pairs
        for path in where:
            refuse_table(path)
        first, second = ([_sentence(line, path, n) for n, line in enumerate(read_lines(path), 1)] for path in where)
        sides = (first, second)
        if len(first) != len(second) and not settings.order:
            raise InputError(f"{where[0]} has {len(first)} lines, {where[1]} has {len(second)}; line by line they must be translations")
    if not sides[0]:
        raise InputError(f"{' and '.join(settings.paths())}: no sentence is there")
    if settings.order:
        return sides, _read_order(Path(settings.order), len(sides[0]), len(sides[1]))
    return sides, [(i, i) for i in range(len(sides[0]))]


def read_gold(path: Path) -> list[tuple[int, int]]:
    """The pairs of line numbers that `main` wrote."""
    return [(int(i), int(j)) for i, j in (line.split("\t") for line in read_lines(path))]


def _sentence(line: str, path: Path, number: int) -> str:
    if not (text := clean_text(line)):
        raise InputError(f"{path}, line {number}: the sentence is empty; delete the line, and its translation")
    return text


def _read_tsv(path: Path, settings: AlignedSource) -> tuple[list[str], list[str]]:
    sides: dict[str, list[str]] = {code: [] for code in settings.languages}
    columns = {code: settings.columns[code] for code in settings.languages}
    for number, row in table_rows(path, columns, settings.header, quoted=settings.quoted):
        for code, text in row.items():
            sides[code].append(_sentence(text, path, number))
    first, second = sides.values()
    return first, second


def _read_gold(path: Path, ids: list[list[str]], where: list[Path]) -> list[tuple[int, int]]:
    places = [{name: place for place, name in enumerate(side)} for side in ids]
    pairs = set()
    for number, line in enumerate(read_lines(path), 1):
        cells = line.split("\t")
        if len(cells) != 2:
            raise InputError(f"{path}, line {number}: two ids are expected, separated by a tab: {line[:80]!r}")
        for name, known, file in zip(cells, places, where, strict=True):
            if name not in known:
                raise InputError(f"{path}, line {number}: {name[:60]!r} is not in {file}; is the order of the languages right?")
        pairs.add((places[0][cells[0]], places[1][cells[1]]))
    if not pairs:
        raise InputError(f"{path}: has no pair, so nothing could be found")
    return sorted(pairs)


def _read_order(path: Path, sentences: int, among: int) -> list[tuple[int, int]]:
    lines = list(read_lines(path))
    if len(lines) != sentences:
        raise InputError(f"{path} has {len(lines)} lines for {sentences} sentences; it must have one for each")
    for number, line in enumerate(lines, 1):
        if not line.strip().isdecimal() or int(line) >= among:
            raise InputError(f"{path}, line {number}: {line[:40]!r} is no number from 0 to {among - 1}, that of a line of the other side")
    return [(i, int(line)) for i, line in enumerate(lines)]


if __name__ == "__main__":
    run(main)
