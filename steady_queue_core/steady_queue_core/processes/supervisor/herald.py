"""Sends the supervisor's signals from a thread of its own, so that nobody waits for receivers.

A process with threads must not fork: the child inherits the locks that other threads hold. So the
thread ends between two signals before the supervisor forks; but for a receiver that takes long, or
hangs, no worker is missing longer than a moment.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from contextvars import copy_context
from functools import partial
from threading import Lock, Thread

from ...internal_errors import log_internal_error
from ...logging import about, get_logger
from ...project_code import contained
from ...signals import send_through
from ..base import system
from ..base.connections import close_own_connections, tidy_connections

logger = get_logger("steady_queue.supervisor")

Message = Callable[[], object]

#: Most signals that wait.
MOST_WAITING = 10_000
#: Seconds that a fork waits for a receiver.
PATIENCE = 0.5
#: Seconds after which a receiver seems to hang.
VERY_LONG = 5.0


class Herald:
    """Sends signals in their order, once at most. The maintenance hands them over; the supervisor's
    main thread starts and pauses it."""

    def __init__(self, wake: Callable[[], None] = lambda: None) -> None:
        """``wake`` is called when the thread has ended."""
        self._wake = wake
        self._messages: deque[Message] = deque()
        self._thread: Thread | None = None
        self._lock = Lock()
        #: When it was asked to pause, on the monotonic clock; 0.0: it was not.
        self._pausing_since = 0.0
        self._is_at_work = False
        #: When the last signal was begun, on the monotonic clock.
        self._began_at = 0.0
        self._dropped = 0

    def tell(self, message: Message) -> None:
        """Have a signal be sent by calling ``message``. Any thread."""
        if len(self._messages) >= MOST_WAITING:
            self._dropped += 1
            return
        context = copy_context()
        context.run(send_through, None)
        self._messages.append(partial(context.run, message))
        if not self._pausing_since:
            self.start()

    def start(self) -> None:
        """Go on, after a pause as well."""
        with self._lock:
            self._pausing_since = 0.0
            if self._messages and not self._is_at_work:
                self._is_at_work = True
                self._thread = Thread(target=self._work, name="steady-queue-herald", daemon=True)
                self._thread.start()

    def ask_to_pause(self) -> None:
        """Ask the thread to end once the signal is sent that is under way. May be repeated."""
        self._pausing_since = self._pausing_since or time.monotonic()

    @property
    def has_paused(self) -> bool:
        """Whether the thread has ended, or has had its time to."""
        thread = self._thread
        if thread is None:
            return True
        if not self._is_at_work:
            thread.join()
            system.await_thread_exit(thread.native_id)
            self._thread = None
            return True
        return time.monotonic() - self._pausing_since > PATIENCE

    @property
    def is_getting_on(self) -> bool:
        """Whether signals wait, and no receiver takes very long."""
        return bool(self._messages) and time.monotonic() - self._began_at < VERY_LONG

    def finish(self, may_wait: Callable[[], bool]) -> None:
        """Let the signals that wait be sent as long as ``may_wait()``; log how many were not."""
        while (self._messages or self._is_at_work) and may_wait():
            self.start()
            thread = self._thread
            if thread is not None:
                thread.join(0.02)
        left = self._dropped + len(self._messages) + self._is_at_work
        self._messages.clear()
        if left:
            logger.warning(
                "%d signals of the supervisor were not sent: receivers took too long",
                left,
                extra=about("supervisor.signals_dropped", jobs=left),
            )

    def _work(self) -> None:
        while self._messages and not self._pausing_since:
            self._send(self._messages.popleft())
            tidy_connections()
        close_own_connections()
        self._is_at_work = False
        if self._messages and not self._pausing_since:
            self.start()  # One was added meanwhile.
        self._wake()

    def _send(self, message: Message) -> None:
        self._began_at = time.monotonic()
        try:
            contained(message)
        except Exception:
            log_internal_error(
                logger, "A signal was not sent", extra=about("supervisor.signal_failed")
            )
