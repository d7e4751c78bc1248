"""number_types: types for numbers with a limited range in the configuration, e.g. ``updates: Positive``.

The module `config` checks the ranges with pydantic. Stages do not need pydantic; what they are given by hand is checked by `objection`.
"""

import operator
from dataclasses import asdict, dataclass
from typing import Annotated, Any


@dataclass(frozen=True)
class Limits:
    """The bounds of a number: ge (≥), gt (>), le (≤) and lt (<)."""

    ge: float | None = None
    gt: float | None = None
    le: float | None = None
    lt: float | None = None

    @property
    def bounds(self) -> dict[str, float]:
        """The bounds that are given, by name."""
        return {name: bound for name, bound in asdict(self).items() if bound is not None}

    def objection(self, value: Any) -> str:
        """Which bound a value is beyond, in words; empty if it is a number within all of them."""
        if isinstance(value, bool) or not isinstance(value, int | float):
            return "must be a number"
        tests = {"ge": operator.ge, "gt": operator.gt, "le": operator.le, "lt": operator.lt}
        signs = {"ge": "≥", "gt": ">", "le": "≤", "lt": "<"}
        return next((f"must be {signs[name]} {bound}" for name, bound in self.bounds.items() if not tests[name](value, bound)), "")

    def __get_pydantic_core_schema__(self, kind: Any, handler: Any) -> Any:
        """Pydantic's schema of a number with these bounds. YAML's `yes` and `true` are no numbers, though Python counts with them."""
        from pydantic_core import PydanticCustomError, core_schema

        def number(value: Any) -> Any:
            if isinstance(value, bool):
                raise PydanticCustomError("number_type", "Input should be a number")
            return value

        return core_schema.no_info_before_validator_function(number, {**handler(kind), **self.bounds})


Whole = Annotated[int, Limits()]
Positive = Annotated[int, Limits(ge=1)]
Natural = Annotated[int, Limits(ge=0)]
Seed = Annotated[int, Limits(ge=0, lt=2**32)]
NotNegative = Annotated[float, Limits(ge=0)]
AboveZero = Annotated[float, Limits(gt=0)]
Share = Annotated[float, Limits(ge=0, le=1)]
ShareBelowOne = Annotated[float, Limits(ge=0, lt=1)]
