"""configuration: the types of the whole configuration, assembled from the settings of all stages."""

from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from workflow_scripts.config.analyses import Analysis
from workflow_scripts.config.experiments import OfItsTask
from workflow_scripts.config.phases import Phase, placed
from workflow_scripts.lexicon.embeddings import Embeddings
from workflow_scripts.lexicon.lexicon import ALIGNED_PAIRS, Lexicon
from workflow_scripts.lexicon.mapping import Mapping
from workflow_scripts.number_types import Positive, Whole
from workflow_scripts.text.acquisition import Data
from workflow_scripts.text.aligned import Aligned
from workflow_scripts.text.corpus import Corpus
from workflow_scripts.text.labelled import Labelled
from workflow_scripts.training.backbone import Backbone


@dataclass
class Run:
    """What is run."""

    experiments: list[str]
    """Names of experiments."""
    arms: list[str]
    """Names of arms; the first is the baseline that the others are compared with."""
    seeds: list[Whole]
    """Training seeds; each arm is trained once per seed."""
    zero_shot: bool | list[str] = False
    """Every experiment's models, or those of the experiments that are named, translate the test sets of the others, too, if target and
    backbone are the same (Table III)."""
    analyses: list[str] = field(default_factory=list)
    """Names of analyses: what is measured inside the models."""
    transfer: str | None = None
    """Name of a backbone: the report compares the models of experiments that differ by their backbone alone, and tests them against it."""


@dataclass
class LexiconStages:
    """How a lexicon is made: the settings of three stages, and a word list to judge it by."""

    corpus: str | None = None
    """Name of the corpus that it is learnt from; the experiment's if none is named."""
    unit: Literal["word", "piece"] = "word"
    """What has a vector and translations. `piece`: the backbone's SentencePiece pieces, as in the authors' published code."""
    backbone: str | None = None
    """`unit: piece`: the backbone whose pieces they are."""
    embeddings: Embeddings = field(default_factory=Embeddings)
    """word2vec."""
    mapping: Mapping = field(default_factory=Mapping)
    """The mapping into one space."""
    lexicon: Lexicon = field(default_factory=Lexicon)
    """Retrieval."""
    aligned_pairs: Positive = ALIGNED_PAIRS
    """`mapping.mode: aligned`: of the corpus at most so many pairs, evenly spaced, are aligned; the links of more would take all memory."""
    vectors: dict[str, str] = field(default_factory=dict)
    """Language → file of word vectors to take instead of learning them."""
    dictionary: dict[str, str] = field(default_factory=dict)
    """Pair (`de-en`) → word list that the mapping starts from, or that is the lexicon (`mapping.mode`)."""
    gold: dict[str, str] = field(default_factory=dict)
    """Pair (`de-en`) → file of correct translations, a pair a line in that order. Only for judging."""


@dataclass
class Config:
    """The whole configuration."""

    run: Run
    """What is run; a recipe's lists replace these."""
    corpora: dict[str, Corpus]
    """Parallel corpora by name."""
    lexicons: dict[str, LexiconStages]
    """Ways to make a lexicon by name."""
    backbones: dict[str, Backbone]
    """Backbones by name."""
    arms: dict[str, list[Phase]]
    """Ways to train by name: phases, one after the other."""
    experiments: dict[str, Annotated[Any, OfItsTask()]]
    """Experiments by name."""
    data: dict[str, Data] = field(default_factory=dict)
    """Data to acquire by name. `results/data/{name}` with its suffix is the file, which any setting that takes a file may name."""
    labelled: dict[str, Labelled] = field(default_factory=dict)
    """Texts with labels by name, for tasks such as classification."""
    aligned: dict[str, Aligned] = field(default_factory=dict)
    """Sentences whose translations are looked for, by name, for retrieval."""
    analyses: dict[str, Analysis] = field(default_factory=dict)
    """Analyses of models by name: their similarity, the spectra of their weights, how separable languages are."""
    over: str | None = None
    """In a recipe that is laid over another one: that one's path, from the recipe's own folder."""
    plugins: list[str] = field(default_factory=list)
    """Python files beside the configuration, importable modules, or entry points of installed packages, which bring noises and more of
    their own (docs/extend.md). Those of recipes that are laid over each other, and of `--config`, add up."""

    def __post_init__(self) -> None:
        """Phases know their place in their arm."""
        placed(self.arms)
