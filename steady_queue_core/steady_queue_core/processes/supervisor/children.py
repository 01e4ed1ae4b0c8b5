"""The team that a supervisor has started."""

from __future__ import annotations

import time
from collections.abc import Iterator

from ...configuration import ResolvedOptions
from ...logging import about, get_logger
from ..base.lifecycle import announce_restart
from .child import Launcher, ManagedProcess, ProcessSpec
from .restarts import Restarts, Successor

logger = get_logger("steady_queue.supervisor")

#: Seconds without a sign of life, at the least, after which a child counts as frozen.
FROZEN = 3.0
#: Seconds that the supervisor may be away between two looks; longer, and it was frozen itself.
ABSENCE = 2.0
#: Seconds that a child that was declared dead may take to wake up and end of itself.
SHORTEST_MERCY, LONGEST_MERCY = 10.0, 60.0


class ManagedProcesses:
    """Starts them, takes leave of them, and replaces those that hang. Never asks the database,
    for such a child may hold the locks that everybody waits for."""

    def __init__(self, options: ResolvedOptions, launcher: Launcher) -> None:
        self.options, self.launcher = options, launcher
        self.restarts = Restarts()
        self._by_name: dict[str, ManagedProcess] = {}
        self._looked_at = time.monotonic()
        #: Whether something that one of them ran may hang in this process still.
        self.broke_off = False

    def __iter__(self) -> Iterator[ManagedProcess]:
        return iter(list(self._by_name.values()))

    def __len__(self) -> int:
        return len(self._by_name)

    def start(self, spec: ProcessSpec, supervisor_id: int | None) -> ManagedProcess | None:
        """Start a child for ``role``; where the system refuses, later: ``None``."""
        try:
            child = self.launcher.start(spec, supervisor_id, list(self))
        except (OSError, RuntimeError):  # Python has an error of its own for a thread.
            logger.exception(
                "Could not start a %s; it is tried again",
                spec.kind,
                extra=about("process.not_started", kind=spec.kind),
            )
            self.restarts.later(spec)
            return None
        self._by_name[child.name] = child
        logger.info(
            "Started %s (pid %d): %s",
            child.name,
            child.pid,
            spec.description,
            extra=about("process.started", child=child.name, child_pid=child.pid, kind=spec.kind),
        )
        return child

    def restart(self, successor: Successor, supervisor_id: int | None) -> None:
        """Start a child in the place of one that ended."""
        child = self.start(successor.spec, supervisor_id)
        if child is not None and successor.of is not None:
            announce_restart(successor.of, child)

    def reap(self) -> list[tuple[ManagedProcess, str]]:
        """Return the children that have ended, each with how."""
        ended = self.launcher.ended(list(self))
        for child, _ in ended:
            del self._by_name[child.name]
            child.read_reports(0.0)
            child.forget()
            self.broke_off = self.broke_off or child.broke_off
        return ended

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
                logger.error(
                    "%s (pid %d) did not get ready; killed",
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
                child.deadline = now + patience
            elif child.ready_at is not None and now - child.seen_at > threshold:
                self.condemn(child)
            if child.condemned_until is not None and now > child.condemned_until:
                child.kill()

    def condemn(self, child: ManagedProcess) -> None:
        """Replace a child that counts as dead; it is killed unless it ends of itself."""
        if child.condemned_until is not None:
            return
        threshold = self.options.process_alive_threshold.total_seconds()
        mercy = max(SHORTEST_MERCY, min(LONGEST_MERCY, threshold))
        child.condemned_until = time.monotonic() + mercy
        child.ask_to_stop()
        self.restarts.now(child)

    def named(self, name: str) -> ManagedProcess | None:
        """Return the child of that name, unless it has ended."""
        return self._by_name.get(name)

    def hurry(self) -> None:
        """Somebody holds a lock that we wait for: perhaps a child that we gave up on."""
        for child in self:
            if child.condemned_until is not None:
                child.condemned_until = time.monotonic()

    def ask_to_stop(self) -> None:
        """Have all of them take no more work, and end when their tasks have."""
        for child in self:
            child.ask_to_stop()

    def break_off(self) -> None:
        """Have all of them end at once, in good order."""
        for child in self:
            child.break_off()

    def kill(self) -> None:
        """Kill all of them. It is we who break their jobs off: those use up no attempt."""
        for child in self:
            child.journal.leave_cleanly()
            child.kill()
