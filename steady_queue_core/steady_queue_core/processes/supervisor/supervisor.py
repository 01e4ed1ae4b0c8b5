"""Supervisor: starts the other processes, watches them, and stops them."""

from __future__ import annotations

import gc
import math
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from types import FrameType

from ...configuration import ResolvedOptions
from ...logging import about, get_logger
from ..base import journal
from ..base.connection_setup import as_control_thread, close_connections
from ..base.forking import accept_signals, flush_output, hold_signals
from ..base.posix_signals import HANGUP, handling, is_insistent, is_quit
from ..base.registration import new_name
from ..base.system import set_title
from ..base.waiter import Waiter
from ..probe.probe import Metrics
from . import topology
from .drain import Drain
from .fleet import DrainCheck, Fleet, pause
from .forks import ForkLauncher
from .handover import Handover
from .health import Health
from .launch import require_means, require_supervisor_context
from .live_restart import LiveRestart
from .managed_process import Launcher, ManagedProcess, ProcessSpec
from .operator_requests import OperatorRequests
from .pidfile import Pidfile, succeeding
from .probe_socket import ProbeSocketError, listen
from .threads import ThreadLauncher
from .topology import last_line

logger = get_logger("steady_queue.supervisor")

#: Seconds between two rounds, unless a signal wakes the supervisor earlier.
TICK = 1.0
#: The same in drain mode.
DRAIN_TICK = 0.2
#: The same while the maintenance is asked to rest.
PAUSE_TICK = 0.3
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

    It has a fleet for each database that it serves, and starts the others as processes, or as
    ``threads`` of its own process. ``standalone``, it owns the process and handles TERM, INT, HUP
    and QUIT. With ``live_restart``, HUP has it replaced by new code, to which it passes a
    ``handover``. The probe answers with ``metrics``.

    It makes no database queries: the maintenance does, in threads that do not exist during a
    fork. It survives any outage of the database, and stops in time during one.
    """

    def __init__(
        self,
        options: ResolvedOptions,
        databases: Mapping[str, ResolvedOptions],
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
        """``databases``: the options of those to serve, by alias; ``options``: of all."""
        self.options, self.drain, self.say = options, drain, say
        # A drained queue must stay empty, so nothing new is scheduled.
        self.scheduling = drain is None and not skip_recurring and only in (None, "schedule")
        self.threads, self.standalone = threads, standalone
        self.waiter = Waiter()
        self.health = Health(options.heartbeat_file if standalone else None)
        #: The descriptor of the listening socket of the probe, and its spec.
        self.probe_socket: int | None = None
        self._probe: ProcessSpec | None = None
        self.live_restart, self._handover, self._metrics = live_restart, handover, metrics
        self._pidfile: Pidfile | None = None
        self.launcher: Launcher = ForkLauncher(lambda: self.children, self._note_other_ended)
        if threads:
            self.launcher = ThreadLauncher(lambda: self.children, self.waiter.wake)
        self.fleets: list[Fleet] = list(self._build_fleets(databases, only))
        if live_restart is not None:
            live_restart.databases = [fleet.using for fleet in self.fleets]
            live_restart.begun = self.health.reload_begins
            live_restart.refused = self.health.reload_refused
        self.requests = OperatorRequests(self.fleets)
        self._drain_check = DrainCheck(self.fleets)
        self._stop_requested = self._stop_at_once = self._stopping = False
        #: Whether it has stopped for new code that is to take its place.
        self.is_to_restart = False
        #: When the last signal asked for a stop, on the monotonic clock.
        self._signalled_at = -math.inf
        #: Until when the children and the maintenance have to finish.
        self._deadline = 0.0

    def _build_fleets(
        self, databases: Mapping[str, ResolvedOptions], only: str | None
    ) -> Iterator[Fleet]:
        name = new_name("supervisor")  # The same in each database.
        for using, options in databases.items():
            if only in (None, "work"):
                require_means(options, using, threads=self.threads)
            every = topology.specs(
                options, using, scheduling=self.scheduling, one_each=self.threads
            )
            specs = [each for each in every if only is None or each.kind == topology.KINDS[only]]
            if specs:
                yield Fleet(
                    options,
                    using,
                    specs,
                    name=name,
                    launcher=self.launcher,
                    drain=self.drain,
                    tick=self._tick,
                    wake=self.waiter.wake,
                )

    @property
    def children(self) -> list[ManagedProcess]:
        """All children."""
        return [child for fleet in self.fleets for child in fleet.children]

    @property
    def _tick(self) -> float:
        return TICK if self.drain is None else DRAIN_TICK

    def run(self) -> None:
        """Supervise. Raises ``SupervisorContextError``, ``PidfileError``, ``MigrationsMissing`` and
        ``DialectError``; restores the state of the calling process."""
        require_supervisor_context(standalone=self.standalone)
        with ExitStack() as stack:
            stack.callback(self.waiter.close)
            stack.callback(gc.unfreeze)  # A fork has frozen what there is.
            if pidfile := self._hold_pidfile():
                stack.enter_context(pidfile)
            stack.callback(self.health.end)
            self._open_probe(stack)
            if self.standalone:
                stack.enter_context(handling(self._handle_signal, self.waiter.write_descriptor))
                if self._handover is not None:
                    accept_signals()  # They have been held since before the former code ended.
            else:
                stack.enter_context(as_control_thread())
            if self.live_restart is not None:
                stack.callback(self.live_restart.close)
            for fleet in self.fleets:
                stack.enter_context(fleet.preparing(all_threads=self.standalone))
            stack.push(self._announce_end)
            stack.callback(self._finish_maintenance)
            if self._handover is not None:
                self._adopt(self._handover)
                stack.callback(self._stop)  # Even if a stop was requested meanwhile.
                if not self._stop_requested:
                    self._supervise()
            elif self._register():
                stack.callback(self._stop)
                self._supervise()

    def stop(self, *, at_once: bool = False) -> None:
        """Request a graceful stop, or an immediate one, which overrides it. Thread safe."""
        self._stop_requested = True
        self._stop_at_once = self._stop_at_once or at_once
        self.waiter.wake()

    @property
    def left_running(self) -> bool:
        """Whether threads may be left: of interrupted tasks, or one that waits for the database."""
        return any(each.children.left_tasks or each.thread.gave_up for each in self.fleets)

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
        self.launcher.reserved.add(descriptor)
        where = f"{address}, port {port}"
        databases = [fleet.using for fleet in self.fleets]
        self._probe = topology.probe_spec(
            where, descriptor, self.health.heartbeat, databases, self._metrics
        )

    def _beat(self) -> None:
        """Give the signs of life that others look for."""
        # A database that has been away from the start must not keep the others from being ready.
        begun = [fleet for fleet in self.fleets if fleet.has_begun] or self.fleets
        wanted = sum(len(fleet.specs) for fleet in begun)
        in_place = sum(fleet.in_place for fleet in self.fleets)
        retiring = sum(len(fleet.retiring) for fleet in self.fleets)
        self.health.beat(wanted, in_place, retiring, is_stopping=self._stopping)

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
        for fleet in self.fleets:
            fleet.maintenance.lifecycle.stopped(error)

    def _register(self) -> bool:
        """Wait until we are registered in one database; return ``False`` if stopped before."""
        self._start_maintenance()
        while not self._stop_requested:
            for fleet in self.fleets:
                if fleet.thread.failure is not None:
                    raise fleet.thread.failure
            if any(fleet.is_registered for fleet in self.fleets):
                return True
            if self.live_restart is not None and self.live_restart.is_hung_up:
                return False
            self.requests.heed(may_resize=False)
            self._beat()
            self.waiter.wait(TICK)
        return False

    def _adopt(self, former: Handover) -> None:
        """Go on with what the former code in this process had. Raises ``OSError``."""
        fleets = {fleet.using: fleet for fleet in self.fleets}
        for each in former.fleets:
            fleets[each.using].adopt(each)
        self._start_maintenance()

    def _begin(self, fleet: Fleet) -> None:
        """Start the children of a fleet."""
        if not any(each.has_begun for each in self.fleets):
            if self.standalone:
                set_title("supervisor", "starting")
            journal.prepare(self.options.state_directory, time.time() - MAX_JOURNAL_AGE)
            if self._probe is not None:  # It asks for the other fleets as well.
                fleet.specs.append(self._probe)
        for line in fleet.begin(scheduling=self.scheduling):
            self.say(line)
        if all(each.has_begun for each in self.fleets):
            self.say(last_line(drains=self.drain is not None))

    def _supervise(self) -> None:
        while not self._stop_requested:
            for fleet in self.fleets:
                if fleet.is_registered and not fleet.has_begun:
                    self._begin(fleet)
            self._reap()
            for fleet in self.fleets:
                fleet.look_after()
            self._set_process_name()
            self.requests.heed()
            self._beat()
            wait = self._start_due()
            if self.standalone:
                set_title("supervisor", f"{len(self.children)} {self._unit}")
            if self.drain is not None and self._drain_check.look():
                return
            if self._advance_restart():
                continue
            self.waiter.wait(wait)

    def _set_process_name(self) -> None:
        """Have our log records name us as we are registered."""
        for fleet in self.fleets:
            if fleet.is_registered:
                fleet.maintenance.set_process_name()
                return

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
        elif busy := [fleet for fleet in self.fleets if fleet.maintenance.is_busy]:
            for fleet in busy:
                fleet.thread.call()  # Only we know how these processes have ended.
                fleet.maintenance.herald.start()
        elif pause(self.fleets):
            self._give_place(restart)
            self._start_maintenance()
        return self._stop_requested

    def _give_place(self, restart: LiveRestart) -> None:
        """Replace this process by the new code. Returns only if that fails, or must not be."""
        logger.info(
            "The new code takes over",
            extra=about("supervisor.restarting", processes=len(self.children)),
        )
        for fleet in self.fleets:
            fleet.maintenance.lifecycle.stopped()
        close_connections()
        flush_output()
        hold_signals()
        try:
            if not self._stop_requested:
                self._state(restart).execute(restart.invocation)
        except OSError as error:
            restart.give_up(error)
        accept_signals()
        for fleet in self.fleets:
            if fleet.has_begun:
                fleet.maintenance.lifecycle.started({})

    def _start_maintenance(self) -> None:
        for fleet in self.fleets:
            fleet.thread.start()
            fleet.maintenance.herald.start()

    def _state(self, restart: LiveRestart) -> Handover:
        """Return what the new code has to know; the maintenance rests. Raises ``OSError``."""
        return Handover(
            fleets=[fleet.passed() for fleet in self.fleets if fleet.is_registered],
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
        if self._next_start <= 0:
            if self.launcher.wants_no_threads and not pause(self.fleets):
                return PAUSE_TICK  # Each thread wakes us when it has ended.
            for fleet in self.fleets:
                fleet.start_due()
            self._start_maintenance()
        return min(self._tick, self._next_start)

    @property
    def _next_start(self) -> float:
        return min(fleet.children.restarts.pause for fleet in self.fleets)

    def _reap(self) -> None:
        for child, how in self.launcher.ended():
            for fleet in self.fleets:
                if fleet.children.named(child.name) is child:
                    fleet.note_end(child, how, replacing=not self._stopping)

    def _stop(self) -> None:
        """Stop the children, and have their claims released."""
        self._stopping = True
        self.health.stop_begins()
        for fleet in self.fleets:
            fleet.maintenance.lifecycle.stopping()
        self._start_maintenance()
        timeout = self.options.shutdown_timeout.total_seconds()
        self._deadline = time.monotonic() + timeout + QUIT_GRACE + FINISH_GRACE
        if not self._stop_at_once:
            logger.info(
                "Stopping: running tasks may take up to %s",
                self.options.shutdown_timeout,
                extra=about("supervisor.stopping"),
            )
            for fleet in self.fleets:
                fleet.children.request_stop()
            # The probe answers as long as others work.
            self._await(lambda: any(fleet.children.at_work for fleet in self.fleets), timeout)
        if self._stop_at_once:
            self._deadline = time.monotonic() + QUIT_GRACE + FINISH_GRACE
        for fleet in self.fleets:
            fleet.children.terminate()
        self._await(self._has_children, QUIT_GRACE, interruptible=False)
        for fleet in self.fleets:
            fleet.children.kill()
        while self.children:
            self._await(self._has_children, 1.0, interruptible=False)

    def _finish_maintenance(self) -> None:
        """Let the maintenance finish, as long as there is time."""
        was_at_once = self._stop_at_once
        grace = MIN_FINISH_GRACE if self._deadline else FINISH_GRACE
        deadline = max(self._deadline, time.monotonic() + grace)
        for fleet in self.fleets:
            fleet.thread.leave()

        def may_wait() -> bool:
            return time.monotonic() < deadline and (was_at_once or not self._stop_at_once)

        for fleet in self.fleets:
            fleet.thread.finish(may_wait)
        for fleet in self.fleets:
            fleet.maintenance.herald.finish(may_wait)

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
