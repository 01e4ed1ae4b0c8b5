"""Wake-ups: listeners run statements that wait, and notifiers interrupt them.

Neither server has notifications, but a user may end the statements of its own other connections.
So each worker keeps one connection waiting, and an enqueue finds the waiting ones and interrupts
them. This costs a connection per worker, next to nothing while idle, and two round trips for each
notification. Listeners of another user, or behind a proxy, are not found: those workers poll.

Listeners wait for a lock, and only the one that holds it sleeps: MariaDB can take seconds to
interrupt the second of two sleepers, because all sleepers of a server share one mutex.
"""

from __future__ import annotations

import os
import threading
import time
from contextlib import suppress
from typing import Any

from django.db import DatabaseError, InterfaceError
from django.db.backends.base.base import BaseDatabaseWrapper

from .answer_limits import MARGIN, limit_silence
from .batches import Statement, execute_all
from .errors import INTERRUPTED, error_number
from .server import server_of

#: Seconds that a statement waits: less than what servers log as slow.
WAIT_SECONDS = 5
#: The end of these statements, by which notifiers find them.
MARK = " AS steady_queue_wakeup"
# Names of such locks belong to the server, not the database, and have at most 64 characters.
LOCK_NAME = "CONCAT('steady_queue_', LEFT(SHA2(DATABASE(), 256), 40))"
WAIT = f"SELECT GET_LOCK({LOCK_NAME}, {WAIT_SECONDS}){MARK}"
SLEEP = f"SELECT SLEEP({WAIT_SECONDS}){MARK}"
#: Seconds after a notification before listening again: meanwhile the worker polls anyway.
PAUSE = 0.005
#: Seconds after a lost connection before it is opened again.
RECONNECT_INTERVAL = 5.0
#: Seconds in which a process sends no more than one notification.
NOTIFY_INTERVAL = 0.005

FIND = f"""
SELECT id FROM {{schema}}.processlist
WHERE RIGHT(info, {len(MARK)}) = %s AND db = DATABASE() AND command = 'Query'"""


class Listener:
    """Becomes readable when its waiting statement has been interrupted."""

    def __init__(self, connection: BaseDatabaseWrapper) -> None:
        # A connection of its own, for a thread of its own.
        self._connection: Any = connection.copy()
        limit_silence(self._connection, WAIT_SECONDS)
        options = self._connection.settings_dict["OPTIONS"]
        options["read_timeout"] = max(options["read_timeout"], WAIT_SECONDS + MARGIN)
        self._connection.inc_thread_sharing()
        self._connection.ensure_connection()
        self._read_end, self._write_end = os.pipe()
        os.set_blocking(self._read_end, False)
        os.set_blocking(self._write_end, False)
        self._lock = threading.Lock()
        self._closed = False
        #: False while there is no connection to listen on.
        self.in_order = True
        threading.Thread(target=self._listen, name="steady-queue-wakeup", daemon=True).start()

    def fileno(self) -> int:
        return self._read_end

    def clear(self) -> None:
        with suppress(BlockingIOError):
            while len(os.read(self._read_end, 4096)) == 4096:
                pass

    def close(self) -> None:
        """Close the descriptor. The connection closes when the present wait is over."""
        with self._lock:
            self._closed = True
            os.close(self._read_end)
            os.close(self._write_end)

    def _listen(self) -> None:
        holds = False
        while not self._closed:
            try:
                result = self._wait(SLEEP if holds else WAIT)
            except Exception:
                self._disconnect()
                holds = self.in_order = False
                time.sleep(RECONNECT_INTERVAL)
                continue
            self.in_order = True
            if holds:
                notified = result != 0
            else:
                notified = result is None
                holds = result == 1
            if notified:
                self._notify()
                time.sleep(PAUSE)
        self._disconnect()

    def _wait(self, statement: str) -> int | None:
        """Execute ``statement``; return its value, or ``None`` if it was interrupted."""
        try:
            with self._connection.cursor() as cursor:
                cursor.execute(statement)
                result: int | None = cursor.fetchone()[0]
                return result
        except DatabaseError as error:
            if error_number(error) != INTERRUPTED:
                raise
            return None

    def _notify(self) -> None:
        with self._lock, suppress(BlockingIOError):
            if not self._closed:
                os.write(self._write_end, b"\0")

    def _disconnect(self) -> None:
        with suppress(Exception):
            self._connection.close()


class Notifier:
    """Interrupts the listeners of a database, on behalf of this process."""

    def __init__(self) -> None:
        self._last: dict[str, float] = {}

    def notify(self, connection: BaseDatabaseWrapper) -> None:
        """Wake all listeners, unless this process has just done so; never raises."""
        now = time.monotonic()
        if now - self._last.get(connection.alias, 0.0) < NOTIFY_INTERVAL:
            return
        self._last[connection.alias] = now
        # The jobs are stored: after an error the caller would enqueue them again.
        with suppress(DatabaseError, InterfaceError):
            self._wake(connection)

    def _wake(self, connection: BaseDatabaseWrapper) -> None:
        schema = "information_schema"
        if not server_of(connection).is_mariadb:
            schema = "performance_schema"  # MySQL warns that the other one is deprecated.
        [found] = execute_all(connection, [Statement(FIND.format(schema=schema), [MARK])])
        if found.rows:
            execute_all(
                connection, [Statement(f"KILL QUERY {int(number)}") for (number,) in found.rows]
            )


_notifier = Notifier()


def ring(connection: BaseDatabaseWrapper) -> None:
    _notifier.notify(connection)


def wakeup(connection: BaseDatabaseWrapper) -> Listener | None:
    """Return a listener, or ``None`` if it cannot connect to the database."""
    try:
        return Listener(connection)
    except (DatabaseError, InterfaceError):
        return None
