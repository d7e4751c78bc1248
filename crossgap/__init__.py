"""crossgap: what a plugin imports. See docs/extend.md."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from workflow_scripts.errors import InputError as InputError
    from workflow_scripts.evidence.analysis import analysis as analysis
    from workflow_scripts.evidence.label_metric import label_metric as label_metric
    from workflow_scripts.evidence.metric import metric as metric
    from workflow_scripts.models.engine import engine as engine
    from workflow_scripts.models.engine import register_engine as register_engine
    from workflow_scripts.models.family import family as family
    from workflow_scripts.models.makers import Maker as Maker
    from workflow_scripts.noise.entry import noise as noise
    from workflow_scripts.tasks.own import task as task
    from workflow_scripts.training.adapter import Added as Added
    from workflow_scripts.training.adapter import adapter as adapter
    from workflow_scripts.training.generator import generator as generator
    from workflow_scripts.training.method import Method as Method
    from workflow_scripts.training.objective import objective as objective
    from workflow_scripts.training.objective import rows_objective as rows_objective

_WHERE = {
    "Added": "workflow_scripts.training.adapter",
    "InputError": "workflow_scripts.errors",
    "Maker": "workflow_scripts.models.makers",
    "adapter": "workflow_scripts.training.adapter",
    "analysis": "workflow_scripts.evidence.analysis",
    "label_metric": "workflow_scripts.evidence.label_metric",
    "family": "workflow_scripts.models.family",
    "Method": "workflow_scripts.training.method",
    "engine": "workflow_scripts.models.engine",
    "generator": "workflow_scripts.training.generator",
    "metric": "workflow_scripts.evidence.metric",
    "noise": "workflow_scripts.noise.entry",
    "objective": "workflow_scripts.training.objective",
    "register_engine": "workflow_scripts.models.engine",
    "rows_objective": "workflow_scripts.training.objective",
    "task": "workflow_scripts.tasks.own",
}
"""Public name → the module that has it; imported where it is asked for, so that a plugin loads no more than it uses."""

__all__ = [*_WHERE]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'crossgap' has no attribute {name!r}; it has {', '.join(_WHERE)}")
    from workflow_scripts.registry import import_ours

    return getattr(import_ours(_WHERE[name]), name)
