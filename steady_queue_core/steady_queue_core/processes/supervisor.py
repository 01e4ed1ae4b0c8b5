"""Supervisor: starts the processes, watches them, and stops them."""

from __future__ import annotations

import logging
import signal
import time
from collections.abc import Callable
from contextlib import ExitStack
from types import FrameType

from ..configuration import ResolvedOptions
from . import marks, team
from .banner import write_banner
from .children import Children
from .database import Unavailable
from .drain import Drain
from .maintenance import Maintenance
from .pidfile import Pidfile
from .preparation import preparing_connections
from .signals import handling
from .start import require_place
from .waiter import Waiter

logger = logging.getLogger("steady_queue.supervisor")

#: Seconds between two looks at everything, signals apart.
TICK = 1.0
#: The same while the queue is to be drained.
DRAIN_TICK = 0.2
#: Seconds after which the marks of a dead process are nobody's.
ABANDONED = 7 * 24 * 3600.0
#: Seconds that a child may take to follow QUIT before it is killed.
QUIT_GRACE = 2.0


class Supervisor:
    """Runs in the foreground until TERM, INT, HUP or QUIT, or until the queue is drained.

    It has no thread and, while it forks, no connection. It outlives any outage of the database.
    """

    def __init__(
        self,
        options: ResolvedOptions,
        using: str,
        *,
        drain: Drain | None = None,
        only: str | None = None,
        skip_recurring: bool = False,
        say: Callable[[str], object] = print,
    ) -> None:
        self.options, self.using, self.drain, self.say = options, using, drain, say
        # A drained queue must stay empty: nothing new is scheduled.
        self.scheduling = drain is None and not skip_recurring and only in (None, "schedule")
        roles = team.roles(options, using, scheduling=self.scheduling)
        self.roles = [role for role in roles if only is None or role.kind == team.KINDS[only]]
        self.children = Children(options, using)
        self.maintenance = Maintenance(options, using, self.children)
        self.waiter = Waiter()
        #: What the dialect said of the connection that was opened first.
        self._set_up: list[str] = []
        self._signal: int | None = None
        self._stopping = False

    def run(self) -> None:
        """Supervise. Raises ``PlaceError``, ``PidfileError``, ``MigrationsMissing`` and
        ``DialectError``; leaves the calling process as it was."""
        require_place()
        with ExitStack() as stack:
            stack.callback(self.waiter.close)
            if path := self.options.supervisor_pidfile:
                stack.enter_context(Pidfile(path))
            stack.enter_context(handling(self._note_signal, self.waiter.write_descriptor))
            stack.enter_context(preparing_connections(self.using, self._note_set_up))
            stack.callback(self.maintenance.leave)
            if self._join():
                stack.callback(self._stop)
                self._start()
                self._supervise()

    def _note_set_up(self, said: list[str]) -> None:
        # What the first connection found to do was changed; later ones find it done.
        self._set_up = self._set_up or said

    def _note_signal(self, signum: int, frame: FrameType | None) -> None:
        # QUIT overrides a graceful stop under way; a second TERM changes nothing.
        if self._signal is None or signum == signal.SIGQUIT:
            self._signal = signum

    def _join(self) -> bool:
        """Register when the database answers; ``False``: asked to stop before."""
        while self._signal is None:
            try:
                self.maintenance.join()
            except Unavailable as unavailable:
                self.waiter.wait(unavailable.pause)
            else:
                return True
        return False

    def _start(self) -> None:
        write_banner(self, self._set_up)
        marks.sweep(marks.folder_for(self.options.state_directory), time.time() - ABANDONED)
        self.maintenance.step()
        if self.scheduling:
            # Also without a scheduler: the code may have had schedules before.
            self.maintenance.mirror_schedules()
        for role in self.roles:
            self.children.start(role, self.maintenance.process_id)

    def _supervise(self) -> None:
        while self._signal is None:
            self._reap()
            self.children.look_after()
            self.maintenance.step()
            for role in self.children.restarts.due():
                self.children.start(role, self.maintenance.process_id)
            if self._drained():
                return
            tick = TICK if self.drain is None else DRAIN_TICK
            self.waiter.wait(min(tick, self.children.restarts.pause))

    def _reap(self) -> None:
        for child, how in self.children.reap():
            left = self.maintenance.child_ended(child, how)
            if not self._stopping and child.condemned_until is None:
                self.children.restarts.plan(child, at_work=bool(left.running))

    def _drained(self) -> bool:
        if self.drain is None:
            return False
        try:
            return self.drain.is_done(self.maintenance.database, self.options)
        except Unavailable:
            return False

    def _stop(self) -> None:
        """Stop the children, and give back what they had claimed."""
        self._stopping = True
        if self._signal != signal.SIGQUIT:
            logger.info("Stopping: running tasks may take up to %s", self.options.shutdown_timeout)
            self.children.signal(signal.SIGTERM)
            self._await_children(self.options.shutdown_timeout.total_seconds())
        self.children.signal(signal.SIGQUIT)
        self._await_children(QUIT_GRACE, interruptible=False)
        self.children.kill()
        while self.children:
            self._await_children(1.0, interruptible=False)

    def _await_children(self, seconds: float, *, interruptible: bool = True) -> None:
        deadline = time.monotonic() + seconds
        while self.children and time.monotonic() < deadline:
            if interruptible and self._signal == signal.SIGQUIT:
                return
            self._reap()
            if self.children:
                self.waiter.wait(min(0.1, deadline - time.monotonic()))
