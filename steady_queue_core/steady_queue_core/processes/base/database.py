"""A process's way to its database: through outages, without noise."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from contextlib import nullcontext
from typing import TypeVar

from django.db import DataError, Error, IntegrityError, connections
from django.db.backends.base.base import BaseDatabaseWrapper

from ...dialects import Dialect, dialect_for
from ...logging import about, get_logger
from .answer_limits import Limits, Operation, name_of
from .sql_log import silenced

T = TypeVar("T")

logger = get_logger("steady_queue.database")

#: Seconds between tries during an outage: the first, and the longest.
FIRST_PAUSE, LONGEST_PAUSE = 0.05, 5.0
#: Seconds without use after which a connection is tried first: servers and firewalls end idle ones.
IDLE = 5.0
#: Failures in a row after which locks that others hold, or time-outs, count as an outage.
PATIENCE = 6
#: Seconds, after the pause, in which what was refused is tried again before anything else counts.
PROBATION = 15.0
#: Seconds from which on a connection that does not answer has gone silent, rather than ended.
SILENCE = 1.0
#: How many reasons of one outage are logged: a lost connection, and why there is no other.
MOST_REASONS = 3


class Unavailable(Exception):
    """The database did not answer; ``pause`` says how many seconds to wait before another try."""

    def __init__(self, pause: float, *, lost: bool) -> None:
        super().__init__(f"the database is unavailable; next try in {pause:.1f} s")
        self.pause = pause
        #: Whether it is unknown if the operation took place: the connection was lost.
        self.lost = lost


class QueueDatabase:
    """Runs operations of a process's main thread on the queue's database.

    An operation that fails because the database is away, busy, full or not itself raises
    ``Unavailable`` with a growing, jittered pause. An outage is logged once when it begins, with
    what else is its reason later, and once when it ends: where an operation was refused, when that
    one succeeds. Only what is wrong with the data themselves is raised as it is.

    With ``limits``, a server that does not answer counts as away, too.
    """

    def __init__(self, using: str, *, silent: bool = True, limits: Limits | None = None) -> None:
        self.using, self.limits = using, limits
        #: Whether Django's log of SQL is spared these operations.
        self._quietly = silenced if silent else nullcontext
        self._failures = 0
        self._down_since = 0.0
        #: When the first operation was begun that has failed, with all since.
        self._failing_since = 0.0
        #: How many outages are over, and when the last one was, or an answer was long in coming.
        self.outages = 0
        self._last_outage = 0.0, 0.0
        #: Why the database is unavailable, as far as it was told.
        self._reasons: set[str] = set()
        #: What was refused, and until when nothing but its own success ends the outage.
        self._refused: dict[str, float] = {}
        self._used_at = time.monotonic()
        #: Since when an operation is under way.
        self._busy_since = 0.0

    @property
    def is_waited_for(self) -> bool:
        """Whether the process may be expected to wait for an answer now."""
        longest = self.limits.longest if self.limits else 0.0
        return 0.0 < self._busy_for < longest

    def is_waited_for_since(self, moment: float) -> bool:
        """Whether one operation has been under way since ``moment``, on the monotonic clock."""
        return 0.0 < self._busy_since < moment

    def was_away(self, seconds_ago: float) -> bool:
        """Whether there was an outage, as far as we know, so many seconds ago."""
        moment = time.monotonic() - seconds_ago
        began, ended = self._last_outage
        return began <= moment <= ended or 0.0 < self._failing_since <= moment

    @property
    def connection(self) -> BaseDatabaseWrapper:
        return connections[self.using]

    @property
    def dialect(self) -> Dialect:
        return dialect_for(self.using)

    @property
    def _busy_for(self) -> float:
        since = self._busy_since
        return time.monotonic() - since if since else 0.0

    def run(self, operation: Callable[[BaseDatabaseWrapper, Dialect], T]) -> T:
        """Return what ``operation(connection, dialect)`` returns."""
        connection = self.connection
        self._busy_since = time.monotonic()
        try:
            with self._quietly():
                self._drop_ended(connection)
                if self.limits is not None:
                    self.limits.apply(connection, operation)
                result = operation(connection, self.dialect)
            self._note_success(operation)
        except (DataError, IntegrityError):
            raise
        except Error as error:
            raise self._judged(connection, error, operation) from error
        finally:
            self._busy_since = 0.0
            connection.queries_log.clear()  # With DEBUG, it would keep thousands of statements.
        return result

    def close(self) -> None:
        """Close the connection of the calling thread."""
        self._close_broken(self.connection)

    def _note_success(self, operation: Operation) -> None:
        if self._busy_for > SILENCE:
            self._last_outage = self._busy_since, time.monotonic()
        if self.limits is not None:
            self.limits.kept(operation)
        if self._failures:
            # Where a privilege is missing, or a server only reads, other operations succeed.
            self._refused.pop(name_of(operation), None)
            if time.monotonic() >= max(self._refused.values(), default=0.0):
                self._recovered()

    def _judged(
        self, connection: BaseDatabaseWrapper, error: Exception, operation: Operation
    ) -> Unavailable:
        reason = _first_line(error)
        lost = not self.dialect.is_contention(connection, error)
        refused = lost and not self.dialect.is_lost_connection(connection, error)
        if lost:
            if self.limits is not None and connection.connection is not None:
                silent = self.limits.is_exceeded_by(operation, self._busy_for)
                reason += f" (no answer for {self.limits.present:g} s)" if silent else ""
            self._close_broken(connection)
        self._note_failure()
        pause = min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** min(self._failures, 20))
        pause *= random.uniform(0.5, 1.0)
        if refused:
            self._refused[name_of(operation)] = time.monotonic() + pause + PROBATION
        if lost or self._failures > PATIENCE:
            self._tell(reason)
        return Unavailable(pause, lost=lost)

    def _note_failure(self) -> None:
        self._failures += 1
        self._failing_since = self._failing_since or self._busy_since

    def _tell(self, reason: str) -> None:
        """Log that there is an outage, and why; once for each of its first reasons."""
        if not self._down_since:
            self._down_since = time.monotonic()
            logger.warning(
                "Database %r is unavailable: %s",
                self.using,
                reason,
                extra=about("database.unavailable", database=self.using),
            )
        elif reason not in self._reasons and len(self._reasons) < MOST_REASONS:
            logger.warning(
                "Database %r is still unavailable: %s",
                self.using,
                reason,
                extra=about("database.still_unavailable", database=self.using),
            )
        self._reasons.add(reason)

    def _drop_ended(self, connection: BaseDatabaseWrapper) -> None:
        idle, self._used_at = time.monotonic() - self._used_at, time.monotonic()
        if idle > IDLE and connection.connection is not None and not connection.is_usable():
            self._close_broken(connection)
            if self._busy_for > SILENCE:
                self._note_failure()
                self._tell(f"no answer for {self._busy_for:.1f} s on a connection that was idle")

    def _close_broken(self, connection: BaseDatabaseWrapper) -> None:
        try:
            connection.close()
        except Exception:
            connection.connection = None

    def _recovered(self) -> None:
        if self._down_since:
            self.outages += 1
            self._last_outage = self._failing_since, time.monotonic()
            seconds = time.monotonic() - self._down_since
            logger.info(
                "Database %r is available again after %.1f s",
                self.using,
                seconds,
                extra=about(
                    "database.available", database=self.using, duration_ms=round(seconds * 1000)
                ),
            )
        self._failures, self._down_since, self._failing_since = 0, 0.0, 0.0
        self._reasons.clear()
        self._refused.clear()


def _first_line(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0][:200]
