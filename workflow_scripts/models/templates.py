"""templates: how a model is asked: of a decoder the text around a source, behind which it writes its answer.

A decoder has no encoder and no tags of languages. It reads a prompt and goes on with the answer:

    <bos>German: Speichern Sie die Datei.\\nEnglish: Save the file.<eos>

The text before and behind the source, and the answer, are cut into pieces apart, and their ids are joined. So no piece spans two of them,
and a model is asked with the very ids that it was trained with. A blank belongs to the word behind it: the template's own blank before
`{source}` goes to the source, and the one before the answer to the answer.

T5 and its kin have no tags of languages either. What they are to do may stand before the source, as a prefix.

Training writes the templates into the model's folder (`FILE`), and whatever loads the model asks by them.
"""

import json
import string
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
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
    """Whether the prompt is the user's turn in the model's own chat template."""
    examples: list[tuple[str, str]] = field(default_factory=list)
    """Pairs of source and answer shown before the source. An arm with `shots` draws them from the training text."""

    prefix: str = ""
    """Text before each source for models like T5, such as `translate {source_language} to {target_language}: `. Empty by default."""
    restore_prefix: str = ""
    """Text before each sentence to restore, for models like T5. Both language names are that of the sentence."""

    @property
    def texts(self) -> tuple[str, ...]:
        """All that stands around or before a source."""
        return self.task, self.restore, self.prefix, self.restore_prefix

    def __post_init__(self) -> None:
        for name in ("task", "restore", *_PREFIXES):
            if template := getattr(self, name):
                check_template(name, template)


_PREFIXES = ("prefix", "restore_prefix")


USUAL = "{source_language}: {source}\n{target_language}:"
"""The template of a task that names none: translation's."""
PLACES = ("source", "source_language", "target_language")
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
    """Templates as plain data, without prefixes where there are none: what was trained before there were any is not trained anew."""
    return {name: value for name, value in asdict(templates).items() if value or name not in _PREFIXES}


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
    names = [language(code).name for code in languages]
    filled = [
        template.format(source=Templates.mask, source_language=one, target_language=other)
        for template in dict.fromkeys(filter(None, (*((USUAL, Templates.restore) if usual else ()), *templates)))
        for one in names
        for other in names
    ]
    return [part for text in dict.fromkeys(filled) for part in (text, f"a{text}{BETWEEN}a")]


class Frame(NamedTuple):
    """A template in one direction, as ids."""

    begin: list[int]
    """What a text begins with: the piece <bos>, or nothing."""
    before: list[int]
    """What stands between that and the source."""
    after: list[int]
    """What stands between source and answer."""
    end: int
    """What ends an answer."""

    def prompt(self, source: Sequence[int]) -> list[int]:
        """What the model reads before it writes."""
        return [*self.begin, *self.before, *source, *self.after]

    def row(self, source: Sequence[int], answer: Sequence[int]) -> tuple[list[int], list[int]]:
        """What the model reads, and for each of these pieces the one to be written behind it; −100 where that is part of the prompt.

        Where there is no source, the answer is written behind nothing but the beginning, as plain text.
        """
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


def _names_of(languages: tuple[str, str]) -> dict[str, str]:
    return {"source_language": language(languages[0]).name, "target_language": language(languages[1]).name}


# they stand for a source and an answer while a template is filled: of Unicode's noncharacters, which no text has
_SOURCE, _ANSWER = "\ufdd0", "\ufdd1"


def frame_of(templates: Templates, tokenizer: Any, languages: tuple[str, str], kind: str) -> Frame:
    """The template of a `kind` (`task`, `restore`) from one language into another.

    Raises `InputError` for a chat template that the model does not have.
    """
    names = _names_of(languages)
    template = getattr(templates, kind) or USUAL

    def asked(source: str) -> str:
        return template.format(source=source, **names)

    shots = templates.examples if kind == "task" else []
    if templates.chat:
        return _in_chat(tokenizer, [(asked(source), answer) for source, answer in shots], asked(_SOURCE))
    text = "".join(f"{asked(source)} {answer}{BETWEEN}" for source, answer in shots) + asked(_SOURCE)
    before, _, after = text.rpartition(_SOURCE)
    return Frame(begin(tokenizer), _ids(tokenizer, before.rstrip(" ")), _ids_behind(tokenizer, after.rstrip(" ")), tokenizer.eos_token_id)


def _in_chat(tokenizer: Any, turns: list[tuple[str, str]], last: str) -> Frame:
    if not getattr(tokenizer, "chat_template", None):
        raise InputError("templates.chat: the model has no chat template; leave `chat` out, or take a model that was trained to chat")
    said = [{"role": role, "content": content} for asked, answer in turns for role, content in (("user", asked), ("assistant", answer))]
    said.append({"role": "user", "content": last})

    def rendered(turns: list[dict[str, str]], more: bool) -> str:
        # models that can think first are to answer at once, in training and in use
        return tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=more, enable_thinking=False)

    before, _, after = rendered(said, True).rpartition(_SOURCE)
    whole = rendered([*said, {"role": "assistant", "content": _ANSWER}], False)
    behind = _ids(tokenizer, whole.rpartition(_ANSWER)[2])
    return Frame([], _ids(tokenizer, before.rstrip(" ")), _ids(tokenizer, after), behind[0] if behind else tokenizer.eos_token_id)


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
    vocabulary = tokenizer.get_vocab()
    return [number for piece, number in vocabulary.items() if "\n" in piece or "Ċ" in piece or piece == "<0x0A>"]


def first_line(text: str) -> str:
    """The answer of what a decoder has written."""
    return text.strip().split("\n")[0].strip()
