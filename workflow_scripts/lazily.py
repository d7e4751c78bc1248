"""lazily: heavy libraries are loaded when they are first used. Planning a run reads the settings of all stages, and uses none of them."""

import importlib
import importlib.util
import sys
import types
from typing import Any

HEAVY = ("torch", "langcodes")
"""Libraries that stages import at their top, and that take long."""


class PutOff(types.ModuleType):
    """Stands for a library until something of it is asked for."""

    def __getattr__(self, name: str) -> Any:
        """Of the library itself, which is loaded now."""
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return getattr(importlib.import_module(self.__name__), name)


def put_off(names: tuple[str, ...] = HEAVY) -> None:
    """From now on, `import` of these libraries loads them when something of them is asked for."""
    for name in names:
        if name not in sys.modules and (spec := importlib.util.find_spec(name)):
            stand_in = PutOff(name)
            # by which the import system, and who asks whether a library is installed, know it
            stand_in.__spec__ = spec
            sys.modules[name] = stand_in


def is_loaded(name: str) -> bool:
    """Whether a library was loaded, and not only put off."""
    return name in sys.modules and not isinstance(sys.modules[name], PutOff)
