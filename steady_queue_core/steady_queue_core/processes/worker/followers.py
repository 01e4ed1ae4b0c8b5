"""Jobs that wait in a worker until another job of their concurrency key has ended."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from ...compat import Task
from ...dialects import ClaimedJob
from ...features.delivery.options import TRANSACTIONAL
from ...tasks.metadata import delivery_of
from ..base.system import lease_clock
from .thread_pool import Work

#: Seconds after its claim in which a follower has to start. It has no permit of its own, and the
#: one that it is to take over may be revoked while this process, or its host, is suspended.
PATIENCE = 1.0


class Follower(NamedTuple):
    """A follower, and until when it may start."""

    work: Work
    deadline: float

    @property
    def is_late(self) -> bool:
        return lease_clock() >= self.deadline


class Followers:
    """The followers of a worker. Each belongs to whoever takes it out first: the thread that has
    run the job before it, or the main thread."""

    def __init__(self, runs_on_loop: Callable[[Task], bool]) -> None:
        self._runs_on_loop = runs_on_loop
        #: By the id of the job that each follows.
        self.waiting: dict[int, Follower] = {}
        #: The deadlines and the jobs followed, in order. Main thread only.
        self._deadlines: deque[tuple[float, int]] = deque()

    def add(self, work: Iterable[Work], claimed_from: float) -> None:
        """Add jobs whose claim began at an instant of the lease clock."""
        deadline = claimed_from + PATIENCE
        for each in work:
            followed = each[0].follows
            assert followed is not None
            self._deadlines.append((deadline, followed))
            self.waiting[followed] = Follower(each, deadline)

    def next_of(self, job_id: int, *, on_loop: bool) -> Work | None:
        """Take out what follows a job, if it may start now in the same lane. Any thread."""
        found = self.waiting.get(job_id)
        if found is None or found.is_late or self._runs_on_loop(found.work[1]) is not on_loop:
            return None
        taken = self.waiting.pop(job_id, None)  # The main thread may have withdrawn it.
        return taken.work if taken is not None else None

    def take(self, job_id: int) -> Follower | None:
        """Take out what follows a job."""
        return self.waiting.pop(job_id, None) if self.waiting else None

    def withdraw_after(self, job_id: int) -> Iterator[Work]:
        """Take out all that follow a job, one after the other."""
        while (found := self.take(job_id)) is not None:
            yield found.work
            job_id = found.work[0].job_id

    def withdraw_late(self) -> Iterator[Work]:
        """Take out those whose deadlines have passed."""
        while self.until_late <= 0:
            yield from self.withdraw_after(self._deadlines.popleft()[1])

    def withdraw_all(self) -> Iterator[Work]:
        """Take out all."""
        while self._deadlines:
            yield from self.withdraw_after(self._deadlines.popleft()[1])

    @property
    def until_late(self) -> float:
        """Seconds until the next deadline; infinite while none waits."""
        while self._deadlines and self._deadlines[0][1] not in self.waiting:
            self._deadlines.popleft()
        return self._deadlines[0][0] - lease_clock() if self._deadlines else math.inf


def follows_in_chain(claim: ClaimedJob) -> bool:
    """Whether a job may run after others without a permit of its own, until it gets theirs. One
    that is settled where its task runs does not: it cannot name an heir. Nor does one with a rate
    limit: it asks just before it starts."""
    return delivery_of(claim) != TRANSACTIONAL and not claim.has_rate
