"""Supervisor: starts the other processes, watches them, and stops them."""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from types import FrameType

from ...configuration import ResolvedOptions
from ..base import journal
from ..base.connection_setup import as_control_thread
from ..base.forking import accept_signals
from ..base.posix_signals import HANGUP, handling
from ..base.registration import new_name
from ..base.system import set_title
from ..base.waiter import Waiter
from ..probe.probe import Metrics
from . import topology
from .drain import Drain
from .fleet import Fleet
from .fleets import Fleets
from .forks import ForkLauncher
from .handover import Handover
from .health import Health
from .launch import require_means, require_supervisor_context
from .live_restart import LiveRestart
from .managed_process import Launcher, ProcessSpec
from .operator_requests import OperatorRequests
from .pidfile import Pidfile, succeeding
from .probe_socket import listen_as
from .shutdown import Shutdown, StopRequest
from .succession import Succession
from .threads import ThreadLauncher
from .topology import last_line

#: Seconds between two rounds, unless a signal wakes the supervisor earlier.
TICK = 1.0
#: The same in drain mode.
DRAIN_TICK = 0.2
#: The same while the maintenance is asked to rest.
PAUSE_TICK = 0.3
#: Seconds after which the journal of a dead process is abandoned.
MAX_JOURNAL_AGE = 7 * 24 * 3600.0


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
        self._tick = TICK if drain is None else DRAIN_TICK
        self.health = Health(options.heartbeat_file if standalone else None)
        #: The descriptor of the listening socket of the probe, and its spec.
        self.probe_socket: int | None = None
        self._probe: ProcessSpec | None = None
        self.live_restart, self._handover, self._metrics = live_restart, handover, metrics
        self._pidfile: Pidfile | None = None
        self.launcher: Launcher = ForkLauncher(lambda: self.fleets.children, self._note_other_ended)
        if threads:
            self.launcher = ThreadLauncher(lambda: self.fleets.children, self.waiter.wake)
        self.fleets = Fleets(self._build_fleets(databases, only))
        self.requests = OperatorRequests(self.fleets)
        self._stop_request = StopRequest()
        self._shutdown = Shutdown(
            self.fleets, options.shutdown_timeout, self._stop_request, self._come_round, self.waiter
        )
        self._succession: Succession | None = None
        if live_restart is not None:
            live_restart.begun = self.health.reload_begins
            live_restart.refused = self.health.reload_refused
            self._succession = Succession(
                live_restart, self.fleets, self._stop_request, self._state, threads=threads
            )

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
            stack.push(self.fleets.announce_end)
            stack.callback(self._shutdown.finish_maintenance)
            if self._handover is not None:
                self.fleets.adopt(self._handover)
                stack.callback(self._stop)  # Even if a stop was requested meanwhile.
                if not self._stop_request:
                    self._supervise()
            elif self._register():
                stack.callback(self._stop)
                self._supervise()

    def stop(self, *, at_once: bool = False) -> None:
        """Request a graceful stop, or an immediate one, which overrides it. Thread safe."""
        self._stop_request.make(at_once=at_once)
        self.waiter.wake()

    @property
    def is_to_restart(self) -> bool:
        """Whether it has stopped for new code that is to take its place."""
        return self._stop_request.is_for_restart

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
        descriptor = listen_as(self.options, self._handover, is_wanted=self.standalone)
        if descriptor is None:
            return
        self.probe_socket = descriptor
        stack.callback(os.close, descriptor)
        self.launcher.reserved.add(descriptor)
        databases = [fleet.using for fleet in self.fleets]
        self._probe = topology.probe_spec(
            self.options, descriptor, self.health.heartbeat, databases, self._metrics
        )

    def _beat(self) -> None:
        """Give the signs of life that others look for."""
        fleets, is_stopping = self.fleets, self._shutdown.has_begun
        self.health.beat(fleets.wanted, fleets.in_place, fleets.retiring, is_stopping=is_stopping)

    def _handle_signal(self, signum: int, frame: FrameType | None) -> None:
        if signum == HANGUP and self.live_restart is not None:
            self.live_restart.request()
            return
        if not self.requests.note(signum):
            self._stop_request.note_signal(signum)

    def _register(self) -> bool:
        """Wait until we are registered in one database; return ``False`` if stopped before."""
        self.fleets.start_maintenance()
        while not self._stop_request:
            if self.fleets.are_registered:
                return True
            if self.live_restart is not None and self.live_restart.is_hung_up:
                return False
            self.requests.heed(may_resize=False)
            self._beat()
            self.waiter.wait(TICK)
        return False

    def _begin(self, fleet: Fleet) -> None:
        """Start the children of a fleet."""
        if not self.fleets.have_begun:
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
        while not self._stop_request:
            for fleet in self.fleets:
                if fleet.is_registered and not fleet.has_begun:
                    self._begin(fleet)
            self._reap()
            for fleet in self.fleets:
                fleet.look_after()
            self.fleets.set_process_name()
            self.requests.heed()
            self._beat()
            wait = self._start_due()
            if self.standalone:
                unit = "threads" if self.threads else "processes"
                set_title("supervisor", f"{len(self.fleets.children)} {unit}")
            if self.drain is not None and self.fleets.look_whether_drained():
                return
            if self._succession is not None and self._succession.advance():
                continue
            self.waiter.wait(wait)

    def _state(self) -> Handover:
        """Return what the new code has to know; the maintenance rests. Raises ``OSError``."""
        assert self.live_restart is not None
        return Handover(
            fleets=[fleet.passed() for fleet in self.fleets if fleet.is_registered],
            pidfile=self._pidfile.passed if self._pidfile is not None else None,
            probe_socket=self.probe_socket,
            had_terminal=self.live_restart.had_terminal,
            is_overtaken=self.live_restart.is_requested,
        )

    def _note_other_ended(self, pid: int, exit_code: int) -> None:
        if self.live_restart is not None:
            self.live_restart.note_ended(pid, exit_code)

    def _start_due(self) -> float:
        """Start the children that are due; return the seconds until the next ones are."""
        if self.fleets.next_start <= 0:
            if self.launcher.wants_no_threads and not self.fleets.pause_maintenance():
                return PAUSE_TICK  # Each thread wakes us when it has ended.
            for fleet in self.fleets:
                fleet.start_due()
            self.fleets.start_maintenance()
        return min(self._tick, self.fleets.next_start)

    def _reap(self) -> None:
        for child, how in self.launcher.ended():
            self.fleets.note_end(child, how, replacing=not self._shutdown.has_begun)

    def _stop(self) -> None:
        self.health.stop_begins()
        self._shutdown.stop_children()

    def _come_round(self) -> None:
        """Do what is due in each round while the children end."""
        self.requests.heed(may_resize=False)
        self._beat()
        self._reap()
