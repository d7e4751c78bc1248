"""labelled_source: where labelled text comes from, as the configuration says it; `examples` reads it."""

from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal

from workflow_scripts.number_types import Limits
from workflow_scripts.stage import resource
from workflow_scripts.text.questions import LostAnswers
from workflow_scripts.text.treebanks import Multiword


@dataclass
class LabelledSource:
    """Where labelled text comes from: a TSV, JSONL, CoNLL, CoNLL-U or SQuAD file, or documents held out from the training file."""

    file: str | None = None
    """File with the text: TSV or JSONL, optionally packed (.gz, .xz, .zst). With `unit: word` also columns as in CoNLL; .conllu is
    CoNLL-U. With `unit: target` also one text per line, or SQuAD's JSON. With `unit: question` also SQuAD's JSON, or JSONL with one
    question per line. Without it, file and settings are those of the training text."""
    columns: dict[str, int | str | list[int | str]] = field(default_factory=dict)
    """Where to find `text`, `label`, and optionally `pair` (the second text) and `document`. A column is a number (from 1, as in
    `cut -f`), a name in the header, or a JSON key (`a.b` is key b inside a). Texts of several columns are joined by blanks. `unit: word`:
    columns of `word` and `tag`, by default 1 and 2, in CoNLL-U FORM and UPOS. Names may stand in a comment `# global.columns = …`;
    `MISC.NER` is the value of NER in the column MISC. `unit: query`: `text` is the query, `pair` the document, `label` its grade.
    `unit: question`, in TSV or JSONL: `question`, `passage`, `answer`, optionally `start` (of the answer, in characters of the passage),
    `id` and `document`. JSONL may use SQuAD's names. `unit: target`: `text` and `target`; `pages[:1]` is the first item of a JSON list,
    `pages[1:]` the others. With `heading`, a column that starts with h in headings: `text` is a part of a section, and its heading is the
    target."""
    language: str | None = None
    """Language of a test set; by default that of the training text."""
    header: bool = False
    """Whether the first line of a TSV file, or of a file of tagged words, names the columns."""
    where: dict[str, str] = field(default_factory=dict)
    """Column → value: only lines with this value are read, for files with several languages. In SQuAD's JSON with `unit: question`,
    `{id: finnish}` reads questions whose id begins with `finnish-`, as in TyDiQA."""
    by: dict[str, str] = field(default_factory=dict)
    """For `translations`, instead of a file: the model that translates the training text, `{backbone: NAME}` or
    `{experiment: NAME, arm: NAME}`. An arm's model is that of its experiment's first seed."""
    targets: str | None = None
    """With `unit: target`: file with one target per line, parallel to `file`."""
    target_where: dict[str, str] = field(default_factory=dict)
    """With `unit: target`: column → value of the lines with the targets, if they are other lines of the same `document`."""
    target_language: str | None = None
    """With `unit: target`: language of the targets. By default the language given for the whole text, else that of the source."""
    context: Literal["paragraph", "sentence"] = "paragraph"
    """In SQuAD's JSON: whether the text is the whole passage or only the sentence with the answer."""
    mark_answer: bool = True
    """In SQuAD's JSON: whether the answer is marked in the text, as in `in [[ 1858 ]] .`"""
    label_pattern: str | None = None
    """Regular expression whose first group that matches is the label. Lines that do not match are left out. From a text in the same column
    what matches is cut out."""
    label_names: dict[str, str] = field(default_factory=dict)
    """Label in this file → label in `labels`."""
    held_out: Annotated[float, Limits(gt=0, le=0.4)] | None = None
    """Share of documents held out from training. All test sets hold out the same documents, the dev set others."""
    queries: str | None = None
    """With `unit: query` and without `columns`: file of the queries, a TSV file of id and text, or SQuAD's JSON."""
    documents: str | None = None
    """With `unit: query` and without `columns`: TSV file of the documents, id and text. `file` is then TREC's qrels. With `header: true`
    it is a table of answers like XQuAD-R's, whose documents are sentences of an article."""
    repeated_queries: Literal["refuse", "separate"] = "refuse"
    """With `unit: query` and `columns`: what to do if a query appears again after others. `separate` counts it as another query, as
    XGLUE's script does."""
    empty: Literal["refuse", "leave_out"] = "refuse"
    """What to do with an example without text, as in machine translations of PAWS-X. `refuse`: stop with an error. `leave_out`: leave it
    out and count it. Not for `unit: word` nor for `query` without `columns`."""
    quoted: bool = False
    """Whether the TSV file with `columns` comes from a spreadsheet or Python's `csv`, as XTREME's XNLI and PAWS-X do. Cells may be quoted,
    and quotation marks inside are doubled."""
    multiword: Multiword = "words"
    """In CoNLL-U: how to read a word that stands for several syntactic words, such as French *du*. `words`: as these words, *de* and *le*.
    `fused`: as one word with the tag of the one nearest to the sentence's root, as in XTREME."""
    lost_answers: LostAnswers | None = None
    """What to do if an answer is not in its passage, as in machine translations; also for SQuAD's JSON with `unit: target`. `refuse`: stop
    with an error. `leave_out`: leave the question out and count it. `by_text`: compare only texts, the default for test sets with
    `unit: question`. An answer elsewhere in the passage is always found and counted."""

    def paths(self) -> list[str]:
        """The files that this source names."""
        return [path for path in (self.file, self.targets, self.queries, self.documents) if path]

    def at_hand(self) -> "LabelledSource":
        """This with the embedded files where they really are."""
        named = ((key, getattr(self, key)) for key in ("file", "targets", "queries", "documents"))
        paths: dict[str, Any] = {key: resource(path) for key, path in named if path}
        return replace(self, **paths)
