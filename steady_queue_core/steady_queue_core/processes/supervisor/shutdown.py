"""The stop of a supervisor: who asks for it, and how its children and its maintenance end."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from datetime import timedelta

from ...logging import about, get_logger
from ..base.posix_signals import is_insistent, is_quit
from ..base.waiter import Waiter
from .fleets import Fleets

logger = get_logger("steady_queue.supervisor")

#: Seconds in which a second Ctrl-C or TERM asks for an immediate stop; and those in which it is
#: the same request, which a wrapper or a shell has passed on as well.
INSISTENCE, SAME_SIGNAL = 1.0, 0.2
#: Seconds that a child gets to interrupt its tasks before it is killed.
QUIT_GRACE = 2.0
#: Seconds, after that, to store the remaining outcomes in the database.
FINISH_GRACE = 1.5
#: The minimum of that, however long the children took to end.
MIN_FINISH_GRACE = 0.5


class StopRequest:
    """Whether the supervisor is to stop. Signal handlers and any thread may ask for it."""

    def __init__(self) -> None:
        self.is_made = False
        #: Whether running tasks are to be interrupted now.
        self.is_at_once = False
        #: Whether new code is to take the supervisor's place once it has stopped.
        self.is_for_restart = False
        #: When the last signal asked for a stop, on the monotonic clock.
        self._signalled_at = -math.inf

    def __bool__(self) -> bool:
        return self.is_made

    def make(self, *, at_once: bool = False) -> None:
        """Request a graceful stop, or an immediate one, which overrides it."""
        self.is_made = True
        self.is_at_once = self.is_at_once or at_once

    def note_signal(self, signum: int) -> None:
        """Request the stop that a signal asks for."""
        now, earlier = time.monotonic(), self._signalled_at
        self._signalled_at = now
        self.is_for_restart = False
        insists = is_insistent(signum) and SAME_SIGNAL < now - earlier < INSISTENCE
        self.make(at_once=is_quit(signum) or insists)


class Shutdown:
    """Stops the children, and then lets the maintenance finish, as long as there is time."""

    def __init__(
        self,
        fleets: Fleets,
        timeout: timedelta,
        request: StopRequest,
        come_round: Callable[[], object],
        waiter: Waiter,
    ) -> None:
        """``timeout``: what running tasks get; ``come_round`` is called again and again while
        children end."""
        self._fleets, self._timeout, self._request = fleets, timeout, request
        self._come_round, self._waiter = come_round, waiter
        self.has_begun = False
        #: Until when the children and the maintenance have to finish.
        self._deadline = 0.0

    def stop_children(self) -> None:
        """Stop the children, and have their claims released."""
        self.has_begun = True
        for fleet in self._fleets:
            fleet.maintenance.lifecycle.stopping()
        self._fleets.start_maintenance()
        timeout = self._timeout.total_seconds()
        self._deadline = time.monotonic() + timeout + QUIT_GRACE + FINISH_GRACE
        if not self._request.is_at_once:
            logger.info(
                "Stopping: running tasks may take up to %s",
                self._timeout,
                extra=about("supervisor.stopping"),
            )
            for fleet in self._fleets:
                fleet.children.request_stop()
            # The probe answers as long as others work.
            self._await(lambda: any(fleet.children.at_work for fleet in self._fleets), timeout)
        if self._request.is_at_once:
            self._deadline = time.monotonic() + QUIT_GRACE + FINISH_GRACE
        for fleet in self._fleets:
            fleet.children.terminate()
        self._await(self._has_children, QUIT_GRACE, interruptible=False)
        for fleet in self._fleets:
            fleet.children.kill()
        while self._has_children():
            self._await(self._has_children, 1.0, interruptible=False)

    def finish_maintenance(self) -> None:
        """Let the maintenance finish."""
        was_at_once = self._request.is_at_once
        grace = MIN_FINISH_GRACE if self._deadline else FINISH_GRACE
        deadline = max(self._deadline, time.monotonic() + grace)
        for fleet in self._fleets:
            fleet.thread.leave()

        def may_wait() -> bool:
            return time.monotonic() < deadline and (was_at_once or not self._request.is_at_once)

        for fleet in self._fleets:
            fleet.thread.finish(may_wait)
        for fleet in self._fleets:
            fleet.maintenance.herald.finish(may_wait)

    def _has_children(self) -> bool:
        return len(self._fleets.children) > 0

    def _await(
        self, there_are: Callable[[], bool], seconds: float, *, interruptible: bool = True
    ) -> None:
        """Wait at most so long while there are children of some kind."""
        deadline = time.monotonic() + seconds
        while there_are() and time.monotonic() < deadline:
            if interruptible and self._request.is_at_once:
                return
            self._come_round()
            if there_are():
                self._waiter.wait(min(0.1, deadline - time.monotonic()))
