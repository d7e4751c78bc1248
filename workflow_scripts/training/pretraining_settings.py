"""pretraining_settings: what a backbone is pretrained on, and how; `pretraining` has the objectives."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from workflow_scripts.errors import InputError
from workflow_scripts.noise.masking import Masking
from workflow_scripts.noise.span_noise import SpanNoise
from workflow_scripts.number_types import Limits, Natural, Positive
from workflow_scripts.training.bitext import Direction, directions
from workflow_scripts.training.settings import Training


@dataclass
class Veco:
    """VECO's losses. Each can be turned off. IS-MLM alone is XLM-R's pretraining; with TLM it is XLM's."""

    is_mlm: bool = True
    """Inner-sequence masked language modelling: the encoder predicts masked pieces of x from x, and those of y from y."""
    cs_mlm: bool = True
    """Cross-sequence masked language modelling: the decoder predicts masked pieces of y from y and the encoder's states of x, and vice
    versa. Without it, the model has no cross-attention and is a plain XLM-R."""
    tlm: bool = True
    """Translation language modelling on parallel text: the encoder predicts from x and y in one row. The positions of y start again."""
    causal: bool = True
    """Whether the decoder sees only earlier pieces, as in the paper's first version. If false it sees the whole row, as in the later
    version."""
    cross_attention_first: Natural = 0
    """Number of first updates that train cross-attention alone, for a model that starts from XLM-R. The learning rate's schedule runs on
    meanwhile. If `warmup_updates` is not larger, the rest starts at the peak rate."""
    parallel: bool = True
    """Whether both sides of bitext are read as pairs. If false each side is monolingual text: a control with the same text."""


@dataclass
class Pretraining:
    """What a backbone is pretrained on, and how."""

    text: dict[str, str] = field(default_factory=dict)
    """Language → file of monolingual text, a paragraph or verse per line, or `task` for the task's own training text."""
    disjoint: bool = True
    """Whether the files are translations of each other, line by line. Then language i of n reads every n-th line from i, so no text is
    read twice."""
    dev_lines: Positive = 200
    """Lines per language kept for measuring the loss. For bitext, pairs from each corpus's dev set."""
    bitext: list[str] = field(default_factory=list)
    """Names of `corpora` whose training text is read too, or alone. Objectives for monolingual text read the sides separately."""
    bitext_pairs: Positive | None = None
    """Number of pairs read from each corpus, drawn at random once for all models; by default all. `alternating`
    reads a stretch of so many pairs that follow each other."""
    temperature: Annotated[float, Limits(ge=1)] = 1.0
    """Sampling temperature of corpora: one with n pairs is drawn in proportion to n^(1/temperature). At 1, each pair is read equally
    often. The objective `veco` samples languages in the same way."""
    direction: Direction = "many-to-many"
    """With objective `translation`: into both languages of each pair, into the pivot (`many-to-one`), or from it (`one-to-many`)."""
    pivot: str | None = None
    """With objective `translation`: language of `many-to-one` and `one-to-many`. By default the one that all pairs share."""
    noise: SpanNoise = field(default_factory=SpanNoise)
    """With objective `denoising`: mBART's span noise."""
    masking: Masking = field(default_factory=Masking)
    """With objectives `mlm` and `veco`: BERT's masks."""
    veco: Veco = field(default_factory=Veco)
    """With objective `veco`: its losses."""
    training: Training = field(default_factory=Training)
    """Training settings of the pretraining."""
    objective_settings: dict[str, Any] = field(default_factory=dict)
    """Settings of a plugin's objective, if it has any."""
    ready: str | None = None
    """Folder with this backbone already pretrained. It is used only if everything that it was made from is the same."""

    @property
    def lines_per_language(self) -> int:
        """Lines that each language must have left: four times those that are kept back."""
        return 4 * self.dev_lines

    @property
    def lines_needed(self) -> int:
        """Lines that each file must have: with `disjoint`, a language reads only one of as many lines as there are languages."""
        return self.lines_per_language * (len(self.text) if self.disjoint else 1)


# ---------------------------------------------------------------------------------------------
# what is wrong with settings, and types cannot tell


def direction_problems(where: str, block: Pretraining, pairs: list[tuple[str, str]]) -> Iterator[str]:
    """Directions of translation that the pairs of languages do not have."""
    if pairs:
        try:
            directions(pairs, block.direction, block.pivot)
        except InputError as problem:
            yield f"{where}: {problem}"


def veco_problems(where: str, block: Pretraining, pairs: list[tuple[str, str]]) -> Iterator[str]:
    """Losses of VECO that are all off, or have nothing to read."""
    veco = block.veco
    if not (veco.is_mlm or veco.cs_mlm or veco.tlm):
        yield f"{where}.veco: all losses are off; switch on is_mlm, cs_mlm or tlm"
    if not (veco.is_mlm or veco.cs_mlm) and block.text:
        yield f"{where}.veco: tlm alone reads bitext only; leave `text` out, or switch on is_mlm or cs_mlm"
    if not (veco.is_mlm or veco.cs_mlm) and veco.tlm and not (block.bitext and veco.parallel):
        yield f"{where}.veco: tlm alone needs the pairs of `bitext`"
    first, updates = veco.cross_attention_first, block.training.updates
    if first and not veco.cs_mlm:
        yield f"{where}.veco.cross_attention_first: without cs_mlm there is no cross-attention"
    if first >= updates:
        yield f"{where}.veco.cross_attention_first: {first} must be less than the {updates} updates of the pretraining"


class Texts(NamedTuple):
    """The files of text that decide what a backbone is made of."""

    languages: tuple[str, ...]
    """Those that the model is to know."""
    task_text: tuple[Path, ...] = ()
    """Training text of the experiments that use the backbone, for the vocabulary, and where a `text` is `task`."""
    held_out: tuple[Path, ...] = ()
    """Dev and test sets, none of whose sentences is learnt from."""
    bitext: tuple[Path, ...] = ()
    """Training text of the corpora that are learnt from, both sides of each one after the other."""
    bitext_dev: tuple[Path, ...] = ()
    """Their dev sets likewise."""
