"""Processes of this host that have ended without a word, before their heartbeats are missed."""

from __future__ import annotations

from ..listings.processes import ListedProcess
from ..processes.base.registration import ProcessLocation

ENDED = "ended"


def marked(processes: list[ListedProcess]) -> list[ListedProcess]:
    """Return the processes; those that have certainly ended do not count as live."""
    for process in processes:
        if ProcessLocation.of(process.row).is_dead(process.row.pid):
            process.state = ENDED
    return processes
