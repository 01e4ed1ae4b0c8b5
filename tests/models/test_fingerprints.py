"""Failures have a fingerprint, however they come about: on every database."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, NoReturn

import pytest
from django.db import connections
from django.test.utils import CaptureQueriesContext

from steady_queue_core import Batch, task
from steady_queue_core.dialects import QueueSelector, portable
from steady_queue_core.errors import CANCELLED_BEFORE_START, TaskExpired
from steady_queue_core.fingerprint import fingerprint_of
from steady_queue_core.models import FailedExecution, Job
from steady_queue_core.models import process as processes
from steady_queue_core.models.operations.cancel import EXCEPTION
from steady_queue_core.processes.base.database import QueueDatabase
from steady_queue_core.processes.supervisor.recovery import Rescuer
from steady_queue_core.processes.worker import outcomes
from steady_queue_core.processes.worker.attempt import RunResult
from steady_queue_core.processes.worker.wire import read_outcome, write_outcome

from ..core.driver import Driver
from .everywhere import on_every_database
from .recurrence import tasks

LOOKUP = "builtins.LookupError"


@task(max_attempts=2, backoff=lambda error, result: 0)
def fails(message: str) -> NoReturn:
    raise LookupError(message)


@task
def fails_otherwise(message: str) -> NoReturn:
    raise LookupError(message)


@task
def fails_with_what_no_database_stores() -> NoReturn:
    raise LookupError("\0 é 'quoted " * 2_000)


@task(expires=timedelta(hours=1))
def rests() -> None:
    """Do nothing."""


@pytest.fixture(autouse=True)
def _project(using: str, settings: Any) -> None:
    settings.TASKS = tasks(using)


def fingerprints(using: str) -> dict[int, str | None]:
    rows = FailedExecution.objects.using(using)
    return dict(rows.values_list("pk", "fingerprint"))


def expected(exception_class: str, message: str, decorated: Any) -> str:
    return fingerprint_of(exception_class, message, decorated.module_path)


@on_every_database
def test_failures_of_a_task_with_the_same_cause_have_the_same(using: str) -> None:
    messages = ["no order 17", "no order 4711\nbut others", "no customer 17"]
    one, same, other = (int(fails.enqueue(message).id) for message in messages)
    elsewhere = int(fails_otherwise.enqueue(messages[0]).id)
    Driver(using).work()
    found = fingerprints(using)
    assert found.keys() == {one, same, other, elsewhere}
    assert found[one] == found[same] == expected(LOOKUP, messages[0], fails)
    assert found[other] == expected(LOOKUP, messages[2], fails)
    assert found[elsewhere] == expected(LOOKUP, messages[0], fails_otherwise)
    assert len(set(found.values())) == 3


@on_every_database
def test_an_attempt_that_is_repeated_leaves_none(using: str) -> None:
    driver = Driver(using)
    fails.enqueue("no order 17")
    [first] = driver.claim()
    done = driver.run(first)
    assert done.outcome.fingerprint is None
    driver.settle(done)
    assert fingerprints(using) == {}


@on_every_database
def test_a_task_process_tells_it_with_the_outcome(using: str) -> None:
    driver = Driver(using)
    fails_otherwise.enqueue("no order 17")
    [claim] = driver.claim()
    done = driver.run(claim).outcome
    assert done.fingerprint == expected(LOOKUP, "no order 17", fails_otherwise)
    assert read_outcome(write_outcome(done), claim) == (done, None)


@on_every_database
def test_the_stored_row_says_it_all(using: str) -> None:
    """What is stored is shortened, and without characters that databases reject."""
    fails_with_what_no_database_stores.enqueue()
    Driver(using).work()
    row = FailedExecution.objects.using(using).select_related("job").get()
    assert row.fingerprint == fingerprint_of(row.exception_class, row.message, row.job.task_path)


@on_every_database
def test_a_row_that_is_replaced_gets_the_new_one(using: str) -> None:
    driver = Driver(using)
    result = fails_otherwise.enqueue("no order 17")
    [claim] = driver.claim()
    present = portable.storable(driver.dialect.current_time(connections[using]))
    FailedExecution.objects.using(using).create(
        job_id=claim.job_id, created_at=present, exception_class="a.B", message="of old",
        fingerprint="f" * 16,
    )  # fmt: skip
    driver.settle(driver.run(claim))
    assert fingerprints(using) == {int(result.id): expected(LOOKUP, "no order 17", fails_otherwise)}


@on_every_database
def test_cancelled_jobs_have_that_of_their_task(using: str) -> None:
    driver = Driver(using)
    waiting, claimed = rests.enqueue(), rests.enqueue()
    Job.objects.using(using).filter(pk=int(waiting.id)).cancel()
    assert claimed.cancel()
    same = expected(EXCEPTION, CANCELLED_BEFORE_START, rests)
    assert fingerprints(using) == {int(waiting.id): same, int(claimed.id): same}
    late = rests.enqueue()
    [claim] = driver.claim()
    driver.settle(driver.executor.cancelled(claim))
    assert fingerprints(using)[int(late.id)] == same


@pytest.mark.parametrize("using", ["default"])
@pytest.mark.django_db(transaction=True)
def test_a_damaged_path_keeps_no_job_from_being_cancelled(using: str) -> None:
    ids = [int(rests.enqueue().id) for _ in range(2)]
    with connections[using].cursor() as cursor:
        cursor.execute(
            f"UPDATE steady_queue_jobs SET task_path = CAST(x'ff' AS TEXT) WHERE id = {ids[0]}"
        )
    assert Job.objects.using(using).filter(pk__in=ids).cancel() == 2
    assert fingerprints(using) == dict.fromkeys(ids)


@on_every_database
def test_cancelling_takes_as_many_statements_for_any_number(using: str) -> None:
    counts = []
    for number in (1, 1, 20):  # The first one asks once for what a session remembers.
        ids = [int(rests.enqueue().id) for _ in range(number)]
        with CaptureQueriesContext(connections[using]) as captured:
            assert Job.objects.using(using).filter(pk__in=ids).cancel() == number
        counts.append(len(captured))
    assert counts[1] == counts[2]
    assert set(fingerprints(using).values()) == {expected(EXCEPTION, CANCELLED_BEFORE_START, rests)}


@on_every_database
def test_expired_jobs_and_those_of_lost_processes_have_one(using: str) -> None:
    driver = Driver(using)
    expired, lost = rests.enqueue(), rests.enqueue()
    first, second = driver.claim()
    driver.settle(driver.executor.refused(first, TaskExpired("It is too late.")))
    processes.deregister(using, driver.name)
    Rescuer(QueueDatabase(using)).rescue_orphans()
    rows = {row.pk: row for row in FailedExecution.objects.using(using)}
    assert set(rows) == {int(expired.id), int(lost.id)} == {first.job_id, second.job_id}
    for row in rows.values():
        assert row.fingerprint == expected(row.exception_class, row.message, rests)
    assert len({row.fingerprint for row in rows.values()}) == 2


@on_every_database
def test_a_row_that_is_damaged_has_one(using: str) -> None:
    driver = Driver(using)
    rests.enqueue()
    [claim] = driver.claim()
    error = ValueError("the row is damaged")
    driver.settle(RunResult(outcomes.unreadable(claim, "w", claim.claimed_at, error)))
    [fingerprint] = fingerprints(using).values()
    assert fingerprint == expected("builtins.ValueError", "the row is damaged", rests)


@on_every_database
def test_members_of_batches_have_one(using: str) -> None:
    driver = Driver(using)
    with Batch():
        broken = fails_otherwise.enqueue("no order 17")
        rests.enqueue()
        rests.enqueue()
    done = [driver.run(claim).outcome for claim in driver.claim(limit=2)]
    connection = connections[using]
    driver.dialect.settle_and_claim(connection, done, driver.process, QueueSelector(), 1)
    found = fingerprints(using)
    assert found == {int(broken.id): expected(LOOKUP, "no order 17", fails_otherwise)}
