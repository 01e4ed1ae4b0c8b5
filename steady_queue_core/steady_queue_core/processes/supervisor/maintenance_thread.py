"""The thread that does a supervisor's part in the database, so that the supervisor never waits for
it.

A process with threads must not fork: the child inherits whatever lock another thread holds, held.
So before the supervisor forks, the thread is asked to end, and afterwards it begins anew.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Event, Thread

from ...logging import about, get_logger
from ..base import system as host
from ..base.connection_setup import looking_after_queue
from ..base.database import Unavailable
from .maintenance import Maintenance

logger = get_logger("steady_queue.supervisor")


class MaintenanceThread:
    """Runs the maintenance. Its methods are the supervisor's to call, and do not wait."""

    def __init__(self, maintenance: Maintenance, tick: float, wake: Callable[[], None]) -> None:
        self.maintenance, self.tick, self._wake_supervisor = maintenance, tick, wake
        #: Why it cannot do its work, if anything but an outage keeps it from that.
        self.failure: BaseException | None = None
        #: Whether it was left waiting for the database.
        self.gave_up = False
        self._thread: Thread | None = None
        self._called = Event()
        self._is_ending = False
        self._retiring = self._leaving = self._left = False

    def begin(self) -> None:
        """Go to work, unless it is at work already."""
        self._retiring = False
        if self._has_ended() and self.failure is None:
            self._is_ending = False
            self._thread = Thread(target=self._work, name="steady-queue-maintenance", daemon=True)
            self._thread.start()

    def call(self) -> None:
        """Have it look now whether there is something to do."""
        self.begin()
        self._called.set()

    def has_retired(self) -> bool:
        """Have it end its thread as soon as the database lets it; say whether that is done."""
        self._retiring = True
        self._called.set()
        return self._has_ended()

    def leave(self, may_wait: Callable[[], bool]) -> None:
        """Have it do what is left to do, as long as ``may_wait()``, and take the supervisor's row
        away; then it is of no more use."""
        self._leaving = True
        while self.failure is None and not self._left:
            self.call()
            self._has_ended(patience=0.02)
            if not may_wait():
                self.gave_up = True
                logger.warning(
                    "The database does not answer: what is left is done by the next supervisor",
                    extra=about("supervisor.claims_left"),
                )
                return
        self._has_ended(patience=0.1)

    def _has_ended(self, patience: float = 0.0) -> bool:
        if self._thread is not None:
            # It wakes the supervisor a moment before it has ended.
            self._thread.join(None if self._is_ending else patience)
            if self._thread.is_alive():
                return False
            host.outlast_thread(self._thread.native_id)
            self._thread = None
        return True

    # --- its thread ----------------------------------------------------------------------------

    def _work(self) -> None:
        try:
            with looking_after_queue():
                self.maintenance.introduce()
                while not self._leaving:
                    pause = self._round()
                    if self._retiring:
                        break
                    self._called.wait(pause)
                    self._called.clear()
                if self._leaving:
                    self.maintenance.leave()
                    self._left = True
        except BaseException as error:
            self.failure = error
        finally:
            self._is_ending = True
            self._wake_supervisor()

    def _round(self) -> float:
        """Do what is to be done; return the seconds until it is worth another look."""
        if self.maintenance.process_id is not None:
            self.maintenance.step()
            return self.tick
        try:
            self.maintenance.join()
        except Unavailable as unavailable:
            return unavailable.pause
        self._wake_supervisor()
        return 0.0
