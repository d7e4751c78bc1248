"""lazily: heavy libraries are loaded when they are first used. Planning a run reads the settings of all stages, and uses none of them."""

import functools
import importlib
import importlib.util
import sys
import types
from collections.abc import Callable
from typing import Any

HEAVY = ("torch", "langcodes", "numba")
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


class Compiled:
    """A function that numba compiles when it is first called, with those that it calls; see `compiled`."""

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]):
        functools.update_wrapper(self, function)
        self.function, self.options, self.made = function, options, None

    def __call__(self, *given: Any) -> Any:
        """Call what numba has made of it."""
        return self.dispatcher()(*given)

    def dispatcher(self) -> Any:
        """What numba makes of it. In its module it takes the function's place, as compiled code knows no others than compiled functions."""
        if self.made is None:
            self.made = importlib.import_module("numba").njit(**self.options)(self.function)
            names, own = self.function.__code__.co_names, self.function.__globals__
            own |= {name: _in_place_of(own[name]) for name in names if name in own}
            for module in [own[name] for name in names if isinstance(own.get(name), types.ModuleType)]:
                vars(module).update({name: _in_place_of(vars(module)[name]) for name in names if name in vars(module)})
        return self.made


def _in_place_of(value: Any) -> Any:
    """What compiled code reads for a global: for a library that was put off the library, for a function what numba made of it."""
    if isinstance(value, PutOff):
        return importlib.import_module(value.__name__)
    return value.dispatcher() if isinstance(value, Compiled) else value


def compiled(**options: Any) -> Callable[[Callable[..., Any]], Compiled]:
    """Decorate a function that numba is to compile, with these options of `njit`: numba takes longer to load than a run to plan."""
    return lambda function: Compiled(function, {"cache": True, **options})
