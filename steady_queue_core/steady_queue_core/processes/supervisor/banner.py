"""What the supervisor says when it starts."""

from __future__ import annotations

import platform
from typing import TYPE_CHECKING

import django

from ... import __version__

if TYPE_CHECKING:
    from .supervisor import Supervisor


def write_banner(supervisor: Supervisor, set_up: list[str]) -> None:
    """Say what runs: versions, database, processes, and what the dialect has set up."""
    info = supervisor.maintenance.database.dialect.info
    supervisor.say(
        f"Steady Queue {__version__} · {info.display_name} (database "
        f"{supervisor.using!r}, dialect {info.name}) · Python {platform.python_version()} · "
        f"Django {django.get_version()}"
    )
    for sentence in set_up:
        supervisor.say(f"  {info.name}: {sentence}")
    for spec in supervisor.specs:
        supervisor.say(f"  {spec.kind}: {spec.description}")
    if supervisor.drain is None:
        supervisor.say("  Stop with Ctrl-C or TERM.")
    else:
        supervisor.say("  Stops when nothing is left to run.")
