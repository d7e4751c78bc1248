"""experiments: what the settings of experiments have in all tasks, and how a task chooses them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal, Union

from workflow_scripts import registry
from workflow_scripts.errors import InputError
from workflow_scripts.noise.codeswitch import CodeSwitch
from workflow_scripts.number_types import Positive
from workflow_scripts.training.settings import Training


@dataclass
class Published:
    """A published number, which the report shows beside the run's. If a condition differs, it counts as not comparable."""

    arm: str
    """Arm that the number belongs to. `backbone` is the model before any training, for which only distances exist."""
    metric: str
    """Metric as named in scores.tsv: BLEU, chrF, TER, COMET, word_f_low, distance_pairs and so on. `updates_to_baseline_loss` is the
    number of finetuning updates until the baseline's least dev loss."""
    value: float
    """The published number."""
    source: str
    """Paper and table where the number was published."""
    testset: str | None = None
    """Test set of this experiment that the number belongs to; by default the first."""
    tested_on: str = ""
    """Data that the number was measured on: a name under `data`, or the files. If the experiment is not tested on it, the number counts as
    not comparable. For an average, give its test sets, separated by commas. Empty: not checked."""
    direction: str = ""
    """Source and target language of the published number, such as `de-en`. Empty: not checked."""
    significance: Literal["", "†", "‡"] = ""
    """Published mark of significance against the baseline: † p < 0.05, ‡ p < 0.01."""
    lowercase: bool = False
    """Whether the number was measured on lower-cased text."""
    tokenize: str | None = None
    """sacreBLEU's name of the tokeniser; for ROUGE, the program and its tokenisation."""
    model: str | None = None
    """COMET model: its name on the hub, or an older name."""
    backbone: str | None = None
    """Model that was finetuned: its name on the hub."""
    updates: int | None = None
    """Training updates of all phases together."""
    conditions: str = ""
    """Other conditions of the number, as text."""


@dataclass(kw_only=True)
class AnyExperiment:
    """What the settings of an experiment have in all tasks, also in those that train nothing."""

    corpus: str
    """Name of the text: in `corpora`; for tasks with labels in `labelled`; for retrieval in `aligned`."""
    published: list[Published] = field(default_factory=list)
    """Published numbers of this experiment, or a TSV file with them. The file's columns are these settings and `experiment`."""


@dataclass
class NamedModel:
    """A model to compare: a backbone, or the trained model of another experiment's arm."""

    backbone: str | None = None
    """Name of a backbone."""
    experiment: str | None = None
    """Name of an experiment of the run, instead of a backbone. `arm` and `phase` choose its model."""
    arm: str | None = None
    """Arm of `experiment` whose model is used."""
    phase: str = "finetune"
    """Phase of the arm after which the model is used: `finetune`, `pretext`, or in a longer chain a name such as `1-codeswitch`."""
    retrieval: dict[str, Any] = field(default_factory=dict)
    """Settings of `retrieval` that differ for this model, such as `layer`."""


@dataclass(kw_only=True)
class Experiment(AnyExperiment):
    """What the settings of an experiment have in all tasks that train."""

    head: ClassVar[str] = ""
    """The key of the settings by which a head is finetuned; empty where the task is trained by `training`."""
    backbone: str
    """Name of a backbone."""
    arms: list[str] | None = None
    """Arms of the run that this experiment trains; by default all."""
    seeds: Positive | list[int] | None = None
    """How many of the run's seeds train this experiment, counted from the first, or a list of seeds. By default all."""
    codeswitch: CodeSwitch = field(default_factory=CodeSwitch)
    """Noise of the pretext phase that switches words."""
    training: Training = field(default_factory=Training)
    """Training settings of all phases. The number of updates stands in the arms."""


def task_name(experiment: Any) -> str:
    """The name of an experiment's task, of raw settings or checked ones; translation where none is given."""
    return experiment.get("task", DEFAULT) if isinstance(experiment, dict) else getattr(experiment, "task", DEFAULT)


DEFAULT = "translation"
"""The task of an experiment that names none."""


class OfItsTask:
    """Annotation of an experiment's block: which settings it has is chosen by its `task`, never by which keys happen to fit.

    Pydantic and the JSON schema see the tasks that there are when the schema is made: after plugins were loaded.
    """

    def kinds(self) -> list[type[AnyExperiment]]:
        """The settings of all tasks, each once."""
        return list(dict.fromkeys(task.settings for task in registry.entries("task").values()))

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        """Pydantic's schema of a block."""
        from pydantic import Discriminator, Tag
        from pydantic_core import PydanticCustomError, core_schema

        def kind(experiment: Any) -> str | None:
            task = registry.entries("task").get(name) if isinstance(name := task_name(experiment), str) else None
            return task.settings.__name__ if task else None

        tagged = tuple(Annotated[each, Tag(each.__name__)] for each in self.kinds())
        schema = handler.generate_schema(Annotated[Union[tagged], Discriminator(kind)])  # noqa: UP007

        def checked(experiment: Any, check: Any) -> Any:
            try:
                return check(experiment)
            except InputError as error:  # of settings that check themselves, as templates do
                raise PydanticCustomError("chosen", "{said}", {"said": str(error)}) from None

        return core_schema.no_info_wrap_validator_function(checked, schema)
