"""What the queue does in a caller's transaction that sees the past, while others go on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import DatabaseError, connections, transaction

from steady_queue_core import Batch, Unique, Workflow, call, task
from steady_queue_core.conformance import threads
from steady_queue_core.dialects import dialect_for
from steady_queue_core.models import Job, ReadyExecution, WaitingExecution

from ..core.driver import Driver
from .everywhere import where_snapshots_are_old, where_snapshots_may_be_kept
from .recurrence import tasks

PATIENCE = 20.0

pytestmark = pytest.mark.timeout(60)


@pytest.fixture(autouse=True)
def _project(using: str, settings: Any) -> None:
    settings.TASKS = tasks(using, backoff=0)


@task(unique=Unique(key="one", on_conflict="replace"))
def latest(number: int = 0) -> None:
    """Do nothing."""


@task(max_attempts=2)
def fail() -> None:
    raise ValueError("no")


@task
def fail_for_good() -> None:
    raise ValueError("no")


@task
def work() -> None:
    """Do nothing."""


ACTS: dict[str, Callable[[Any], Any]] = {
    "discard": lambda jobs: jobs.discard(),
    "cancel": lambda jobs: jobs.cancel(),
}
LEVELS = ("REPEATABLE READ", "SERIALIZABLE")


@contextmanager
def sees_past(using: str, level: str = "REPEATABLE READ") -> Iterator[None]:
    """A transaction that goes on seeing what there is at its beginning."""
    connection: Any = connections[using]
    with connection.cursor() as cursor:  # A new connection has the level of the settings.
        cursor.execute(f"SET SESSION TRANSACTION ISOLATION LEVEL {level}")
    connection.isolation_level = level.lower()
    try:
        with transaction.atomic(using=using):
            list(Job.objects.using(using).filter(pk=0))
            yield
    finally:
        connection.close()


def elsewhere(using: str, work: Callable[[], Any]) -> None:
    threads.run_all(using, [work], PATIENCE)


@where_snapshots_are_old
def test_a_claim_runs_what_has_replaced_the_job(using: str) -> None:
    """So does one whose statement has begun a moment before, and reads the job as of then."""
    driver = Driver(using)
    latest.enqueue(1)
    with sees_past(using):
        elsewhere(using, lambda: latest.enqueue(2))
        [claim] = driver.claim()
    assert claim.arguments == Job.objects.using(using).get().arguments


@where_snapshots_are_old
def test_a_claim_knows_that_a_job_was_retried(using: str) -> None:
    driver = Driver(using)
    fail.enqueue()
    [claim] = driver.claim()
    driver.settle(driver.run(claim))
    jobs = Job.objects.using(using)

    def cancel_and_retry() -> None:
        jobs.all().cancel()
        jobs.all().retry_failed()

    with sees_past(using):
        elsewhere(using, cancel_and_retry)
        [claim] = driver.claim()
    assert (claim.attempts, claim.errors) == (0, jobs.get().errors)


def run_next(using: str) -> None:
    driver = Driver(using)
    [claim] = driver.claim(limit=1)
    driver.settle(driver.run(claim))


@where_snapshots_are_old
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("act", ACTS)
def test_who_takes_out_the_last_member_ends_the_batch(using: str, act: str, level: str) -> None:
    with Batch() as batch:
        fail_for_good.enqueue()
        last = work.enqueue()
    with sees_past(using, level):
        elsewhere(using, lambda: run_next(using))
        assert ACTS[act](Job.objects.using(using).filter(pk=last.id)) == 1
    batch.refresh()
    assert (str(batch.status), batch.failed) == ("failed", 1 + (act == "cancel"))


@where_snapshots_are_old
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("act", ACTS)
def test_who_takes_out_the_last_parent_moves_on_what_waits(
    using: str, act: str, level: str
) -> None:
    workflow = Workflow()
    parents = [workflow.add(call(work)) for _ in range(2)]
    workflow.add(call(work), after=parents, run_when="finished")
    result = workflow.enqueue()
    last = ReadyExecution.objects.using(using).latest("pk")
    with sees_past(using, level):
        elsewhere(using, lambda: run_next(using))
        assert ACTS[act](Job.objects.using(using).filter(pk=last.pk)) == 1
    assert WaitingExecution.objects.using(using).count() == 0
    run_next(using)
    result.refresh()
    assert result.finished_at is not None


@where_snapshots_are_old
def test_two_who_take_out_the_last_members_end_the_batch_once(using: str) -> None:
    with Batch() as batch:
        jobs = [Job.objects.using(using).filter(pk=work.enqueue().id) for _ in range(2)]
    with sees_past(using), threads.holding(using, jobs[0].discard, PATIENCE) as end:
        second = threads.start(using, lambda: end(commit=True))
        assert jobs[1].discard() == 1
        second.result(PATIENCE)
    batch.refresh()
    assert str(batch.status) == "succeeded"


@where_snapshots_may_be_kept
def test_a_server_may_refuse_to_change_what_is_newer_than_the_snapshot(using: str) -> None:
    """The caller is told, as of a deadlock; the queue's own transactions have no old snapshot."""
    latest.enqueue(1)
    connection = connections[using]

    def keep_the_snapshot() -> None:
        with connection.cursor() as cursor:
            cursor.execute("SET SESSION innodb_snapshot_isolation = ON")

    def enqueue_too_late() -> None:
        with sees_past(using):
            keep_the_snapshot()
            elsewhere(using, lambda: latest.enqueue(2))
            latest.enqueue(3)

    with pytest.raises(DatabaseError, match="1020") as raised:
        enqueue_too_late()
    assert dialect_for(using).is_contention(connection, raised.value)
    keep_the_snapshot()
    latest.enqueue(4)
    run_next(using)
    connection.close()
