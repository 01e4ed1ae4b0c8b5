"""A bell made of a statement that sleeps, and of the right to interrupt one's own statements.

Neither server can notify. But a user may end the statements of connections of the same user: each
worker keeps a connection asleep, and whoever has enqueued finds such sleepers and wakes them. It
costs a connection for each worker, nothing while idle, and two round trips for a ring. A sleeper
of another user, or behind a proxy, is not found: there, polling rules.
"""

from __future__ import annotations

import os
import threading
import time
from contextlib import suppress
from typing import Any

from django.db import DatabaseError
from django.db.backends.base.base import BaseDatabaseWrapper

from .packets import Statement, send
from .server import server_of

#: Seconds that a sleeper sleeps: less than what servers log as slow.
NAP = 5
SLEEP = f"SELECT SLEEP({NAP}) AS steady_queue_bell"
#: Seconds for which a bell that has rung, or whose connection broke, does not listen. A worker that
#: was woken looks more often than that by itself.
DEAF, BROKEN = 0.005, 5.0
#: Seconds in which a process rings once.
COALESCED = 0.005

SLEEPERS = """
SELECT id FROM {schema}.processlist WHERE info = %s AND db = DATABASE() AND command = 'Query'"""


class Bell:
    """Becomes readable when somebody has interrupted the sleeper of this process."""

    def __init__(self, connection: BaseDatabaseWrapper) -> None:
        # Of our own, for a thread of our own.
        self._connection: Any = connection.copy()
        self._connection.inc_thread_sharing()
        self._connection.ensure_connection()
        self._read_end, self._write_end = os.pipe()
        os.set_blocking(self._read_end, False)
        os.set_blocking(self._write_end, False)
        self._lock = threading.Lock()
        self._closed = False
        threading.Thread(target=self._listen, name="steady-queue-bell", daemon=True).start()

    def fileno(self) -> int:
        return self._read_end

    def clear(self) -> None:
        with suppress(BlockingIOError):
            while len(os.read(self._read_end, 4096)) == 4096:
                pass

    def close(self) -> None:
        """Give up the descriptor; the sleeper ends when it wakes."""
        with self._lock:
            self._closed = True
            os.close(self._read_end)
            os.close(self._write_end)

    def _listen(self) -> None:
        while not self._closed:
            try:
                interrupted = self._sleep()
            except Exception:
                self._disconnect()
                time.sleep(BROKEN)
                continue
            if interrupted:
                self._ring()
                time.sleep(DEAF)
        self._disconnect()

    def _sleep(self) -> bool:
        """Sleep; say whether somebody cut that short, rather than the time running out."""
        begun = time.monotonic()
        try:
            with self._connection.cursor() as cursor:
                cursor.execute(SLEEP)
                return bool(cursor.fetchone()[0])
        except DatabaseError:
            # MariaDB tells it as an error. One that comes at once is of another kind.
            if not self._connection.is_usable() or time.monotonic() - begun < 0.0005:
                raise
            return True

    def _ring(self) -> None:
        with self._lock, suppress(BlockingIOError):
            if not self._closed:
                os.write(self._write_end, b"\0")

    def _disconnect(self) -> None:
        with suppress(Exception):
            self._connection.close()


class Ringer:
    """Wakes the sleepers on a database, on behalf of this process."""

    def __init__(self) -> None:
        self._last: dict[str, float] = {}

    def ring(self, connection: BaseDatabaseWrapper) -> None:
        """Wake all sleepers, unless that was done just now; never fails."""
        now = time.monotonic()
        if now - self._last.get(connection.alias, 0.0) < COALESCED:
            return
        self._last[connection.alias] = now
        with suppress(DatabaseError):
            self._wake(connection)

    def _wake(self, connection: BaseDatabaseWrapper) -> None:
        schema = "information_schema"
        if not server_of(connection).is_mariadb:
            schema = "performance_schema"  # The other one warns that it will go.
        [found] = send(connection, [Statement(SLEEPERS.format(schema=schema), [SLEEP])])
        if found.rows:
            send(connection, [Statement(f"KILL QUERY {int(number)}") for (number,) in found.rows])


ringer = Ringer()


def bell(connection: BaseDatabaseWrapper) -> Bell | None:
    """Return a bell for the database of ``connection``; ``None``: no connection can be had."""
    try:
        return Bell(connection)
    except DatabaseError:
        return None
