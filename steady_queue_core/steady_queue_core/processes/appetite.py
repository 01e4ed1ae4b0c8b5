"""How many jobs a worker should ask for."""

from __future__ import annotations

#: Seconds of work to keep at hand, so that threads do not wait for the database.
HORIZON = 0.05
#: Most jobs to hold beyond those that run.
LARGEST_PREFETCH = 500
#: Weight of the newest observation in the running means.
WEIGHT = 0.2


class Appetite:
    """Sizes claims by the idle slots, and by what the tasks of late took.

    Of short tasks it asks for more than there are slots: as many as fit into ``HORIZON``. Of long
    ones it asks for no more than can start at once, since a job that waits in one worker cannot
    start in another.
    """

    def __init__(self, threads: int, coroutines: int) -> None:
        self.threads, self.coroutines = threads, coroutines
        self._seconds = 1.0
        self._coroutine_share = 0.0

    def observe_duration(self, seconds: float) -> None:
        """Note how long a synchronous task, or a batch's mean, took."""
        self._seconds += (seconds - self._seconds) * WEIGHT

    def observe_stall(self, seconds: float) -> None:
        """Note that jobs waited for a thread in vain for this long."""
        self._seconds = max(self._seconds, seconds)

    def observe_kinds(self, coroutines: int, jobs: int) -> None:
        """Note how many of the claimed jobs were coroutine tasks."""
        self._coroutine_share += (coroutines / jobs - self._coroutine_share) * WEIGHT

    def limit(self, synchronous: int, coroutines: int) -> int:
        """Return how many jobs to claim while so many are claimed and not done."""
        if coroutines >= self.coroutines:
            return 0
        share = self._coroutine_share
        room_in_threads = self.threads + self._prefetch() - synchronous
        room_on_loop = self.coroutines - coroutines
        room = (1 - share) * room_in_threads + share * room_on_loop
        return max(0, round(room) or int(synchronous < self.threads))

    def _prefetch(self) -> int:
        return min(LARGEST_PREFETCH, int(self.threads * HORIZON / max(self._seconds, 1e-6)))
