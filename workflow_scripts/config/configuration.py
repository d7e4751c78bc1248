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
    """Experiments, arms, seeds and analyses to run."""

    experiments: list[str]
    """Names of the experiments to run."""
    arms: list[str]
    """Names of the arms to run. The first is the baseline for all comparisons."""
    seeds: list[Whole]
    """Training seeds; each arm is trained once per seed."""
    zero_shot: bool | list[str] = False
    """Whether models also translate the test sets of other experiments with the same target and backbone (Table III). A list names the
    experiments whose models do."""
    analyses: list[str] = field(default_factory=list)
    """Names of the analyses to run."""
    transfer: str | None = None
    """Name of a backbone. The report tests models of experiments that differ only in their backbone against this one."""


@dataclass
class LexiconStages:
    """How a lexicon is made: settings of three stages, and a word list to evaluate it."""

    corpus: str | None = None
    """Name of the corpus that the lexicon is learnt from; by default the experiment's."""
    unit: Literal["word", "piece"] = "word"
    """Unit that has a vector and translations. `piece`: SentencePiece pieces of a backbone, as in the authors' published code."""
    backbone: str | None = None
    """Name of the backbone whose pieces are used, with `unit: piece`."""
    embeddings: Embeddings = field(default_factory=Embeddings)
    """word2vec: how word vectors are learnt."""
    mapping: Mapping = field(default_factory=Mapping)
    """How the vectors of both languages are mapped into one space."""
    lexicon: Lexicon = field(default_factory=Lexicon)
    """How translations are retrieved from the mapped vectors."""
    aligned_pairs: Positive = ALIGNED_PAIRS
    """With `mapping.mode: aligned`: most sentence pairs that are aligned, taken evenly from the corpus. More pairs need more memory."""
    vectors: dict[str, str] = field(default_factory=dict)
    """Language → file of word vectors to use, instead of learning them."""
    dictionary: dict[str, str] = field(default_factory=dict)
    """Language pair (`de-en`) → word list. `mapping.mode` says whether the mapping starts from it or it is the lexicon itself."""
    gold: dict[str, str] = field(default_factory=dict)
    """Language pair (`de-en`) → file of correct translations, one pair per line in that order. Only evaluation uses it."""


@dataclass
class Config:
    """The whole configuration."""

    run: Run
    """What to run. A recipe's lists replace these."""
    corpora: dict[str, Corpus]
    """Parallel corpora by name."""
    lexicons: dict[str, LexiconStages]
    """Lexicons by name: how each is made."""
    backbones: dict[str, Backbone]
    """Backbones by name."""
    arms: dict[str, list[Phase]]
    """Arms by name. Each is a list of training phases, in order."""
    experiments: dict[str, Annotated[Any, OfItsTask()]]
    """Experiments by name."""
    data: dict[str, Data] = field(default_factory=dict)
    """Data to download or extract, by name. The file is `results/data/{name}` plus its suffix; any setting that takes a file may name
    it."""
    labelled: dict[str, Labelled] = field(default_factory=dict)
    """Texts with labels by name, for tasks such as classification."""
    aligned: dict[str, Aligned] = field(default_factory=dict)
    """Sentences for retrieval by name, whose translations are searched."""
    analyses: dict[str, Analysis] = field(default_factory=dict)
    """Analyses of models by name: similarity, spectra of weights, separability of languages."""
    over: str | None = None
    """In a recipe over another recipe: path of the other one, relative to this recipe's folder."""
    plugins: list[str] = field(default_factory=list)
    """Plugins (docs/extend.md): Python files beside the configuration, importable modules, or entry points of installed packages. Lists of
    several recipes and of `--config` add up."""

    def __post_init__(self) -> None:
        """Phases know their place in their arm."""
        placed(self.arms)
