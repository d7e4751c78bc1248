"""experiments: what the settings of experiments have in all tasks, and how a task chooses them."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal, Union

from workflow_scripts import registry
from workflow_scripts.errors import InputError
from workflow_scripts.noise.codeswitch import CodeSwitch
from workflow_scripts.number_types import Positive
from workflow_scripts.training.settings import Training


@dataclass
class Published:
    """A published number, which the report shows beside this run's; where a condition differs, as not comparable."""

    arm: str
    """The arm that it is the number of; `backbone` is the model before any training, of which there are distances alone."""
    metric: str
    """A metric as it stands in scores.tsv: BLEU, chrF, TER, COMET, word_f_low, distance_pairs, …; or `updates_to_baseline_loss`, the
    updates of finetuning until the dev loss that the baseline ends with."""
    value: float
    """The number."""
    source: str
    """Where it was published: paper and table."""
    testset: str | None = None
    """The test set of this experiment that it stands beside; the first if none is named."""
    tested_on: str = ""
    """What it was measured on: the name under `data`, or the files, if that is what this experiment is tested on; the name of any other
    text makes the number not comparable. Of an average: its test sets, separated by commas. Not compared where nothing is said."""
    direction: str = ""
    """Source and target language of what it was measured on, as `de-en`. Not compared where nothing is said."""
    significance: Literal["", "†", "‡"] = ""
    """The mark that it has there: † p < 0.05, ‡ p < 0.01 against the baseline."""
    lowercase: bool = False
    """Measured on lower-cased text."""
    tokenize: str | None = None
    """sacreBLEU's name of the tokeniser; of a ROUGE, what counted it on which tokens."""
    model: str | None = None
    """COMET's model, by its name on the hub or an older one."""
    backbone: str | None = None
    """The model that was finetuned, by its name on the hub."""
    updates: int | None = None
    """Updates of all phases."""
    conditions: str = ""
    """What else is to be known of it."""


@dataclass(kw_only=True)
class AnyExperiment:
    """What the settings of an experiment have in all tasks, also in those that train nothing."""

    corpus: str
    """Name of its text: of one of `corpora`, for tasks with labels of one of `labelled`, for retrieval of one of `aligned`."""
    published: list[Published] = field(default_factory=list)
    """Published numbers of this experiment, or a TSV file with them: its columns are these settings, and `experiment`."""


@dataclass
class NamedModel:
    """A model that is compared: a backbone, or what an arm of another experiment has been trained to."""

    backbone: str | None = None
    """Name of a backbone."""
    experiment: str | None = None
    """Instead of a backbone: an experiment of the run that trains, of which `arm` and `phase` choose the model."""
    arm: str | None = None
    """The arm of `experiment` whose model is taken."""
    phase: str = "finetune"
    """The phase of the arm after which the model is taken: `finetune`, `pretext`, or of a longer chain one as `1-codeswitch`."""
    retrieval: dict[str, Any] = field(default_factory=dict)
    """Settings of `retrieval` that are others for this model, such as `layer`."""


@dataclass(kw_only=True)
class Experiment(AnyExperiment):
    """What the settings of an experiment have in all tasks that train."""

    head: ClassVar[str] = ""
    """The key of the settings by which a head is finetuned; empty where the task is trained by `training`."""
    backbone: str
    """Name of a backbone."""
    arms: list[str] | None = None
    """Those of the run's arms that this experiment takes; all by default."""
    seeds: Positive | list[int] | None = None
    """How many of the run's seeds it is trained with, counted from the first, or which of them; all by default."""
    codeswitch: CodeSwitch = field(default_factory=CodeSwitch)
    """Noise of the pretext task."""
    training: Training = field(default_factory=Training)
    """Training settings of its phases; `updates` stands in the arms."""


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
        """The settings of all tasks, each once, in the same order whichever module was imported first."""
        ours = dict(zip(registry.BUILT_IN["task"], itertools.count()))
        kinds = dict.fromkeys(task.settings for task in registry.entries("task").values())
        return sorted(kinds, key=lambda kind: ours.get(kind.__module__, len(ours)))

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
