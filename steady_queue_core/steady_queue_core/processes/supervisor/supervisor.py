"""Supervisor: starts the other processes, watches them, and stops them."""

from __future__ import annotations

import gc
import math
import os
import time
from collections.abc import Callable
from contextlib import ExitStack
from types import FrameType

from ...configuration import ResolvedOptions
from ...logging import about, get_logger
from ..base import journal
from ..base.connection_setup import (
    as_control_thread,
    close_connections,
    preparing_connections,
)
from ..base.forking import accept_signals, flush_output, hold_signals
from ..base.posix_signals import HANGUP, handling, is_insistent, is_quit
from ..base.system import set_title
from ..base.waiter import Waiter
from ..probe.probe import Metrics
from . import topology
from .banner import banner_lines
from .drain import Drain
from .forks import ForkLauncher
from .handover import Handover, passed
from .launch import require_means, require_supervisor_context
from .live_restart import LiveRestart
from .maintenance import Maintenance
from .maintenance_thread import MaintenanceThread
from .managed_process import Launcher
from .managed_processes import ManagedProcesses
from .operator_requests import OperatorRequests
from .outgoing import OutgoingProcesses
from .pidfile import Pidfile, succeeding
from .probe_socket import ProbeSocketError, listen
from .threads import ThreadLauncher
from .vitals import Vitals
from .worker_count import WorkerCount

logger = get_logger("steady_queue.supervisor")

#: Seconds between two rounds, unless a signal wakes the supervisor earlier.
TICK = 1.0
#: The same in drain mode.
DRAIN_TICK = 0.2
#: Seconds in which a second Ctrl-C or TERM asks for an immediate stop; and those in which it is
#: the same request, which a wrapper or a shell has passed on as well.
INSISTENCE, SAME_SIGNAL = 1.0, 0.2
#: Seconds after which the journal of a dead process is abandoned.
MAX_JOURNAL_AGE = 7 * 24 * 3600.0
#: Seconds that a child gets to interrupt its tasks before it is killed.
QUIT_GRACE = 2.0
#: Seconds, after that, to store the remaining outcomes in the database.
FINISH_GRACE = 1.5
#: The minimum of that, however long the children took to end.
MIN_FINISH_GRACE = 0.5


class Supervisor:
    """Runs until a stop is requested, or until the queue is drained.

    It starts the others as processes, or as ``threads`` of its own process. ``standalone``, it owns
    the process and handles TERM, INT, HUP and QUIT. With ``live_restart``, HUP has it replaced by
    new code, to which it passes a ``handover``. The probe answers with ``metrics``.

    It makes no database queries: the maintenance does, in a thread that does not exist during a
    fork. It survives any outage of the database, and stops in time during one.
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
        live_restart: LiveRestart | None = None,
        handover: Handover | None = None,
        metrics: Metrics | None = None,
    ) -> None:
        if only in (None, "work"):
            require_means(options, threads=threads)
        self.options, self.using, self.drain, self.say = options, using, drain, say
        # A drained queue must stay empty, so nothing new is scheduled.
        self.scheduling = drain is None and not skip_recurring and only in (None, "schedule")
        specs = topology.specs(options, using, scheduling=self.scheduling, one_each=threads)
        self.specs = [spec for spec in specs if only is None or spec.kind == topology.KINDS[only]]
        self.threads, self.standalone = threads, standalone
        self.waiter = Waiter()
        self.vitals = Vitals(options.heartbeat_file if standalone else None)
        #: The descriptor of the listening socket of the probe.
        self.probe_socket: int | None = None
        self.live_restart, self._handover, self._metrics = live_restart, handover, metrics
        if live_restart is not None:
            live_restart.begun = self.vitals.reload_begins
            live_restart.refused = self.vitals.reload_refused
        self._pidfile: Pidfile | None = None
        launcher: Launcher = ForkLauncher(options, using, self._note_other_ended)
        if threads:
            launcher = ThreadLauncher(options, using, self.waiter.wake)
        self.children = ManagedProcesses(options, launcher)
        self.requests = OperatorRequests(self.children, WorkerCount(self.specs))
        self.outgoing = OutgoingProcesses(self.children, options.drain_timeout)
        self.maintenance = Maintenance(options, using, self.children, drain)
        tick = TICK if drain is None else DRAIN_TICK
        self.maintenance_thread = MaintenanceThread(self.maintenance, tick, self.waiter.wake)
        #: Settings that the dialect changed when the first connection was opened.
        self._changes: list[str] = []
        self._stop_requested = self._stop_at_once = self._stopping = False
        #: Whether it has stopped for new code that is to take its place.
        self.is_to_restart = False
        #: When the last signal asked for a stop, on the monotonic clock.
        self._signalled_at = -math.inf
        #: Until when the children and the maintenance have to finish.
        self._deadline = 0.0

    def run(self) -> None:
        """Supervise. Raises ``SupervisorContextError``, ``PidfileError``, ``MigrationsMissing`` and
        ``DialectError``; restores the state of the calling process."""
        require_supervisor_context(standalone=self.standalone)
        with ExitStack() as stack:
            stack.callback(self.waiter.close)
            stack.callback(gc.unfreeze)  # A fork has frozen what there is.
            if pidfile := self._hold_pidfile():
                stack.enter_context(pidfile)
            stack.callback(self.vitals.end)
            self._open_probe(stack)
            if self.standalone:
                stack.enter_context(handling(self._handle_signal, self.waiter.write_descriptor))
                if self._handover is not None:
                    accept_signals()  # They have been held since before the former code ended.
            else:
                stack.enter_context(as_control_thread())
            if self.live_restart is not None:
                stack.callback(self.live_restart.close)
            stack.enter_context(
                preparing_connections(self.using, self._note_changes, all_threads=self.standalone)
            )
            stack.push(self._announce_end)
            stack.callback(self._finish_maintenance)
            if self._handover is not None:
                self._adopt(self._handover)
                stack.callback(self._stop)  # Even if a stop was requested meanwhile.
                if not self._stop_requested:
                    self._start()
                    self._supervise()
            elif self._register():
                stack.callback(self._stop)
                self._start()
                self._supervise()

    def stop(self, *, at_once: bool = False) -> None:
        """Request a graceful stop, or an immediate one, which overrides it. Thread safe."""
        self._stop_requested = True
        self._stop_at_once = self._stop_at_once or at_once
        self.waiter.wake()

    @property
    def left_running(self) -> bool:
        """Whether threads may be left: of interrupted tasks, or one that waits for the database."""
        return self.children.left_tasks or self.maintenance_thread.gave_up

    def _hold_pidfile(self) -> Pidfile | None:
        path = self.options.supervisor_pidfile
        if self._handover is None:
            self._pidfile = Pidfile(path) if path is not None else None
        else:
            self._pidfile = succeeding(self._handover.pidfile, path)
        return self._pidfile

    def _open_probe(self, stack: ExitStack) -> None:
        """Listen for probes, if that is wanted."""
        options = self.options
        former = self._handover.probe_socket if self._handover is not None else None
        if options.probe_port is None or not self.standalone:
            if former is not None:
                os.close(former)
            return
        address, port = options.probe_address, options.probe_port
        try:
            descriptor = listen(address, port, former)
        except ProbeSocketError as error:
            if self._handover is None:
                raise
            # Its children are at work.
            logger.error("%s", error, extra=about("supervisor.without_probe"))
            return
        self.probe_socket = descriptor
        stack.callback(os.close, descriptor)
        self.children.launcher.reserved.add(descriptor)
        where = f"{address}, port {port}"
        self.specs.append(topology.probe_spec(where, descriptor, self.vitals.pulse, self._metrics))

    def _beat(self) -> None:
        """Give the signs of life that others look for."""
        in_place = sum(child.is_in_place for child in self.children)
        self.vitals.beat(len(self.specs), in_place, len(self.outgoing), is_stopping=self._stopping)

    def _note_changes(self, changes: list[str]) -> None:
        # The first connection finds most to change; later ones find it changed.
        self._changes = self._changes or changes

    def _handle_signal(self, signum: int, frame: FrameType | None) -> None:
        if signum == HANGUP and self.live_restart is not None:
            self.live_restart.request()
            return
        if self.requests.note(signum):
            return
        now, earlier = time.monotonic(), self._signalled_at
        self._signalled_at = now
        self._stop_requested, self.is_to_restart = True, False
        insists = is_insistent(signum) and SAME_SIGNAL < now - earlier < INSISTENCE
        self._stop_at_once = self._stop_at_once or is_quit(signum) or insists

    def _announce_end(self, kind: object, error: BaseException | None, traceback: object) -> None:
        self.maintenance.lifecycle.stopped(error)

    def _register(self) -> bool:
        """Wait until the maintenance has registered; return ``False`` if stopped before."""
        self.maintenance_thread.start()
        while not self._stop_requested:
            if self.maintenance_thread.failure is not None:
                raise self.maintenance_thread.failure
            if self.maintenance.process_id is not None:
                return True
            if self.live_restart is not None and self.live_restart.is_hung_up:
                return False
            self.requests.heed(may_resize=False)
            self._beat()
            self.waiter.wait(TICK)
        return False

    def _adopt(self, former: Handover) -> None:
        """Go on with what the former code in this process had. Raises ``OSError``."""
        for child in former.children:
            self.children.adopt(child.adopt())
        # Only now: what it does not know of may be taken for dead.
        self.maintenance.resume(former.name, former.process_id, former.rescued)
        self.maintenance_thread.start()

    def _start(self) -> None:
        if self.standalone:
            set_title("supervisor", "starting")
        self.maintenance.set_process_name()
        self.maintenance.lifecycle.started({})
        dialect = self.maintenance.database.dialect.info
        drains = self.drain is not None
        for line in banner_lines(self.using, dialect, self._changes, self.specs, drains=drains):
            self.say(line)
        folder = journal.folder_for(self.options.state_directory)
        journal.sweep(folder, time.time() - MAX_JOURNAL_AGE)
        if self.scheduling:
            # Even without a scheduler, since the code may have had schedules before.
            self.maintenance.mirror_schedules()
        for spec in self.specs:
            self.children.restarts.plan_first(spec)

    def _supervise(self) -> None:
        while not self._stop_requested:
            self._reap()
            self._apply_findings()
            self.children.check_health()
            self._look_after_outgoing()
            self.requests.heed()
            self._beat()
            pause = self._start_due()
            if self.standalone:
                set_title("supervisor", f"{len(self.children)} {self._unit}")
            if self.children and self.maintenance.drained:
                return
            if self._advance_restart():
                continue
            self.waiter.wait(pause)

    def _look_after_outgoing(self) -> None:
        if self.outgoing.look_after(self.specs) and self.outgoing:
            logger.info(
                "All processes are in place; %d others end when their tasks have",
                len(self.outgoing),
                extra=about("supervisor.succeeded", processes=len(self.outgoing)),
            )

    def _advance_restart(self) -> bool:
        """Do what is next in a live restart; return whether to go on without a pause."""
        restart = self.live_restart
        if restart is None:
            return False
        if restart.is_hung_up:
            self._stop_requested = True
            return True
        restart.advance()
        if not restart.is_due:
            return False
        if self.threads:
            self._stop_requested = self.is_to_restart = True  # Once the threads have ended.
        elif self.maintenance.deferred:
            self.maintenance_thread.call()  # Only we know how these processes have ended.
        elif self.maintenance_thread.pause():
            self._give_place(restart)
            self.maintenance_thread.start()
        return self._stop_requested

    def _give_place(self, restart: LiveRestart) -> None:
        """Replace this process by the new code. Returns only if that fails, or must not be."""
        logger.info(
            "The new code takes over",
            extra=about("supervisor.restarting", processes=len(self.children)),
        )
        self.maintenance.lifecycle.stopped()
        close_connections()
        flush_output()
        hold_signals()
        try:
            if not self._stop_requested:
                self._state(restart).execute(restart.invocation)
        except OSError as error:
            restart.give_up(error)
        accept_signals()
        self.maintenance.lifecycle.started({})

    def _state(self, restart: LiveRestart) -> Handover:
        """Return what the new code has to know; the maintenance rests. Raises ``OSError``."""
        assert self.maintenance.process_id is not None
        return Handover(
            using=self.using,
            name=self.maintenance.name,
            process_id=self.maintenance.process_id,
            children=passed(self.children),
            rescued=list(self.maintenance.rescuer.rescued),
            pidfile=self._pidfile.passed if self._pidfile is not None else None,
            probe_socket=self.probe_socket,
            had_terminal=restart.had_terminal,
            is_overtaken=restart.is_requested,
        )

    def _note_other_ended(self, pid: int, exit_code: int) -> None:
        if self.live_restart is not None:
            self.live_restart.note_ended(pid, exit_code)

    def _start_due(self) -> float:
        """Start the children that are due; return the seconds until the next ones are."""
        pause = self.children.restarts.pause
        if pause <= 0:
            if self.children.launcher.wants_no_threads and not self.maintenance_thread.pause():
                return self.maintenance_thread.tick  # It wakes us when its thread has ended.
            for planned in self.children.restarts.take_due():
                self.children.start_planned(planned, self.maintenance.process_id)
            self.maintenance.drained = False
            self.maintenance_thread.start()
            pause = self.children.restarts.pause
        return min(self.maintenance_thread.tick, pause)

    def _apply_findings(self) -> None:
        """Act on the findings of the maintenance in the database."""
        if self.maintenance_thread.failure is not None:
            raise self.maintenance_thread.failure
        self.maintenance.set_process_name()
        while self.maintenance.declared_dead:
            child = self.children.named(self.maintenance.declared_dead.popleft())
            if child is not None:
                self.children.replace(child)
        if self.maintenance.lock_timed_out:
            self.maintenance.lock_timed_out = False
            self.children.kill_replaced()

    def _reap(self) -> None:
        with self.maintenance.handover_lock:
            for child, how in self.children.reap():
                snapshot = self.maintenance.child_ended(child, how)
                self.maintenance_thread.call()
                is_replaced = child.kill_at is not None or child.is_succeeded or child.is_outgoing
                if not self._stopping and not is_replaced:
                    self.children.restarts.plan(
                        child, at_work=bool(snapshot.running or snapshot.stuck)
                    )

    def _stop(self) -> None:
        """Stop the children, and have their claims released."""
        self._stopping = True
        self.vitals.stop_begins()
        self.maintenance.lifecycle.stopping()
        self.maintenance_thread.start()
        timeout = self.options.shutdown_timeout.total_seconds()
        self._deadline = time.monotonic() + timeout + QUIT_GRACE + FINISH_GRACE
        if not self._stop_at_once:
            logger.info(
                "Stopping: running tasks may take up to %s",
                self.options.shutdown_timeout,
                extra=about("supervisor.stopping"),
            )
            self.children.request_stop()
            # The probe answers as long as others work.
            self._await(lambda: bool(self.children.at_work), timeout)
        if self._stop_at_once:
            self._deadline = time.monotonic() + QUIT_GRACE + FINISH_GRACE
        self.children.terminate()
        self._await(self._has_children, QUIT_GRACE, interruptible=False)
        self.children.kill()
        while self.children:
            self._await(self._has_children, 1.0, interruptible=False)

    def _finish_maintenance(self) -> None:
        """Let the maintenance finish, as long as there is time."""
        was_at_once = self._stop_at_once
        grace = MIN_FINISH_GRACE if self._deadline else FINISH_GRACE
        deadline = max(self._deadline, time.monotonic() + grace)
        self.maintenance_thread.finish(
            lambda: time.monotonic() < deadline and (was_at_once or not self._stop_at_once)
        )

    @property
    def _unit(self) -> str:
        return "threads" if self.threads else "processes"

    def _has_children(self) -> bool:
        return len(self.children) > 0

    def _await(
        self, there_are: Callable[[], bool], seconds: float, *, interruptible: bool = True
    ) -> None:
        """Wait at most so long while there are children of some kind."""
        deadline = time.monotonic() + seconds
        while there_are() and time.monotonic() < deadline:
            if interruptible and self._stop_at_once:
                return
            self.requests.heed(may_resize=False)
            self._beat()
            self._reap()
            if there_are():
                self.waiter.wait(min(0.1, deadline - time.monotonic()))
