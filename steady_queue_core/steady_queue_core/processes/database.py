"""A process's way to its database: through outages, without noise."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from contextlib import nullcontext
from typing import TypeVar

from django.db import DatabaseError, DataError, IntegrityError, InterfaceError, connections
from django.db.backends.base.base import BaseDatabaseWrapper

from ..dialects import Dialect, dialect_for
from ..logging import about, get_logger
from .silence import silenced

T = TypeVar("T")

logger = get_logger("steady_queue.database")

#: Seconds between tries during an outage: the first, and the longest.
FIRST_PAUSE, LONGEST_PAUSE = 0.05, 5.0
#: Seconds without use after which a connection is tried first: servers and firewalls end idle ones.
IDLE = 5.0
#: Failures in a row after which locks that others hold, or time-outs, count as an outage.
PATIENCE = 6
#: Seconds, after the pause, in which what was refused is tried again before anything else counts.
PROBATION = 1.0
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
    what else is its reason later, and once when it ends. Only what is wrong with the data
    themselves is raised as it is.
    """

    def __init__(self, using: str, *, silent: bool = True) -> None:
        self.using = using
        #: Whether Django's log of SQL is spared these operations.
        self._quietly = silenced if silent else nullcontext
        self._failures = 0
        self._down_since = 0.0
        #: Why the database is unavailable, as far as it was told.
        self._reasons: set[str] = set()
        self._believed_from = 0.0
        self._used_at = time.monotonic()

    @property
    def connection(self) -> BaseDatabaseWrapper:
        return connections[self.using]

    @property
    def dialect(self) -> Dialect:
        return dialect_for(self.using)

    def run(self, operation: Callable[[BaseDatabaseWrapper, Dialect], T]) -> T:
        """Return what ``operation(connection, dialect)`` returns."""
        connection = self.connection
        try:
            with self._quietly():
                self._drop_ended(connection)
                result = operation(connection, self.dialect)
        except (DataError, IntegrityError):
            raise
        except (DatabaseError, InterfaceError) as error:
            raise self._judged(connection, error) from error
        finally:
            connection.queries_log.clear()  # With DEBUG, it would keep thousands of statements.
        if self._failures and time.monotonic() >= self._believed_from:
            self._recovered()
        return result

    def close(self) -> None:
        """Close the connection of the calling thread."""
        self._close_broken(self.connection)

    def _judged(self, connection: BaseDatabaseWrapper, error: Exception) -> Unavailable:
        now = time.monotonic()
        lost = not self.dialect.is_contention(connection, error)
        refused = lost and not self.dialect.is_lost_connection(connection, error)
        if lost:
            self._close_broken(connection)
        self._failures += 1
        pause = min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** min(self._failures, 20))
        pause *= random.uniform(0.5, 1.0)
        # Where a privilege is missing, other operations succeed: that ends nothing.
        self._believed_from = now + pause + PROBATION if refused else 0.0
        if lost or self._failures > PATIENCE:
            self._tell(_first_line(error))
        return Unavailable(pause, lost=lost)

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

    def _close_broken(self, connection: BaseDatabaseWrapper) -> None:
        try:
            connection.close()
        except Exception:
            connection.connection = None

    def _recovered(self) -> None:
        if self._down_since:
            seconds = time.monotonic() - self._down_since
            logger.info(
                "Database %r is available again after %.1f s",
                self.using,
                seconds,
                extra=about(
                    "database.available", database=self.using, duration_ms=round(seconds * 1000)
                ),
            )
        self._failures, self._down_since = 0, 0.0
        self._reasons.clear()


def _first_line(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0][:200]
