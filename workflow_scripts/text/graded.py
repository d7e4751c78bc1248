"""graded: queries and documents with grades, for ranking, in the formats of benchmarks.

`labelled` reads them with `unit: query`. The formats:

=====================  =================================================  ============================================
what is named          a line of `file`                                   candidates of a query
=====================  =================================================  ============================================
`file` with `columns`  query, document, grade (XGLUE's WPR; the           its lines, which stand one after the other
                       document may be made of several columns)
`file` with            ``query 0 document grade``, separated by blanks    its judged documents
`queries` and          (TREC's qrels)
`documents`
the same, and          ``query`` and, by language, the sentence that      the sentences of its article; grade 2 is the
`header: true`         has the answer (XQuAD-R)                           answer, 1 its paragraph's rest, 0 the others
=====================  =================================================  ============================================

`queries` and `documents` are TSV files of id and text; SQuAD's JSON does for questions. The names of XQuAD-R's sentences,
``a00p1s2``, tell article, paragraph and sentence.
"""

import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from workflow_scripts.stage import InputError
from workflow_scripts.text.files import kind_of, read_lines, whole_characters
from workflow_scripts.text.parallel import clean_text
from workflow_scripts.text.squad import entries, lacking

Texts = dict[str, str]
"""Id → text."""


class Judged(NamedTuple):
    """A query with one of its documents and the grade of that, the group of queries that it belongs to, and the line that says so."""

    query_id: str
    query: str
    document: str
    grade: str
    group: str
    line: int


def read_judged(path: Path, queries: Path, documents: Path, code: str, header: bool) -> Iterator[Judged]:
    """The judged documents, those of a query one after the other.

    With a `header` the file names the sentences that have the answers, in the column of the language `code`. Raises `InputError`
    naming file, line and value for an id that is unknown or stands twice, an empty text, or a line of another form.
    """
    query_texts, texts = read_texts(queries, header), read_texts(documents, header)
    for query_id, judged in (_answers(path, texts, documents, code) if header else _qrels(path)).items():
        for name, grade, group, line in judged:
            for what, known, file in (query_id, query_texts, queries), (name, texts, documents):
                if what not in known:
                    raise InputError(f"{path}, line {line}: {what[:60]!r} is not in {file}; add it there, or delete the line")
            yield Judged(query_id, query_texts[query_id], texts[name], grade, group, line)


def read_texts(path: Path, header: bool = False) -> Texts:
    """Id → text, of a TSV file (its first line left out with a `header`), or of the questions in SQuAD's JSON."""
    texts: Texts = {}
    lines: dict[str, int] = {}
    for number, name, text in _questions(Path(path)) if kind_of(path) == ".json" else _id_and_text(Path(path), header):
        at = f"{path}, line {number}" if number else f"{path}"
        if name in texts:
            there = f"in line {lines[name]} already" if number else "there twice"
            raise InputError(f"{at}: the id {name[:60]!r} stands {there}; ids must be different")
        if not (text := clean_text(text)):
            raise InputError(f"{at}: the text of {name[:60]!r} is empty; delete it, and what is said of it elsewhere, or give it its text")
        texts[name], lines[name] = text, number
    return texts


def _id_and_text(path: Path, header: bool) -> Iterator[tuple[int, str, str]]:
    for number, line in enumerate(read_lines(path), 1):
        name, tab, text = line.partition("\t")
        if number == 1 and header:
            continue
        if not tab or not name.strip():
            raise InputError(f"{path}, line {number}: an id and its text are expected, separated by a tab: {line[:80]!r}")
        yield number, name.strip(), text.replace("\t", " ")


def _questions(path: Path) -> Iterator[tuple[int, str, str]]:
    for entry in entries(path):
        try:
            yield 0, str(entry.question["id"]), whole_characters(str(entry.question["question"]))
        except (ValueError, KeyError) as error:
            at = f"{path}, line {entry.line}"
            raise InputError(
                f"{at}: is not in SQuAD's format ({lacking(error)}); correct it, or give a TSV file of id and question"
            ) from None


Judgements = dict[str, list[tuple[str, str, str, int]]]
"""Query → its documents: id, grade, group, line."""


def _qrels(path: Path) -> Judgements:
    judgements: Judgements = defaultdict(list)
    lines: dict[tuple[str, str], int] = {}
    for number, line in enumerate(read_lines(path), 1):
        cells = line.split()
        if len(cells) != 4:
            hint = "; if the file is a table of answers like XQuAD-R's, set `header: true`" if number == 1 else ""
            raise InputError(
                f"{path}, line {number}: {len(cells)} column(s); a line of TREC's qrels has four, "
                f"query, 0, document and grade, separated by blanks: {line[:80]!r}{hint}"
            )
        query, _, document, grade = cells
        if (query, document) in lines:
            raise InputError(
                f"{path}, line {number}: query {query[:60]!r} has a grade for document {document[:60]!r} in line "
                f"{lines[query, document]} already; delete one of them"
            )
        lines[query, document] = number
        judgements[query].append((document, grade, query, number))
    return judgements


_SENTENCE = re.compile(r"(a\d+)(p\d+)s\d+")


def _answers(path: Path, texts: Texts, documents: Path, code: str) -> Judgements:
    articles: dict[str, list[str]] = defaultdict(list)
    for name in texts:
        articles[_place(name, str(documents))[0]].append(name)
    judgements: Judgements = {}
    column = -1
    for number, line in enumerate(read_lines(path), 1):
        cells = line.split("\t")
        if number == 1:
            if code not in cells[1:]:
                raise InputError(f"{path}, line 1: there is no column for the language {code!r}; the header has {', '.join(cells)}")
            column = cells.index(code)
            continue
        if len(cells) <= column:
            raise InputError(f"{path}, line {number}: {len(cells)} column(s), but {code!r} is column {column + 1}: {line[:80]!r}")
        query, answer = cells[0], cells[column]
        if query in judgements:
            raise InputError(f"{path}, line {number}: the query {query[:60]!r} stands in another line already; delete one of them")
        article, paragraph = _place(answer, f"{path}, line {number}")
        if answer not in texts:
            raise InputError(f"{path}, line {number}: {answer[:60]!r} is not in {documents}; add it there, or delete the line")
        grades = ((name, "2" if name == answer else "1" if _place(name, "")[1] == paragraph else "0") for name in articles[article])
        judgements[query] = [(name, grade, article, number) for name, grade in grades]
    return judgements


def _place(name: str, where: str) -> tuple[str, str]:
    """Article and paragraph of a sentence."""
    if not (parts := _SENTENCE.fullmatch(name)):
        raise InputError(f"{where}: {name[:60]!r} is no name of a sentence like a00p1s2 (article 00, paragraph 1, sentence 2)")
    return parts[1], parts[2]


def numbered_queries(rows: Iterator[Any], repeated: str, path: str, changed: Any) -> Iterator[tuple[Any, str]]:
    """Each row with the number of its query: rows with the same `text` one after the other are of one query, as XGLUE counts them.

    A query that comes again later is refused, or with `repeated` "separate" counted as another one.
    """
    seen: dict[str, int] = {}
    query, number = None, 0
    for row in rows:
        if row.text != query:
            number += 1
            query = row.text
            if query in seen:
                if repeated == "refuse":
                    raise InputError(
                        f"{path}, line {row.line}: the query {query[:60]!r} comes again after others (line {seen[query]}); sort the "
                        "file by query, or set `repeated_queries: separate` to count it as another query, as XGLUE's script does"
                    )
                changed["query that comes again counted as another"] += 1
        seen[row.text] = row.line
        yield row, str(number)
