"""Finding processes that are dead, and ending what they had claimed."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Collection
from datetime import timedelta

from ..errors import ProcessExitError, ProcessPrunedError
from ..models import process as processes
from ..models.process import Process
from . import host, marks
from .database import QueueDatabase
from .marks import Remains
from .recovery import Recovery

logger = logging.getLogger("steady_queue.supervisor")


class Pruning:
    """What a supervisor does about processes that are not its own, or that have gone silent.
    Raises ``Unavailable`` when the database is away."""

    def __init__(self, database: QueueDatabase, recovery: Recovery, threshold: timedelta) -> None:
        self.database, self.recovery, self.threshold = database, recovery, threshold

    @property
    def interval(self) -> float:
        """Seconds between two looks, so that nobody is dead for much longer than the threshold."""
        return max(0.5, min(60.0, self.threshold.total_seconds() / 4))

    def silent(self) -> list[Process]:
        """Return the processes without a heartbeat for the threshold; only reads."""
        return self.database.run(
            lambda connection, _: processes.expired(connection.alias, self.threshold)
        )

    def prune(self, silent: list[Process], remains_of: Callable[[str], Remains | None]) -> None:
        """End the claims of silent processes, and those of processes that are not registered.

        ``remains_of(name)`` tells what a process had started. It starts nothing more when it wakes
        up, for it looks at its lease first.
        """
        for process in silent:
            logger.warning(
                "%s gave no heartbeat for %s; its jobs are recovered", process, self.threshold
            )
            error = ProcessPrunedError(
                f"The process {process} was found dead: its last heartbeat was at "
                f"{process.last_heartbeat_at:%Y-%m-%d %H:%M:%S} UTC."
            )
            self.recovery.process_died(process.name, remains_of(process.name), error)
        self.recovery.orphaned_claims()

    def recover_dead(self, ours: Collection[str]) -> set[str]:
        """End the claims of processes of this host that ended with their supervisor; return the
        names of all that are registered. ``ours`` are seen to by their parent."""
        registered = self.database.run(
            lambda connection, _: list(Process.objects.using(connection.alias).all())
        )
        for process in registered:
            if process.name not in ours and is_dead(process):
                logger.warning("%s ended without its supervisor; its jobs are recovered", process)
                error = ProcessExitError(f"The process {process} ended while running this job.")
                self.recovery.process_died(process.name, marks.left_by(process.name), error)
        return {process.name for process in registered}


def is_dead(process: Process) -> bool:
    """Whether it is certain, on this host, that a process of it has ended."""
    try:
        metadata = json.loads(process.metadata)
    except ValueError:
        return False
    if not isinstance(metadata, dict) or metadata.get("host") is None:
        return False
    return metadata["host"] == host.identity() and host.birth(process.pid) != metadata.get("birth")
