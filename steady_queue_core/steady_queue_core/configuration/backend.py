"""The settings of the processes that serve the database of one backend."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import timedelta
from typing import Any

from .errors import ConfigurationError, describe
from .option_readers import (
    objection_to_lifetimes,
    read_optional_duration,
    read_scheduler,
    read_sections,
)
from .processes import Dispatcher, Scheduler, Worker
from .reader import Reader
from .section import Section


@dataclass(frozen=True, kw_only=True, init=False)
class Backend(Section):
    """What differs for one backend in ``TASKS``; None: as for all."""

    workers: tuple[Worker, ...] | None
    """An empty list: no worker."""
    dispatchers: tuple[Dispatcher, ...] | None
    """An empty list: no dispatcher. Without workers, too, the database is not served at all."""
    scheduler: Scheduler | None
    """The scheduler only starts if there are recurring tasks."""
    process_heartbeat_interval: timedelta | None
    """Time between two heartbeats of a process."""
    process_alive_threshold: timedelta | None
    """Silence after which a process counts as dead; more than two heartbeats."""
    silence_polling: bool | None
    """Whether the SQL log omits the statements of the queue's processes."""
    statistics: bool | None
    """Whether workers count what becomes of jobs."""

    def __init__(
        self,
        *,
        workers: Sequence[Worker | Mapping[str, object]] | None = None,
        dispatchers: Sequence[Dispatcher | Mapping[str, object]] | None = None,
        scheduler: Scheduler | Mapping[str, object] | None = None,
        process_heartbeat_interval: timedelta | float | None = None,
        process_alive_threshold: timedelta | float | None = None,
        silence_polling: bool | None = None,
        statistics: bool | None = None,
    ) -> None:
        arguments = {
            "workers": workers,
            "dispatchers": dispatchers,
            "scheduler": scheduler,
            "process_heartbeat_interval": process_heartbeat_interval,
            "process_alive_threshold": process_alive_threshold,
            "silence_polling": silence_polling,
            "statistics": statistics,
        }
        self._fill(Reader.for_call("Configuration.Backend", arguments))

    @staticmethod
    def _read(reader: Reader) -> dict[str, object]:
        interval = read_optional_duration(reader, "process_heartbeat_interval")
        threshold = read_optional_duration(reader, "process_alive_threshold")
        return {
            "workers": read_sections(reader, "workers", Worker),
            "dispatchers": read_sections(reader, "dispatchers", Dispatcher),
            "scheduler": read_scheduler(reader),
            "process_heartbeat_interval": interval,
            "process_alive_threshold": threshold,
            "silence_polling": _optional_flag(reader, "silence_polling"),
            "statistics": _optional_flag(reader, "statistics"),
        }

    @property
    def given(self) -> dict[str, Any]:
        """What differs, by name."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        return {name: value for name, value in values.items() if value is not None}


def _optional_flag(reader: Reader, name: str) -> bool | None:
    return reader.flag(name) if reader.given(name) else None


def read_backends(reader: Reader) -> dict[str, Backend]:
    """Read a dict of alias to ``Backend``, an instance or a dict; None is an empty one."""
    value = reader.values["backends"]
    if value is None:
        return {}
    if not isinstance(value, Mapping) or not all(isinstance(alias, str) for alias in value):
        reader.wrong("backends", "a dict of alias in TASKS to Configuration.Backend or dict")
        return {}
    found = {}
    for alias, each in value.items():
        where = f"{reader.path('backends')}[{alias!r}]"
        try:
            found[alias] = each if isinstance(each, Backend) else _parsed(each, where)
        except ConfigurationError as error:
            reader.problems += error.problems
    return found


def _parsed(value: object, where: str) -> Backend:
    if not isinstance(value, Mapping):
        raise ConfigurationError(
            f"{where}: expected a Configuration.Backend or a dict, got {describe(value)}"
        )
    return Backend.parse(value, where)


def combined(where: str, backends: Mapping[str, Backend]) -> dict[str, Any]:
    """Return what differs for a database that these backends share.

    Raises ``ConfigurationError`` if they disagree; ``where``: the place of their settings.
    """
    found: dict[str, Any] = {}
    sources: dict[str, str] = {}
    for alias, backend in backends.items():
        for name, value in backend.given.items():
            if name in found and found[name] != value:
                raise ConfigurationError(
                    f"{where}[{alias!r}][{name!r}]: {sources[name]!r} has another value, and both "
                    "backends use the same database, whose processes serve both; set it for one"
                )
            found[name], sources[name] = value, alias
    return found


def require_lifetimes(where: str, interval: timedelta, threshold: timedelta) -> None:
    """Raise ``ConfigurationError`` unless a process survives one late heartbeat."""
    if objection := objection_to_lifetimes(interval, threshold):
        raise ConfigurationError(f"{where}: {objection}")
