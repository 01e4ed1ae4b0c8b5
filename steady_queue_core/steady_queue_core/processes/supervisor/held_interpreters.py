"""Workers that no longer report, because a task that should have ended holds their interpreter."""

from __future__ import annotations

import os
import time

from ..base.journal_reader import LimitedEntry
from ..base.system import waits_for_lock, wakeups_of
from .managed_process import ManagedProcess

#: Seconds without a report after which a worker may be held.
SILENCE = 3.0
#: Seconds for which its threads are observed.
OBSERVATION = 1.0
#: Wake-ups a second of a thread that waits for the interpreter, at the least: it looks for it every
#: 5 ms. On a machine that lets nobody run as often, half as many as the main thread has are enough.
LEAST_WAKEUPS = 20


class HeldInterpreters:
    """Finds the jobs that hold the interpreters of silent workers after the end of their time."""

    def __init__(self) -> None:
        #: When a silent worker was first seen to be so, and the wake-ups of its threads until then.
        self._observed: dict[str, tuple[float, dict[int, int]]] = {}

    def look_at(self, child: ManagedProcess) -> frozenset[int]:
        """Return the jobs for which a worker has to be killed; none unless it has been silent for
        some time, and unless their time and grace are over.

        Threads that wait for the interpreter do not hold it, nor do those that wait for a lock, if
        any other could: their jobs are left out, where the system tells which these are.
        """
        now = time.monotonic()
        if child.held_by or child.pid == os.getpid() or now - child.seen_at < SILENCE:
            self._observed.pop(child.name, None)
            return frozenset()
        limited = child.journal.limited
        if child.name not in self._observed:
            self._observed[child.name] = now, _wakeups(child.pid, limited)
            return frozenset()
        since, earlier = self._observed[child.name]
        if now - since < OBSERVATION:
            return frozenset()
        present = _wakeups(child.pid, limited)
        gained = {each: count - earlier.get(each, count) for each, count in present.items()}
        least = min(LEAST_WAKEUPS * (now - since), gained.get(child.pid, 0) / 2)
        waiting = {thread for thread, times in gained.items() if times and times >= least}
        overdue = [each for each in limited if each.ends_at < now and each.thread not in waiting]
        may_hold = [each for each in overdue if not waits_for_lock(child.pid, each.thread)]
        return frozenset(each.job_id for each in may_hold or overdue)


def _wakeups(pid: int, limited: list[LimitedEntry]) -> dict[int, int]:
    """Return those of the main thread, which has the number of the process, and of the jobs'."""
    found = {each: wakeups_of(pid, each) for each in {pid, *(one.thread for one in limited)}}
    return {thread: count for thread, count in found.items() if count is not None}
