"""objective: what an objective is: a way in which a backbone, or a phase of an arm, learns from text. Two decorators register one.

::

    @rows_objective("copy", decoder=False, label="copying")
    def copied(lines, codec, language, max_length):
        return [(row, row) for row in codec.encode(lines, language, max_length)]

The function of `rows_objective` makes rows of lines: what is read, and the label of each piece, −100 where nothing is to be predicted. It
is called anew in each epoch, with what its parameters ask for by name (`PARAMETERS`). `objective` is for those that need more: files of
their own, another network, another loss (`Material`).
"""

import functools
import json
import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from workflow_scripts import plugins, registry
from workflow_scripts.errors import InputError
from workflow_scripts.noise.rounds import DEV_STREAM
from workflow_scripts.stage import own_settings
from workflow_scripts.storage import checksum
from workflow_scripts.text.files import chunks, read_lines, write_lines

if TYPE_CHECKING:
    from workflow_scripts.models.tokenisation import Codec
    from workflow_scripts.training.bitext import Bitext
    from workflow_scripts.training.method import Method
    from workflow_scripts.training.pretraining_settings import Pretraining
    from workflow_scripts.training.rows import Dev, Rounds


class Text(NamedTuple):
    """Text of one part, training or dev, as an objective gets it."""

    lines: dict[str, list[str]]
    """Language → monolingual lines."""
    bitext: "list[Bitext]" = []  # noqa: RUF012 (a named tuple's default, which nothing changes)
    """The pairs of each corpus."""
    breaks: dict[str, list[int]] = {}  # noqa: RUF012
    """Language → the numbers of the lines with which a document begins, of those that a blank line ends."""


class Part(NamedTuple):
    """The text of a part, training or dev, in files."""

    text: dict[str, Path]
    """Language → its lines, with a blank one between documents."""
    bitext: list[dict[str, Path]]
    """Of each corpus: language → a side."""

    @classmethod
    def write(cls, folder: Path, name: str, text: Text) -> "Part":
        """Write the text of the part of this `name` into `folder`."""
        made = cls({}, [])
        for code, lines in text.lines.items():
            made.text[code] = folder / f"{name}.{code}"
            write_lines(made.text[code], _with_blanks(lines, text.breaks.get(code, ())))
        for place, one in enumerate(text.bitext):
            made.bitext.append({code: folder / f"{name}.{place}.{one.name}.{code}" for code in one.sides})
            for code, side in one.sides.items():
                write_lines(made.bitext[-1][code], side)
        return made

    def files(self) -> dict[str, Path]:
        """All files by name."""
        return {path.name: path for path in (*self.text.values(), *(path for one in self.bitext for path in one.values()))}


def _with_blanks(lines: list[str], breaks: Sequence[int]) -> Iterator[str]:
    first = set(breaks)
    for number, line in enumerate(lines):
        if number and number in first:
            yield ""
        yield line


def plan_file(folder: Path, name: str, **settings: Any) -> dict[str, Path]:
    """A file of settings that decide what is learnt and are no part of `Training`: a killed job must not go on with others."""
    write_lines(folder / name, [json.dumps(settings)])
    return {name: folder / name}


class Material(NamedTuple):
    """Training material that an objective makes from text."""

    text: dict[str, Path]
    """Files that, together with the settings, decide the result."""
    read: "Callable[[Codec], tuple[Rounds, list[Dev]]]"
    """Function that makes training rows, and dev rows of each language, from these files."""
    method: "Callable[[], Method] | None" = None
    """Function that returns how the network is loaded and trained, where it is not as in other phases."""
    losses: "Callable[[Any, Codec, list[Any]], dict[str, float]] | None" = None
    """Network, codec and dev rows → losses in nats per label; by default one, that of the objective."""
    finish: Callable[[Path], None] | None = None
    """Adds to the folder of the finished model."""


@dataclass(frozen=True, kw_only=True)
class Objective(registry.Entry):
    """An entry of the kind `objective`."""

    prepare: "Callable[[Pretraining, Text, Text, int, Path], Material]"
    """Settings, training and dev text, seed and a folder for files → material."""
    decoder: bool | None
    """Whether it is for families with a decoder beside the encoder, or for those without; None where it is for neither."""
    causal: bool = False
    """Whether it is for families that are a decoder alone."""
    sentinels: bool = False
    """Whether it is for families with sentinels alone (T5's kin), whose own objective it then is."""
    reads: Literal["lines", "pairs", "both"] = "lines"
    """What it learns from. One that reads `lines` gets the sides of bitext among them."""
    in_order: bool = False
    """Whether pairs that follow each other belong together: of a corpus with more than are wanted, it reads a stretch."""
    keys: tuple[str, ...] = ()
    """Of ours: the keys of a backbone's block that are its settings, which a phase has under `objective`."""
    asks: str = "Does this help?"
    """The question that the report asks of an arm in which it comes before the task, against the baseline."""
    block: str = ""
    """Of ours: that of `keys` which no other objective reads."""
    problems: "Callable[[str, Pretraining, list[tuple[str, str]]], Iterator[str]] | None" = None
    """The block's key in the configuration, its settings and the languages of each corpus of its `bitext` → what is wrong with them."""
    control_of: str = ""
    """The objective or noise that it is a control of."""
    against: tuple[str, ...] = ()
    """Other objectives and noises whose arms the report compares its arms with as well."""
    cuts: bool | None = None
    """Whether texts that are too long are cut where settings leave that open; by default those of an objective that reads no pairs are."""

    @property
    def leaves_out(self) -> bool:
        """Whether such texts are left out instead."""
        return self.reads == "pairs" if self.cuts is None else not self.cuts


def objective(
    name: str, *, decoder: bool | None, label: str = "", against: str | Iterable[str] = (), **about: Any
) -> Callable[[Callable], Callable]:
    """Register the function that is decorated, `Objective.prepare`, as an objective; `about` are other fields of `Objective`."""

    def registered(prepare: Callable) -> Callable:
        others = (against,) if isinstance(against, str) else tuple(against)
        entry = Objective(name=name, label=label or name, prepare=prepare, decoder=decoder, against=others, **about)
        registry.register("objective", entry)
        return prepare

    return registered


# ---------------------------------------------------------------------------------------------
# objectives that are a function of lines

PARAMETERS = {
    "lines": "some lines of the text",
    "language": "their language's code",
    "codec": "the model's tokenizer: `codec.encode(lines, language)` gives rows, `codec.tokenizer` is that of transformers",
    "max_length": "how many pieces a row may have at most",
    "draw": "a NumPy generator: the same numbers in the same epoch of every run",
    "settings": "an instance of the objective's dataclass",
}
"""What the function of an objective may ask for, by the name of its parameter."""


def rows_objective(name: str, *, decoder: bool | None, settings: type | None = None, **about: Any) -> Callable[[Callable], Callable]:
    """Register the function of lines that is decorated as an objective; see the module, and `objective` for what `about` may be.

    With a `decoder` the labels are a whole row, as `codec.encode` makes it; else each piece that is read has a label of its own.
    """

    def registered(function: Callable) -> Callable:
        asked = plugins.asked(f"objective {name!r}", "an objective", function, PARAMETERS, decorator="rows_objective", settings=settings)

        def prepare(block: "Pretraining", train: Text, dev: Text, seed: int, folder: Path) -> Material:
            own = own_settings(registry.entry("objective", name), block.objective_settings)
            make = MadeRows(name, function, asked, own, block.training.max_length, decoder is not True)
            return _material(make, train, dev, seed, folder, block)

        objective(name, decoder=decoder, settings=settings, **about)(prepare)
        return function

    return registered


class MadeRows(NamedTuple):
    """How rows are made of lines."""

    name: str
    function: Callable[..., Sequence[tuple[Sequence[int], Sequence[int]]]]
    asked: tuple[str, ...]
    settings: Any
    max_length: int
    of_one_length: bool
    """Whether each piece that is read has a label of its own."""

    def rows(self, lines: list[str], language: str, codec: "Codec", draw: np.random.Generator) -> Any:
        """The rows of lines, as two large arrays. The function gets some thousand lines at a time, as Python's lists take much room."""
        from workflow_scripts.training.ragged import Rows

        return Rows.of(row for some in chunks(lines) for row in self._made(some, language, codec, draw))

    def _made(self, lines: list[str], language: str, codec: "Codec", draw: np.random.Generator) -> list[tuple[list[int], list[int]]]:
        given = {"lines": lines, "language": language, "codec": codec, "draw": draw}
        given |= {"max_length": self.max_length, "settings": self.settings}
        called = f"objective {self.name!r}"
        first = functools.partial("{} lines in {}, the first is {!r}".format, len(lines), language, lines[0] if lines else "")
        made = plugins.call(called, self.function, {each: given[each] for each in self.asked}, first)
        try:
            made = [(list(map(operator.index, read)), list(map(operator.index, labels))) for read, labels in made]
        except (TypeError, ValueError):
            raise InputError(
                f"{called} returned {str(made)[:80]}; it returns a list of rows: the pieces that are read, and labels"
            ) from None
        if len(made) != len(lines):
            raise InputError(f"{called} made {len(made)} rows of {len(lines)} lines; it makes one of each")
        for line, (read, labels) in zip(lines, made, strict=True):
            if self.of_one_length and len(read) != len(labels):
                raise InputError(f"{called} gave {len(labels)} labels to a row of {len(read)} pieces; it gives each piece one ({line!r})")
            if not read or max(len(read), len(labels)) > self.max_length:
                size = max(len(read), len(labels))
                raise InputError(f"{called} made a row of {size} pieces; max_length is {self.max_length}, and 1 the least ({line!r})")
            if wrong := next((each for each in (*read, *labels) if each >= len(codec.tokenizer) or (each < 0 and each != _NOTHING)), None):
                raise InputError(f"{called} used the piece {wrong}; the vocabulary has {len(codec.tokenizer)} ({line!r})")
        return [*zip((read for read, _ in made), codec.as_labels([labels for _, labels in made], language), strict=True)]


def _material(make: MadeRows, train: Text, dev: Text, seed: int, folder: Path, block: "Pretraining") -> Material:
    """Rows that are made anew in each epoch; those of dev text are made once.

    Lines that are longer than a row are left out if the training says so; else the function gets them, and is to cut them.
    """
    parts = {name: Part.write(folder, name, Text(text.lines)) for name, text in (("train", train), ("dev", dev))}
    own = asdict(make.settings) if make.settings else {}
    read_too = [checksum(path) for path in plugins.files_in(own)]
    plan = plan_file(folder, "objective.json", objective=make.name, settings=own, **({"files": read_too} if read_too else {}))

    def read(codec: "Codec") -> "tuple[Rounds, list[Dev]]":
        from workflow_scripts.training.rows import Dev
        from workflow_scripts.training.too_long import Room, lines_with_room

        room = Room.of(block.training, leave_out=registry.entry("objective", make.name).leaves_out)
        text, held_back = (
            {code: lines_with_room(codec, list(read_lines(path)), code, room, path) for code, path in parts[name].text.items()}
            for name in ("train", "dev")
        )
        held = []
        for side, (code, (lines, about)) in enumerate(held_back.items()):
            held.append(Dev(make.rows(lines, code, codec, _draw(seed, 1, DEV_STREAM, side)), code, None, [about]))
        _check_labels(make.name, [part.rows for part in held])
        return _made_anew(make, text, codec, seed), held

    return Material({**parts["train"].files(), **parts["dev"].files(), **plan}, read)


# the label of a piece where nothing is to be predicted
_NOTHING = -100


def _check_labels(name: str, parts: Sequence[Any]) -> None:
    """Raise `InputError` where no row of a text, in `Rows` by language, has a label, so that there is no loss."""
    count = sum(map(len, parts))
    if count and not any((part.sides[1].flat >= 0).any() for part in parts):
        raise InputError(f"objective {name!r} predicts nothing in any of {count} lines; give some pieces a label other than {_NOTHING}")


def _draw(seed: int, kind: int, epoch: int, side: int) -> np.random.Generator:
    return np.random.default_rng([seed, kind, epoch, side])


def _made_anew(make: MadeRows, text: dict[str, tuple[list[str], dict[str, Any]]], codec: "Codec", seed: int) -> Any:
    from workflow_scripts.training.ragged import Chained
    from workflow_scripts.training.rows import Rounds

    class MadeAnew(Rounds):
        """The rows of all languages, made anew in each epoch."""

        rows = sum(len(lines) for lines, _ in text.values())
        too_long = [about for _, about in text.values()]  # noqa: RUF012 (which nothing changes)

        def epoch(self, number: int) -> Any:
            sides = enumerate(text.items())
            parts = [make.rows(lines, code, codec, _draw(seed, 0, number, side)) for side, (code, (lines, _)) in sides]
            _check_labels(make.name, parts)
            return Chained(parts)

    return MadeAnew()
