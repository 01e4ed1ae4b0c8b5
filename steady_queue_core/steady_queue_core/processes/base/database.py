"""A process's access to the queue's database: retries through outages, without noise in the log."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime
from typing import TypeVar

from django.db import DataError, Error, IntegrityError, connections
from django.db.backends.base.base import BaseDatabaseWrapper

from ...dialects import Dialect, dialect_for
from ...dialects.rejected_rows import require_writes
from .outage import OutageTracker
from .response_timeout import Operation, ResponseTimeouts, name_of

T = TypeVar("T")

#: Seconds of disuse after which a connection is tested first: servers and firewalls close idle
#: ones. Sooner, where they do so sooner, but not for each of two operations in a row.
IDLE_LIMIT, SHORTEST_IDLE_LIMIT = 5.0, 0.1
#: Seconds between two looks whether another database is in its place.
LOOK_INTERVAL = 1.0
#: Seconds without an answer from which on the server counts as silent, not just the connection
#: as closed.
SLOW_ANSWER = 1.0


class Unavailable(Exception):
    """The database did not answer; ``pause`` is the number of seconds to wait before a retry."""

    def __init__(self, pause: float, *, lost: bool, refused: bool = False) -> None:
        super().__init__(f"the database is unavailable; next try in {pause:.1f} s")
        self.pause = pause
        #: Whether the connection was lost, so that the operation may have taken effect or not.
        self.lost = lost
        #: Whether the server did answer, but that it cannot do this: a table or a right is missing.
        self.refused = refused


class QueueDatabase:
    """Runs operations of a process's main thread on the queue's database.

    An operation that fails because the database is down, busy, full or read-only raises
    ``Unavailable`` with a growing, jittered pause. Only errors in the data themselves
    (``DataError`` and ``IntegrityError``) are raised as they are.

    With ``timeouts``, a server that does not answer in time counts as down, too.
    """

    def __init__(
        self, using: str, *, quiet: bool = True, timeouts: ResponseTimeouts | None = None
    ) -> None:
        self.using, self.timeouts = using, timeouts
        #: Keeps the operations out of Django's SQL log, if ``quiet``.
        self._logging = quiet_sql if quiet else nullcontext
        self._outage = OutageTracker(using)
        self._used_at = time.monotonic()
        #: For how long the connection had not been used before the present operation.
        self._idle = 0.0
        self._idle_limit = IDLE_LIMIT
        #: Since when an operation has been running; 0 if none is.
        self._busy_since = 0.0
        #: When to look whether the database was replaced.
        self._next_look = 0.0

    @property
    def is_waiting(self) -> bool:
        """Whether an operation is running that may legitimately take this long."""
        longest = self.timeouts.longest if self.timeouts else 0.0
        return 0.0 < self._busy_for < longest

    def is_waiting_since(self, moment: float) -> bool:
        """Whether one operation has been running since ``moment`` on the monotonic clock."""
        return 0.0 < self._busy_since < moment

    def was_unavailable(self, seconds_ago: float) -> bool:
        """Whether the database is known to have been unavailable ``seconds_ago``."""
        return self._outage.was_unavailable(seconds_ago)

    @property
    def outages(self) -> int:
        """How many outages are over, or were none, since a new connection was there at once."""
        return self._outage.count

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

    def run(
        self, operation: Callable[[BaseDatabaseWrapper, Dialect], T], *, optional: bool = False
    ) -> T:
        """Return the result of ``operation(connection, dialect)``. If it is ``optional``, that the
        server refuses it is no outage."""
        connection, was_open = self.connection, False
        self._busy_since = time.monotonic()
        try:
            with self._logging():
                self._close_if_dead(connection)
                self._close_if_replaced(connection)
                if self.timeouts is not None:
                    self.timeouts.apply(connection, operation)
                was_open = connection.connection is not None
                result = operation(connection, self.dialect)
            self._note_success(operation)
        except (DataError, IntegrityError):
            raise
        except Error as error:
            if was_open and self._is_replaced(connection, error, operation):
                raise Unavailable(0.0, lost=True) from error
            raise self._note_error(connection, error, operation, optional=optional) from error
        finally:
            self._busy_since = 0.0
            connection.queries_log.clear()  # With DEBUG, it would keep thousands of statements.
        return result

    def require_writes(self) -> None:
        """Raise ``Unavailable`` if the database takes nothing at all. Changes no row."""
        self.run(lambda connection, _: require_writes(connection))

    def close(self) -> None:
        """Close the connection of the calling thread."""
        self._close(self.connection)

    def _note_success(self, operation: Operation) -> None:
        if self._busy_for > SLOW_ANSWER:
            self._outage.note_slow_answer(self._busy_since)
        if self.timeouts is not None:
            self.timeouts.reset(operation)
        self._outage.note_success(name_of(operation))

    def _is_replaced(
        self, connection: BaseDatabaseWrapper, error: Exception, operation: Operation
    ) -> bool:
        """Whether nothing is wrong but that somebody has ended a connection, such as a server that
        ends idle ones: a new one is there at once."""
        name = name_of(operation)
        if self._busy_for > SLOW_ANSWER or not self._outage.may_be_none(name):
            return False
        if not self.dialect.is_lost_connection(connection, error):
            return False
        self._close(connection)
        self._note_idle(dead=True)
        try:
            with self._logging():
                connection.ensure_connection()
        except Error:
            self._close(connection)
            return False
        self._outage.note_replaced(name, first_line(error))
        return True

    def _note_error(
        self,
        connection: BaseDatabaseWrapper,
        error: Exception,
        operation: Operation,
        *,
        optional: bool,
    ) -> Unavailable:
        reason = first_line(error)
        lost = not self.dialect.is_contention(connection, error)
        refused = lost and not self.dialect.is_lost_connection(connection, error)
        if refused and optional and self._busy_for < SLOW_ANSWER:
            self._close(connection)
            return Unavailable(0.0, lost=False, refused=True)
        if lost:
            if self.timeouts is not None and connection.connection is not None:
                timed_out = self.timeouts.extend_after(operation, self._busy_for)
                reason += f" (no answer for {self.timeouts.present:g} s)" if timed_out else ""
            self._close(connection)
        self._outage.note_failure(self._busy_since)
        pause = self._outage.next_pause()
        if refused:
            self._outage.note_refusal(name_of(operation), pause)
        if lost or self._outage.has_lasting_conflicts:
            self._outage.log(reason)
        return Unavailable(pause, lost=lost, refused=refused)

    def _close_if_dead(self, connection: BaseDatabaseWrapper) -> None:
        self._idle, self._used_at = time.monotonic() - self._used_at, time.monotonic()
        if self._idle <= self._idle_limit or connection.connection is None:
            return
        is_dead = not connection.is_usable()
        self._note_idle(dead=is_dead)
        if is_dead:
            self._close(connection)
            if self._busy_for > SLOW_ANSWER:
                self._outage.note_failure(self._busy_since)
                self._outage.log(
                    f"no answer for {self._busy_for:.1f} s on a connection that was idle"
                )

    def _note_idle(self, *, dead: bool) -> None:
        """Learn for how long connections may be idle here."""
        limit = min(self._idle_limit, self._idle / 2) if dead else self._idle
        if limit >= SHORTEST_IDLE_LIMIT:
            self._idle_limit = min(limit, IDLE_LIMIT)

    def _close_if_replaced(self, connection: BaseDatabaseWrapper) -> None:
        """Close a connection to a database that others cannot find any more. Raises ``Unavailable``
        then, and until there is one again."""
        if self._busy_since < self._next_look:
            return
        if (reason := self.dialect.was_replaced(connection)) is None:
            self._next_look = self._busy_since + LOOK_INTERVAL
            return
        self._close(connection)
        self._outage.note_failure(self._busy_since)
        self._outage.log(reason)
        raise Unavailable(self._outage.next_pause(), lost=True)

    def _close(self, connection: BaseDatabaseWrapper) -> None:
        try:
            connection.close()
        except Exception:
            connection.connection = None


def first_line(error: BaseException | None) -> str:
    """Return what an error says, without the details, for the log."""
    return str(error).strip().partition("\n")[0][:200]


class DatabaseClock:
    """The database's time between queries: the last known instant, advanced by the monotonic
    clock. Starting a task thus needs no query, and does not depend on the clock of this host."""

    def __init__(self) -> None:
        self.set(datetime.now(UTC))

    def set(self, instant: datetime) -> None:
        """Synchronize with an instant that was just read from the database."""
        #: Seconds since 1970 at the start of the monotonic clock.
        self._offset = instant.timestamp() - time.monotonic()

    def now(self) -> datetime:
        """Return the database's present time, aware, in UTC."""
        return datetime.fromtimestamp(self._offset + time.monotonic(), UTC)


class _QuietThreads(threading.local, logging.Filter):
    """Drops the records of threads that are inside ``quiet_sql()``."""

    depth = 0

    def __init__(self) -> None:
        logging.Filter.__init__(self)

    def filter(self, record: logging.LogRecord) -> bool:
        return not self.depth


_quiet_threads = _QuietThreads()


@contextmanager
def quiet_sql() -> Iterator[None]:
    """Keep the calling thread's statements out of Django's SQL log inside the block."""
    # Adding the same filter again has no effect.
    logging.getLogger("django.db.backends").addFilter(_quiet_threads)
    _quiet_threads.depth += 1
    try:
        yield
    finally:
        _quiet_threads.depth -= 1
