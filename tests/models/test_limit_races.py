"""Limits while several do different things to the jobs of a key at once."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import wait
from contextlib import suppress
from datetime import timedelta
from threading import Barrier, BrokenBarrierError
from typing import Any

import pytest
from django.db import connections, transaction

from steady_queue_core.conformance import threads
from steady_queue_core.conformance.base import ending, limited_job, stored_id
from steady_queue_core.dialects import Ending, NewJob, batches, portable
from steady_queue_core.models import Job, ReadyExecution, ScheduledExecution
from steady_queue_core.models.semaphore import Semaphore

from .everywhere import Jobs, on_every_server

HOUR = timedelta(hours=1)


class Scene:
    """Jobs of one key: one runs, one waits, one is due, one has failed."""

    def __init__(self, using: str) -> None:
        self.using, self.jobs = using, Jobs(using)
        self.failed = self.claimed()
        self.jobs.dialect.settle(
            self.jobs.connection,
            [ending(Ending.FAILED, self.failed, exception_class="a.B", message="", attempts=1)],
        )
        self.due = self.enqueue(delay=HOUR)
        past = portable.storable(self.jobs.dialect.current_time(self.jobs.connection) - HOUR)
        ScheduledExecution.objects.using(using).update(due_at=past)
        self.running = self.claimed()
        self.waiting = self.enqueue()

    def enqueue(self, **fields: Any) -> int:
        new = [limited_job("a", 1, **fields)]
        return stored_id(self.jobs.dialect.enqueue(connections[self.using], new)[0])

    def claimed(self) -> Any:
        self.enqueue()
        return self.jobs.claim(1)[0]

    def settle(self) -> None:
        outcome = ending(Ending.FINISHED, self.running, attempts=1)
        self.jobs.dialect.settle(connections[self.using], [outcome])

    def dispatch(self) -> None:
        self.jobs.dialect.dispatch(connections[self.using], 10)

    def discard(self) -> None:
        ids = [self.due, self.waiting, self.failed.job_id]
        Job.objects.using(self.using).filter(pk__in=ids).discard()

    def retry(self) -> None:
        Job.objects.using(self.using).filter(pk=self.failed.job_id).retry_failed()


@on_every_server
@pytest.mark.parametrize(
    ("first", "then"),
    [
        ("settle", "dispatch"),
        ("settle", "retry"),
        ("discard", "enqueue"),
        ("discard", "dispatch"),
        ("discard", "retry"),
    ],
)
def test_who_locks_a_semaphore_holds_nothing_that_who_had_it_wants(
    using: str, first: str, then: str
) -> None:
    """Else each would wait for the other, and the caller of one of them be told of a deadlock."""
    scene = Scene(using)
    come_while_held(using, "a", getattr(scene, first), getattr(scene, then))


@on_every_server
def test_semaphores_are_locked_in_one_order(using: str) -> None:
    """In that of their bytes, whatever the language of the database."""
    jobs = Jobs(using)
    keys = [limited_job("a"), limited_job("B")]
    jobs.dialect.enqueue(jobs.connection, keys)
    outcomes = [ending(Ending.FINISHED, claim, attempts=1) for claim in jobs.claim(2)]
    come_while_held(
        using,
        "B",
        lambda: jobs.dialect.settle(connections[using], outcomes),
        lambda: jobs.dialect.enqueue(connections[using], keys),
    )
    assert len(jobs.ids(ReadyExecution)) == 2


@on_every_server
def test_many_batches_lock_the_semaphores_of_all_of_them_first(
    using: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that are not there yet as well: two that come from both ends would meet."""
    jobs = Jobs(using)
    monkeypatch.setattr(batches, "MOST_JOBS", 2)
    insert, first_batches = jobs.dialect.store_jobs, Barrier(2)

    def insert_and_meet(connection: Any, batch: Any) -> Any:
        stored = insert(connection, batch)
        with suppress(BrokenBarrierError):
            first_batches.wait(timeout=1)  # As long as the other one has to wait, it does not come.
        return stored

    monkeypatch.setattr(jobs.dialect, "store_jobs", insert_and_meet)
    keys = ["a", "B", "c", "d", "é"]
    calls = [limited_job(key) for key in keys]

    def enqueue(some: list[NewJob]) -> Callable[[], Any]:
        return lambda: jobs.dialect.enqueue(connections[using], some)

    for future in [threads.start(using, enqueue(each)) for each in (calls, calls[::-1])]:
        future.result(20)
    assert len(jobs.ids(ReadyExecution)) == len(keys)
    assert [row.value for row in Semaphore.objects.using(using)] == [0] * len(keys)
    assert Job.objects.using(using).count() == 2 * len(keys)


def come_while_held(using: str, key: str, *works: Callable[[], Any]) -> None:
    """Do each of ``works`` in a transaction; they begin, in this order, while somebody has locked
    the semaphore of ``key``, who then lets go of it."""

    def in_a_transaction(work: Callable[[], Any]) -> Callable[[], None]:
        def run() -> None:
            with transaction.atomic(using=using):
                work()

        return run

    def hold() -> None:
        Semaphore.objects.using(using).select_for_update().get(pk=key)

    with threads.holding(using, hold, 20) as end:
        coming = []
        for work in works:
            coming.append(threads.start(using, in_a_transaction(work)))
            wait(coming, timeout=0.15)  # As far as they come.
        end(commit=True)
    for future in coming:
        future.result(20)
