"""Text to ids and back, with the language's tag in the form of each family (see `families`).

Labels have the form of what the encoder reads, and the decoder's input is the labels rotated by one place, so that every row of
a batch may have a language of its own. The sentences of a document are joined by `</s>`. A model that is a decoder alone reads a prompt
instead (`templates`), and documents as running text.
"""

import functools
import itertools
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from workflow_scripts import registry
from workflow_scripts.models.family import Family
from workflow_scripts.models.folders import check_tokenizer
from workflow_scripts.models.recognition import config_of, family_of
from workflow_scripts.models.structure import special_tokens_around
from workflow_scripts.models.templates import (
    Frame,
    Templates,
    begin,
    blank_before_source,
    first_line,
    frame_of,
    line_breaks,
    prefix_of,
    read_templates,
    without_masks,
    word_blank,
)
from workflow_scripts.models.tokenizer import defuse, ids_needed, load_tokenizer, special_pieces, without_rowless
from workflow_scripts.stage import InputError, in_one_line
from workflow_scripts.text.languages import language
from workflow_scripts.text.words import BREAK, MASK, Segment, segment

SPECIAL_PLACES = 2
"""Places of a row that text never takes: those of `</s>` and the language's tag, in all families alike."""
_BREAKS = re.compile(rf"\s*{BREAK}\s*")
Join = Callable[[Sequence[int], Sequence[int]], tuple[Sequence[int], Sequence[int]]]
"""What makes a row of a source's ids and the labels."""


@dataclass
class Codec:
    """A tokenizer with its family's tag format. Make one with `load_codec`."""

    tokenizer: Any
    family: str
    """Name of its family in the table."""
    documents: bool = False
    """Whether lines are documents, in which `</s>` separates sentences, where a decoder reads a blank. In other text it is plain text."""
    fallback: str = ""
    """The language under whose tag texts are read that are in a language without one; such a language is an error if none is named."""
    templates: Templates = field(default_factory=Templates)
    """How a model is asked that has no tags of languages."""

    @property
    def form(self) -> Family:
        """The family's entry in the table."""
        return registry.entry("family", self.family)

    def tag(self, code: str) -> int:
        """Id of the language tag; raises `InputError` for a language that the model does not know, and no `fallback`."""
        for name in (names := self._tag_names(code)) + (self._tag_names(self.fallback) if self.fallback else []):
            tag = self.tokenizer.convert_tokens_to_ids(name)
            if tag is not None and tag != self.tokenizer.unk_token_id:
                return tag
        raise InputError(
            f"the backbone's vocabulary has no tag {' or '.join(names)} for {code!r}; choose a backbone that knows the language"
        )

    def _tag_names(self, code: str) -> list[str]:
        names = (form.format(**vars(language(code))) for form in self.form.tags)
        return [name for name in names if name]

    def untagged(self, codes: Sequence[str], only_reads: bool) -> list[str]:
        """The languages of `codes` that have no tag.

        Raises `InputError` for the first of them unless the model `only_reads` their texts, and knows another language of `codes`.
        """
        unknown = []
        for code in codes if self.form.tags else ():
            try:
                self.tag(code)
            except InputError:
                unknown.append(code)
                if not only_reads or len(unknown) == len(codes):
                    raise
        return unknown

    @property
    def pad(self) -> int:
        """Id of what fills rows up. A decoder's tokenizer may have none; masks tell its end mark apart, which stands there then."""
        pad = self.tokenizer.pad_token_id
        return self.tokenizer.eos_token_id if pad is None else pad

    def pieces(self, lines: list[str], max_length: int | None = None, masks: bool = False) -> list[list[int]]:
        """Ids of the pieces alone, of a row of `max_length` cut to leave room for `</s>` and tag, by default all of them.

        Special tokens that happen to stand in the text are read as text, but for `<mask>` where
        `masks` says that it is one.
        """
        return [self.within(ids, max_length) for ids in self._whole(lines, masks)]

    def behind_blank(self, lines: list[str], answers: bool = False, kind: str = "task") -> list[str]:
        """The lines as a decoder has them in a prompt, with a blank before them if the template of this `kind` has one there; or as
        `answers` behind it, with a blank.

        In a chat an answer begins its turn, without a blank; and some tokenizers put one before all text by themselves.
        """
        stands_there = not self.templates.chat if answers else blank_before_source(self.templates, kind)
        blank = word_blank(self.tokenizer) if self.form.causal and stands_there else ""
        return [f"{blank}{line}" if line else line for line in lines] if blank else lines

    def frame(self, languages: tuple[str, str], kind: str = "task") -> Frame:
        """What stands around the source where a decoder is asked: to do the task, or to restore (`kind`)."""
        shown = [(defuse(self._running(a), self._specials), defuse(self._running(b), self._specials)) for a, b in self.templates.examples]
        return frame_of(replace(self.templates, examples=shown), self.tokenizer, languages, kind)

    def prefix(self, languages: tuple[str, str], kind: str = "task") -> list[int]:
        """The ids that say before a source what is to be done with it, where the model reads and the templates have such a prefix."""
        return prefix_of(self.templates, self.tokenizer, languages, kind) if self.form.prefixed else []

    def joins(self, languages: tuple[str, str], kind: str = "task") -> Join | None:
        """What makes a row of a source and its labels, which are a row as they are where this is None.

        A decoder reads both sides in one (`Frame.row`), and a prefix stands before a source.
        """
        if self.form.causal:
            return self.frame(languages, kind).row
        before = self.prefix(languages, kind)
        return (lambda source, labels: ([*before, *source], labels)) if before else None

    @property
    def own_templates(self) -> Templates | None:
        """The templates that the model's folder keeps; None of a model that reads none."""
        has_prefix = self.form.prefixed and (self.templates.prefix or self.templates.restore_prefix)
        return self.templates if self.form.causal or has_prefix else None

    def asked(self, rows: list[list[int]], languages: tuple[str, str]) -> list[list[int]]:
        """Rows of a source's pieces as the model reads them before it writes in the second language."""
        if not self.form.causal:
            before = self.prefix(languages)
            return [[*before, *row] for row in self.framed(rows, languages[0])]
        frame = self.frame(languages)
        return [frame.prompt(row) for row in rows]

    @property
    def _answer_end(self) -> int:
        # examples that are shown do not change it
        return frame_of(replace(self.templates, examples=[]), self.tokenizer, ("en", "en"), "task").end

    def ends(self, network: Any) -> list[int]:
        """The ids at which a text ends, whatever engine writes: that of its tokenizer, and those of the model's own settings.

        A decoder's answer also ends as in its training, and at pieces with a line break, since an answer is one line.
        """
        own = network.generation_config.eos_token_id
        named = {self.tokenizer.eos_token_id, *(own if isinstance(own, list) else [own])}
        named |= {self._answer_end, *self._line_breaks} if self.form.causal else set()
        return sorted(named - {None})

    @functools.cached_property
    def _line_breaks(self) -> list[int]:
        return line_breaks(self.tokenizer)

    def is_too_long(self, ids: Sequence[int], max_length: int) -> bool:
        """Whether these are more pieces than a row of `max_length` has room for."""
        return len(ids) > max_length - SPECIAL_PLACES

    def within(self, ids: list[int], max_length: int | None) -> list[int]:
        """The pieces that a row of `max_length` has room for; all of them where that is None."""
        kept = ids[: None if max_length is None else max_length - SPECIAL_PLACES]
        while self.documents and kept and kept[-1] == self._break:  # the last place is for the tag
            kept.pop()
        return kept

    @functools.cached_property
    def row(self) -> tuple[str, ...]:
        """What the encoder reads of a text, as its family says; of one that says nothing, as the tokenizer has it."""
        return special_tokens_around(self.tokenizer) if self.form.by_structure else self.form.row

    @functools.cached_property
    def around(self) -> tuple[int, int]:
        """How many ids stand before and behind a text that is read."""
        if self.form.causal:
            return len(begin(self.tokenizer)), 0
        return (at := self.row.index("text")), len(self.row) - at - 1

    @functools.cached_property
    def own_end(self) -> list[int]:
        """What a decoder's own tokenizer puts behind a text: with models that make vectors often the piece that they are read at."""
        if not self.form.causal:
            return []
        whole, text = (self.tokenizer("a", add_special_tokens=special)["input_ids"] for special in (True, False))
        return whole[whole.index(text[-1]) + 1 :]

    @property
    def _break(self) -> int:
        """Id of what ends a sentence: `</s>`, or BERT's [SEP]."""
        return self.tokenizer.eos_token_id if self.tokenizer.eos_token else self.tokenizer.sep_token_id

    def _whole(self, lines: list[str], masks: bool) -> list[list[int]]:
        if not self.documents or self.form.causal:
            return self._ids([self._running(line) for line in lines], masks)
        # each sentence is cut into pieces by itself
        split = [line.split(BREAK) for line in lines]
        sentences = iter(self._ids([sentence.strip() for line in split for sentence in line], masks))
        between = self._break
        rows = [[i for _ in line for i in (*next(sentences), between)] for line in split]
        if masks and self.tokenizer.mask_token is None:
            rows = [in_order(row, sentinel_ids(self)) for row in rows]
        return [self.within(row, None) for row in rows]

    def _running(self, line: str) -> str:
        """A line as a decoder reads it, to which an end of a sentence would be that of all text: in documents a blank stands there."""
        return _BREAKS.sub(" ", line).rstrip() if self.documents and self.form.causal and BREAK in line else line

    def _ids(self, lines: list[str], masks: bool) -> list[list[int]]:
        if masks and self.form.causal:
            lines, masks = [without_masks(line, self.templates) for line in lines], False
        # switched words are no masks, though both are rows of noise
        if masks and self.tokenizer.mask_token is None and any(MASK in line for line in lines):
            if not (sentinels := sentinel_ids(self)):
                raise InputError(
                    f"the backbone's vocabulary ({self.form.label}) has no {MASK}, so it cannot restore masked text; choose another"
                )
            return self._with_sentinels(lines, sentinels)
        specials = self._specials_but_masks if masks else self._specials
        if any("<" in line or "_" in line or "[" in line for line in lines):
            lines = [defuse(line, specials) for line in lines]
        return self.tokenizer(lines, add_special_tokens=False, verbose=False)["input_ids"] if lines else []

    @functools.cached_property
    def _specials(self) -> frozenset[str]:
        return special_pieces(self.tokenizer)

    @functools.cached_property
    def _specials_but_masks(self) -> frozenset[str]:
        return self._specials - {MASK}

    def _with_sentinels(self, lines: list[str], sentinels: list[int]) -> list[list[int]]:
        """Ids of lines in which the masks are T5's sentinels, one after the other; where there are more masks, the first comes again."""
        parts = [line.split(MASK) for line in lines]
        between = iter(self._ids([part for some in parts for part in some], False))
        rows = []
        for some in parts:
            row = next(between)
            for place in range(len(some) - 1):
                row = [*row, sentinels[place % len(sentinels)], *next(between)]
            rows.append(row)
        return rows

    def encode(self, lines: list[str], code: str, max_length: int = 1024, masks: bool = False) -> list[list[int]]:
        """Rows as the encoder reads them; as labels they have the same form."""
        return self.framed(self.pieces(lines, max_length, masks), code)

    @functools.cached_property
    def between(self) -> list[int]:
        """The ids between the two texts of a pair, where the model writes (`encode_pairs`)."""
        return self._ids(["\n"], False)[0] if self.form.causal else [self.tokenizer.eos_token_id] * 2

    def encode_pairs(self, lines: list[str], others: list[str], code: str, max_length: int = 1024) -> list[list[int]]:
        """Rows of pairs of texts, ``X </s> </s> Y`` in the place of X; of a pair that is too long, the longer text is cut first.

        A decoder knows `</s>` as the end of all that it reads. There a line break stands between the two.
        """
        between = self.between
        room = max_length - SPECIAL_PLACES - len(between)
        rows = []
        for first, second in zip(self.pieces(lines), self.pieces(others), strict=True):
            # what the second text leaves to the first, or half of the room if that is more
            kept = max(room - len(second), room - room // 2)
            rows.append([*first[:kept], *between, *second[: room - min(len(first), kept)]])
        return self.framed(rows, code)

    def tokens(self, lines: list[str]) -> list[list[str]]:
        """The pieces of each line as text; what the vocabulary lacks is `<unk>`."""
        return [self.tokenizer.convert_ids_to_tokens(ids) for ids in self.pieces(lines)]

    def piece_ids(self, lines: list[str]) -> list[list[int]]:
        """Ids of lines that are pieces already, separated by blanks."""
        return [self.tokenizer.convert_tokens_to_ids(line.split()) for line in lines]

    def fitted(self, pieces: list[list[int]], code: str, max_length: int, labels: bool = False) -> list[list[int]]:
        """Rows of at most `max_length` ids of whole lines' `pieces`, as the encoder reads them, or as `labels`.

        A row that is cut has no end: what stands behind a half sentence is neither read nor to be learnt. As labels it keeps the place
        from which the decoder's first input comes, as `unlearnt`. The encoder still reads a document that is cut with its `</s>`, which
        there only ends a sentence. Of a decoder the rows are the pieces alone; what frames them is known where both sides are joined.
        A tag before the labels is `unlearnt` in families that do not learn it (`Family.learns_tag`).
        """
        kept = [self.within(ids, max_length) for ids in pieces]
        if self.form.causal:
            end = [self._answer_end] if labels else []
            return [[*some, *end] if len(some) == len(whole) else some for some, whole in zip(kept, pieces, strict=True)]
        rows = self.framed(kept, code)
        if labels:
            rows = self.as_labels(rows, code)
        _, after = self.around
        if not after:  # nothing stands behind a text, whole or cut
            return rows
        for at, (some, whole) in enumerate(zip(kept, pieces, strict=True)):
            if len(some) < len(whole) and labels:
                rows[at] = [*rows[at][:-after], unlearnt(rows[at][-1])]
            elif len(some) < len(whole) and not self.documents:
                rows[at] = [*rows[at][:-after], *rows[at][len(rows[at]) - after + 1 :]]
        return rows

    def framed(self, rows: list[list[int]], code: str) -> list[list[int]]:
        """Rows of pieces as the encoder reads them: with the tag of the language, and what else the family has."""
        before, after = self._around(code)
        return [[*before, *ids, *after] for ids in rows]

    def as_labels(self, rows: list[list[int]], code: str) -> list[list[int]]:
        """Labels, in which a tag at the start is `unlearnt` where the family does not learn it (`Family.learns_tag`)."""
        if self.form.learns_tag:
            return rows
        tag = self.tag(code)
        return [[unlearnt(tag), *row[1:]] if row[:1] == [tag] else row for row in rows]

    def _around(self, code: str) -> tuple[list[int], list[int]]:
        """What stands before and behind a text that is read."""
        if self.form.causal:
            return begin(self.tokenizer), []
        at = self.row.index("text")
        parts = [self.tag(code) if part == "tag" else getattr(self.tokenizer, f"{part}_token_id") for part in self.row if part != "text"]
        return parts[:at], parts[at:]

    @property
    def start(self) -> int | None:
        """What the decoder's input starts with, where that is not the last piece of the labels."""
        return getattr(self.tokenizer, f"{self.form.starts_with}_token_id") if self.form.starts_with else None

    def decode(self, rows: list[list[int]]) -> list[str]:
        """Text of rows of ids, without special tokens; of what a decoder writes the first line."""
        if self.form.causal and (end := self._answer_end) not in self._line_breaks:
            # the end of a turn need not be special
            rows = [[*itertools.takewhile(lambda piece: piece != end, row)] for row in rows]
        lines = self.tokenizer.batch_decode(rows, skip_special_tokens=True, clean_up_tokenization_spaces=False)
        return [first_line(line) if self.form.causal else line.strip() for line in lines]

    def generate_arguments(self, code: str) -> dict[str, int]:
        """What Hugging Face's `generate` needs to start in a language; of a decoder the prompt says all."""
        if self.form.causal:
            return {}
        if self.start is not None:
            return {"decoder_start_token_id": self.start}
        if self.form.starts_with_end:
            return {"decoder_start_token_id": self.tokenizer.eos_token_id, "forced_bos_token_id": self.tag(code)}
        return {"decoder_start_token_id": self.tag(code)}


def in_order(row: list[int], sentinels: list[int]) -> list[int]:
    """A row whose sentinels follow each other from the first on, as those of its sentences do, each for itself."""
    known, following = {*sentinels}, itertools.cycle(sentinels)
    return [next(following) if piece in known else piece for piece in row]


def sentinel_ids(codec: Codec) -> list[int]:
    """The ids of the pieces that stand for spans in the pretraining of T5's kin, in the order in which they are used."""
    if codec.form.sentinels or not codec.form.sentinel:
        return [*codec.form.sentinels]
    vocabulary, found = codec.tokenizer.get_vocab(), list[int]()
    while (piece := codec.form.sentinel.format(len(found))) in vocabulary:
        found.append(vocabulary[piece])
    return found


def unlearnt(piece: Any) -> Any:
    """A label that says: the decoder reads this `piece` when its place has come, but does not learn it. Of such a label it is the piece.

    These labels are below −100, which a loss passes over.
    """
    return -101 - piece


def load_codec(folder: Path | str, documents: bool = False) -> Codec:
    """The tokenizer of a backbone in Hugging Face's format, and the family it belongs to; for text that is `documents`, or not.

    Raises `InputError` when the folder is not there, for what `family_of` refuses, and where there is no tokenizer, or one with pieces that
    the embeddings lack.
    """
    family = family_of(folder)
    check_tokenizer(Path(folder), family.tokenizer_files)
    rows = config_of(folder).get("vocab_size", sys.maxsize)
    try:
        tokenizer = load_tokenizer(folder)
        tokenizer = without_rowless(tokenizer, rows) if family.causal else tokenizer
    except Exception as error:  # transformers raises many kinds of errors: OSError, ValueError, KeyError, errors of its Rust part
        raise InputError(f"{folder}: its tokenizer cannot be loaded ({in_one_line(error)}); copy the model again") from None
    if (pieces := ids_needed(tokenizer)) > rows:
        raise InputError(
            f"{folder}: its tokenizer has {pieces:,} pieces, more than the {rows:,} of its embeddings (vocab_size in config.json); "
            "copy tokenizer and weights of the same model there"
        )
    return Codec(tokenizer, family.name, documents, templates=read_templates(Path(folder)))


def unit_segmenter(code: str, model: Path | None = None) -> Segment:
    """A function from lines to the units of embeddings and lexicon, separated by blanks: folded words, or the pieces of `model`."""
    if model is None:
        return functools.partial(segment, code=code)
    codec = load_codec(model)
    return lambda lines: [" ".join(pieces) for pieces in codec.tokens([line.replace(BREAK, " ") for line in lines])]
