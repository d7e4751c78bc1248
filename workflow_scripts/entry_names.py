"""entry_names: types of settings that name an entry of the registry, alone (`Named`) or with its settings (`Chosen`)."""

from dataclasses import fields
from typing import Any

from workflow_scripts.errors import InputError
from workflow_scripts.names import instead
from workflow_scripts.registry import entries, entry, without_plugins


class Named:
    """Annotation of a setting that is the name of an entry: ``data: Annotated[str, Named("noise", "objective", more=("task",))]``.

    `more` are names that are allowed beside those of the entries. Pydantic and the JSON schema see a choice of names, as they are when the
    schema is made: after plugins were loaded.
    """

    def __init__(self, *kinds: str, more: tuple[str, ...] = ()):
        self.kinds, self.more = kinds, more

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        """Pydantic's schema of one of the names."""
        from pydantic_core import core_schema

        return core_schema.literal_schema(self.names())

    def names(self) -> list[str]:
        """The names that are allowed, after plugins were loaded."""
        return [*(name for kind in self.kinds for name in entries(kind)), *self.more]

    def known(self, name: str) -> str:
        """`name`, if it is one of them; else raises `InputError`."""
        found = next((kind for kind in self.kinds if name in entries(kind)), self.kinds[0])
        return name if name in self.more else entry(found, name).name


class Chosen:
    """Annotation of a setting that is an entry with its settings: ``adapter: Annotated[dict[str, Any] | None, Chosen("adapter")]``.

    Its value is a block with the name, `kind`, beside the settings: ``{kind: lora, rank: 16}``. The JSON schema has those of each entry.
    """

    def __init__(self, kind: str):
        self.kind = kind

    def check(self, value: Any) -> Any:
        """A value, its settings as `typed` has them; raises `InputError` for one that names no entry, or settings that it lacks."""
        from pydantic import ValidationError

        known = entries(self.kind)
        if value is None:
            return None
        if not isinstance(value, dict) or "kind" not in value:
            raise InputError(f"wants a block with a `kind`, one of {', '.join(known)}, got {value!r}")
        if not isinstance(value["kind"], str) or value["kind"] not in known:
            raise InputError(f"kind: there is no {self.kind} {value['kind']!r}{instead(value['kind'], known)}{without_plugins()}")
        settings, given = known[value["kind"]].settings, {key: each for key, each in value.items() if key != "kind"}
        own = [one.name for one in fields(settings)] if settings else []
        if unknown := [key for key in given if key not in own]:
            has = f"{value['kind']} has {', '.join(own)}" if own else f"{value['kind']} has no settings"
            raise InputError(f"{unknown[0]}: unknown key; {has}")
        try:
            return {"kind": value["kind"], **(typed(_documented(settings), given) if settings else {})}
        except ValidationError as error:
            wrong = error.errors()[0]
            where, message = ".".join(map(str, wrong["loc"])), f"{wrong['msg'][:1].lower()}{wrong['msg'][1:]}"
            raise InputError(f"{where}: {message}, got {wrong['input']!r}") from None

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        """Pydantic's schema of a block that `check` has checked."""
        from pydantic_core import PydanticCustomError, core_schema

        def checked(value: Any) -> Any:
            try:
                return self.check(value)
            except InputError as error:
                raise PydanticCustomError("chosen", "{said}", {"said": str(error)}) from None

        return core_schema.no_info_plain_validator_function(checked)

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> dict[str, Any]:
        """The JSON schema: no block, or that of one of the entries."""
        from pydantic import TypeAdapter

        blocks: list[dict[str, Any]] = []
        for name, each in entries(self.kind).items():
            properties: dict[str, Any] = {"kind": {"const": name, "description": each.label}}
            if each.settings:
                properties |= TypeAdapter(_documented(each.settings)).json_schema()["properties"]
            blocks.append({"type": "object", "properties": properties, "required": ["kind"], "additionalProperties": False})
        return {"anyOf": [*blocks, {"type": "null"}]}


def typed(settings: type, given: dict[str, Any]) -> dict[str, Any]:
    """The values that are `given` for a dataclass of settings, as their types say: of the text 1e-3 the number, and of "no" False.

    No defaults are added, and a value that is equal to what its type says stays as it is. Raises pydantic's `ValidationError`.
    """
    from pydantic import TypeAdapter

    adapter: TypeAdapter[Any] = TypeAdapter(settings)
    return _as_given(given, adapter.dump_python(adapter.validate_python(given), mode="json"))


def _as_given(given: Any, made: Any) -> Any:
    if isinstance(given, dict) and isinstance(made, dict):
        return {key: _as_given(each, made[key]) if key in made else each for key, each in given.items()}
    if isinstance(given, list) and isinstance(made, list) and len(given) == len(made):
        return [_as_given(*each) for each in zip(given, made, strict=True)]
    whole = type(given) is int and isinstance(made, float)  # which does for a float
    return given if given == made and (whole or type(given) is type(made)) else made


def _documented(settings: type) -> type:
    """A dataclass of settings whose docstrings go into the JSON schema."""
    settings.__pydantic_config__ = {"use_attribute_docstrings": True}  # type: ignore[attr-defined]
    return settings
