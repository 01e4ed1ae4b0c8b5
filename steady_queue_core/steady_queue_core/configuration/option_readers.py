"""Readers of the values of ``Configuration.Options`` that need more than a plain type."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import TypeVar

from .errors import ConfigurationError, describe
from .processes import Scheduler
from .reader import Reader
from .section import Section

SectionT = TypeVar("SectionT", bound=Section)

MODES = ("fork", "async")
"""How a supervisor runs its processes: forked, or as threads."""

SHORTEST_TOKEN = 16
"""The least number of characters of a token."""

LIFETIMES = (
    "process_heartbeat_interval",
    "process_alive_threshold",
    "shutdown_timeout",
    "supervisor_pidfile",
    "silence_polling",
)
"""The options whose default is a module-level setting."""


def read_lifetimes(reader: Reader) -> dict[str, object]:
    """Read heartbeat, threshold, time-out and pidfile; None stays None."""
    before = len(reader.problems)
    heartbeat = read_optional_duration(reader, "process_heartbeat_interval")
    threshold = read_optional_duration(reader, "process_alive_threshold")
    values: dict[str, object] = {
        "process_heartbeat_interval": heartbeat,
        "process_alive_threshold": threshold,
        "shutdown_timeout": read_optional_duration(reader, "shutdown_timeout", zero=True),
        "supervisor_pidfile": read_path(reader, "supervisor_pidfile"),
        "silence_polling": (
            reader.flag("silence_polling") if reader.given("silence_polling") else None
        ),
    }
    if heartbeat and threshold and len(reader.problems) == before:
        objection = objection_to_lifetimes(heartbeat, threshold)
        reader.problems += [f"{reader.where}: {objection}"] if objection else []
    return values


def objection_to_lifetimes(heartbeat: timedelta, threshold: timedelta) -> str:
    """Return what is wrong with a heartbeat and the threshold for it; empty: nothing."""
    if threshold > 2 * heartbeat:
        return ""
    return (
        f"process_alive_threshold ({threshold}) must be more than twice "
        f"process_heartbeat_interval ({heartbeat}), "
        "or a process counts as dead after one late heartbeat"
    )


def read_optional_duration(reader: Reader, name: str, *, zero: bool = False) -> timedelta | None:
    """Read a duration; None stays None."""
    return reader.duration(name, zero=zero) if reader.given(name) else None


def read_drain_timeout(reader: Reader) -> timedelta | None:
    """Read the time-out of a drain; None stays None."""
    return read_optional_duration(reader, "drain_timeout", zero=True)


def read_token(reader: Reader) -> str | None:
    """Read the token for metrics, which nobody may guess; None stays None."""
    value = reader.values["metrics_token"]
    if value is None or (isinstance(value, str) and len(value) >= SHORTEST_TOKEN):
        return value
    # Not with wrong(), which quotes the value.
    reader.problems.append(
        f"{reader.path('metrics_token')}: expected a str of at least {SHORTEST_TOKEN} characters"
    )
    return None


def read_port(reader: Reader) -> int | None:
    """Read the port of the probe; None stays None."""
    if not reader.given("probe_port"):
        return None
    return reader.integer("probe_port", least=1, most=65535)


def read_address(reader: Reader) -> str:
    """Read the address of the probe: numbers, since a name may have several addresses."""
    value = reader.values["probe_address"]
    try:
        return str(ip_address(value if isinstance(value, str) else ""))
    except ValueError:
        reader.wrong("probe_address", "an IP address of this host, such as '0.0.0.0' for all")
        return ""


def read_path(reader: Reader, name: str) -> Path | None:
    """Read a path, an instance or a string; None stays None."""
    value = reader.values[name]
    if isinstance(value, Path):
        return value
    if isinstance(value, str) and value and "\0" not in value:
        return Path(value)
    if value is not None:
        reader.wrong(name, "a path, or None")
    return None


def read_mode(reader: Reader) -> str | None:
    """Read the supervisor's mode; None stays None."""
    value = reader.values["supervisor_mode"]
    if value is None or value in MODES:
        return value if isinstance(value, str) else None
    reader.wrong("supervisor_mode", " or ".join(map(repr, MODES)) + ", or None")
    return None


def read_sections(reader: Reader, name: str, kind: type[SectionT]) -> tuple[SectionT, ...] | None:
    """Read a list of sections, each an instance or a dict; None stays None."""
    value = reader.values[name]
    if value is None:
        return None
    if not isinstance(value, (list, tuple)):
        reader.wrong(name, f"a list of Configuration.{kind.__name__} or dicts")
        return None
    sections = (
        _read_section(reader, f"{reader.path(name)}[{at}]", each, kind)
        for at, each in enumerate(value)
    )
    return tuple(section for section in sections if section is not None)


def read_scheduler(reader: Reader) -> Scheduler | None:
    """Read the scheduler, an instance or a dict; None stays None."""
    value = reader.values["scheduler"]
    if value is None:
        return None
    return _read_section(reader, reader.path("scheduler"), value, Scheduler)


def _read_section(
    reader: Reader, where: str, value: object, kind: type[SectionT]
) -> SectionT | None:
    if isinstance(value, kind):
        return value
    if not isinstance(value, Mapping):
        reader.problems.append(
            f"{where}: expected a Configuration.{kind.__name__} or a dict, got {describe(value)}"
        )
        return None
    try:
        return kind.parse(value, where)
    except ConfigurationError as error:
        reader.problems += error.problems
        return None


def read_dialects(reader: Reader) -> dict[str, str]:
    """Read a dict of database alias to plugin name; None is an empty one."""
    value = reader.values["dialects"]
    if value is None:
        return {}
    if not isinstance(value, Mapping) or not all(
        isinstance(part, str) and part for pair in value.items() for part in pair
    ):
        reader.wrong("dialects", "a dict of database alias to the name of a dialect plugin")
        return {}
    return dict(value)


def read_task_modules(reader: Reader) -> tuple[str, ...]:
    """Read dotted paths of modules."""
    modules = reader.names("task_modules")
    for module in modules:
        if not all(part.isidentifier() for part in module.split(".")):
            reader.problems.append(
                f"{reader.path('task_modules')}: "
                f"{describe(module)} is not the dotted path of a module"
            )
    return modules


def read_pattern(reader: Reader, name: str) -> str | None:
    """Read a regular expression; None stays None."""
    value = reader.values[name]
    if isinstance(value, str):
        try:
            re.compile(value)
        except re.error as error:
            reader.problems.append(f"{reader.path(name)}: no regular expression: {error}")
        return value
    if value is not None:
        reader.wrong(name, "a regular expression as a string, or None")
    return None
