"""The lines that the supervisor prints when it starts."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Iterator

import django

from ... import __version__
from ...dialects import DialectInfo
from .managed_process import ProcessSpec


def banner_lines(
    using: str,
    dialect: DialectInfo,
    changes: Iterable[str],
    specs: Iterable[ProcessSpec],
) -> Iterator[str]:
    """Yield the versions, the database, what the dialect has changed, whether it
    wakes idle workers, and the processes."""
    yield (
        f"Steady Queue {__version__} · {dialect.display_name} (database {using!r}, "
        f"dialect {dialect.name}) · Python {platform.python_version()} · "
        f"Django {django.get_version()}"
    )
    for change in changes:
        yield f"  {dialect.name}: {change}"
    if not dialect.has_wakeup:
        yield f"  {dialect.name}: no wake-ups here: idle workers poll, every 'polling_interval'"
    for spec in specs:
        yield f"  {spec.kind}: {spec.description}"


def last_line(*, drains: bool) -> str:
    """Return what ends the queue."""
    return "  Stops when nothing is left to run." if drains else "  Stop with Ctrl-C or TERM."
