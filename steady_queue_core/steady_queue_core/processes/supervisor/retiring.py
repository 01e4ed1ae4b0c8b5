"""Children that are to have no successor: of former code, or of too many workers."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import timedelta

from ...logging import about, get_logger
from .managed_process import STOP, ManagedProcess, ProcessSpec
from .managed_processes import ManagedProcesses

logger = get_logger("steady_queue.supervisor")

#: Seconds that a child gets to interrupt its tasks once it has to end.
GRACE = 2.0


class RetiringProcesses:
    """Lets retiring children work until others are in place, and then end in their own time."""

    def __init__(self, children: ManagedProcesses, drain_timeout: timedelta | None) -> None:
        self.children, self._drain_timeout = children, drain_timeout
        #: Whether those that take over were all in place once.
        self.are_succeeded = False

    def __len__(self) -> int:
        return sum(child.is_retiring for child in self.children)

    def look_after(self, specs: Sequence[ProcessSpec]) -> bool:
        """Retire the retiring children of each kind once all ``specs`` of that kind are in place;
        return whether all were so just now for the first time."""
        in_place = {id(child.spec) for child in self.children if child.is_in_place}
        missing = {spec.kind for spec in specs if id(spec) not in in_place}
        for child in self.children:
            if child.is_retiring and (self.are_succeeded or child.spec.kind not in missing):
                self.retire(child)
        was_succeeded = self.are_succeeded
        self.are_succeeded = was_succeeded or not missing
        return self.are_succeeded and not was_succeeded

    def retire(self, child: ManagedProcess) -> None:
        """Tell a child that others have taken over, and end it if it takes too long."""
        now = time.monotonic()
        if child.drains_until is None and self._drain_timeout is not None:
            child.drains_until = now + self._drain_timeout.total_seconds()
        if child.drains_until is None or now < child.drains_until:
            child.retire()  # Again and again: it may not have been able to heed the first signal.
        elif child.kill_at is None:
            logger.warning(
                "%s (pid %d) has not ended in time: its tasks are interrupted",
                child.name,
                child.pid,
                extra=about("process.drained_too_long", child=child.name, child_pid=child.pid),
            )
            child.kill_at, child.ended_for = now + GRACE, STOP
            child.journal.mark_clean_exit()
            child.terminate()
