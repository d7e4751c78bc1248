"""Writes what Snakemake does as one JSON object a line, for `progress` to follow.

Snakemake finds logger plugins by the name of their package, in the folders of PYTHONPATH. So `progress` names this folder there, and
nothing has to be installed.
"""

import json
import time
from dataclasses import dataclass, field
from logging import LogRecord
from typing import Optional

from snakemake_interface_logger_plugins.base import LogHandlerBase
from snakemake_interface_logger_plugins.common import LogEvent
from snakemake_interface_logger_plugins.settings import LogHandlerSettingsBase

KEPT = {
    LogEvent.RESOURCES_INFO: ("msg", "cores", "nodes"),
    LogEvent.RUN_INFO: ("stats",),
    LogEvent.JOB_INFO: ("jobid", "rule_name", "wildcards", "input", "output", "log", "threads", "priority", "resources", "shellcmd"),
    LogEvent.JOB_STARTED: ("jobs",),
    LogEvent.JOB_FINISHED: ("job_id",),
    LogEvent.JOB_ERROR: ("jobid", "rule_name"),
    LogEvent.PROGRESS: ("done", "total"),
}
"""Event → its fields that are written."""


@dataclass
class LogHandlerSettings(LogHandlerSettingsBase):
    """Where the events go."""

    events: Optional[str] = field(default=None, metadata={"help": "File to which each event is added as a line of JSON", "required": True})  # noqa: UP045


class LogHandler(LogHandlerBase):
    """Adds a line for each event of `KEPT` to the file that the settings name."""

    def __post_init__(self) -> None:
        assert isinstance(self.settings, LogHandlerSettings) and self.settings.events
        self.file = open(self.settings.events, "a", encoding="utf-8")  # noqa: SIM115

    def emit(self, record: LogRecord) -> None:
        """Write an event, with the time at which it was logged."""
        event = getattr(record, "event", None)
        if event not in KEPT:
            return
        found = {name: value for name in KEPT[event] if (value := getattr(record, name, None)) is not None}
        if "resources" in found:
            found["resources"] = {name: value for name, value in found["resources"].items() if isinstance(value, int)}
        print(
            json.dumps({"event": str(event), "time": round(record.created or time.time(), 2), **found}, default=str),
            file=self.file,
            flush=True,
        )

    def close(self) -> None:
        """Close the file."""
        self.file.close()
        super().close()

    writes_to_stream = False  # Snakemake's own words still go where they went
    writes_to_file = False  # it is no log for people
    has_filter = True
    has_formatter = True
    needs_rulegraph = False
