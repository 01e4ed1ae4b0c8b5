"""Running mean of job durations, and the prefetch that follows from it."""

from __future__ import annotations

import time

from ...configuration import Configuration

#: Seconds of work to keep at hand so that no thread idles while the database is queried. If a host
#: is lost together with its run journals, nothing tells which of these jobs had started.
HORIZON = 0.0125
#: The same for jobs so short that a statement for a few of them would cost more than they do.
SHORT, HORIZON_OF_SHORT = 0.001, 0.02
#: Weight of the newest observation in a running mean.
WEIGHT = 0.2
#: Seconds until the next probe after one whose job could not start; doubled each time.
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 8.0


class Throughput:
    """Running mean of the job durations in one lane, which runs ``size`` jobs at once; at most
    ``max_prefetch`` others are prefetched."""

    def __init__(self, size: int, max_prefetch: int) -> None:
        self.size, self.max_prefetch = size, max_prefetch
        #: A mean duration at which no job is expected to end within the horizon.
        self._slow = 2 * size * HORIZON
        self._mean = self._slow

    def observe(self, seconds: float) -> None:
        """Record the duration of a job, or the mean duration of a batch."""
        self._mean += (seconds - self._mean) * WEIGHT

    def observe_stall(self) -> None:
        """Record that prefetched jobs could not start in time."""
        self._mean = max(self._mean, self._slow)

    @property
    def prefetch(self) -> int:
        """Number of jobs beyond ``size`` that are expected to start within the horizon."""
        return self._started_within_horizon(self.size)

    @property
    def in_a_row(self) -> int:
        """Number of jobs that are expected to start within the horizon one after the other."""
        return self._started_within_horizon(1)

    def _started_within_horizon(self, at_once: int) -> int:
        horizon = HORIZON_OF_SHORT if self._mean < SHORT else HORIZON
        return min(self.max_prefetch, int(at_once * horizon / max(self._mean, 1e-6)))


class Prefetch:
    """Decides how many jobs to claim, from the free capacity and recent job durations.

    Short tasks are prefetched: as many as will start soon. Long tasks are claimed only when they
    can start at once, since a job that waits in one worker cannot start in another. Whether a job
    needs a thread or the event loop is unknown until it is claimed: if only one of the two lanes
    has free capacity and the project has tasks of both kinds (``mixed``), the worker claims a
    single job now and then as a probe.
    """

    def __init__(self, threads: int, coroutines: int, prefetch: int, *, mixed: bool) -> None:
        self.threads = Throughput(threads, prefetch)
        self.coroutines = Throughput(coroutines, prefetch)
        self.mixed = mixed
        self._coroutine_share = 0.0
        self._next_probe = 0.0
        self._pause = FIRST_PAUSE

    def observe_ends(self, throughput: Throughput, seconds: float) -> None:
        """Record the mean duration of jobs that have just ended in one lane."""
        throughput.observe(seconds)
        self._pause = FIRST_PAUSE

    def observe_stall(self, throughput: Throughput) -> None:
        """Record that the prefetched jobs of one lane could not start in time."""
        throughput.observe_stall()
        self._next_probe = time.monotonic() + self._pause
        self._pause = min(LONGEST_PAUSE, self._pause * 2)

    def observe_kinds(self, coroutines: int, jobs: int) -> None:
        """Record how many of the claimed jobs are coroutine tasks."""
        self._coroutine_share += (coroutines / jobs - self._coroutine_share) * WEIGHT

    def limit(self, in_threads: int, on_loop: int) -> int:
        """Return how many jobs to claim, given the number of unfinished jobs in each lane."""
        share = self._coroutine_share
        free_in_threads = self.threads.size + self.threads.prefetch - in_threads
        free_on_loop = self.coroutines.size + self.coroutines.prefetch - on_loop
        if free_in_threads > 0 and free_on_loop > 0:
            return round((1 - share) * free_in_threads + share * free_on_loop) or 1
        one_is_free = free_in_threads > 0 or free_on_loop > 0
        none_waits = in_threads <= self.threads.size and on_loop <= self.coroutines.size
        if one_is_free and none_waits and self.mixed:
            return int(time.monotonic() >= self._next_probe)
        return 0


def capacity(settings: Configuration.Worker) -> int:
    """Return how many jobs a worker can hold at once."""
    coroutines = 0 if settings.runs_processes else settings.coroutines
    return settings.threads + coroutines + settings.prefetch
