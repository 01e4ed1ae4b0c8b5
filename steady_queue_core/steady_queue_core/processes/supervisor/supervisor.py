"""Supervisor: starts the processes, watches them, and stops them."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from types import FrameType

from ...configuration import ResolvedOptions
from ...logging import about, get_logger
from ..base import journal as journal
from ..base.connection_setup import looking_after_queue, preparing_connections
from ..base.posix_signals import handling, is_quit
from ..base.proctitle import set_title
from ..base.waiter import Waiter
from . import topology as team
from .banner import write_banner
from .child import Launcher
from .children import ManagedProcesses
from .drain import Drain
from .forks import Forks
from .launch import require_place
from .maintenance import Maintenance
from .maintenance_thread import MaintenanceThread
from .pidfile import Pidfile
from .threads import Threads

logger = get_logger("steady_queue.supervisor")

#: Seconds between two looks at everything, signals apart.
TICK = 1.0
#: The same while the queue is to be drained.
DRAIN_TICK = 0.2
#: Seconds after which the journal of a dead process belongs to nobody.
ABANDONED = 7 * 24 * 3600.0
#: Seconds that a child may take to break its tasks off before it is killed.
QUIT_GRACE = 2.0
#: Seconds, after that, for the database to take what is left to be stored.
LEAVE_GRACE = 1.5
#: The same at the least, however long the children took to end.
SHORTEST_LEAVE = 0.5


class Supervisor:
    """Runs until it is asked to stop, or until the queue is drained.

    It starts the others as processes, or in one process as ``threads`` of it. ``standalone``, it
    has the process for itself: it follows TERM, INT, HUP and QUIT. It never asks the database:
    that is the caretaker's, in a thread that is not there while it forks. It outlives any outage
    of the database, and stops in time whatever the database does.
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
        threads: bool = False,
        standalone: bool = True,
    ) -> None:
        self.options, self.using, self.drain, self.say = options, using, drain, say
        # A drained queue must stay empty: nothing new is scheduled.
        self.scheduling = drain is None and not skip_recurring and only in (None, "schedule")
        specs = team.specs(options, using, scheduling=self.scheduling, one_each=threads)
        self.specs = [spec for spec in specs if only is None or spec.kind == team.KINDS[only]]
        self.threads, self.standalone = threads, standalone
        self.waiter = Waiter()
        launcher: Launcher = Forks(options, using)
        if threads:
            launcher = Threads(options, using, self.waiter.wake)
        self.children = ManagedProcesses(options, launcher)
        self.maintenance = Maintenance(options, using, self.children, drain)
        tick = TICK if drain is None else DRAIN_TICK
        self.maintenance_thread = MaintenanceThread(self.maintenance, tick, self.waiter.wake)
        #: What the dialect said of the connection that was opened first.
        self._set_up: list[str] = []
        self._asked_to_stop = self._hurried = self._stopping = False
        #: When the children and the caretaker are to be done.
        self._end = 0.0

    def run(self) -> None:
        """Supervise. Raises ``SupervisorContextError``, ``PidfileError``, ``MigrationsMissing`` and
        ``DialectError``; leaves the calling process as it was."""
        require_place(standalone=self.standalone)
        with ExitStack() as stack:
            stack.callback(self.waiter.close)
            if path := self.options.supervisor_pidfile:
                stack.enter_context(Pidfile(path))
            if self.standalone:
                stack.enter_context(handling(self._note_signal, self.waiter.write_descriptor))
            else:
                stack.enter_context(looking_after_queue())
            stack.enter_context(
                preparing_connections(self.using, self._note_set_up, everywhere=self.standalone)
            )
            stack.push(self._tell_end)
            stack.callback(self._leave)
            if self._join():
                stack.callback(self._stop)
                self._start()
                self._supervise()

    def stop(self, *, at_once: bool = False) -> None:
        """Ask for a graceful stop, or for one ``at_once``, which overrides that; any thread may."""
        self._asked_to_stop = True
        self._hurried = self._hurried or at_once
        self.waiter.wake()

    def _note_set_up(self, said: list[str]) -> None:
        # What the first connection found to do was changed; later ones find it done.
        self._set_up = self._set_up or said

    @property
    def left_running(self) -> bool:
        """Whether threads may be left: of tasks that were broken off, or one that waits for the
        database."""
        return self.children.broke_off or self.maintenance_thread.gave_up

    def _note_signal(self, signum: int, frame: FrameType | None) -> None:
        # A second TERM changes nothing.
        self._asked_to_stop = True
        self._hurried = self._hurried or is_quit(signum)

    def _tell_end(self, kind: object, error: BaseException | None, traceback: object) -> None:
        self.maintenance.lifecycle.stopped(error)

    def _join(self) -> bool:
        """Register when the database answers; ``False``: asked to stop before."""
        self.maintenance_thread.begin()
        while not self._asked_to_stop:
            if self.maintenance_thread.failure is not None:
                raise self.maintenance_thread.failure
            if self.maintenance.process_id is not None:
                return True
            self.waiter.wait(TICK)
        return False

    def _start(self) -> None:
        self.maintenance.introduce()
        self.maintenance.lifecycle.started({})
        write_banner(self, self._set_up)
        journal.sweep(journal.folder_for(self.options.state_directory), time.time() - ABANDONED)
        if self.scheduling:
            # Also without a scheduler: the code may have had schedules before.
            self.maintenance.mirror_schedules()
        for spec in self.specs:
            self.children.restarts.first(spec)

    def _supervise(self) -> None:
        while not self._asked_to_stop:
            self._reap()
            self._heed_maintenance()
            self.children.look_after()
            rest = self._fill_vacancies()
            if self.standalone:
                set_title("supervisor", f"{len(self.children)} {self._unit}")
            if self.children and self.maintenance.drained:
                return
            self.waiter.wait(rest)

    def _fill_vacancies(self) -> float:
        """Start the children that are due; return the seconds until there may be others."""
        pause = self.children.restarts.pause
        if pause <= 0:
            if (
                self.children.launcher.wants_no_threads
                and not self.maintenance_thread.has_retired()
            ):
                return self.maintenance_thread.tick  # It wakes us when its thread has ended.
            for successor in self.children.restarts.due():
                self.children.restart(successor, self.maintenance.process_id)
            self.maintenance.drained = False
            self.maintenance_thread.begin()
            pause = self.children.restarts.pause
        return min(self.maintenance_thread.tick, pause)

    def _heed_maintenance(self) -> None:
        """Do what follows from what the caretaker has found in the database."""
        if self.maintenance_thread.failure is not None:
            raise self.maintenance_thread.failure
        self.maintenance.introduce()
        while self.maintenance.disowned:
            child = self.children.named(self.maintenance.disowned.popleft())
            if child is not None:
                self.children.condemn(child)
        if self.maintenance.locked_out:
            self.maintenance.locked_out = False
            self.children.hurry()

    def _reap(self) -> None:
        with self.maintenance.handing_over:
            for child, how in self.children.reap():
                left = self.maintenance.child_ended(child, how)
                self.maintenance_thread.call()
                if not self._stopping and child.condemned_until is None:
                    self.children.restarts.plan(child, at_work=bool(left.running))

    def _stop(self) -> None:
        """Stop the children, and give back what they had claimed."""
        self._stopping = True
        self.maintenance.lifecycle.stopping()
        self.maintenance_thread.begin()
        patience = self.options.shutdown_timeout.total_seconds()
        self._end = time.monotonic() + patience + QUIT_GRACE + LEAVE_GRACE
        if not self._hurried:
            logger.info(
                "Stopping: running tasks may take up to %s",
                self.options.shutdown_timeout,
                extra=about("supervisor.stopping"),
            )
            self.children.ask_to_stop()
            self._await_children(patience)
        if self._hurried:
            self._end = time.monotonic() + QUIT_GRACE + LEAVE_GRACE
        self.children.break_off()
        self._await_children(QUIT_GRACE, interruptible=False)
        self.children.kill()
        while self.children:
            self._await_children(1.0, interruptible=False)

    def _leave(self) -> None:
        """Let the caretaker end, as long as there is time."""
        was_hurried = self._hurried
        end = max(self._end, time.monotonic() + (SHORTEST_LEAVE if self._end else LEAVE_GRACE))
        self.maintenance_thread.leave(
            lambda: time.monotonic() < end and (was_hurried or not self._hurried)
        )

    @property
    def _unit(self) -> str:
        return "threads" if self.threads else "processes"

    def _await_children(self, seconds: float, *, interruptible: bool = True) -> None:
        deadline = time.monotonic() + seconds
        while self.children and time.monotonic() < deadline:
            if interruptible and self._hurried:
                return
            self._reap()
            if self.children:
                self.waiter.wait(min(0.1, deadline - time.monotonic()))
