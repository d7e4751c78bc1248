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
    """A TSV or JSONL file; with `unit: word` also a file in columns like those of CoNLL, where .conllu is CoNLL-U; with `unit: target` also
    a file with a text a line, or SQuAD's JSON; with `unit: question` a TSV file, SQuAD's JSON, or JSONL with a question a line. May end in
    .gz, .xz or .zst. Without it, the file and the settings below are those of the training text."""
    columns: dict[str, int | str | list[int | str]] = field(default_factory=dict)
    """Where to find `text`, `label`, and optionally `pair` (the second text) and `document`: column number (from 1, as in `cut -f`), column
    name in the header, or key of a JSON object (`a.b` is key b inside a); the texts of several columns are joined by blanks. With
    `unit: word`: columns of `word` and `tag`, by default 1 and 2, in CoNLL-U FORM and UPOS; names may also stand in a comment
    `# global.columns = …`, and `MISC.NER` is the value of NER in the column MISC. With `unit: query`: `text` is the query, `pair` the
    document, `label` its grade. With `unit: question`, of a TSV or JSONL file: `question`, `passage`, `answer`, and optionally `start` (of
    the answer, in characters of the passage), `id` and `document`; JSONL may have them under the names of SQuAD. With
    `unit: target`: `text` and `target`, where `pages[:1]` is the first item of a JSON list and
    `pages[1:]` are the others; with `heading`, a column that starts with h in headings, a line's `text` is a part of the section under a
    heading, which is its target."""
    language: str | None = None
    """Language of a test set; by default that of the training text."""
    header: bool = False
    """The first line of a TSV file, or of a file of words with tags, names the columns."""
    where: dict[str, str] = field(default_factory=dict)
    """Column → value: only lines with this value are read; for files that hold several languages. Of
    SQuAD's JSON with `unit: question`, `{id: finnish}` reads the questions whose id begins with `finnish-`, as in TyDiQA."""
    by: dict[str, str] = field(default_factory=dict)
    """Of `translations`, instead of a file: the model of the run that translates the training text, `{backbone: NAME}` or
    `{experiment: NAME, arm: NAME}`. The model of an arm is that of its experiment's first seed."""
    targets: str | None = None
    """`unit: target`: a file with a target a line, for the texts in the lines of `file`."""
    target_where: dict[str, str] = field(default_factory=dict)
    """`unit: target`: column → value of the lines that targets are read from, where these are other lines of the same `document`."""
    target_language: str | None = None
    """`unit: target`: language of the targets; by default the one named for the whole text, or else that of the source."""
    context: Literal["paragraph", "sentence"] = "paragraph"
    """SQuAD's JSON: whether the text is the whole passage, or its sentence with the answer."""
    mark_answer: bool = True
    """SQuAD's JSON: mark the answer in the text, as in `in [[ 1858 ]] .`"""
    label_pattern: str | None = None
    """A regular expression whose first group is the label; lines that it does not match are left out."""
    label_names: dict[str, str] = field(default_factory=dict)
    """Name of a label in this file → its name in `labels`."""
    held_out: Annotated[float, Limits(gt=0, le=0.4)] | None = None
    """Share of documents held out from training. All test sets hold out the same documents, the dev set others."""
    queries: str | None = None
    """With `unit: query` and without `columns`: the queries, a TSV file of id and text, or questions in SQuAD's JSON."""
    documents: str | None = None
    """The documents likewise, a TSV file of id and text. `file` is then TREC's qrels, or with `header: true` a table of answers like
    XQuAD-R's, whose documents are the sentences of an article."""
    repeated_queries: Literal["refuse", "separate"] = "refuse"
    """With `unit: query` and `columns`: what to do with a query that comes again after others. `separate` counts it as another query, as
    XGLUE's script does."""
    empty: Literal["refuse", "leave_out"] = "refuse"
    """With `unit: text`, `query` with `columns`, `question` and `target`: what to do with an example that lacks a text, as machine
    translations of PAWS-X do: an error, or `leave_out`, which counts them."""
    quoted: bool = False
    """The TSV file, with `columns`, was written by a spreadsheet or by Python's `csv`, as XTREME's scripts write XNLI and PAWS-X: cells may
    stand in quotation marks, and those inside are doubled."""
    multiword: Multiword = "words"
    """CoNLL-U: what a word like French *du* is that stands for several words of the syntax: these `words`, *de* and *le*; or one word, with
    the tag of the one that is nearest to the sentence's root (`fused`), as in XTREME."""
    lost_answers: LostAnswers | None = None
    """Of questions with answers, also in SQuAD's JSON with `unit: target`: what to do where the answer is not in the passage, as happens in
    machine translations: an error (`refuse`), or `leave_out`, which counts them. Test sets with `unit: question` need no place: there the
    default is `by_text`, which compares what a model marks with the text of the answer. An answer that is in the passage but not at its
    start is looked up and counted, whatever this says."""

    def paths(self) -> list[str]:
        """The files that this source names."""
        return [path for path in (self.file, self.targets, self.queries, self.documents) if path]

    def at_hand(self) -> "LabelledSource":
        """This with the embedded files where they really are."""
        named = ((key, getattr(self, key)) for key in ("file", "targets", "queries", "documents"))
        found: dict[str, Any] = {key: resource(path) for key, path in named if path}
        return replace(self, **found)
