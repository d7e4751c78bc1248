"""templates: how a model is asked: of a decoder the text around a source, behind which it writes its answer.

A decoder has no encoder and no tags of languages. It reads a prompt and goes on with the answer:

    <bos>German: Speichern Sie die Datei.\\nEnglish: Save the file.<eos>

The text before and behind the source, and the answer, are cut into pieces apart, and their ids are joined. So no piece spans two of them,
and a model is asked with the very ids that it was trained with. A blank belongs to the word behind it: the template's own blank before
`{source}`, where it has one, goes to the source, and the one before the answer to the answer.

T5 and its kin have no tags of languages either. What they are to do may stand before the source, as a prefix.

Training writes the templates into the model's folder (`FILE`), and whatever loads the model asks by them.
"""

import itertools
import json
import string
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

from workflow_scripts.errors import InputError
from workflow_scripts.text.languages import language
from workflow_scripts.text.words import MASK

FILE = "templates.json"
"""The file in a model's folder with the templates that it was trained with."""


@dataclass
class Templates:
    """How a decoder, or a model like T5, is prompted. Other models have language tags and ignore these settings. A prompt has places
    for `{source}`, and for `{source_language}` and `{target_language}`, the English names of the languages."""

    task: str = ""
    """Prompt around the source. The task gives the default. For translation it is `{source_language}: {source}`, then `{target_language}:`
    on a new line."""
    restore: str = "Mixed {target_language}: {source}\n{target_language}:"
    """Prompt around a sentence to restore. Both language names are that of the sentence."""
    mask: str = "___"
    """Text that stands for a mask."""
    chat: bool = False
    """Whether the prompt is the user's turn in the model's own chat template. Where that gives today's date, it is always 26 July 2024."""
    examples: list[tuple[str, str]] = field(default_factory=list)
    """Pairs of source and answer shown before the source. An arm with `shots` draws them from the training text."""
    examples_in: list[str] = field(default_factory=list)
    """Languages of the examples' sources and answers, such as `[en, en]`. By default those that the model translates or answers in. An arm
    with `shots` has those of the training text."""

    prefix: str = ""
    """Text before each source for models like T5, such as `translate {source_language} to {target_language}: `. Empty by default."""
    restore_prefix: str = ""
    """Text before each sentence to restore, for models like T5. Both language names are that of the sentence."""

    @property
    def texts(self) -> tuple[str, ...]:
        """All that stands around, before or in the place of a source, as templates. The usual mask is left out."""
        own = [*([self.mask] if self.mask != Templates.mask else []), *(part for pair in self.examples for part in pair)]
        return self.task, self.restore, self.prefix, self.restore_prefix, *(form for text in own for form in in_both_forms(text))

    def __post_init__(self) -> None:
        for name in ("task", "restore", *_PREFIXES):
            if template := getattr(self, name):
                check_template(name, template)
        if len(self.examples_in) not in (0, 2):
            raise InputError(
                f"templates.examples_in: {self.examples_in} are not two languages, that of the sources and that of the answers"
            )


_PREFIXES = ("prefix", "restore_prefix")


def in_both_forms(text: str) -> tuple[str, str]:
    """Templates that have a text in its two forms: behind no blank, and behind one."""
    as_it_is = text.replace("{", "{{").replace("}", "}}")
    return f"\n{as_it_is}", f"{{source}} {as_it_is}"


USUAL = "{source_language}: {source}\n{target_language}:"
"""The template of a task that names none: translation's."""
PLACES = ("source", "source_language", "target_language")
LABEL_PLACES = ("text", "pair", "language")
"""Those of the template by which a label is asked for (`tasks.verbaliser`)."""
BETWEEN = "\n\n"
"""What stands between two examples."""


def check_template(name: str, template: str) -> None:
    """Raise `InputError` for a template that does not have `{source}` once, a prefix that has it, and a place that there is not."""
    sources = places_in(f"templates.{name}", template, PLACES).count("source")
    if name in _PREFIXES and sources:
        raise InputError(f"templates.{name}: {template!r} has {{source}}, which stands behind a prefix in any case; leave it out")
    if name not in _PREFIXES and sources != 1:
        raise InputError(f"templates.{name}: {template!r} has {{source}} {sources} times; it stands there once")


def places_in(where: str, template: str, known: Sequence[str]) -> list[str]:
    """The places of a template. Raises `InputError`, with its key in the configuration, for one that cannot be read, and for a place that
    is not `known`."""
    try:
        places = [place for _, place, _, _ in string.Formatter().parse(template) if place is not None]
    except ValueError as error:
        raise InputError(f"{where}: {template!r} cannot be read ({error}); write {{{{ and }}}} for braces of its own") from None
    if unknown := [place for place in places if place not in known]:
        has = ", ".join(f"{{{one}}}" for one in known)
        raise InputError(f"{where}: there is no {{{unknown[0]}}}; a template has {has}, and {{{{ and }}}} for braces of its own")
    return places


def plain(templates: Templates) -> dict[str, Any]:
    """Templates as plain data, without prefixes and languages of examples where there are none: what was trained before there were any is
    not trained anew."""
    return {name: value for name, value in asdict(templates).items() if value or name not in (*_PREFIXES, "examples_in")}


def read_templates(folder: Path) -> Templates:
    """The templates in a model's folder; the usual ones where it has none."""
    path = folder / FILE
    if not path.is_file():
        return Templates()
    said = json.loads(path.read_text(encoding="utf-8"))
    return Templates(**{**said, "examples": [(source, answer) for source, answer in said.get("examples", ())]})


def write_templates(templates: Templates, folder: Path) -> None:
    """Write them into a model's folder."""
    (folder / FILE).write_text(json.dumps(plain(templates), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def rendered(templates: Iterable[str], languages: Iterable[str], usual: bool = True) -> list[str]:
    """What templates, with the `usual` ones of decoders or without, put around a source in any of these languages, as text: a vocabulary
    that is cut down keeps its pieces."""
    filled = _filled((*((USUAL, Templates.restore) if usual else ()), *templates), languages, Templates.mask)
    return [part for text in filled for part in (text, f"a{text}{BETWEEN}a")]


def behind_texts(templates: Iterable[str]) -> list[str]:
    """What templates, or the usual ones, have directly behind a source, and behind an answer, with a letter at its end.

    In an example that is shown, these and the text before them are cut into pieces as one. Many byte-level vocabularies (Qwen's, Llama
    3's) have a full stop with the line break behind it as one piece.
    """
    parts = [part for template in (USUAL, Templates.restore, *templates) for part in string.Formatter().parse(template)]
    behind = [after for (_, place, _, _), (after, *_) in itertools.pairwise(parts) if place == "source"]
    return [*dict.fromkeys(f"{text}a" for text in (BETWEEN, "\n", *behind) if text)]


def rendered_in_chat(tokenizer: Any, templates: Iterable[str], languages: Iterable[str]) -> list[str]:
    """What stands around sources and answers where these templates, or the usual ones, are asked in the model's own chat.

    These are the very texts that `frame_of` cuts. Raises `InputError` for a chat template that the model does not have.
    """
    parts = []
    for text in _filled((USUAL, Templates.restore, "{source}", *templates), languages, _SOURCE):
        for shots in ([], [(text.replace(_SOURCE, "a"), "a")]):
            parts += [part for whole in _chat(tokenizer, shots, text) for part in whole.split(_SOURCE)]
    return [*dict.fromkeys(filter(None, parts))]


def _filled(templates: Iterable[str], languages: Iterable[str], source: str) -> list[str]:
    """Templates with a source and the names of all pairs of these languages in them."""
    names = [language(code).name for code in languages]
    texts = (
        template.format(source=source, source_language=one, target_language=other)
        for template in filter(None, templates)
        for one in names
        for other in names
    )
    return [*dict.fromkeys(texts)]


class Frame(NamedTuple):
    """A template in one direction, as ids."""

    begin: list[int]
    """What plain text begins with: the piece <bos>, or nothing."""
    before: list[int]
    """All that stands before the source. A chat template says itself whether that begins with <bos>."""
    after: list[int]
    """What stands between source and answer."""
    end: int
    """What ends an answer."""
    text_end: int
    """What ends plain text."""

    def prompt(self, source: Sequence[int]) -> list[int]:
        """What the model reads before it writes."""
        return [*self.before, *source, *self.after]

    def row(self, source: Sequence[int], answer: Sequence[int]) -> tuple[list[int], list[int]]:
        """What the model reads, and for each of these pieces the one to be written behind it; −100 where that is part of the prompt.

        Where there is no source, the answer is written behind nothing but the beginning, as plain text with the end of one.
        """
        if not source and answer and answer[-1] == self.end:
            answer = [*answer[:-1], self.text_end]
        prompt = self.prompt(source) if source else self.begin
        return [*prompt, *answer[:-1]], ([*[-100] * (len(prompt) - 1), *answer] if prompt else [*answer[1:]])


def prompt_of(row: tuple[Sequence[int], Sequence[int]]) -> Sequence[int]:
    """The prompt of a row that `Frame.row` has made."""
    read, labels = row
    known = next((at for at, label in enumerate(labels) if label != -100), len(labels))
    return read[: known + 1]


def prefix_of(templates: Templates, tokenizer: Any, languages: tuple[str, str], kind: str) -> list[int]:
    """The ids that stand before a source which a model of T5's kin reads; none where there is no prefix for this `kind`."""
    return _ids(tokenizer, (templates.prefix if kind == "task" else templates.restore_prefix).format(**_names_of(languages)))


def blank_before_source(templates: Templates, kind: str) -> bool:
    """Whether the template of a `kind` (`task`, `restore`) has a blank before `{source}`."""
    return " {source}" in (getattr(templates, kind) or USUAL)


def _names_of(languages: Sequence[str]) -> dict[str, str]:
    return {"source_language": language(languages[0]).name, "target_language": language(languages[1]).name}


# they stand for a source and an answer while a template is filled: of Unicode's noncharacters, which no text has
_SOURCE, _ANSWER = "\ufdd0", "\ufdd1"


def frame_of(templates: Templates, tokenizer: Any, languages: tuple[str, str], kind: str) -> Frame:
    """The template of a `kind` (`task`, `restore`) from one language into another.

    Raises `InputError` for a chat template that the model does not have.
    """
    template = getattr(templates, kind) or USUAL

    def asked(source: str, languages: Sequence[str]) -> str:
        return template.format(source=source, **_names_of(languages))

    shown = templates.examples if kind == "task" else []
    shots = [(asked(source, templates.examples_in or languages), answer) for source, answer in shown]
    if templates.chat:
        return _in_chat(tokenizer, shots, asked(_SOURCE, languages))
    text = "".join(f"{source} {answer}{BETWEEN}" for source, answer in shots) + asked(_SOURCE, languages)
    before, _, after = text.rpartition(_SOURCE)
    first, end = begin(tokenizer), tokenizer.eos_token_id
    return Frame(first, [*first, *_ids(tokenizer, before.rstrip(" "))], _ids_behind(tokenizer, after.rstrip(" ")), end, end)


def _in_chat(tokenizer: Any, turns: list[tuple[str, str]], last: str) -> Frame:
    before, after, behind = (_ids(tokenizer, text) for text in _chat(tokenizer, turns, last))
    return Frame(begin(tokenizer), before, after, _end_of_turn(tokenizer, behind), tokenizer.eos_token_id)


_DAY = date(2024, 7, 26)
"""The date that a chat template gets, so that a prompt is the same on each day: what Llama 3.2's takes where it gets none."""
# the clock that transformers gives a template, as a macro of this name; transformers takes no function for it
_ALWAYS_THAT_DAY = (
    "{%- macro strftime_now(form) -%}{{ form"
    + "".join(f" | replace('{sign}', '{_DAY.strftime(sign)}')" for sign in ("%-d", "%-m", *(f"%{one}" for one in "aAbBdeFHIjmMpSTyY")))
    + " }}{%- endmacro %}\n"
)


_THOUGHT = "<think>"
"""What opens a thought that is written before the answer."""


def _chat(tokenizer: Any, turns: list[tuple[str, str]], last: str) -> tuple[str, str, str]:
    """What stands in a chat before the source, between it and the answer, and behind the answer.

    `turns` are what was asked and answered before, and `last` is what is asked, with `_SOURCE` in it.
    """
    if not getattr(tokenizer, "chat_template", None):
        raise InputError("templates.chat: the model has no chat template; leave `chat` out, or take a model that was trained to chat")
    said = [{"role": role, "content": content} for asked, answer in turns for role, content in (("user", asked), ("assistant", answer))]
    said.append({"role": "user", "content": last})

    template = tokenizer.get_chat_template()
    if "strftime_now" in template:
        template = _ALWAYS_THAT_DAY + template

    def rendered(turns: list[dict[str, str]], more: bool) -> str:
        # models that can think first are to answer at once, in training and in use
        settings = {"chat_template": template, "enable_thinking": False, "date_string": _DAY.strftime("%d %b %Y")}
        return tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=more, **settings)

    before, _, after = rendered(said, True).rpartition(_SOURCE)
    written, _, behind = rendered([*said, {"role": "assistant", "content": _ANSWER}], False).rpartition(_ANSWER)
    written = written.rpartition(_SOURCE)[2]
    # some open a thought, or leave open what comes next; before an answer that stands there the thought is closed
    if after.rstrip().endswith(_THOUGHT) or (written.startswith(after) and written[len(after) :].strip()):
        after = written
    if after.rstrip().endswith(_THOUGHT):
        raise InputError("templates.chat: the model thinks before it answers, and its template has no way around that; leave `chat` out")
    return before.rstrip(" "), after, behind


def _end_of_turn(tokenizer: Any, behind: list[int]) -> int:
    """What ends an answer in a chat, of what stands behind it: its first piece that no answer has, or the end of all text."""
    named = {*tokenizer.all_special_ids, *tokenizer.added_tokens_decoder}
    pieces = zip(behind, tokenizer.convert_ids_to_tokens(behind), strict=True)
    # of the added pieces some are blanks
    ends = (number for number, piece in pieces if _breaks_line(tokenizer, piece) or (number in named and piece.strip(" ▁")))
    return next(ends, tokenizer.eos_token_id)


def begin(tokenizer: Any) -> list[int]:
    """The ids that the tokenizer puts before a text, as <bos>; none where it puts none there."""
    return [i for i in tokenizer("")["input_ids"] if i != tokenizer.eos_token_id or i == tokenizer.bos_token_id][:1]


def word_blank(tokenizer: Any) -> str:
    """What makes a word behind another of a text's first word: a blank, unless the tokenizer puts one there by itself."""
    first = tokenizer.tokenize("a")[0]
    return "" if first.startswith(("▁", "Ġ")) else " "


def _ids(tokenizer: Any, text: str) -> list[int]:
    return tokenizer(text, add_special_tokens=False)["input_ids"] if text else []


def _ids_behind(tokenizer: Any, text: str) -> list[int]:
    """The ids of a text that stands behind another. Some tokenizers put a blank before all that they get."""
    letter = _ids(tokenizer, "a")
    both = _ids(tokenizer, f"a{text}")
    return both[len(letter) :] if both[: len(letter)] == letter else _ids(tokenizer, text)


def without_masks(line: str, templates: Templates) -> str:
    """A noised line in which masks stand as a decoder reads them."""
    return line.replace(MASK, templates.mask)


def line_breaks(tokenizer: Any) -> list[int]:
    """The ids of all pieces with a line break. All of the vocabulary is gone through for them."""
    marks = _marks_of_line_breaks(tokenizer)
    return [number for piece, number in tokenizer.get_vocab().items() if any(mark in piece for mark in marks)]


def _breaks_line(tokenizer: Any, piece: str) -> bool:
    return any(mark in piece for mark in _marks_of_line_breaks(tokenizer))


def _marks_of_line_breaks(tokenizer: Any) -> tuple[str, ...]:
    """How a line break is written in pieces. Byte-level vocabularies have it as a letter, which others have as that letter."""
    byte_level = tokenizer.convert_tokens_to_string(["Ċ"]) == "\n"
    return ("\n", "<0x0A>", *(["Ċ"] if byte_level else []))


def first_line(text: str) -> str:
    """The answer of what a decoder has written."""
    return text.strip().split("\n")[0].strip()
