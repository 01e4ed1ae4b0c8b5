"""How many jobs a worker should ask for."""

from __future__ import annotations

import time

#: Seconds of work to keep at hand, so that threads do not wait for the database.
HORIZON = 0.05
#: Most jobs to hold beyond those that run.
LARGEST_PREFETCH = 500
#: Weight of the newest observation in the running means.
WEIGHT = 0.2
#: Seconds until the next probe after one that brought nothing that could start; each the double.
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 8.0


class Appetite:
    """Sizes claims by the idle slots, and by what the tasks of late took.

    Of short tasks it asks for more than there are slots: as many as fit into ``HORIZON``. Of long
    ones it asks for no more than can start at once, since a job that waits in one worker cannot
    start in another. Nobody knows before the claim whether a job is for a thread or for the event
    loop: when only one of them has room, and the project has tasks of either kind (``mixed``), it
    asks for a single job now and then.
    """

    def __init__(self, threads: int, coroutines: int, *, mixed: bool) -> None:
        self.threads, self.coroutines, self.mixed = threads, coroutines, mixed
        self._seconds = 1.0
        self._coroutine_share = 0.0
        self._next_probe = 0.0
        self._pause = FIRST_PAUSE

    def observe_duration(self, seconds: float) -> None:
        """Note how long a synchronous task, or a batch's mean, took."""
        self._seconds += (seconds - self._seconds) * WEIGHT
        self._pause = FIRST_PAUSE

    def observe_stall(self, seconds: float) -> None:
        """Note that jobs waited for a thread, or for room on the loop, in vain for this long."""
        self._seconds = max(self._seconds, seconds)
        self._next_probe = time.monotonic() + self._pause
        self._pause = min(LONGEST_PAUSE, self._pause * 2)

    def observe_kinds(self, coroutines: int, jobs: int) -> None:
        """Note how many of the claimed jobs were coroutine tasks."""
        self._coroutine_share += (coroutines / jobs - self._coroutine_share) * WEIGHT

    def limit(self, synchronous: int, coroutines: int) -> int:
        """Return how many jobs to claim while so many are claimed and not done."""
        share = self._coroutine_share
        room_in_threads = self.threads + self._prefetch() - synchronous
        room_on_loop = self.coroutines - coroutines
        if room_in_threads > 0 and room_on_loop > 0:
            return round((1 - share) * room_in_threads + share * room_on_loop) or 1
        one_has_room = room_in_threads > 0 or room_on_loop > 0
        nothing_waits = synchronous <= self.threads and coroutines <= self.coroutines
        if one_has_room and nothing_waits and self.mixed:
            return int(time.monotonic() >= self._next_probe)
        return 0

    def _prefetch(self) -> int:
        return min(LARGEST_PREFETCH, int(self.threads * HORIZON / max(self._seconds, 1e-6)))
