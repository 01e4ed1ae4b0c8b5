"""Finding processes that are dead, and ending what they had claimed."""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import timedelta

from ...errors import ProcessExitError, ProcessPrunedError
from ...logging import about, get_logger
from ...models import process as processes
from ...models.process import Process
from ..base import journal_reader as remains
from ..base.database import QueueDatabase
from ..base.identity import ProcessLocation
from ..base.journal_reader import JournalSnapshot
from ..base.lifecycle import announce_pruned
from .recovery import Recovery

logger = get_logger("steady_queue.supervisor")


class Pruner:
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

    def prune(
        self, silent: list[Process], remains_of: Callable[[Process], JournalSnapshot | None]
    ) -> None:
        """End the claims of silent processes, and those of processes that are not registered.

        ``remains_of(process)`` tells what a process had started.
        """
        for process in silent:
            if not self._declare_dead(process):
                continue
            logger.warning(
                "%s gave no heartbeat for %s; its jobs are recovered",
                process,
                self.threshold,
                extra=about("process.pruned", lost_process=process.name, kind=process.kind),
            )
            error = ProcessPrunedError(
                f"The process {process} was found dead: it gave no heartbeat for {self.threshold}."
            )
            # Read now: a process that wakes up marks a start first, and then looks at its lease.
            self.recovery.process_died(process.name, remains_of(process), error)
            announce_pruned(process, self.database.using)
        self.recovery.orphaned_claims(self.threshold.total_seconds())

    def recover_dead(self, ours: Collection[str]) -> set[str]:
        """End the claims of processes of this host that ended with their supervisor; return the
        names of all that are registered. ``ours`` are seen to by their parent."""
        registered = self.database.run(lambda connection, _: processes.registered(connection.alias))
        dead = {each.pk for each in registered if ProcessLocation.of(each).is_dead(each.pid)}
        living = {each.pk for each in registered} - dead
        for process in registered:
            if process.pk in dead and process.name not in ours:
                left = remains.left_at(ProcessLocation.of(process).journal)
                if left is None and process.supervisor_id in living:
                    continue  # Its supervisor, of another user, can read what it leaves.
                logger.warning(
                    "%s ended without its supervisor; its jobs are recovered",
                    process,
                    extra=about("process.found_dead", lost_process=process.name, kind=process.kind),
                )
                error = ProcessExitError(f"The process {process} ended while running this job.")
                self.recovery.process_died(process.name, left, error)
        return {process.name for process in registered}

    def _declare_dead(self, process: Process) -> bool:
        # It may have woken up since it was found silent.
        return self.database.run(
            lambda connection, _: processes.declare_dead(
                connection.alias, process.identity, self.threshold
            )
        )
