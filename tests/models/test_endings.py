"""Endings that a task chooses: on every database, by the parts that a worker is made of."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, NoReturn

import pytest
from django.db import connections

from steady_queue_core import Discard, Fail, Retry, Snooze, limits_concurrency, task
from steady_queue_core.compat import TaskResultStatus, task_finished
from steady_queue_core.dialects import Ending
from steady_queue_core.models import FailedExecution, Job, Permit, ScheduledExecution
from steady_queue_core.retries import constant
from steady_queue_core.signals import task_retried

from ..core.driver import Driver
from .everywhere import on_every_database
from .recurrence import tasks

HOUR = 3600.0
ENDINGS = "steady_queue_core.endings"


@pytest.fixture(autouse=True)
def _project(using: str, settings: Any) -> None:
    settings.TASKS = tasks(using)


@task(max_attempts=3, backoff=constant(1000))
def retries(delay: float | None) -> NoReturn:
    try:
        raise LookupError("not there yet")
    except LookupError as error:
        raise Retry(delay) from error


@task(max_attempts=2, max_snoozes=2, takes_context=True)
def snoozes(context: Any, times: int) -> tuple[int, dict[str, Any]]:
    if times:
        raise Snooze(timedelta(hours=1))
    return context.attempt, context.metadata


@task(max_snoozes=1)
async def snoozes_in_a_coroutine() -> NoReturn:
    raise Snooze(HOUR)


@limits_concurrency(key="one")
@task
def snoozes_alone() -> NoReturn:
    raise Snooze(HOUR)


@task(max_attempts=5)
def discards(reason: str) -> NoReturn:
    raise Discard(f"{reason}\0")


@task
async def discards_in_a_coroutine(reason: str) -> NoReturn:
    raise Discard(f"{reason}\0")


@task(max_attempts=5, backoff=constant(0))
def fails(reason: str) -> NoReturn:
    raise Fail(reason)


@task(max_attempts=5, backoff=constant(0))
def returns(value: str) -> object:
    return {"object": object(), "nan": float("nan"), "large": "x" * 2**20}[value]


@task(max_attempts=5, backoff=constant(0))
async def fails_in_a_coroutine(reason: str) -> NoReturn:
    raise Fail(reason)


def make_due(driver: Driver) -> None:
    """Make the scheduled jobs ready, as if their time had come."""
    rows = ScheduledExecution.objects.using(driver.using)
    for row in rows:
        row.due_at -= timedelta(days=1)
        row.save()
    driver.dispatch()


def delay_of(driver: Driver) -> float:
    row = ScheduledExecution.objects.using(driver.using).get()
    return float((row.due_at - row.created_at).total_seconds())


@on_every_database
def test_a_retry_counts_an_attempt_and_has_its_own_delay(using: str) -> None:
    driver, told = Driver(using), []

    def keep(error: BaseException, delay: timedelta, **kwargs: Any) -> None:
        told.append((type(error), delay))

    task_retried.connect(keep)
    try:
        result = driver.finish(retries.enqueue(30))
    finally:
        task_retried.disconnect(keep)
    assert (result.status, result.attempts) == (TaskResultStatus.READY, 1)
    assert 29 < delay_of(driver) < 31
    assert told == [(Retry, timedelta(seconds=30))]
    [error] = result.errors
    assert error.exception_class is Retry
    assert "LookupError: not there yet" in error.traceback


@on_every_database
def test_a_retry_without_a_delay_leaves_it_to_the_backoff(using: str) -> None:
    driver = Driver(using)
    driver.finish(retries.enqueue(None))
    assert 999 < delay_of(driver) < 1001


@on_every_database
def test_a_retry_in_the_last_attempt_is_a_failure(using: str) -> None:
    driver = Driver(using)
    result = driver.finish(retries.enqueue(0))
    assert (result.status, result.attempts) == (TaskResultStatus.FAILED, 3)
    failed = FailedExecution.objects.using(using).get()
    assert failed.exception_class == f"{ENDINGS}.Retry"


@on_every_database
def test_a_snooze_counts_no_attempt(using: str) -> None:
    driver = Driver(using)
    result = snoozes.using(metadata={"order": 17}).enqueue(1)
    for _ in range(2):
        driver.finish(result)
        assert (result.status, result.attempts) == (TaskResultStatus.READY, 0)
        assert (result.errors, result.metadata) == ([], {"order": 17})
        assert result.started_at is not None
        assert 3599 < delay_of(driver) < 3601
        make_due(driver)
    job = Job.objects.using(using).get()
    assert (job.attempts, job.worker_ids, job.errors) == (0, None, None)
    job.arguments = job.arguments.replace("1", "0")
    job.save()
    driver.finish(result)
    assert result.status == TaskResultStatus.SUCCESSFUL
    # Its first attempt, with what the caller has passed.
    assert result.return_value == (1, {"order": 17})


@on_every_database
@pytest.mark.parametrize("decorated", [snoozes, snoozes_in_a_coroutine], ids=["thread", "loop"])
def test_a_job_that_snoozes_too_often_fails_at_once(using: str, decorated: Any) -> None:
    driver = Driver(using)
    most = 2 if decorated is snoozes else 1
    result = decorated.enqueue(1) if decorated is snoozes else decorated.enqueue()
    for _ in range(most):
        driver.finish(result)
        assert result.status == TaskResultStatus.READY
        make_due(driver)
    driver.finish(result)
    assert (result.status, result.attempts) == (TaskResultStatus.FAILED, 1)
    failed = FailedExecution.objects.using(using).get()
    assert failed.exception_class == "steady_queue_core.errors.TooManySnoozesError"
    times = "once" if most == 1 else "2 times"
    assert failed.message == (
        f"The job has snoozed {times}, as often as it may, and would do so again. Raise "
        "max_snoozes, or let the task end otherwise."
    )
    # Retried by hand, it may snooze as often again.
    assert Job.objects.using(using).get().retry()
    driver.finish(result)
    assert result.status == TaskResultStatus.READY


@on_every_database
def test_the_backend_says_how_often_a_job_may_snooze_and_the_call_can_say_otherwise(
    using: str, settings: Any
) -> None:
    settings.TASKS = tasks(using, max_snoozes=0)
    driver = Driver(using)
    assert driver.finish(snoozes_alone.enqueue()).status == TaskResultStatus.FAILED
    patient = snoozes_alone.using(max_snoozes=1)
    assert driver.finish(patient.enqueue()).status == TaskResultStatus.READY


@on_every_database
def test_a_job_that_snoozes_keeps_nobody_waiting(using: str) -> None:
    driver = Driver(using)
    first, second = snoozes_alone.enqueue(), snoozes_alone.enqueue()
    [claim] = driver.claim()
    driver.settle(driver.run(claim))
    assert str(claim.job_id) == first.id
    permits = Permit.objects.using(using).values_list("pk", flat=True)
    assert [str(pk) for pk in permits] == [second.id]


@on_every_database
@pytest.mark.parametrize("decorated", [discards, discards_in_a_coroutine], ids=["thread", "loop"])
def test_a_task_that_discards_itself_ends_without_failure(using: str, decorated: Any) -> None:
    driver, told = Driver(using), []

    def keep(task_result: Any, **kwargs: Any) -> None:
        told.append((task_result.status, task_result.metadata))

    task_finished.connect(keep)
    try:
        result = decorated.using(metadata={"order": 17}).enqueue("sold out")
        driver.finish(result)
    finally:
        task_finished.disconnect(keep)
    metadata = {"order": 17, "discarded": "sold out\\x00"}
    assert (result.status, result.attempts) == (TaskResultStatus.SUCCESSFUL, 1)
    assert (result.return_value, result.errors, result.metadata) == (None, [], metadata)
    assert told == [(TaskResultStatus.SUCCESSFUL, metadata)]
    assert not FailedExecution.objects.using(using).exists()


@on_every_database
def test_a_discarded_job_that_is_not_to_be_kept_is_gone(using: str, settings: Any) -> None:
    settings.TASKS = tasks(using, preserve_finished_jobs=False)
    discards.enqueue("sold out")
    [done] = Driver(using).work()
    assert done.outcome.ending is Ending.FINISHED
    assert not Job.objects.using(using).exists()


@on_every_database
@pytest.mark.parametrize("decorated", [fails, fails_in_a_coroutine], ids=["thread", "loop"])
def test_a_task_can_fail_whatever_attempts_are_left(using: str, decorated: Any) -> None:
    result = Driver(using).finish(decorated.enqueue("no such order"))
    assert (result.status, result.attempts) == (TaskResultStatus.FAILED, 1)
    failed = FailedExecution.objects.using(using).get()
    assert (failed.exception_class, failed.message) == (f"{ENDINGS}.Fail", "no such order")


class NotYet(Snooze):
    """An ending of a project that forgets its base."""

    def __init__(self) -> None: ...


class Never(Discard):
    def __init__(self) -> None:
        super().__init__()
        self.reason = None  # type: ignore[assignment]  # What is to be refused.


class Again(Retry):
    @property
    def delay(self) -> float:  # type: ignore[override]  # What is to be refused.
        raise LookupError("no delay")

    def __init__(self) -> None: ...


@task(max_attempts=1)
def ends_wrongly(name: str) -> NoReturn:
    raise {"NotYet": NotYet, "Never": Never, "Again": Again}[name]


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("NotYet", "'NotYet' object has no attribute 'delay'"),
        ("Never", "reason must be a string, not NoneType"),
        ("Again", "no delay"),
    ],
)
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("using", ["default"])
@pytest.mark.django_db(transaction=True)
def test_an_ending_that_cannot_be_used_is_a_failure_that_says_why(
    using: str, name: str, problem: str
) -> None:
    result = ends_wrongly.enqueue(name)
    Driver(using).work()
    result.refresh()
    [error] = result.errors
    assert result.status == TaskResultStatus.FAILED
    assert error.exception_class is TypeError
    assert f"The task raised {name}, an ending that cannot be used" in error.traceback
    assert problem in error.traceback


@on_every_database
def test_a_claim_that_is_lost_neither_snoozes_nor_discards(using: str) -> None:
    driver = Driver(using)
    results = [snoozes.enqueue(1), discards.enqueue("sold out")]
    done = [driver.run(claim) for claim in driver.claim()]
    before = list(Job.objects.using(using).order_by("pk").values())
    lost = [each.outcome._replace(token=each.outcome.token + 1) for each in done]
    assert driver.dialect.settle(connections[using], lost) == set()
    assert list(Job.objects.using(using).order_by("pk").values()) == before
    # The same for one of them whose claim is held.
    both = [lost[0], done[0].outcome, lost[1]]
    assert driver.dialect.settle(connections[using], both) == {int(results[0].id)}
    results[1].refresh()
    assert results[1].metadata == {}


@on_every_database
def test_a_damaged_row_of_metadata_counts_as_none(using: str) -> None:
    driver = Driver(using)
    for text in ("", "{", "[1]", '{"snoozes": "many", "user": [1], "max_snoozes": -1}', "\\"):
        result = snoozes.using(metadata={"order": 17}).enqueue(0)
        Job.objects.using(using).filter(pk=result.id).update(metadata=text)
        assert driver.finish(result).return_value == (1, {})


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("using", ["default"])
@pytest.mark.parametrize("value", ["object", "nan", "large"])
def test_work_whose_result_cannot_be_stored_is_not_done_once_more(using: str, value: str) -> None:
    result = Driver(using).finish(returns.enqueue(value))
    assert (result.status, result.attempts) == (TaskResultStatus.FAILED, 1)
    assert "return value" in result.errors[0].traceback
