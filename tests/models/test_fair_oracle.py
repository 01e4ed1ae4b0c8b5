"""Fair queues against an oracle: random calls, claims and ends, and the turns that they make."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from datetime import timedelta

import pytest

from steady_queue_core.conformance.base import new_job, stored_id
from steady_queue_core.dialects import ClaimedJob, Ending
from steady_queue_core.features.fair.queues import FairQueues
from steady_queue_core.models import Job, ScheduledExecution

from .everywhere import on_every_database
from .test_fair_queues import Fair, declare, of_key

WEIGHTS = {"a": 1.0, "b": 2.0, "c": 5.0, "d": 1.5}
RANKS = (0, 1)
STEPS = 60


@pytest.fixture(autouse=True)
def declared(monkeypatch: pytest.MonkeyPatch) -> None:
    """The queue ``fair`` is fair, and no other one."""
    declare(monkeypatch, FairQueues({"fair": 1.0}))


@dataclass
class Oracle:
    """Start-time fair queueing as it is written in books: nothing is known of the tables."""

    following: dict[tuple[int, str], float] = field(default_factory=dict)
    #: Ready jobs: rank, turn and key.
    ready: dict[int, tuple[int, float, str]] = field(default_factory=dict)

    def arrive(self, job_ids: list[int], keys: list[str], rank: int, latest: int) -> None:
        """Let jobs become ready at once; ``latest`` is the latest job of all."""
        reached = self.reached(rank, latest)
        for job_id, key in zip(job_ids, keys, strict=True):
            turn = max(reached, self.following.get((rank, key), 0.0))
            self.following[rank, key] = turn + 1 / WEIGHTS[key]
            self.ready[job_id] = rank, turn, key

    def reached(self, rank: int, latest: int) -> float:
        turns = [turn for found, turn, _ in self.ready.values() if found == rank]
        return min(turns, default=float(latest))

    def assert_may_be_claimed(self, claims: list[ClaimedJob]) -> None:
        """Assert that nothing is ready that comes before these jobs, and take them out."""
        for claim in claims:
            rank, turn, _ = self.ready.pop(claim.job_id)
            for other_rank, other_turn, _ in self.ready.values():
                assert (rank, turn) <= (other_rank, other_turn + 0.05)


class Walk:
    """A random walk through a fair queue and its oracle."""

    def __init__(self, using: str, seed: int) -> None:
        self.random, self.fair, self.oracle = random.Random(seed), Fair(using), Oracle()
        self.fair.weigh(**WEIGHTS)
        self.claims: list[ClaimedJob] = []
        self.keys: dict[int, str] = {}

    @property
    def latest(self) -> int:
        return int(Job.objects.using(self.fair.using).latest("pk").pk)

    def enqueue(self) -> None:
        keys = self.random.choices(list(WEIGHTS), k=self.random.choice((1, 1, 3, 12)))
        rank = self.random.choice(RANKS)
        jobs = [of_key(key, new_job(rank=rank)) for key in keys]
        job_ids = list(map(stored_id, self.fair.dialect.enqueue(self.fair.connection, jobs)))
        self.oracle.arrive(job_ids, keys, rank, job_ids[0])
        self.keys |= dict(zip(job_ids, keys, strict=True))

    def enqueue_and_dispatch(self) -> None:
        key, rank = self.random.choice(list(WEIGHTS)), self.random.choice(RANKS)
        job = of_key(key, new_job(rank=rank, delay=timedelta(hours=1)))
        [new] = self.fair.dialect.enqueue(self.fair.connection, [job])
        job_id = stored_id(new)
        self.keys[job_id] = key
        due = self.fair.present(self.fair.using) - timedelta(seconds=1)
        ScheduledExecution.objects.using(self.fair.using).update(due_at=due)
        assert self.fair.dialect.dispatch(self.fair.connection, 10).moved == 1
        self.oracle.arrive([job_id], [key], rank, self.latest)

    def claim(self) -> None:
        claims = self.fair.claim(self.random.randint(1, 6))
        self.oracle.assert_may_be_claimed(claims)
        self.claims += claims

    def end(self) -> None:
        self.random.shuffle(self.claims)
        while len(self.claims) > 2:
            claim = self.claims.pop()
            how = self.random.choice((Ending.FINISHED, Ending.RETRIED, Ending.RELEASED))
            self.fair.end([claim], how)
            key, rank = self.keys[claim.job_id], claim.rank
            if how is Ending.RETRIED:
                self.oracle.arrive([claim.job_id], [key], rank, self.latest)
            elif how is Ending.RELEASED:
                reached = self.oracle.reached(rank, self.latest)
                self.oracle.ready[claim.job_id] = rank, reached, key

    def check(self) -> None:
        expected = {job_id: turn for job_id, (_, turn, _) in self.oracle.ready.items()}
        assert self.fair.turns == pytest.approx(expected, abs=0.02)


@pytest.mark.parametrize("seed", range(4))
@on_every_database
def test_turns_are_those_of_the_oracle(using: str, seed: int) -> None:
    walk = Walk(using, seed)
    ways = [walk.enqueue, walk.enqueue, walk.enqueue_and_dispatch, walk.claim, walk.end]
    for _ in range(STEPS):
        walk.random.choice(ways)()
        walk.check()
