"""Jobs that run in several threads at once, and how many of each key may."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from threading import Lock

from ..dialects.records import ClaimedJob


class RunningJobs:
    """Counts jobs of each key that run, and fails as soon as there are more than its limit."""

    def __init__(self, limits: Mapping[str, int]) -> None:
        self._limits, self._running, self._lock = limits, Counter[str | None](), Lock()
        #: The ids of all jobs that have started, in their order.
        self.started: list[int] = []

    @contextmanager
    def block(self, *claims: ClaimedJob) -> Iterator[None]:
        """Have these jobs run in the block, all at once."""
        keys = [claim.concurrency_key for claim in claims]
        with self._lock:
            self.started += [claim.job_id for claim in claims]
            self._running.update(keys)
            assert self._running <= Counter(self._limits), self._running
        yield
        with self._lock:
            self._running.subtract(keys)
