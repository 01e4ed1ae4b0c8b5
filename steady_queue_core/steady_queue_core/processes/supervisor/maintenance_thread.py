"""The thread that runs the supervisor's maintenance, so that the supervisor never waits for the
database.

A process with threads must not fork: the child inherits the locks that other threads hold, and
nobody releases them there. So the thread is paused before the supervisor forks, and resumed
afterwards.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Event, Lock, Thread

from ...logging import about, get_logger
from ...signals import send_through
from ..base import system
from ..base.connection_setup import as_control_thread
from ..base.database import Unavailable
from .maintenance import Maintenance

logger = get_logger("steady_queue.supervisor")

#: Seconds after which a round is likely to wait for the database.
LONG_ROUND = 0.2


class MaintenanceThread:
    """Runs the maintenance. The supervisor calls the public methods, which do not block."""

    def __init__(self, maintenance: Maintenance, tick: float, wake: Callable[[], None]) -> None:
        self.maintenance, self.tick, self._wake_supervisor = maintenance, tick, wake
        #: The error, other than an outage, that has ended the maintenance.
        self.failure: BaseException | None = None
        #: Whether the thread was left waiting for the database.
        self.gave_up = False
        self._thread: Thread | None = None
        self._called = Event()
        #: Held while a round begins.
        self.lock = Lock()
        #: Since when the present round has lasted, on the monotonic clock; 0.0: it rests.
        self._in_round_since = 0.0
        #: Whether it was waited for when it was asked to end.
        self.was_late = False
        self._has_begun = self._is_wanted = False
        self._is_ending = False
        self._pausing = self._leaving = self._left = False

    def start(self) -> None:
        """Start or resume the thread, unless it is running."""
        self._pausing = self.was_late = False
        if self._has_ended() and self.failure is None:
            self._is_ending = self._has_begun = False
            self._thread = Thread(target=self._work, name="steady-queue-maintenance", daemon=True)
            self._thread.start()

    def call(self) -> None:
        """Make the thread do its next round now, and before it pauses."""
        self._is_wanted = True
        self.start()
        self._called.set()

    def ask_to_pause(self) -> None:
        """Ask the thread to end; now, unless it is in a round, or was called for one."""
        self._pausing = True
        self._called.set()

    @property
    def is_late(self) -> bool:
        """Whether its round takes so long that it waits for the database."""
        since = self._in_round_since
        return since > 0.0 and time.monotonic() - since > LONG_ROUND

    @property
    def has_paused(self) -> bool:
        """Whether the thread has ended."""
        return self._has_ended()

    def leave(self) -> None:
        """Begin to finish. Nothing but ``finish`` can be called after that."""
        self._leaving = True
        if self.failure is None:
            self.call()

    def finish(self, may_wait: Callable[[], bool]) -> None:
        """Let the maintenance finish and deregister the supervisor, as long as ``may_wait()``."""
        while self.failure is None and not self._left:
            self.call()
            self._has_ended(timeout=0.02)
            if not may_wait():
                self.gave_up = True
                logger.warning(
                    "The database does not answer: the next supervisor will do the rest",
                    extra=about("supervisor.claims_left"),
                )
                return
        self._has_ended(timeout=0.1)

    def _has_ended(self, timeout: float = 0.0) -> bool:
        if self._thread is not None:
            # It wakes the supervisor a moment before it ends.
            self._thread.join(None if self._is_ending else timeout)
            if self._thread.is_alive():
                return False
            system.await_thread_exit(self._thread.native_id)
            self._thread = None
        return True

    # --- the thread itself ---------------------------------------------------------------------

    def _work(self) -> None:
        try:
            send_through(self.maintenance.herald.tell)
            with as_control_thread():
                self.maintenance.set_process_name()
                while self._begin_round():
                    pause = self._round()
                    self._in_round_since = 0.0
                    if not self._pausing:
                        self._called.wait(pause)
                    self._called.clear()
                if self._leaving:
                    self.maintenance.finish()
                    self._left = True
        except BaseException as error:
            self.failure = error
        finally:
            self._in_round_since, self._is_ending = 0.0, True
            self._wake_supervisor()

    def _begin_round(self) -> bool:
        with self.lock:
            # At least one since the thread was started: it may be paused again and again.
            if self._leaving or (self._pausing and self._has_begun and not self._is_wanted):
                return False
            self._has_begun, self._is_wanted = True, False
            self._in_round_since = time.monotonic()
            return True

    def _round(self) -> float:
        """Register, or do a step of the maintenance; return the seconds until the next round."""
        if self.maintenance.process_id is not None:
            self.maintenance.step()
            return self.tick
        try:
            self.maintenance.register()
        except Unavailable as unavailable:
            return unavailable.pause
        self._wake_supervisor()
        return 0.0
