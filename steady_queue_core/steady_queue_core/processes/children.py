"""The processes that a supervisor has forked."""

from __future__ import annotations

import logging
import os
import signal
import time
from collections.abc import Iterator

from ..configuration import ResolvedOptions
from .child import Child, Role, fork
from .restarts import Restarts

logger = logging.getLogger("steady_queue.supervisor")

#: Seconds without a sign of life, at the least, after which a child counts as frozen.
FROZEN = 3.0
#: Seconds that the supervisor may be away between two looks; longer, and it was frozen itself.
ABSENCE = 2.0
#: Seconds that a child that was declared dead may take to wake up and end of itself.
SHORTEST_MERCY, LONGEST_MERCY = 10.0, 60.0


class Children:
    """Starts them, takes leave of them, and replaces those that hang. Never asks the database,
    for such a child may hold the locks that everybody waits for."""

    def __init__(self, options: ResolvedOptions, using: str) -> None:
        self.options, self.using = options, using
        self.restarts = Restarts()
        self._by_pid: dict[int, Child] = {}
        self._looked_at = time.monotonic()

    def __iter__(self) -> Iterator[Child]:
        return iter(list(self._by_pid.values()))

    def __bool__(self) -> bool:
        return bool(self._by_pid)

    def start(self, role: Role, supervisor_id: int | None) -> None:
        """Fork a process for ``role``; where the system refuses, later."""
        try:
            child = fork(role, self.options, self.using, supervisor_id, list(self))
        except OSError:
            logger.exception("Could not start a %s; it is tried again", role.kind)
            self.restarts.later(role)
            return
        self._by_pid[child.pid] = child
        logger.info("Started %s (pid %d): %s", child.name, child.pid, role.description)

    def reap(self) -> list[tuple[Child, str]]:
        """Return the children that have ended, each with how; also take leave of processes that
        PID 1 inherits."""
        ended: list[tuple[Child, str]] = []
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return ended
            if pid == 0:
                return ended
            child = self._by_pid.pop(pid, None)
            if child is not None:
                child.read_reports(0.0)
                child.forget()
                ended.append((child, _ending(status)))

    def look_after(self) -> None:
        """Replace children that never got ready, and those whose main thread is frozen or hangs."""
        now = time.monotonic()
        # While we were frozen ourselves, or waited for the database, we saw no sign of anybody.
        absent = max(0.0, now - self._looked_at - ABSENCE)
        self._looked_at = now
        patience = self.options.fork_startup_timeout.total_seconds()
        threshold = max(FROZEN, self.options.process_alive_threshold.total_seconds())
        for child in self:
            child.seen_at += absent
            child.read_reports(patience)
            if child.ready_at is None and now > child.deadline:
                logger.error("%s (pid %d) did not get ready; killed", child.name, child.pid)
                child.signal(signal.SIGKILL)
                child.deadline = now + patience
            elif child.ready_at is not None and now - child.seen_at > threshold:
                self.condemn(child)
            if child.condemned_until is not None and now > child.condemned_until:
                child.signal(signal.SIGKILL)

    def condemn(self, child: Child) -> None:
        """Replace a child that counts as dead; it is killed unless it ends of itself."""
        if child.condemned_until is not None:
            return
        threshold = self.options.process_alive_threshold.total_seconds()
        mercy = max(SHORTEST_MERCY, min(LONGEST_MERCY, threshold))
        child.condemned_until = time.monotonic() + mercy
        child.signal(signal.SIGTERM)
        self.restarts.now(child.role)

    def hurry(self) -> None:
        """Somebody holds a lock that we wait for: perhaps a child that we gave up on."""
        for child in self:
            if child.condemned_until is not None:
                child.condemned_until = time.monotonic()

    def signal(self, signum: int) -> None:
        """Send a signal to all of them."""
        for child in self:
            child.signal(signum)

    def kill(self) -> None:
        """Kill all of them. It is we who break their jobs off: those use up no attempt."""
        for child in self:
            child.marks.leave_cleanly()
            child.signal(signal.SIGKILL)


def _ending(status: int) -> str:
    code = os.waitstatus_to_exitcode(status)
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        return f"was killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"was killed by signal {-code}"
