"""errors: how a stage ends early."""


class InputError(Exception):
    """Bad input. The message names file, line and value, and says what to do about it."""


class Stopped(Exception):
    """A stage ended early and left a checkpoint, from which the same command continues."""


def first_line(error: BaseException) -> str:
    """The first line of an error's message; empty where it has none."""
    return (str(error).strip().splitlines() or [""])[0]
