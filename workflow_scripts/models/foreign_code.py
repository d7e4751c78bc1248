"""foreign_code: models whose code is no part of transformers but stands in their folder.

Such code runs with the rights of whoever loads the model, so it is refused. One setting of a backbone allows it
(`trust_remote_code: true`), for that backbone and for what the run makes of it. For a command by hand, a variable of
the environment allows it (`VARIABLE`). What is allowed is registered with transformers, so that whatever loads the
model afterwards finds its classes.

Where transformers itself has a model of the type that ``config.json`` names, that one is read, and the code in the folder is left out.
"""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from workflow_scripts.stage import InputError, in_one_line
from workflow_scripts.storage import checksum

VARIABLE = "CROSSGAP_TRUST_REMOTE_CODE"
"""The environment variable that is 1 where the code in models' folders may run; rules set it where a backbone of the run is trusted."""


@contextmanager
def trusting(allowed: bool) -> Iterator[None]:
    """Context in which the code in models' folders may run, or may not, whatever the environment says."""
    before = os.environ.get(VARIABLE)
    os.environ[VARIABLE] = "1" if allowed else ""
    try:
        yield
    finally:
        if before is None:
            del os.environ[VARIABLE]
        else:
            os.environ[VARIABLE] = before


def check_code(folder: Path, config: Mapping[str, Any]) -> None:
    """Register the code of a model that has its own; raises `InputError` where it is not trusted, or cannot be imported.

    `config` has the settings of the folder's ``config.json``.
    """
    if not (named := config.get("auto_map")) or is_known(str(config.get("model_type"))):
        return
    if os.environ.get(VARIABLE) != "1":
        code = named.get("AutoModel") or next(iter(named.values()))
        raise InputError(
            f"{folder}: the code of this model ({code}) is no part of transformers; it stands in the model's folder, would run with your "
            "rights, and is not run. If you have read it and trust it, set trust_remote_code: true of the backbone (by hand: "
            f"{VARIABLE}=1 before the command)"
        )
    try:
        _register(folder, str(config["model_type"]), named)
    except (Exception, SystemExit) as error:  # whatever a stranger's code does
        raise InputError(f"{folder}: its own code cannot be loaded ({in_one_line(error)}); ask who has published it") from None


def code_left_out(folder: Path | str) -> str:
    """The class of its own that a model's folder names and that does not run, as transformers has a model of this type; else nothing."""
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES

    try:
        config = json.loads((Path(folder) / "config.json").read_text(encoding="utf-8"))
        named = config.get("auto_map") or {}
    except (OSError, ValueError, AttributeError):
        return ""  # which the findings of the folder say
    return str(named.get("AutoModel") or next(iter(named.values()), "")) if config.get("model_type") in CONFIG_MAPPING_NAMES else ""


def is_known(model_type: str) -> bool:
    """Whether transformers has the code of such a model, or somebody registered it."""
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    return model_type in CONFIG_MAPPING


def _register(folder: Path, model_type: str, named: Mapping[str, Any]) -> None:
    """Import the classes that ``config.json`` names, and let transformers know them.

    They say of themselves that they are no part of it, so that their files are copied to wherever the model is saved.
    """
    import transformers
    from transformers.dynamic_module_utils import get_class_from_dynamic_module

    def imported(auto: str) -> Any:
        found: Any = get_class_from_dynamic_module(named[auto], folder)
        found.register_for_auto_class(auto)
        return found

    config = imported("AutoConfig")
    transformers.AutoConfig.register(model_type, config)
    for auto in named:
        if auto.startswith("AutoModel"):
            getattr(transformers, auto).register(config, imported(auto))
    print(f"note: {folder}: its own code runs, as it is trusted ({', '.join(code_that_ran(folder))})", flush=True)


def code_that_ran(folder: Path | str) -> dict[str, str]:
    """The files of code in a model's folder, with their SHA-256, where its classes are no part of transformers; none of another model."""
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    named = json.loads((Path(folder) / "config.json").read_text(encoding="utf-8")).get("model_type")
    if named not in CONFIG_MAPPING or not CONFIG_MAPPING[named].__module__.startswith(DYNAMIC):
        return {}
    return {path.name: checksum(path) for path in sorted(Path(folder).glob("*.py"))}


DYNAMIC = "transformers_modules."
"""Where transformers puts the modules that it imports from models' folders."""
