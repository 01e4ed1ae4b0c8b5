"""Unique jobs while many enqueue them, replace them, run them and end them at once."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import DatabaseError, connections, transaction

from steady_queue_core import Batch, Unique, limits_concurrency, task
from steady_queue_core.conformance import threads
from steady_queue_core.dialects import unique_enqueue
from steady_queue_core.dialects.registry import dialect_for
from steady_queue_core.models import Job, ReadyExecution, UniqueKey

from ..core.driver import Driver
from ..sizes import runs, sized
from .everywhere import on_every_database, on_every_server, where_snapshots_are_old
from .recurrence import tasks
from .test_old_snapshots import sees_past

THREADS = 50
#: Seconds until a test is given up.
PATIENCE = 600
HOUR = timedelta(hours=1)


@pytest.fixture(autouse=True)
def _project(using: str, settings: Any) -> None:
    settings.TASKS = tasks(using, backoff=0)


@pytest.fixture
def few(pytestconfig: pytest.Config) -> int:
    return sized(pytestconfig, merge=2, whole=4)


@task(unique=Unique(key=lambda number, by=0: number))
def work(number: int, by: int = 0) -> None:
    """Do nothing."""


@task(unique=Unique(key="one", on_conflict="replace"))
def latest(number: int = 0) -> None:
    """Do nothing."""


@limits_concurrency(key=lambda number: number, group="rooms")
@task(unique=Unique(key="one", on_conflict="replace"))
def move_to_room(number: int) -> None:
    """Do nothing."""


@limits_concurrency(key=lambda number: number, group="rooms")
@task
def use_room(number: int) -> None:
    """Do nothing."""


@task(unique=Unique(key="one", until="started"))
def in_line(number: int = 0) -> None:
    """Do nothing."""


def alone(using: str, work: Callable[[], Any], number: int) -> Any:
    """Call ``work`` in no transaction."""
    return work()


def in_atomic(using: str, work: Callable[[], Any], number: int) -> Any:
    """Call ``work`` in the caller's transaction."""
    with transaction.atomic(using=using):
        return work()


def with_a_snapshot(using: str, work: Callable[[], Any], number: int) -> Any:
    """Call ``work`` in a transaction that has seen the tables before."""
    with sees_past(using):
        list(UniqueKey.objects.using(using).filter(pk="none"))
        return work()


def sometimes_rolled_back(using: str, work: Callable[[], Any], number: int) -> Any:
    """Call ``work`` in a transaction that is rolled back in every third thread. On MySQL and
    MariaDB that may cause a deadlock among those that wait for it: its callers repeat them."""
    while True:
        try:
            with transaction.atomic(using=using):
                result = work()
                if number % 3 == 0:
                    transaction.set_rollback(True, using=using)
                    return None
            return result
        except DatabaseError as error:  # Some drivers call a deadlock an internal error.
            is_mysql = connections[using].vendor == "mysql"
            if not is_mysql or not dialect_for(using).is_contention(connections[using], error):
                raise


def race(using: str, way: Callable[..., Any], rounds: int) -> None:
    """Let all threads enqueue the same key at once, one round after the other."""
    barrier = threading.Barrier(THREADS, timeout=PATIENCE)

    def enqueue(thread: int) -> Callable[[], list[Any]]:
        def run() -> list[Any]:
            found = []
            try:
                for number in range(rounds):
                    barrier.wait()
                    found.append(way(using, lambda n=number: work.enqueue(n, thread), thread))
            except BaseException:
                barrier.abort()
                raise
            return found

        return run

    results = threads.run_all(using, [enqueue(each) for each in range(THREADS)], PATIENCE)
    for number, found in enumerate(zip(*results, strict=True)):
        told = [each for each in found if each is not None]
        assert len({each.id for each in told}) == 1, number
        assert [each.duplicate for each in told].count(False) == 1, number
    assert Job.objects.using(using).count() == rounds
    assert ReadyExecution.objects.using(using).count() == rounds
    owners = UniqueKey.objects.using(using).values_list("job_id", flat=True)
    assert sorted(owners) == sorted(Job.objects.using(using).values_list("pk", flat=True))


@pytest.mark.slow
@pytest.mark.timeout(PATIENCE + 60)
@on_every_database
def test_many_at_once_make_one_job_in_each_round(using: str, pytestconfig: pytest.Config) -> None:
    race(using, in_atomic, runs(pytestconfig, merge=3, whole=15))


@on_every_database
@pytest.mark.timeout(120)
@pytest.mark.parametrize("way", [alone, in_atomic, sometimes_rolled_back])
def test_a_few_rounds(using: str, way: Callable[..., Any], few: int) -> None:
    race(using, way, few)


@where_snapshots_are_old
def test_a_job_that_is_newer_than_the_snapshot_stays_in_its_batch(using: str) -> None:
    batches: list[Batch] = []

    def add() -> None:
        with Batch() as batch:
            latest.enqueue(1)
        batches.append(batch)

    def replace() -> Any:
        threads.run_all(using, [add], 20.0)
        return latest.enqueue(2)

    with_a_snapshot(using, replace, 1)
    connections[using].close()
    [batch] = batches
    [member] = batch.results()
    assert member.args == [2]
    Driver(using).work()
    batch.refresh()
    assert batch.status == "succeeded"


@on_every_server
@pytest.mark.timeout(120)
def test_a_few_rounds_of_those_that_have_read_old_snapshots(using: str, few: int) -> None:
    """On PostgreSQL such a transaction fails whatever it changes that is newer."""
    if connections[using].vendor == "postgresql":
        pytest.skip("a transaction of this isolation has to be repeated by its caller")
    race(using, with_a_snapshot, few)


@on_every_server
def test_who_comes_second_waits_and_finds_the_job_of_the_first(using: str) -> None:
    with threads.holding(using, lambda: work.enqueue(1), 20) as end:
        second = threads.start(using, lambda: work.enqueue(1))
        assert_waits(second)
        end(commit=True)
    result = second.result(20)
    assert result.duplicate
    assert Job.objects.using(using).count() == 1


@on_every_server
def test_who_comes_second_wins_if_the_first_rolls_back(using: str) -> None:
    with threads.holding(using, lambda: work.enqueue(1), 20) as end:
        second = threads.start(using, lambda: work.enqueue(1))
        assert_waits(second)
        end(commit=False)
    result = second.result(20)
    assert not result.duplicate
    assert list(UniqueKey.objects.using(using).values_list("job_id")) == [(int(result.id),)]


@on_every_server
def test_a_duplicate_keeps_nobody_from_ending_the_job(using: str) -> None:
    """Although the transaction of the call that came to nothing goes on."""
    driver = Driver(using)
    work.enqueue(1)
    [claim] = driver.claim()
    with threads.holding(using, lambda: work.enqueue(1), 20):
        threads.start(using, lambda: driver.settle(driver.run(claim))).result(8)
        assert UniqueKey.objects.using(using).count() == 0


@on_every_server
def test_a_job_does_not_start_while_a_call_waits_for_it_to_start_later(using: str) -> None:
    """What the transaction of the call has changed would not be seen by the job."""
    driver, dialect = Driver(using), dialect_for(using)
    first = in_line.enqueue(1)
    claims = driver.claim()
    with threads.holding(using, lambda: in_line.enqueue(2), 20) as end:
        busy = dialect.free_started_keys(connections[using], claims)
        assert busy == {int(first.id)}
        end(commit=True)
    assert dialect.free_started_keys(connections[using], claims) == set()
    assert UniqueKey.objects.using(using).count() == 0


@on_every_server
def test_a_call_gives_way_to_a_job_that_is_about_to_start(using: str) -> None:
    """Or it would never start, if its key is enqueued without a pause."""
    driver = Driver(using)
    first = in_line.enqueue(1)
    driver.claim()
    began = time.monotonic()
    assert in_line.enqueue(2).id == first.id
    assert time.monotonic() - began >= unique_enqueue.LONGEST_WAIT


@on_every_server
def test_a_job_that_is_claimed_meanwhile_is_not_replaced(using: str) -> None:
    driver = Driver(using)
    first = latest.enqueue(1)
    with threads.holding(using, driver.claim, 20) as end:
        second = threads.start(using, lambda: latest.enqueue(2))
        assert_waits(second)
        end(commit=True)
    assert second.result(20).id == first.id
    assert second.result(20).args == [1]
    assert ReadyExecution.objects.using(using).count() == 0


ACTS: dict[str, Callable[[Any], Any]] = {
    "discard": lambda jobs: jobs.discard(),
    "cancel": lambda jobs: jobs.cancel(),
    "reschedule": lambda jobs: jobs.reschedule(HOUR),
    "replace": lambda jobs: move_to_room.enqueue(3),
}


@on_every_server
@pytest.mark.parametrize("act", ACTS)
def test_who_takes_out_what_was_just_replaced_passes_on_its_new_permit(
    using: str, act: str
) -> None:
    first = move_to_room.enqueue(1)
    jobs = Job.objects.using(using).filter(pk=first.id)

    def replace() -> None:
        move_to_room.enqueue(2)
        use_room.enqueue(2)

    with threads.holding(using, replace, 20) as end:
        done = threads.start(using, lambda: ACTS[act](jobs))
        assert_waits(done)
        end(commit=True)
    done.result(20)
    ready = ReadyExecution.objects.using(using).exclude(pk=first.id)
    assert ready.count() == 1


@where_snapshots_are_old
@pytest.mark.parametrize("act", ACTS)
def test_who_has_an_old_snapshot_passes_on_the_present_permit(using: str, act: str) -> None:
    first = move_to_room.enqueue(1)

    def replace() -> None:
        move_to_room.enqueue(2)
        use_room.enqueue(2)

    def replace_and_act() -> None:
        threads.run_all(using, [replace], 20.0)
        ACTS[act](Job.objects.using(using).filter(pk=first.id))

    with_a_snapshot(using, replace_and_act, 1)
    connections[using].close()
    assert ReadyExecution.objects.using(using).exclude(pk=first.id).count() == 1


def assert_waits(future: Any) -> None:
    # Nothing tells from outside that a session waits: a second is enough for one that does not.
    with pytest.raises(TimeoutError):
        future.result(0.5)


@pytest.mark.timeout(120)
@on_every_database
@pytest.mark.parametrize("kind", [work, latest, in_line], ids=["existing", "replace", "started"])
def test_at_most_one_job_of_a_key_lives(using: str, kind: Any, pytestconfig: pytest.Config) -> None:
    """Seen from outside, while some enqueue it and others run it."""
    least, dialect = sized(pytestconfig, merge=1.5, whole=4.0), dialect_for(using)
    made: list[str] = []
    began = time.monotonic()

    def goes_on() -> bool:
        passed = time.monotonic() - began
        return passed < least or (len(made) <= 3 and passed < 40)

    def enqueue() -> None:
        while goes_on():
            result = kind.enqueue(1)
            if not result.duplicate:
                made.append(result.id)
            elif kind is in_line:
                time.sleep(0.02)  # It cannot start while its key is enqueued without a pause.

    def run() -> None:
        driver = Driver(using)
        while goes_on():
            claims = driver.claim(limit=5)
            busy = dialect.free_started_keys(connections[using], claims)
            for claim in claims:
                while claim.job_id in busy:
                    busy = dialect.free_started_keys(connections[using], [claim])
                driver.settle(driver.run(claim))

    def look() -> int:
        most, alive = 0, Job.objects.using(using).filter(finished_at=None)
        while goes_on():
            most = max(
                most, alive.filter(**({"started_at": None} if kind is in_line else {})).count()
            )
        return most

    [most, *_] = threads.run_all(using, [look, *[enqueue] * 6, *[run] * 3], 60)
    assert most <= 1
    Driver(using).work()
    assert len(made) == len(set(made)) == Job.objects.using(using).count()
    assert Job.objects.using(using).filter(finished_at=None).count() == 0
    assert UniqueKey.objects.using(using).count() == 0
    assert len(made) > 3
