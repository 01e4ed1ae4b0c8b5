"""The children of a fleet: starts them, watches their health, and replaces them."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Iterator
from functools import partial

from ...configuration import ResolvedOptions
from ...internal_errors import log_internal_error
from ...logging import about, get_logger
from ...signals import ProcessLifecycle, process_restarted, send
from .held_interpreters import HeldInterpreters
from .herald import Message
from .managed_process import FROZEN, HELD, STOP, Launcher, ManagedProcess, ProcessSpec
from .restarts import PlannedStart, Restarts

logger = get_logger("steady_queue.supervisor")

#: Seconds without a report, at the least, after which a child counts as frozen.
MIN_FROZEN = 3.0
#: Seconds between two health checks; after a longer gap, the supervisor itself was frozen.
MAX_CHECK_GAP = 2.0
#: Seconds that a replaced child gets to wake up and exit by itself.
MIN_KILL_GRACE, MAX_KILL_GRACE = 10.0, 60.0
#: The same where somebody waits for a lock meanwhile.
HELD_UP_GRACE = 0.0


class ManagedProcesses:
    """Starts children, and replaces those that hang. Makes no database queries, since
    such a child may hold the very locks that a query would wait for."""

    def __init__(self, options: ResolvedOptions, using: str, launcher: Launcher) -> None:
        self.options, self.using, self.launcher = options, using, launcher
        self.restarts = Restarts()
        self._by_name: dict[str, ManagedProcess] = {}
        self._checked_at = time.monotonic()
        #: Whether tasks of an ended child may still hang in this process.
        self.left_tasks = False
        self._held = HeldInterpreters()
        #: Sends signals.
        self.tell: Callable[[Message], object] = lambda message: message()

    def __iter__(self) -> Iterator[ManagedProcess]:
        return iter(list(self._by_name.values()))

    def __len__(self) -> int:
        return len(self._by_name)

    def start(
        self,
        spec: ProcessSpec,
        supervisor_id: int | None,
        replaces: ManagedProcess | None = None,
    ) -> ManagedProcess | None:
        """Start a child for ``spec``, or plan another try and return ``None`` if the system
        refuses."""
        try:
            child = self.launcher.start(spec, self.options, self.using, supervisor_id)
        except (OSError, RuntimeError):  # Python raises RuntimeError for a refused thread.
            log_internal_error(
                logger,
                "Could not start a %s; retrying later",
                spec.kind,
                extra=about("process.not_started", kind=spec.kind),
            )
            self.restarts.plan_retry(spec, replaces)
            return None
        child.predecessor = self._predecessor(replaces)
        self._by_name[child.name] = child
        logger.info(
            "Started %s (pid %d): %s",
            child.name,
            child.pid,
            spec.description,
            extra=about("process.started", child=child.name, child_pid=child.pid, kind=spec.kind),
        )
        return child

    def start_planned(self, planned: PlannedStart, supervisor_id: int | None) -> None:
        """Start a planned child; announce it if it replaces another."""
        child = self.start(planned.spec, supervisor_id, planned.replaces)
        if child is not None and planned.replaces is not None:
            self.tell(partial(_announce_restart, planned.replaces, child))

    def adopt(self, child: ManagedProcess) -> None:
        """Take over a child of former code."""
        child.deadline = child.seen_at + self.options.fork_startup_timeout.total_seconds()
        self._by_name[child.name] = child

    def remove(self, child: ManagedProcess) -> None:
        """Take a child that has ended from the living."""
        del self._by_name[child.name]
        child.read_reports(0.0)
        child.close()
        child.journal.mark_all_stuck(child.held_by)
        self.left_tasks = self.left_tasks or child.left_tasks
        for other in self:
            if other.predecessor is child:
                other.predecessor = None  # Its pid may become another process's.

    def check_health(self) -> None:
        """Kill children that never got ready; replace those that are frozen or hang."""
        now = time.monotonic()
        # While we were frozen ourselves, we could not see any reports.
        absent = max(0.0, now - self._checked_at - MAX_CHECK_GAP)
        self._checked_at = now
        timeout = self.options.fork_startup_timeout.total_seconds()
        threshold = max(MIN_FROZEN, self.options.process_alive_threshold.total_seconds())
        for child in self:
            child.seen_at += absent
            child.read_reports(timeout)
            if not child.is_retiring:
                self._succeed(child)
            if child.ready_at is None and now > child.deadline:
                logger.error(
                    "%s (pid %d) did not become ready; killing it",
                    child.name,
                    child.pid,
                    extra=about(
                        "process.not_ready",
                        child=child.name,
                        child_pid=child.pid,
                        kind=child.spec.kind,
                    ),
                )
                child.kill()
                child.deadline = now + timeout
            elif child.ready_at is not None and now - child.seen_at > threshold:
                self.replace(child)
            if child.kill_at is not None and now > child.kill_at:
                child.kill()
            elif held_by := self._held.look_at(child):
                self._kill_held(child, held_by)

    def _kill_held(self, child: ManagedProcess, held_by: frozenset[int]) -> None:
        """Kill a child for the sake of jobs that should have ended: no other job is charged."""
        logger.error(
            "%s (pid %d) does nothing any more, because of tasks that did not end when their time "
            "was over; killing it. Jobs: %s",
            child.name,
            child.pid,
            ", ".join(map(str, sorted(held_by))),
            extra=about(
                "process.held",
                child=child.name,
                child_pid=child.pid,
                kind=child.spec.kind,
                jobs=len(held_by),
            ),
        )
        child.held_by, child.ended_for = held_by, HELD
        child.journal.mark_clean_exit()
        child.kill()

    def replace(self, child: ManagedProcess) -> None:
        """Replace a child that counts as dead; kill it later unless it exits by itself."""
        if child.kill_at is not None:
            return
        threshold = self.options.process_alive_threshold.total_seconds()
        grace = max(MIN_KILL_GRACE, min(MAX_KILL_GRACE, threshold))
        child.kill_at, child.ended_for = time.monotonic() + grace, FROZEN
        child.request_stop()
        if not child.is_retiring and not child.is_succeeded:
            self.restarts.plan_now(child)

    def _succeed(self, child: ManagedProcess) -> None:
        """Plan the successor of a child that wants one; once it is at work, stop the former one."""
        if child.wants_successor and not child.is_succeeded and child.kill_at is None:
            child.is_succeeded = True
            self.restarts.plan_now(child)
        if child.predecessor is not None and child.is_at_work:
            child.predecessor.request_stop()
            child.predecessor = None

    def _predecessor(self, replaced: ManagedProcess | None) -> ManagedProcess | None:
        """Return the child that waits for the successor of ``replaced``, which may be one that
        itself was to be the successor."""
        for former in (replaced, replaced.predecessor if replaced else None):
            if former is not None and former.is_succeeded and self.named(former.name) is former:
                return former
        return None

    def named(self, name: str) -> ManagedProcess | None:
        """Return the child of that name, unless it has ended."""
        return self._by_name.get(name)

    def kill_replaced(self) -> None:
        """Kill replaced children without further grace: one may hold a lock that we wait for."""
        for child in self:
            if child.kill_at is not None:
                child.kill_at = min(child.kill_at, time.monotonic() + HELD_UP_GRACE)

    @property
    def at_work(self) -> list[ManagedProcess]:
        """The children that work for the queue; others tell of it."""
        return [child for child in self if child.spec.registers]

    def request_stop(self) -> None:
        """Ask the children that work to take no more, and to end when their tasks have."""
        for child in self.at_work:
            child.request_stop()

    def terminate(self) -> None:
        """Ask all children to interrupt their tasks and end immediately, but cleanly."""
        for child in self:
            child.terminate()

    def kill(self) -> None:
        """Kill all children. Since we interrupt their jobs, those lose no attempt."""
        for child in self:
            child.journal.mark_clean_exit()
            child.ended_for = child.ended_for or STOP
            child.kill()


def _announce_restart(former: ManagedProcess, replacement: ManagedProcess) -> None:
    send(
        process_restarted,
        ProcessLifecycle,
        process_kind=former.spec.kind,
        process_name=former.name,
        pid=former.pid,
        hostname=socket.gethostname(),
        exitcode=former.exit_code,
        replacement_name=replacement.name,
        replacement_pid=replacement.pid,
        supervisor_pid=os.getpid(),
    )
