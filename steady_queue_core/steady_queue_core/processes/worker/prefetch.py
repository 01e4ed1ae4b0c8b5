"""How many jobs a worker should ask for."""

from __future__ import annotations

import time

from .throughput import WEIGHT, Throughput

#: Seconds until the next probe after one that brought nothing that could start; each the double.
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 8.0


class Prefetch:
    """Sizes claims by the idle slots, and by what the tasks of late took.

    Of short tasks it asks for more than there are slots: as many as will find one soon. Of long
    ones it asks for no more than can start at once, since a job that waits in one worker cannot
    start in another. Nobody knows before the claim whether a job is for a thread or for the event
    loop: when only one of them has room, and the project has tasks of either kind (``mixed``), it
    asks for a single job now and then.
    """

    def __init__(self, threads: int, coroutines: int, prefetch: int, *, mixed: bool) -> None:
        self.threads, self.coroutines = (
            Throughput(threads, prefetch),
            Throughput(coroutines, prefetch),
        )
        self.mixed = mixed
        self._coroutine_share = 0.0
        self._next_probe = 0.0
        self._pause = FIRST_PAUSE

    def observe_ends(self, pace: Throughput, seconds: float) -> None:
        """Note how long a job, or a batch's mean, kept its thread or its room on the loop."""
        pace.observe(seconds)
        self._pause = FIRST_PAUSE

    def observe_stall(self, pace: Throughput) -> None:
        """Note that jobs waited for a thread, or for room on the loop, in vain."""
        pace.observe_stall()
        self._next_probe = time.monotonic() + self._pause
        self._pause = min(LONGEST_PAUSE, self._pause * 2)

    def observe_kinds(self, coroutines: int, jobs: int) -> None:
        """Note how many of the claimed jobs were coroutine tasks."""
        self._coroutine_share += (coroutines / jobs - self._coroutine_share) * WEIGHT

    def limit(self, synchronous: int, coroutines: int) -> int:
        """Return how many jobs to claim while so many are claimed and not done."""
        share = self._coroutine_share
        room_in_threads = self.threads.size + self.threads.prefetch - synchronous
        room_on_loop = self.coroutines.size + self.coroutines.prefetch - coroutines
        if room_in_threads > 0 and room_on_loop > 0:
            return round((1 - share) * room_in_threads + share * room_on_loop) or 1
        one_has_room = room_in_threads > 0 or room_on_loop > 0
        nothing_waits = synchronous <= self.threads.size and coroutines <= self.coroutines.size
        if one_has_room and nothing_waits and self.mixed:
            return int(time.monotonic() >= self._next_probe)
        return 0
