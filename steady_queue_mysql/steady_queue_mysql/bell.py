"""A bell made of statements that wait, and of the right to interrupt one's own statements.

Neither server can notify. But a user may end the statements of connections of the same user: each
worker keeps a connection waiting, and whoever has enqueued finds those that wait and wakes them. It
costs a connection for each worker, next to nothing while idle, and two round trips for a ring. The
waiting of another user, or behind a proxy, is not found: there, polling rules.

They wait for a lock, of which one of them is the holder: it alone sleeps. MariaDB can take seconds
to interrupt the second of two sleepers, since all of a server's sleepers share one mutex.
"""

from __future__ import annotations

import os
import threading
import time
from contextlib import suppress
from typing import Any

from django.db import DatabaseError, InterfaceError
from django.db.backends.base.base import BaseDatabaseWrapper

from .errors import INTERRUPTED, number_of
from .packets import Statement, send
from .server import server_of
from .silence import MARGIN, limit_silence

#: Seconds that a statement waits: less than what servers log as slow.
NAP = 5
#: How these statements end, by which they are found.
MARK = " AS steady_queue_bell"
# The names of such locks are the server's, not the database's; of 64 characters at most.
WAIT = f"SELECT GET_LOCK(CONCAT('steady_queue_', LEFT(SHA2(DATABASE(), 256), 40)), {NAP}){MARK}"
SLEEP = f"SELECT SLEEP({NAP}){MARK}"
#: Seconds for which a bell that has rung, or whose connection broke, does not listen. A worker that
#: was woken looks more often than that by itself.
DEAF, BROKEN = 0.005, 5.0
#: Seconds in which a process rings once.
COALESCED = 0.005

FIND = f"""
SELECT id FROM {{schema}}.processlist
WHERE RIGHT(info, {len(MARK)}) = %s AND db = DATABASE() AND command = 'Query'"""


class Bell:
    """Becomes readable when somebody has interrupted what waits in this process."""

    def __init__(self, connection: BaseDatabaseWrapper) -> None:
        # Of our own, for a thread of our own.
        self._connection: Any = connection.copy()
        limit_silence(self._connection, NAP)
        options = self._connection.settings_dict["OPTIONS"]
        options["read_timeout"] = max(options["read_timeout"], NAP + MARGIN)
        self._connection.inc_thread_sharing()
        self._connection.ensure_connection()
        self._read_end, self._write_end = os.pipe()
        os.set_blocking(self._read_end, False)
        os.set_blocking(self._write_end, False)
        self._lock = threading.Lock()
        self._closed = False
        #: False while there is no connection to wait on.
        self.in_order = True
        threading.Thread(target=self._listen, name="steady-queue-bell", daemon=True).start()

    def fileno(self) -> int:
        return self._read_end

    def clear(self) -> None:
        with suppress(BlockingIOError):
            while len(os.read(self._read_end, 4096)) == 4096:
                pass

    def close(self) -> None:
        """Give up the descriptor; its connection closes when the wait is over."""
        with self._lock:
            self._closed = True
            os.close(self._read_end)
            os.close(self._write_end)

    def _listen(self) -> None:
        holds = False
        while not self._closed:
            try:
                answer = self._wait(SLEEP if holds else WAIT)
            except Exception:
                self._disconnect()
                holds = self.in_order = False
                time.sleep(BROKEN)
                continue
            self.in_order = True
            if holds:
                rung = answer != 0
            else:
                rung = answer is None
                holds = answer == 1
            if rung:
                self._ring()
                time.sleep(DEAF)
        self._disconnect()

    def _wait(self, statement: str) -> int | None:
        """Execute ``statement``; return what it gives, or ``None`` if somebody cut it short."""
        try:
            with self._connection.cursor() as cursor:
                cursor.execute(statement)
                answer: int | None = cursor.fetchone()[0]
                return answer
        except DatabaseError as error:
            if number_of(error) != INTERRUPTED:
                raise
            return None

    def _ring(self) -> None:
        with self._lock, suppress(BlockingIOError):
            if not self._closed:
                os.write(self._write_end, b"\0")

    def _disconnect(self) -> None:
        with suppress(Exception):
            self._connection.close()


class Ringer:
    """Wakes those that wait on a database, on behalf of this process."""

    def __init__(self) -> None:
        self._last: dict[str, float] = {}

    def ring(self, connection: BaseDatabaseWrapper) -> None:
        """Wake all that wait, unless that was done just now; never fails."""
        now = time.monotonic()
        if now - self._last.get(connection.alias, 0.0) < COALESCED:
            return
        self._last[connection.alias] = now
        # The jobs are stored: who learnt of an error now would enqueue them again.
        with suppress(DatabaseError, InterfaceError):
            self._wake(connection)

    def _wake(self, connection: BaseDatabaseWrapper) -> None:
        schema = "information_schema"
        if not server_of(connection).is_mariadb:
            schema = "performance_schema"  # The other one warns that it will go.
        [found] = send(connection, [Statement(FIND.format(schema=schema), [MARK])])
        if found.rows:
            send(connection, [Statement(f"KILL QUERY {int(number)}") for (number,) in found.rows])


ringer = Ringer()


def bell(connection: BaseDatabaseWrapper) -> Bell | None:
    """Return a bell for the database of ``connection``; ``None``: no connection can be had."""
    try:
        return Bell(connection)
    except (DatabaseError, InterfaceError):
        return None
