"""more_seeds: the command that trains again what a run trained with one seed, with two seeds more."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any

import yaml


def with_more_seeds(arguments: Sequence[str], of_run: Sequence[int], own: Mapping[str, int | Sequence[int] | None]) -> list[str]:
    """Snakemake's arguments with two more seeds for some experiments of a run.

    Args:
        arguments: What the run was called with.
        of_run: The setting `run.seeds`.
        own: Of each of these experiments its setting `seeds`: how many of the run's, or which; None where it takes all.
    """
    wanted = {
        name: _two_more(of_run[:seeds] if isinstance(seeds, int) else seeds, of_run) for name, seeds in own.items() if seeds is not None
    }
    of_all = [*of_run] if len(wanted) == len(own) else _two_more(of_run)
    of_all = [*dict.fromkeys(chain(of_all, *wanted.values()))]
    changes = {"run": {"seeds": of_all}} if of_all != [*of_run] else {}
    return _with_config(
        arguments, changes | ({"experiments": {name: {"seeds": seeds} for name, seeds in wanted.items()}} if wanted else {})
    )


def _two_more(seeds: Sequence[int], first: Sequence[int] = ()) -> list[int]:
    """The seeds and two others, of `first` as far as it has any, then counted from 1."""
    return [*seeds, *islice((seed for seed in dict.fromkeys([*first, *range(1, len(seeds) + 3)]) if seed not in seeds), 2)]


def _with_config(arguments: Sequence[str], changes: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Snakemake's arguments with changed sections of the configuration.

    Of several `--config`, and of several values of a section in one, Snakemake takes the last alone; so what is there is added to.
    """
    words = [*_with_config_apart(arguments)]
    if "--config" not in words:
        return [*words, "--config", *(f"{section}={_flow(change)}" for section, change in changes.items())]
    last = len(words) - 1 - words[::-1].index("--config")
    end = next((at for at in range(last + 1, len(words)) if words[at].startswith("-")), len(words))
    given = words[last + 1 : end]
    new = []
    for section, change in changes.items():
        at = max((at for at, word in enumerate(given) if word.startswith(f"{section}={{")), default=None)
        if at is None:
            new.append(f"{section}={_flow(change)}")
        else:
            given[at] = f"{section}={_flow(_over(yaml.safe_load(given[at].partition('=')[2]), change))}"
    return [*words[: last + 1], *new, *given, *words[end:]]


def _with_config_apart(arguments: Sequence[str]) -> Iterator[str]:
    """Snakemake's arguments, with `--config` and a blank for each of the ways to write it."""
    for word in arguments:
        option = next((each for each in ("--config=", "-C") if word.startswith(each)), None)
        yield from [word] if option is None else filter(None, ("--config", word.removeprefix(option)))


def _over(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Settings laid over others, block by block. What `above` has stands last."""
    kept = {key: value for key, value in below.items() if key not in above}
    both = {
        key: _over(below[key], value) if isinstance(value, dict) and isinstance(below.get(key), dict) else value
        for key, value in above.items()
    }
    return kept | both


def _flow(settings: Mapping[str, Any]) -> str:
    """Settings as YAML in one line."""
    return yaml.safe_dump(settings, default_flow_style=True, sort_keys=False, allow_unicode=True, width=float("inf")).strip()
