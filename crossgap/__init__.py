"""crossgap: what a plugin imports. See docs/extend.md."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from workflow_scripts.noise.entry import noise as noise

_WHERE = {"noise": "workflow_scripts.noise.entry", "InputError": "workflow_scripts.stage"}
"""Public name → the module that has it; imported where it is asked for, so that a plugin loads no more than it uses."""

__all__ = [*_WHERE]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'crossgap' has no attribute {name!r}; it has {', '.join(_WHERE)}")
    import importlib

    return getattr(importlib.import_module(_WHERE[name]), name)
