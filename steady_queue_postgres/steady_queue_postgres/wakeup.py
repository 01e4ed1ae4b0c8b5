"""Wake-ups by LISTEN and NOTIFY.

A process that waits for work listens on a connection and in a thread of its own, since connecting
again after an outage may take long; the process itself polls a pipe, which stays the same.

A notification is not sent for every enqueue: a worker that was woken claims again after a few
milliseconds anyway. The first one after a pause is part of the statement that enqueues. While
notifications follow each other closely they are sent apart from it: transactions that notify wait
for each other's commits.
"""

from __future__ import annotations

import os
import random
import select
import threading
import time
from contextlib import suppress
from copy import deepcopy
from typing import Any

from django.db import DatabaseError, InterfaceError
from django.db.backends.base.base import BaseDatabaseWrapper

from steady_queue_core.dialects import Wakeup, get_logger

from .answer_limits import limit_silence
from .pooler import is_declared, is_pooled
from .transactions import is_in_transaction

logger = get_logger("steady_queue.postgres")

#: Channels belong to the database, whatever the schema.
CHANNEL = "steady_queue_ready"
PG_NOTIFY = f"pg_notify('{CHANNEL}', '')"
# Inside a caller's transaction, whose commit would fail if the queue of notifications were full.
NOTIFY = f"SELECT {PG_NOTIFY} WHERE pg_notification_queue_usage() < 0.9"
#: Outside a transaction: the notification means nothing after a crash, so that its commit need not
#: wait for the disk.
NOTIFY_ASYNCHRONOUSLY = f"SELECT set_config('synchronous_commit', 'off', true), {PG_NOTIFY}"
#: Seconds between two notifications of a process.
INTERVAL = 0.005
#: Seconds after the last notification of a process from which an enqueue brings its own along.
PAUSE = 5.0

#: Seconds to wait for the first connection before the process goes on without a listener for now.
CONNECT_TIMEOUT = 2.0
#: Seconds to wait for the thread to end, which may be trying to connect.
JOIN_TIMEOUT = 0.2
#: Seconds between attempts to connect again: the first pause and the longest one.
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 15.0
#: Seconds without a notification before the connection is tested, and seconds for the answer.
TEST_INTERVAL, TEST_TIMEOUT = 60.0, 5.0

_notified_at: dict[str, float] = {}
#: The databases that took no notification the last time.
_refusing: set[str] = set()


def can_listen(connection: BaseDatabaseWrapper) -> bool:
    """Return whether a process could listen, as far as that is known without a query."""
    return hasattr(select, "poll") and not is_declared(connection)


def listen(connection: BaseDatabaseWrapper) -> Wakeup | None:
    """Return a listener, or ``None`` behind a pooler, through which no notification passes."""
    if not can_listen(connection) or is_pooled(connection):
        return None
    return Listener(connection)


def is_due_with_enqueue(connection: BaseDatabaseWrapper) -> bool:
    """Return whether a statement that enqueues in a transaction of its own should notify, too."""
    connection.validate_thread_sharing()  # Before anything that might connect.
    if is_in_transaction(connection):
        return False
    return time.monotonic() - _notified_at.get(connection.alias, -PAUSE) >= PAUSE


def note_sent(connection: BaseDatabaseWrapper) -> None:
    """Record that listeners have been notified."""
    _notified_at[connection.alias] = time.monotonic()
    _refusing.discard(connection.alias)


def note_refused(connection: BaseDatabaseWrapper, error: Exception) -> None:
    """Record that listeners could not be notified, and tell it the first time."""
    _notified_at[connection.alias] = time.monotonic()
    if connection.alias not in _refusing:
        _refusing.add(connection.alias)
        # The jobs are stored: workers find them by polling.
        logger.warning(
            "Workers could not be notified of new jobs: %s", error, extra={"event": "wakeup.failed"}
        )


def notify(connection: BaseDatabaseWrapper) -> None:
    """Notify listeners, unless this process has done so a moment ago. Never raises."""
    now = time.monotonic()
    if now - _notified_at.get(connection.alias, -INTERVAL) < INTERVAL:
        return
    try:
        with connection.cursor() as cursor:
            cursor.execute(NOTIFY if is_in_transaction(connection) else NOTIFY_ASYNCHRONOUSLY)
    except (DatabaseError, InterfaceError) as error:
        note_refused(connection, error)
    else:
        note_sent(connection)


class Listener:
    """Becomes readable when jobs may have become ready, and after each outage."""

    def __init__(self, connection: BaseDatabaseWrapper) -> None:
        self._read_end, write_end = os.pipe()
        os.set_blocking(self._read_end, False)
        os.set_blocking(write_end, False)
        self._thread = ListenerThread(connection, write_end)
        self._thread.start()
        self._thread.connected.wait(CONNECT_TIMEOUT)

    def fileno(self) -> int:
        return self._read_end

    @property
    def in_order(self) -> bool:
        return self._thread.connected.is_set()

    def clear(self) -> None:
        with suppress(BlockingIOError):
            while len(os.read(self._read_end, 4096)) == 4096:
                pass

    def close(self) -> None:
        self._thread.stop()
        os.close(self._read_end)


class ListenerThread(threading.Thread):
    """Writes to a pipe, the end of which it owns, whenever a notification arrives."""

    def __init__(self, connection: BaseDatabaseWrapper, write_end: int) -> None:
        super().__init__(name="steady-queue-listener", daemon=True)
        self._wrapper = _unpooled(connection)
        self._write_end = write_end
        self._stop_end, self._stopping_end = os.pipe()
        self._stopped = False
        #: Set while notifications can arrive.
        self.connected = threading.Event()

    def stop(self) -> None:
        """End the thread soon; it closes its own connection and descriptors."""
        self._stopped = True
        os.close(self._stopping_end)
        self.join(JOIN_TIMEOUT)

    def run(self) -> None:
        pause = FIRST_PAUSE
        try:
            while not self._stopped:
                try:
                    with self._connect() as session:
                        pause = FIRST_PAUSE
                        self._listen(session)
                except Exception as error:  # The driver's own classes: it is not imported here.
                    logger.debug(
                        "The wake-up listener is disconnected: %s",
                        error,
                        extra={"event": "wakeup.out_of_order"},
                    )
                self.connected.clear()
                self._wait(None, pause * random.uniform(0.5, 1.0))
                pause = min(LONGEST_PAUSE, pause * 2)
        finally:
            os.close(self._write_end)
            os.close(self._stop_end)

    def _connect(self) -> Any:
        session = self._wrapper.get_new_connection(self._wrapper.get_connection_params())
        try:
            session.autocommit = True
            session.execute(f"LISTEN {CHANNEL}")
        except BaseException:
            session.close()
            raise
        return session

    def _listen(self, session: Any) -> None:
        self.connected.set()
        self._wake()  # Notifications may have been missed before.
        while not self._stopped:
            if self._wait(session.fileno(), TEST_INTERVAL):
                session.pgconn.consume_input()
                notified = False
                while session.pgconn.notifies() is not None:
                    notified = True
                if notified:
                    self._wake()
            elif not self._stopped:
                session.execute("SELECT 1")
                self._wake()  # The driver may have read a notification along with the answer.

    def _wake(self) -> None:
        with suppress(BlockingIOError):  # The pipe is full: its reader will wake anyway.
            os.write(self._write_end, b"\0")

    def _wait(self, descriptor: int | None, seconds: float) -> bool:
        """Wait until ``descriptor`` is readable or the thread is stopped; return whether it is."""
        poll = select.poll()
        poll.register(self._stop_end, select.POLLIN | select.POLLHUP)
        if descriptor is not None:
            poll.register(descriptor, select.POLLIN)
        return any(found == descriptor for found, _ in poll.poll(seconds * 1000))


def _unpooled(connection: BaseDatabaseWrapper) -> Any:
    """Return a wrapper of the same database that takes its connections from no pool."""
    settings = deepcopy(connection.settings_dict)
    wrapper = type(connection)(settings, connection.alias)
    limit_silence(wrapper, TEST_TIMEOUT)
    return wrapper
