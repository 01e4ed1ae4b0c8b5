"""Batches while many end their members, add to them and cancel them at once."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connections

from steady_queue_core import Batch, call, enqueue_many, task
from steady_queue_core.conformance import threads
from steady_queue_core.conformance.base import ending
from steady_queue_core.dialects import ClaimedJob, Ending, QueueSelector
from steady_queue_core.dialects.database import Database
from steady_queue_core.dialects.registry import dialect_for
from steady_queue_core.models import BatchMember, Job, JobBatch

from ..core.driver import Driver
from ..sizes import runs
from .everywhere import on_every_database, on_every_server
from .recurrence import tasks

THREADS = 8
PATIENCE = 120


@pytest.fixture(autouse=True)
def _project(using: str, settings: Any) -> None:
    settings.TASKS = tasks(using, backoff=0)


@pytest.fixture
def rounds(pytestconfig: pytest.Config) -> int:
    return runs(pytestconfig, merge=6, whole=20)


@task
def work(number: int = 0) -> None:
    """Do nothing."""


@task
def after() -> None:
    """Do nothing."""


def settle(
    using: str, claims: list[ClaimedJob], claimer: Driver | None = None
) -> Callable[[], None]:
    """Return what ends these claims well, and claims others for ``claimer``, of which there are
    none."""
    outcomes = [ending(Ending.FINISHED, claim, attempts=1, return_value="null") for claim in claims]

    def run() -> None:
        dialect, connection = dialect_for(using), connections[using]
        if claimer is None:
            held = dialect.settle(connection, outcomes)
        else:
            nothing = QueueSelector(patterns=("nothing",))
            held, _ = dialect.settle_and_claim(connection, outcomes, claimer.process, nothing, 5)
        assert held == {claim.job_id for claim in claims}

    return run


#: Alone, or together with a claim.
both_ways = pytest.mark.parametrize("also_claims", [False, True])


def callbacks(using: str) -> int:
    return Job.objects.using(using).filter(task_path=after.module_path).count()


def has_ended(using: str, batch: Batch) -> bool:
    return JobBatch.objects.using(using).filter(pk=batch.id).exclude(finished_at=None).exists()


@both_ways
@on_every_database
@pytest.mark.timeout(PATIENCE + 60)
def test_members_that_end_at_once_end_their_batch_once(
    using: str, rounds: int, *, also_claims: bool
) -> None:
    driver = Driver(using)
    claimer = driver if also_claims else None
    for number in range(rounds):
        with Batch(on_finish=after) as batch:
            enqueue_many([call(work) for _ in range(THREADS)])
        claims = [claim for claim in driver.claim() if claim.link and not claim.link.is_callback]
        assert len(claims) == THREADS
        threads.run_all(using, [settle(using, [claim], claimer) for claim in claims], PATIENCE)
        assert has_ended(using, batch), number
        assert callbacks(using) == number + 1


@both_ways
@on_every_database
@pytest.mark.timeout(PATIENCE + 60)
def test_settlements_of_many_batches_within_batches_do_not_deadlock(
    using: str, rounds: int, *, also_claims: bool
) -> None:
    driver = Driver(using)
    claimer = driver if also_claims else None
    chance = random.Random(1)
    batches = []
    for _ in range(rounds):
        with Batch(on_finish=after) as outer:
            for _ in range(3):
                with Batch(on_finish=after) as inner:
                    enqueue_many([call(work) for _ in range(4)])
                batches.append(inner)
            work.enqueue()
        batches.append(outer)
    claims = driver.claim(limit=rounds * 13)
    assert len(claims) == rounds * 13
    chance.shuffle(claims)
    parts: list[list[Callable[[], None]]] = [[] for _ in range(THREADS)]
    while claims:
        size = chance.randint(1, 9)
        some, claims = claims[:size], claims[size:]
        parts[len(claims) % THREADS].append(settle(using, some, claimer))

    def in_turn(settlements: list[Callable[[], None]]) -> Callable[[], None]:
        def run() -> None:
            for each in settlements:
                each()

        return run

    threads.run_all(using, [in_turn(part) for part in parts], PATIENCE)
    assert all(has_ended(using, batch) for batch in batches)
    assert callbacks(using) == len(batches)


@on_every_database
@pytest.mark.timeout(PATIENCE + 60)
def test_who_adds_at_once_adds_exactly_once(using: str) -> None:
    with Batch(on_finish=after) as batch:
        work.enqueue(0)

    def adding(number: int) -> Callable[[], None]:
        def add() -> None:
            for each in range(5):
                Batch.get(batch.id).add([call(work, 10 * number + each), call(work, -1)])

        return add

    threads.run_all(using, [adding(number) for number in range(THREADS)], PATIENCE)
    batch.refresh()
    assert (batch.total, batch.pending) == (1 + THREADS * 10,) * 2
    claims = Driver(using).claim(limit=200)
    ends = [settle(using, [claim]) for claim in claims]
    for start in range(0, len(ends), THREADS):
        threads.run_all(using, ends[start : start + THREADS], PATIENCE)
    batch.refresh()
    assert (batch.total, batch.completed, str(batch.status)) == (1 + THREADS * 10,) * 2 + (
        "succeeded",
    )
    assert callbacks(using) == 1


@on_every_database
@pytest.mark.timeout(PATIENCE + 60)
def test_a_batch_whose_jobs_end_before_its_block_ends_with_that_once(using: str) -> None:
    from steady_queue_core.batches.rows import start

    with Batch(on_finish=after) as batch:
        enqueue_many([call(work), call(work)])
    JobBatch.objects.using(using).update(started_at=None)  # As in the block of a coroutine.
    claims = Driver(using).claim()
    for claim in claims:
        settle(using, [claim])()
    assert not has_ended(using, batch)
    ends = [lambda: start(Database.of(using), batch.id)] * THREADS
    threads.run_all(using, ends, PATIENCE)
    assert has_ended(using, batch)
    assert callbacks(using) == 1


@both_ways
@on_every_server
def test_the_last_two_members_do_not_overlook_each_other(using: str, *, also_claims: bool) -> None:
    """Each transaction sees the other's member as pending."""
    driver = Driver(using)
    claimer = driver if also_claims else None
    with Batch(on_finish=after) as batch:
        enqueue_many([call(work), call(work)])
    first, second = driver.claim()
    with threads.holding(using, settle(using, [first], claimer), 20) as end:
        other = threads.start(using, settle(using, [second], claimer))
        threads_wait(other)
        end(commit=True)
    other.result(20)
    assert has_ended(using, batch)
    assert callbacks(using) == 1


@both_ways
@on_every_server
def test_a_member_whose_settlement_is_rolled_back_is_waited_for(
    using: str, *, also_claims: bool
) -> None:
    driver = Driver(using)
    claimer = driver if also_claims else None
    with Batch(on_finish=after) as batch:
        enqueue_many([call(work), call(work)])
    first, second = driver.claim()
    with threads.holding(using, settle(using, [first], claimer), 20) as end:
        other = threads.start(using, settle(using, [second], claimer))
        threads_wait(other)
        end(commit=False)
    other.result(20)
    assert not has_ended(using, batch)
    settle(using, [first], claimer)()
    assert has_ended(using, batch)
    assert callbacks(using) == 1


@both_ways
@on_every_server
@pytest.mark.parametrize("commit", [True, False])
def test_who_adds_is_waited_for_by_who_ends_the_last(
    using: str, *, commit: bool, also_claims: bool
) -> None:
    driver = Driver(using)
    claimer = driver if also_claims else None
    with Batch(on_finish=after) as batch:
        work.enqueue()
    [last] = driver.claim()
    with threads.holding(using, lambda: batch.add([call(work)]), 20) as end:
        other = threads.start(using, settle(using, [last], claimer))
        threads_wait(other)
        end(commit=commit)
    other.result(20)
    assert has_ended(using, batch) is not commit
    assert callbacks(using) == (0 if commit else 1)


@both_ways
@on_every_server
def test_members_in_the_middle_wait_for_nobody(using: str, *, also_claims: bool) -> None:
    """A settlement that is under way keeps no other one from its end, unless it passes on the look
    for the last."""
    driver = Driver(using)
    claimer = driver if also_claims else None
    with Batch() as batch:
        enqueue_many([call(work) for _ in range(4)])
    first, second, *_ = driver.claim()
    with threads.holding(using, settle(using, [first], claimer), 20):
        threads.start(using, settle(using, [second], claimer)).result(8)
    states = BatchMember.objects.using(using).filter(batch_id=batch.id).order_by("pk")
    assert list(states.values_list("state", flat=True)) == [0, 1, 0, 0]


def threads_wait(future: Any) -> None:
    """Fail unless the other thread waits for a lock."""
    with pytest.raises(TimeoutError):
        future.result(0.5)
