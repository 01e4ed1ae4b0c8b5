"""What the queue does in a caller's transaction that sees the past, while others go on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import connections, transaction

from steady_queue_core import Unique, task
from steady_queue_core.dialects.conformance import threads
from steady_queue_core.models import Job

from ..core.driver import Driver
from .everywhere import where_snapshots_are_old
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


@contextmanager
def sees_past(using: str) -> Iterator[None]:
    """A transaction that goes on seeing what there is at its beginning."""
    connection: Any = connections[using]
    connection.isolation_level = None
    with connection.cursor() as cursor:
        cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
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
