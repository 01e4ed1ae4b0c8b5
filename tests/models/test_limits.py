"""Concurrency limits from the outside: discarding, retrying, and maintenance."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from unittest import mock

from django.db import transaction

from steady_queue_core.conformance import threads
from steady_queue_core.conformance.base import ending, limited_job, stored_id
from steady_queue_core.dialects import ClaimedJob, Ending, Outcome, QueueSelector, portable
from steady_queue_core.dialects.database import Database
from steady_queue_core.models import (
    BlockedExecution,
    ClaimedExecution,
    Job,
    Permit,
    Process,
    Queue,
    ReadyExecution,
    ScheduledExecution,
    Semaphore,
)
from steady_queue_core.models.operations.run_now import run_now
from steady_queue_core.models.operations.semaphore_maintenance import SemaphoreMaintenance
from steady_queue_core.models.semaphore import lock_semaphores

from ..million.costs import Meter
from .everywhere import Jobs, on_every_database, on_every_server

HOUR = timedelta(hours=1)


class Limited(Jobs):
    """Jobs that share the key ``key``."""

    def enqueue(self, count: int = 1, to: int = 1, **fields: Any) -> list[int]:
        """Enqueue them one by one."""
        return [
            stored_id(new)
            for _ in range(count)
            for new in self.dialect.enqueue(self.connection, [limited_job(to=to, **fields)])
        ]

    def end(self, claim: ClaimedJob, how: Ending = Ending.FINISHED, **fields: Any) -> None:
        outcome: Outcome = ending(how, claim, attempts=1, **fields)
        assert self.dialect.settle(self.connection, [outcome]) == {claim.job_id}

    @property
    def left(self) -> int:
        return Semaphore.objects.using(self.using).get().value

    def silence(self, age: timedelta) -> None:
        """Let the worker, and its claims, be that old."""
        past = portable.storable(self.dialect.current_time(self.connection) - age)
        Process.objects.using(self.using).update(last_heartbeat_at=past)
        ClaimedExecution.objects.using(self.using).update(created_at=past)


@on_every_database
def test_the_cost_to_enqueue_does_not_grow_with_the_permits_taken(using: str) -> None:
    jobs = Limited(using)
    jobs.enqueue(to=100_000)
    few = rows_read(using, lambda: jobs.enqueue(to=100_000))
    jobs.dialect.enqueue(jobs.connection, [limited_job(to=100_000)] * 500)
    assert jobs.left == 100_000 - 501
    # SQLite's machine counts in steps.
    assert rows_read(using, lambda: jobs.enqueue(to=100_000)) - few < 200


@on_every_database
def test_the_cost_to_give_a_permit_back_does_not_grow_with_the_permits_taken(using: str) -> None:
    jobs = Limited(using)
    few, many = (costs_of_permits(jobs, key, to) for key, to in (("few", 2), ("many", 1000)))
    # A few are counted.
    assert {way: rows for way, rows in many.items() if rows - few[way] >= 150} == {}


def costs_of_permits(jobs: Limited, key: str, to: int) -> dict[str, int]:
    """Return how many rows are read each time that a permit of a key passes, or is taken, while all
    of them are taken and others wait."""
    using = jobs.using
    of_key = limited_job(key, to, queue_name=key)
    failed = stored_id(jobs.dialect.enqueue(jobs.connection, [of_key])[0])
    jobs.end(jobs.claim(1, key)[0], Ending.FAILED, exception_class="a.B")
    stored = jobs.dialect.enqueue(jobs.connection, [of_key] * (to + 2))
    [*_, ready, _, blocked] = map(stored_id, stored)
    [due] = jobs.enqueue(to=to, key=key, queue_name=key, delay=HOUR)
    past = portable.storable(jobs.dialect.current_time(jobs.connection) - HOUR)
    ScheduledExecution.objects.using(using).filter(pk=due).update(due_at=past)
    [claim] = jobs.claim(1, key)
    if jobs.connection.vendor == "postgresql":
        with jobs.connection.cursor() as cursor:
            cursor.execute("ANALYZE")
    process, selector = jobs.worker, QueueSelector.of([key])
    outcomes = [ending(how, claim, attempts=1) for how in (Ending.FINISHED, Ending.RETRIED)]
    dialect, connection, all_jobs = jobs.dialect, jobs.connection, jobs.all
    ways: dict[str, Callable[[], object]] = {
        "finished": lambda: dialect.settle(connection, outcomes[:1]),
        "retried": lambda: dialect.settle(connection, outcomes[1:]),
        "exchanged": lambda: dialect.settle_and_claim(
            connection, outcomes[:1], process, selector, 1
        ),
        "followed": lambda: dialect.claim_followers(connection, process, [claim], 1),
        "dispatched": lambda: dialect.dispatch(connection, 9),
        "discarded": lambda: all_jobs.get(pk=ready).discard(),
        "cancelled": lambda: all_jobs.get(pk=ready).cancel(),
        "put off": lambda: all_jobs.get(pk=ready).reschedule(HOUR),
        "run now": lambda: all_jobs.get(pk=blocked).run_now(),
        "tried again": lambda: all_jobs.get(pk=failed).retry(),
    }
    return {name: rows_read(using, way) for name, way in ways.items()}


def rows_read(using: str, way: Callable[[], object]) -> int:
    with Meter(using).undone() as meter:
        way()
    return meter.rows


@on_every_database
def test_discarding_a_ready_job_lets_the_next_one_in(using: str) -> None:
    jobs = Limited(using)
    first, second, third = jobs.enqueue(3)
    jobs.all.get(pk=first).discard()
    assert jobs.ids(ReadyExecution) == jobs.ids(Permit) == [second]
    jobs.all.get(pk=third).discard()
    assert jobs.ids(BlockedExecution) == []
    assert jobs.all.all().discard() == 1
    assert (jobs.ids(Job), jobs.ids(Permit), jobs.left) == ([], [], 1)


@on_every_database
def test_discarding_many_gives_all_their_permits_back(using: str) -> None:
    jobs = Limited(using)
    ids = jobs.enqueue(4, to=2) + jobs.enqueue(3, to=1, key="other")
    assert jobs.all.filter(pk__in=[ids[0], ids[1], ids[4]]).discard(batch_size=2) == 3
    assert jobs.ids(ReadyExecution) == [ids[2], ids[3], ids[5]]
    assert Queue("default", using).clear() == 3
    assert jobs.ids(Job) == jobs.ids(ReadyExecution) == [ids[6]]
    assert Queue("default", using).clear() == 1
    assert jobs.ids(Job) == jobs.ids(Permit) == []


@on_every_database
def test_clearing_a_queue_leaves_alone_what_gets_the_permits_of_its_ready_jobs(using: str) -> None:
    jobs = Limited(using)
    _, *blocked = jobs.enqueue(3)
    jobs.ready(4)
    assert Queue("default", using).clear(batch_size=2) == 5
    assert jobs.ids(Job) == blocked
    assert (jobs.ids(ReadyExecution), jobs.ids(BlockedExecution)) == (blocked[:1], blocked[1:])


@on_every_database
def test_a_failed_job_that_is_retried_takes_a_permit_anew(using: str) -> None:
    jobs = Limited(using)
    [failed] = jobs.enqueue()
    jobs.end(jobs.claim()[0], Ending.FAILED, exception_class="a.B")
    [running] = jobs.enqueue()
    assert jobs.all.get(pk=failed).retry()
    assert (jobs.ids(ReadyExecution), jobs.ids(BlockedExecution)) == ([running], [failed])
    jobs.end(jobs.claim()[0])
    [again] = jobs.claim()
    assert (again.job_id, again.attempts) == (failed, 0)


@on_every_database
def test_a_blocked_job_runs_now_beyond_its_limit(using: str) -> None:
    jobs = Limited(using)
    first, second, third = jobs.enqueue(3)
    assert jobs.all.get(pk=third).run_now() is True
    assert jobs.all.get(pk=third).run_now() is False
    assert jobs.ids(ReadyExecution) == jobs.ids(Permit) == [first, third]
    assert jobs.left == -1
    jobs.end(jobs.claim(1)[0])  # Now there is one again, as many as there may be.
    assert (jobs.ids(ReadyExecution), jobs.ids(BlockedExecution)) == ([third], [second])
    jobs.end(jobs.claim(1)[0])
    assert jobs.ids(ReadyExecution) == [second]
    assert SemaphoreMaintenance(using).do() == 0


@on_every_database
def test_the_permit_of_a_job_that_runs_now_is_counted(using: str) -> None:
    jobs = Limited(using)
    jobs.enqueue(4)
    last = jobs.ids(BlockedExecution)[-1]
    Semaphore.objects.using(using).update(limit=3, value=2)  # Nobody has let others in yet.
    assert jobs.all.get(pk=last).run_now()
    assert (len(jobs.ids(Permit)), len(jobs.ids(BlockedExecution)), jobs.left) == (3, 1, 0)


@on_every_database
def test_a_scheduled_job_that_runs_now_keeps_to_its_limit(using: str) -> None:
    jobs = Limited(using)
    [first] = jobs.enqueue()
    later = jobs.enqueue(2, delay=HOUR)
    assert jobs.all.all().run_now() == 2
    assert (jobs.ids(ReadyExecution), jobs.ids(BlockedExecution)) == ([first], later)
    assert jobs.ids(ScheduledExecution) == []


@on_every_server
def test_to_run_now_waits_for_those_who_hold_the_semaphore(using: str) -> None:
    jobs = Limited(using)
    [first, second] = jobs.enqueue(2)
    locked, waits = threading.Event(), threading.Event()

    def lock_rows(connection: Any, rows: Any, *, wait: bool) -> Any:
        if rows.model is Semaphore:
            waits.set()
            return lock(connection, rows, wait=wait)
        found = list(lock(connection, rows, wait=wait))
        waits.set()
        return found

    def discard() -> None:
        with transaction.atomic(using=using):
            lock_semaphores(Database.of(using), ["key"])
            locked.set()
            assert waits.wait(20)
            jobs.all.get(pk=first).discard()

    lock = jobs.dialect.lock_rows
    discarding = threads.start(using, discard)
    assert locked.wait(20)
    with mock.patch.object(jobs.dialect, "lock_rows", lock_rows):
        found = run_now(Job.objects.using(using), [second])
    discarding.result(20)
    assert found == 0
    assert jobs.ids(ReadyExecution) == jobs.ids(Permit) == [second]


@on_every_database
def test_many_failed_jobs_are_retried_under_their_limit(using: str) -> None:
    jobs = Limited(using)
    ids = jobs.enqueue(4, to=2)
    for _ in ids:
        jobs.end(jobs.claim(1)[0], Ending.FAILED, exception_class="a.B")
    assert jobs.all.all().retry_failed() == 4
    assert (jobs.ids(ReadyExecution), jobs.ids(BlockedExecution)) == (ids[:2], ids[2:])


@on_every_database
def test_a_permit_lapses_when_its_process_was_silent_for_the_duration(using: str) -> None:
    jobs = Limited(using)
    jobs.enqueue(1, duration=timedelta(minutes=3))
    [second, third] = jobs.enqueue(2)
    [claim] = jobs.claim()
    jobs.silence(timedelta(minutes=2))
    assert SemaphoreMaintenance(using).do() == 0
    jobs.silence(timedelta(minutes=4))
    assert SemaphoreMaintenance(using).do() == 1
    assert (jobs.ids(ReadyExecution), jobs.ids(BlockedExecution)) == ([second], [third])
    # It goes on after all: what it does then must not let in another one.
    jobs.end(claim)
    assert (jobs.ids(ReadyExecution), jobs.ids(Permit)) == ([second], [second])
    assert jobs.left == 0


@on_every_database
def test_no_permit_lapses_between_two_heartbeats_however_short_its_duration_is(using: str) -> None:
    jobs = Limited(using)
    jobs.enqueue(1, duration=timedelta(seconds=2))
    [second] = jobs.enqueue(1)
    jobs.claim()
    jobs.silence(timedelta(seconds=110))
    assert SemaphoreMaintenance(using).do() == 0
    often = SemaphoreMaintenance(using, heartbeat=timedelta(seconds=20))
    jobs.silence(timedelta(seconds=35))
    assert often.do() == 0
    jobs.silence(timedelta(seconds=41))
    assert often.do() == 1
    assert jobs.ids(ReadyExecution) == [second]


@on_every_database
def test_a_heartbeat_or_a_claim_of_late_keeps_a_permit(using: str) -> None:
    jobs = Limited(using)
    jobs.enqueue(2, to=2, duration=timedelta(minutes=3))
    jobs.claim(1)
    jobs.silence(HOUR)
    present = portable.storable(jobs.dialect.current_time(jobs.connection))
    Process.objects.using(using).update(last_heartbeat_at=present)
    assert SemaphoreMaintenance(using).do() == 0
    jobs.silence(HOUR)
    [late] = jobs.claim(1)
    SemaphoreMaintenance(using).do()
    assert jobs.ids(Permit) == [late.job_id]


@on_every_database
def test_a_permit_of_a_job_that_waits_in_a_queue_never_lapses(using: str) -> None:
    jobs = Limited(using)
    [first, _] = jobs.enqueue(2, duration=timedelta(microseconds=1))
    jobs.silence(HOUR)
    assert SemaphoreMaintenance(using).do() == 0
    assert jobs.ids(Permit) == [first]


@on_every_database
def test_a_process_that_is_gone_keeps_no_permit_for_longer_than_the_duration(using: str) -> None:
    jobs = Limited(using)
    [_, second] = jobs.enqueue(2)
    jobs.claim()
    jobs.silence(HOUR)
    Process.objects.using(using).all().delete()
    assert SemaphoreMaintenance(using).do() == 1
    assert jobs.ids(ReadyExecution) == [second]


@on_every_server
def test_a_semaphore_that_is_kept_locked_holds_up_the_repair_of_no_other(using: str) -> None:
    jobs = Limited(using)
    for key in ("kept", "free"):
        jobs.enqueue(2, key=key)
    Permit.objects.using(using).all().delete()

    def keep() -> None:
        lock_semaphores(Database.of(using), ["kept"])

    with threads.holding(using, keep, 20) as end:
        assert threads.start(using, lambda: SemaphoreMaintenance(using).do()).result(8) == 1
        end(commit=True)
    assert SemaphoreMaintenance(using).do() == 1


@on_every_database
def test_what_strangers_have_done_to_limits_is_repaired(using: str) -> None:
    jobs = Limited(using)
    ids = jobs.enqueue(6, to=2)
    # A job that is gone, a semaphore that errs, and one that is missing.
    ReadyExecution.objects.using(using).filter(pk=ids[0]).delete()
    jobs.all.filter(pk=ids[0]).delete()
    jobs.enqueue(2, key="erring")
    Semaphore.objects.using(using).filter(key="erring").update(value=1)
    jobs.enqueue(2, key="missing")
    Semaphore.objects.using(using).filter(key="missing").delete()
    Permit.objects.using(using).filter(key="missing").delete()

    assert SemaphoreMaintenance(using).do() == 2
    assert SemaphoreMaintenance(using).do() == 0

    assert jobs.ids(ReadyExecution)[:2] == [ids[1], ids[2]]
    values = dict(Semaphore.objects.using(using).values_list("key", "value"))
    assert values == {"key": 0, "erring": 0, "missing": 0}


@on_every_database
def test_semaphores_that_nobody_needs_are_forgotten(using: str) -> None:
    jobs = Limited(using)
    jobs.enqueue(1, key="idle")
    jobs.end(jobs.claim()[0])
    [busy] = jobs.enqueue(1, to=2, key="busy")
    SemaphoreMaintenance(using).do()
    assert set(Semaphore.objects.using(using).values_list("key", flat=True)) == {"busy"}
    jobs.enqueue(1, key="idle")
    assert jobs.ids(ReadyExecution)[0] == busy
