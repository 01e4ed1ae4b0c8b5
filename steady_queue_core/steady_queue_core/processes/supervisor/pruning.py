"""Prunes dead processes: finds them, and has their claims rescued."""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import datetime, timedelta
from functools import partial
from typing import Any, NamedTuple

from django.db.backends.base.base import BaseDatabaseWrapper

from ...dialects import Dialect
from ...dialects.database import Database
from ...errors import ProcessExitError, ProcessPrunedError
from ...logging import about, get_logger
from ...models import process as processes
from ...models.process import Process
from ...signals import ProcessLifecycle, process_pruned, send
from ..base.database import QueueDatabase
from ..base.journal_reader import JournalSnapshot, read_journal
from ..base.registration import ProcessLocation
from ..base.steady_clock import SteadyClock
from .blocked_rescues import BlockedRescues
from .ends import FOUND, HEARTBEAT, Reason
from .managed_process import FROZEN
from .recovery import Rescuer

logger = get_logger("steady_queue.supervisor")


class Expired(NamedTuple):
    """Processes that count as dead unless they have sent a heartbeat since ``limit``."""

    limit: datetime
    processes: list[Process]


class Pruner:
    """Prunes processes that have gone silent, or that died together with their supervisor. Raises
    ``Unavailable`` during an outage."""

    def __init__(self, database: QueueDatabase, rescuer: Rescuer, threshold: timedelta) -> None:
        self.database, self.rescuer, self.threshold = database, rescuer, threshold
        self.clock = SteadyClock(threshold)
        #: Those that are tried again, since somebody has locked their rows.
        self.silent, self.exited = BlockedRescues(threshold), BlockedRescues(threshold)

    @property
    def interval(self) -> float:
        """Seconds between two rounds: short enough to find the dead soon after the threshold."""
        return max(0.5, min(60.0, self.threshold.total_seconds() / 4))

    def read_clock(self) -> datetime:
        """Read the clock by which processes expire: its steps show only from then on."""
        return self.database.run(lambda *_: self.clock.read(Database.of(self.database.using)))

    def expired(self) -> Expired:
        """Return the processes whose last heartbeat is older than the threshold. Read only."""
        limit = self.read_clock() - self.threshold
        found = self.database.run(lambda connection, _: processes.expired(connection.alias, limit))
        return Expired(limit, found)

    def prune(
        self,
        expired: Expired,
        snapshot_of: Callable[[Process], JournalSnapshot | None],
        replaced: Collection[str] = (),
    ) -> None:
        """Rescue the claims of expired processes, and those of processes that are not registered.

        ``snapshot_of(process)`` returns the jobs that a process had started, if they are known.
        ``replaced``: the names of those that the supervisor has replaced, since they hang.
        """
        self.silent.rescue_each(
            expired.processes,
            lambda process: self._rescue_silent(process, expired.limit, snapshot_of, replaced),
        )
        self.rescuer.rescue_orphans(self.threshold.total_seconds())

    def _rescue_silent(
        self,
        process: Process,
        limit: datetime,
        snapshot_of: Callable[[Process], JournalSnapshot | None],
        replaced: Collection[str],
    ) -> None:
        _, last = self.database.run(partial(_signs_of_life, process))
        if not self._declare_dead(process, limit):
            return
        if process not in self.silent:
            logger.warning(
                "%s sent no heartbeat for %s; its jobs are recovered",
                process,
                self.threshold,
                extra=about("process.pruned", lost_process=process.name, kind=process.kind),
            )
        error = ProcessPrunedError(
            f"The process {process} was found dead: it sent no heartbeat for {self.threshold}."
        )
        reason = Reason(HEARTBEAT, f"It sent no heartbeat for {self.threshold}.", None, last)
        if process.name in replaced:
            reason = Reason(FROZEN, "It showed no sign of life, and was replaced.", None, last)
        # Only now: a process that wakes up records a start first, and then checks its lease.
        self.rescuer.rescue_process(process.name, snapshot_of(process), error, reason)
        _announce_pruned(process, self.database.using)

    def prune_exited(self, own: Collection[str]) -> set[str]:
        """Rescue the claims of processes of this host that died with their supervisor; return the
        names of all registered processes. ``own`` are left to the supervisor that reaps them."""
        registered = self.database.run(lambda connection, _: processes.registered(connection.alias))
        dead = {each.pk for each in registered if ProcessLocation.of(each).is_dead(each.pid)}
        living = {each.pk for each in registered} - dead
        self.exited.rescue_each(
            [each for each in registered if each.pk in dead and each.name not in own],
            lambda process: self._rescue_exited(process, living),
        )
        return {process.name for process in registered}

    def _rescue_exited(self, process: Process, living: Collection[int]) -> None:
        snapshot = read_journal(ProcessLocation.of(process).journal)
        if snapshot is None and process.supervisor_id in living:
            return  # Its supervisor, another user's, can read the journal.
        if process not in self.exited:
            logger.warning(
                "%s ended without its supervisor; its jobs are recovered",
                process,
                extra=about("process.found_dead", lost_process=process.name, kind=process.kind),
            )
        error = ProcessExitError(f"The process {process} ended while running this job.")
        reason = Reason(FOUND, "It had ended when it was looked for; nobody saw how.")
        self.rescuer.rescue_process(process.name, snapshot, error, reason)

    def _declare_dead(self, process: Process, limit: datetime) -> bool:
        # Checked again: it may have woken up since it was found expired. By the same limit, since
        # the clock may have been stepped meanwhile.
        return self.database.run(
            lambda connection, _: processes.declare_dead(connection.alias, process.identity, limit)
        )


def _signs_of_life(
    process: Process, connection: BaseDatabaseWrapper, dialect: Dialect
) -> tuple[Any, Any]:
    return processes.signs_of_life(connection.alias, process.pk)


def _announce_pruned(process: Process, using: str) -> None:
    send(
        process_pruned,
        ProcessLifecycle,
        process_kind=process.kind,
        process_name=process.name,
        pid=process.pid,
        hostname=process.hostname,
        using=using,
    )
