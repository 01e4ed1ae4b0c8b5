"""Supervisor: forks the processes, watches them, and stops them."""

from __future__ import annotations

import logging
import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from types import FrameType

from ..configuration import ResolvedOptions
from ..errors import ProcessExitError
from ..models.readiness import require_tables
from . import marks, team
from .banner import write_banner
from .child import Child, Role, close_connections, fork, prepare_connections
from .database import LONGEST_PAUSE, QueueDatabase, Unavailable
from .drain import Drain
from .marks import Remains
from .membership import Membership, new_name
from .pidfile import Pidfile
from .postponed import Postponed
from .pruning import Pruning
from .recovery import Recovery
from .restarts import Restarts
from .waiter import Waiter

logger = logging.getLogger("steady_queue.supervisor")

#: Seconds between two looks at everything, signals apart.
TICK = 1.0
#: The same while the queue is to be drained.
DRAIN_TICK = 0.2
#: Seconds between two looks for processes of this host that died with their supervisor.
LOOK_INTERVAL = 3.0
#: Seconds without a sign of life, at the least, after which a child counts as frozen.
FROZEN = 3.0
#: Seconds, after an outage, for all processes to give a heartbeat before one may count as dead.
REUNION = 2 * LONGEST_PAUSE
#: Seconds that a child that was declared dead may take to wake up and end of itself.
SHORTEST_MERCY, LONGEST_MERCY = 10.0, 60.0
#: Seconds after which the marks of a dead process are nobody's.
ABANDONED = 7 * 24 * 3600.0
#: Seconds that a child may take to follow QUIT before it is killed.
QUIT_GRACE = 2.0


class Supervisor:
    """Runs in the foreground until TERM, INT or QUIT, or until the queue is drained.

    It has no thread and, while it forks, no connection. It outlives any outage of the database.
    """

    kind = "supervisor"

    def __init__(
        self,
        options: ResolvedOptions,
        using: str,
        *,
        drain: Drain | None = None,
        skip_recurring: bool = False,
        say: Callable[[str], object] = print,
    ) -> None:
        self.options, self.using, self.say = options, using, say
        self.drain = drain
        # A drained queue must stay empty: nothing new is scheduled.
        scheduling = drain is None and not skip_recurring
        self.roles = list(team.roles(options, scheduling=scheduling))
        self.name = new_name(self.kind)
        self.database = QueueDatabase(using)
        self.waiter = Waiter()
        self.recovery = Recovery(self.database)
        self.pruning = Pruning(self.database, self.recovery, options.process_alive_threshold)
        self.postponed = Postponed()
        self.restarts = Restarts()
        self.children: dict[int, Child] = {}
        self._next_prune = self._next_look = 0.0
        self._looked_at = time.monotonic()
        #: What the dialect said of the connection that was opened first.
        self._set_up: list[str] = []
        self._signal: int | None = None
        self._stopping = False
        #: Children that did not follow QUIT.
        self._killed: set[int] = set()
        self._membership: Membership | None = None

    def run(self) -> None:
        """Supervise. Raises ``PidfileError``, ``MigrationsMissing`` and ``DialectError``."""
        pidfile = Pidfile(path) if (path := self.options.supervisor_pidfile) else None
        if pidfile is not None:
            pidfile.acquire()
        self._install_signals()
        prepare_connections(self.using, self._note_set_up)
        try:
            if self._wait_for_database():
                self._start_children()
                self._supervise()
            self._stop()
        finally:
            if pidfile is not None:
                pidfile.release()

    # --- start -------------------------------------------------------------------------------

    def _install_signals(self) -> None:
        signal.set_wakeup_fd(self.waiter.write_descriptor, warn_on_full_buffer=False)
        for signum in (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT):
            signal.signal(signum, self._note_signal)
        signal.signal(signal.SIGCHLD, lambda signum, frame: None)

    def _note_set_up(self, said: list[str]) -> None:
        # What the first connection found to do was changed; later ones find it done.
        self._set_up = self._set_up or said

    def _note_signal(self, signum: int, frame: FrameType | None) -> None:
        # QUIT overrides a graceful stop under way; a second TERM changes nothing.
        if self._signal is None or signum == signal.SIGQUIT:
            self._signal = signum

    def _wait_for_database(self) -> bool:
        """Register when the database answers; ``False``: asked to stop before."""
        while self._signal is None:
            try:
                self.database.run(require_tables)
                self._join()
            except Unavailable as unavailable:
                self.waiter.wait(unavailable.pause)
            else:
                write_banner(self, self._set_up)
                return True
        return False

    def _join(self) -> None:
        membership = Membership(
            self.database,
            kind=self.kind,
            name=self.name,
            supervisor_id=None,
            interval=self.options.process_heartbeat_interval,
            threshold=self.options.process_alive_threshold,
            metadata={},
        )
        membership.register()
        self._membership = membership

    def _start_children(self) -> None:
        marks.sweep(older_than=time.time() - ABANDONED)
        self._maintain()
        for role in self.roles:
            self._fork(role)

    def _fork(self, role: Role) -> None:
        supervisor_id = self._membership.process_id if self._membership else None
        child = fork(role, self.options, self.using, supervisor_id, list(self.children.values()))
        self.children[child.pid] = child
        logger.info("Started %s (pid %d): %s", child.name, child.pid, role.description)

    # --- watch -------------------------------------------------------------------------------

    def _supervise(self) -> None:
        while self._signal is None:
            self._reap()
            self._look_after_children()
            self._maintain()
            for role in self.restarts.due():
                self._fork(role)
            if self._drained():
                return
            # No connection stays open here: the next fork may come at any time.
            close_connections()
            tick = TICK if self.drain is None else DRAIN_TICK
            self.waiter.wait(min(tick, self.restarts.pause))

    def _reap(self) -> None:
        """Take leave of children that have ended, and of processes that PID 1 inherits."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            child = self.children.pop(pid, None)
            if child is not None:
                self._ended(child, status)

    def _ended(self, child: Child, status: int) -> None:
        child.read_reports(0.0)
        how = _ending(status)
        if child.marks.left_cleanly or child.pid in self._killed:
            logger.info("%s (pid %d) %s", child.name, child.pid, how)
            remains = child.marks.remains()._replace(running=frozenset())
        else:
            logger.warning("%s (pid %d) %s", child.name, child.pid, how)
            remains = child.marks.remains()
        error = ProcessExitError(
            f"The process {child.name} (pid {child.pid}) {how} while it was running this job."
        )
        child.forget()
        self.postponed.do(lambda: self.recovery.process_died(child.name, remains, error))
        if not self._stopping and child.condemned_until is None:
            self.restarts.plan(child, at_work=bool(remains.running))

    def _look_after_children(self) -> None:
        """Replace children that never got ready, and those whose main thread is frozen or hangs.

        Without the database, for such a child may hold the locks that everybody waits for.
        """
        now = time.monotonic()
        # While we were frozen ourselves, or waited for the database, we saw no sign of anybody.
        absent = max(0.0, now - self._looked_at - 2 * TICK)
        self._looked_at = now
        patience = self.options.fork_startup_timeout.total_seconds()
        threshold = max(FROZEN, self.options.process_alive_threshold.total_seconds())
        for child in list(self.children.values()):
            child.seen_at += absent
            child.read_reports(patience)
            if child.ready_at is None and now > child.deadline:
                logger.error("%s (pid %d) did not get ready; killed", child.name, child.pid)
                child.signal(signal.SIGKILL)
                child.deadline = now + patience
            elif child.ready_at is not None and now - child.seen_at > threshold:
                self._condemn(child)
            if child.condemned_until is not None and now > child.condemned_until:
                child.signal(signal.SIGKILL)

    def _condemn(self, child: Child) -> None:
        """Replace a child that counts as dead; it is killed unless it ends of itself."""
        if child.condemned_until is not None:
            return
        threshold = self.options.process_alive_threshold.total_seconds()
        mercy = max(SHORTEST_MERCY, min(LONGEST_MERCY, threshold))
        child.condemned_until = time.monotonic() + mercy
        child.signal(signal.SIGTERM)
        self.restarts.now(child.role)

    # --- the database ------------------------------------------------------------------------

    def _maintain(self) -> None:
        self.postponed.catch_up()
        try:
            if self.postponed:
                return
            self._beat()
            if time.monotonic() >= self._next_look:
                self._next_look = time.monotonic() + LOOK_INTERVAL
                self._look_for_dead()
            if time.monotonic() >= self._next_prune:
                self._prune()
                self._next_prune = time.monotonic() + self.pruning.interval
        except Unavailable as unavailable:
            if not unavailable.lost:
                self._hurry()
            # When the database is back, others must be able to say that they live before we look.
            self._next_prune = time.monotonic() + unavailable.pause + REUNION

    def _hurry(self) -> None:
        """Somebody holds the lock that we wait for: perhaps a child that we gave up on."""
        for child in self.children.values():
            if child.condemned_until is not None:
                child.condemned_until = time.monotonic()

    def _beat(self) -> None:
        if self._membership is not None and not self._membership.beat_if_due():
            logger.warning("%s was declared dead; it registers anew", self.name)
            self.name = new_name(self.kind)
            self._join()

    def _look_for_dead(self) -> None:
        """Recover what died with its supervisor; replace children that others declared dead."""
        ready = [child for child in self.children.values() if child.ready_at is not None]
        own = {child.name for child in self.children.values()}
        registered = self.pruning.recover_dead(own | {self.name})
        for child in ready:
            if child.name not in registered:
                self._condemn(child)

    def _prune(self) -> None:
        """End the claims of silent processes; of our children, of those that we gave up on."""
        spared = {child.name for child in self.children.values() if child.condemned_until is None}
        silent = [
            process
            for process in self.pruning.silent()
            if process.name != self.name and process.name not in spared
        ]
        self.pruning.prune(silent, self._remains_of)

    def _remains_of(self, name: str) -> Remains | None:
        own = [child for child in self.children.values() if child.name == name]
        return own[0].marks.remains() if own else marks.left_by(name)

    # --- stop --------------------------------------------------------------------------------

    def _drained(self) -> bool:
        if self.drain is None:
            return False
        try:
            return self.drain.is_done(self.database, self.options)
        except Unavailable:
            return False

    def _stop(self) -> None:
        """Stop the children, give back what they had claimed, and leave."""
        self._stopping = True
        if self._signal != signal.SIGQUIT:
            logger.info("Stopping: running tasks may take up to %s", self.options.shutdown_timeout)
            self._signal_all(signal.SIGTERM)
            self._await_children(self.options.shutdown_timeout.total_seconds())
        self._signal_all(signal.SIGQUIT)
        self._await_children(QUIT_GRACE, interruptible=False)
        self._killed = set(self.children)
        self._signal_all(signal.SIGKILL)
        while self.children:
            self._await_children(1.0, interruptible=False)
        self.postponed.catch_up(now=True)
        if self._membership is not None:
            membership = self._membership
            with suppress(Unavailable):
                membership.deregister()
        if self.postponed:
            logger.warning("The database is away: claims are recovered by the next supervisor")
        self.database.close()

    def _signal_all(self, signum: int) -> None:
        for child in self.children.values():
            child.signal(signum)

    def _await_children(self, seconds: float, *, interruptible: bool = True) -> None:
        deadline = time.monotonic() + seconds
        while self.children and time.monotonic() < deadline:
            if interruptible and self._signal == signal.SIGQUIT:
                return
            self._reap()
            if self.children:
                self.waiter.wait(min(0.1, deadline - time.monotonic()))


def _ending(status: int) -> str:
    code = os.waitstatus_to_exitcode(status)
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        return f"was killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"was killed by signal {-code}"
