"""A bell that rings when PostgreSQL notifies: LISTEN on a connection, and in a thread, of its own.

A thread, because it may take long to connect again after an outage. The process that waits for work
sees a pipe alone, which stays the same.
"""

from __future__ import annotations

import os
import random
import select
import threading
from contextlib import suppress
from copy import deepcopy
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from steady_queue_core.dialects import get_logger

from .channel import CHANNEL
from .silence import limit_silence

logger = get_logger("steady_queue.postgres")

#: Seconds to wait for the first connection before going on without the bell for now.
PATIENCE = 2.0
#: Seconds to wait for the end of the thread; it may be about to connect, in vain.
LEAVE = 0.2
#: Seconds between tries to connect again: the first, and the longest.
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 15.0
#: Seconds of silence after which the connection is tried, and to wait for an answer then.
SILENCE, TRIAL = 60.0, 5.0


class Bell:
    """Becomes readable when jobs may have become ready, and after each outage."""

    def __init__(self, connection: BaseDatabaseWrapper) -> None:
        self._read_end, ring = os.pipe()
        os.set_blocking(self._read_end, False)
        os.set_blocking(ring, False)
        self._listener = Listener(connection, ring)
        self._listener.start()
        self._listener.connected.wait(PATIENCE)

    def fileno(self) -> int:
        return self._read_end

    @property
    def in_order(self) -> bool:
        return self._listener.connected.is_set()

    def clear(self) -> None:
        with suppress(BlockingIOError):
            while len(os.read(self._read_end, 4096)) == 4096:
                pass

    def close(self) -> None:
        self._listener.stop()
        os.close(self._read_end)


class Listener(threading.Thread):
    """Writes to a pipe whenever there is a notification. It owns that end of the pipe."""

    def __init__(self, connection: BaseDatabaseWrapper, ring: int) -> None:
        super().__init__(name="steady-queue-bell", daemon=True)
        self._wrapper = _unpooled(connection)
        self._ring_end = ring
        self._stop_end, self._stopping_end = os.pipe()
        self._stopped = False
        #: Set while notifications can be heard.
        self.connected = threading.Event()

    def stop(self) -> None:
        """End the thread soon; it closes what it has open."""
        self._stopped = True
        os.close(self._stopping_end)
        self.join(LEAVE)

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
                        "The bell is out of order: %s",
                        error,
                        extra={"event": "wakeup.out_of_order"},
                    )
                self.connected.clear()
                self._wait(None, pause * random.uniform(0.5, 1.0))
                pause = min(LONGEST_PAUSE, pause * 2)
        finally:
            os.close(self._ring_end)
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
        self._ring()  # For what has come meanwhile.
        while not self._stopped:
            if self._wait(session.fileno(), SILENCE):
                session.pgconn.consume_input()
                heard = False
                while session.pgconn.notifies() is not None:
                    heard = True
                if heard:
                    self._ring()
            elif not self._stopped:
                session.execute("SELECT 1")
                self._ring()  # The driver may have read a notification along.

    def _ring(self) -> None:
        with suppress(BlockingIOError):  # It is full of rings already.
            os.write(self._ring_end, b"\0")

    def _wait(self, descriptor: int | None, seconds: float) -> bool:
        """Wait for ``descriptor`` to become readable, or for the end; say which."""
        poll = select.poll()
        poll.register(self._stop_end, select.POLLIN | select.POLLHUP)
        if descriptor is not None:
            poll.register(descriptor, select.POLLIN)
        return any(found == descriptor for found, _ in poll.poll(seconds * 1000))


def _unpooled(connection: BaseDatabaseWrapper) -> Any:
    """Return a wrapper of the same database that takes its connections from no pool."""
    settings = deepcopy(connection.settings_dict)
    wrapper = type(connection)(settings, connection.alias)
    limit_silence(wrapper, TRIAL)
    return wrapper
