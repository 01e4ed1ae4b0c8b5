"""Jobs that are cancelled while they wait, or before another attempt: on every database."""

from __future__ import annotations

import json
from concurrent.futures import wait
from datetime import timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest
from django.db import connections, transaction
from django.test.utils import CaptureQueriesContext

from steady_queue_core import Batch, call, limits_concurrency, task
from steady_queue_core.compat import TaskResultDoesNotExist, TaskResultStatus, task_backends
from steady_queue_core.configuration import Configuration
from steady_queue_core.conformance import threads
from steady_queue_core.models import (
    BlockedExecution,
    ClaimedExecution,
    FailedExecution,
    Job,
    Permit,
    ReadyExecution,
    ScheduledExecution,
)
from steady_queue_core.models.operations import rows
from steady_queue_core.models.operations.rows import ROWS
from steady_queue_core.processes.worker import outcomes
from steady_queue_core.processes.worker.attempt import RunResult
from steady_queue_core.processes.worker.lanes import Lanes
from steady_queue_core.signals import task_cancelled
from steady_queue_core.tasks import cancellation

from ..core.driver import Driver
from ..processes.waiting import wait_for
from .everywhere import on_every_database
from .recurrence import tasks

HOUR = timedelta(hours=1)
CANCELLED = "steady_queue_core.errors.TaskCancelled"
WAITING = (ScheduledExecution, BlockedExecution, ReadyExecution)

RAN: list[Any] = []


@task
def note(what: Any = None) -> Any:
    RAN.append(what)
    return what


@task
async def note_in_a_coroutine(what: Any = None) -> Any:
    RAN.append(what)
    return what


@limits_concurrency(key="one", group="cancelling")
@task
def note_alone(what: Any = None) -> Any:
    RAN.append(what)
    return what


@task(max_attempts=3, backoff=lambda error, result: 3600)
def fail(what: Any = None) -> None:
    RAN.append(what)
    raise LookupError(what)


@pytest.fixture(autouse=True)
def _project(using: str, settings: Any) -> None:
    RAN.clear()
    settings.TASKS = tasks(using)


def job_of(using: str, result: Any) -> Job:
    found: Job = Job.objects.using(using).get(pk=int(result.id))
    return found


def assert_cancelled(result: Any, *earlier: str) -> None:
    result.refresh()
    assert result.status is TaskResultStatus.FAILED
    assert [each.exception_class_path for each in result.errors] == [*earlier, CANCELLED]
    assert result.finished_at is not None


def left(using: str) -> int:
    return sum(state.objects.using(using).count() for state in (*WAITING, ClaimedExecution))


@on_every_database
def test_a_waiting_job_ends_at_once_and_never_runs(using: str) -> None:
    ready, scheduled = note.enqueue(1), note.using(run_after=HOUR).enqueue(2)
    holder, blocked = note_alone.enqueue(3), note_alone.enqueue(4)
    for result in (ready, scheduled, blocked):
        assert result.cancel()
        assert_cancelled(result)
        assert result.errors[0].traceback == (
            f"{CANCELLED}: The job was cancelled before it started.\n"
        )
        failure = FailedExecution.objects.using(using).get(pk=int(result.id))
        assert failure.exception_class == CANCELLED
        assert not result.cancel()
    Driver(using).work()
    assert RAN == [3]
    holder.refresh()
    assert not holder.cancel()
    assert holder.status is TaskResultStatus.SUCCESSFUL
    assert left(using) == 0


@on_every_database
def test_a_cancelled_job_that_is_retried_is_claimed_with_a_larger_token(using: str) -> None:
    driver = Driver(using)
    result = note.enqueue()
    [released] = driver.claim()
    driver.settle(RunResult(outcomes.released(released)))
    assert result.cancel()
    assert job_of(using, result).retry()
    [again] = driver.claim()
    assert again.token >> 32 == (released.token >> 32) + 1  # The lower half is random.


@on_every_database
def test_the_permit_of_a_cancelled_job_passes_on(using: str) -> None:
    holder, blocked = note_alone.enqueue(1), note_alone.enqueue(2)
    assert holder.cancel()
    [permit] = Permit.objects.using(using).all()
    assert permit.pk == int(blocked.id)
    assert Driver(using).finish(blocked).return_value == 2
    assert RAN == [2]
    assert Permit.objects.using(using).count() == 0


@on_every_database
def test_errors_of_earlier_attempts_are_kept(using: str) -> None:
    driver = Driver(using)
    result = fail.enqueue()
    driver.finish(result)
    assert result.status is TaskResultStatus.READY
    assert result.cancel()
    assert_cancelled(result, "builtins.LookupError")
    assert result.attempts == 1


@on_every_database
def test_a_running_job_is_asked_to_end_and_gets_no_other_attempt(using: str) -> None:
    driver = Driver(using)
    result = fail.enqueue(1)
    [claim] = driver.claim()
    assert result.cancel()
    assert result.cancel()  # It is still running.
    assert job_of(using, result).is_cancelled
    # This worker has not heard of it, and the attempt fails by itself: it is to be retried.
    driver.settle(driver.run(claim))
    ScheduledExecution.objects.using(using).update(due_at="2020-01-01T00:00:00Z")
    driver.dispatch()
    [again] = driver.claim()
    assert again.is_cancelled
    driver.settle(driver.executor.cancelled(again))
    assert RAN == [1]
    assert_cancelled(result, "builtins.LookupError")
    assert result.attempts == 1
    assert left(using) == 0


@on_every_database
def test_a_running_job_that_finishes_first_has_finished(using: str) -> None:
    driver = Driver(using)
    result = note.enqueue(1)
    [claim] = driver.claim()
    assert result.cancel()
    driver.settle(driver.run(claim))
    result.refresh()
    assert result.status is TaskResultStatus.SUCCESSFUL
    assert not result.cancel()


@on_every_database
def test_a_cancelled_job_can_be_retried_with_all_its_attempts(using: str) -> None:
    driver = Driver(using)
    waiting, running = fail.enqueue(1), fail.enqueue(2)
    waiting.cancel()
    [claim] = driver.claim()
    running.cancel()
    driver.settle(driver.executor.cancelled(claim))
    assert_cancelled(running)
    assert Job.objects.using(using).retry_failed() == 2
    assert [job.max_attempts for job in Job.objects.using(using).all()] == [3, 3]
    driver.work()
    assert sorted(RAN) == [1, 2]
    assert ScheduledExecution.objects.using(using).count() == 2


@on_every_database
def test_a_queryset_cancels_its_jobs_in_every_state(using: str) -> None:
    driver = Driver(using)
    running = note.enqueue(0)
    [claim] = driver.claim()
    waiting = [
        note.enqueue(1),
        note.using(run_after=HOUR).enqueue(2),
        *(note_alone.enqueue(number) for number in (3, 4, 5)),
    ]
    other = fail.enqueue(6)
    ended = note.enqueue(7)
    ended.cancel()

    jobs = Job.objects.using(using).exclude(task_path=fail.module_path)
    assert jobs.cancel(batch_size=2) == 6
    assert jobs.cancel() == 0

    for result in waiting:
        assert_cancelled(result)
    assert job_of(using, running).is_cancelled
    driver.settle(driver.executor.cancelled(claim))
    assert_cancelled(running)
    other.refresh()
    assert other.status is TaskResultStatus.READY
    assert Permit.objects.using(using).count() == 0


@on_every_database
def test_cancelling_costs_no_statements_for_each_job(using: str) -> None:
    """Neither do those that have run before, and so have errors and tokens of their own."""
    jobs = Job.objects.using(using)

    def statements(count: int) -> int:
        with Batch("retried") as batch:
            batch.add([call(fail, number) for number in range(count)])
        waiting = jobs.filter(finished_at=None)
        for pk in waiting.values_list("pk", flat=True):
            waiting.filter(pk=pk).update(errors=f'[["E", "no {pk}", 1]]', attempts=1, token=pk)
        with CaptureQueriesContext(connections[using]) as queries, transaction.atomic(using=using):
            batch.cancel()
        return len(queries)

    few = statements(10)
    assert statements(90) == few
    assert statements(ROWS * 2) <= few + 8
    for pk, token, errors in jobs.values_list("pk", "token", "errors"):
        assert (token, json.loads(errors)[0]) == (0, ["E", f"no {pk}", 1])
        assert json.loads(errors)[1][0] == CANCELLED


@pytest.mark.parametrize("using", ["default"])
def test_values_are_written_in_statements_of_bounded_length(using: str) -> None:
    parts = rows._writable({1: "x" * 10, 2: "x" * rows.LENGTH, 3: "y", 4: "z", 5: 6})
    assert [[pk for pk, _ in part] for part in parts] == [[1], [2], [3, 4, 5]]


@on_every_database
def test_cancelling_belongs_to_the_callers_transaction(using: str) -> None:
    told: list[Any] = []

    def hear(**payload: Any) -> None:
        told.append(payload["task_ids"])

    task_cancelled.connect(hear)
    try:
        result = note.enqueue(1)
        with transaction.atomic(using=using):
            result.cancel()
            transaction.set_rollback(True, using=using)
        result.refresh()
        assert result.status is TaskResultStatus.READY
        with transaction.atomic(using=using):
            result.cancel()
            assert told == []
        assert told == [[result.id]]
    finally:
        task_cancelled.disconnect(hear)


@on_every_database
def test_what_cannot_be_cancelled_says_why(using: str) -> None:
    backend: Any = task_backends["default"]
    for wrong in ("4711", "x", ""):
        with pytest.raises(TaskResultDoesNotExist):
            backend.cancel(wrong)
    result = note.enqueue(1)
    object.__setattr__(result, "id", "")
    with pytest.raises(ValueError, match="The job is not stored yet"):
        result.cancel()
    object.__setattr__(result, "discarded", True)
    assert result.cancel() is False


@on_every_database
def test_of_two_who_cancel_at_once_one_ends_the_job(using: str) -> None:
    result = note_alone.enqueue(1)
    blocked = note_alone.enqueue(2)
    with threads.holding(using, job_of(using, result).cancel, 20) as end:
        other = threads.start(using, job_of(using, result).cancel)
        wait([other], timeout=0.2)  # On a server it waits for the first.
        end(commit=True)
    assert other.result(20) is False
    assert_cancelled(result)
    assert job_of(using, blocked).pk in set(
        ReadyExecution.objects.using(using).values_list("pk", flat=True)
    )
    assert Permit.objects.using(using).count() == 1


@on_every_database
def test_a_job_that_moves_on_meanwhile_is_still_asked_to_end(
    using: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is retried between the looks at waiting and at running jobs."""
    result = note.enqueue(1)
    job = job_of(using, result)
    monkeypatch.setattr(type(Job.objects.all()), "cancel", lambda self: 0)
    assert job.cancel()
    monkeypatch.undo()
    [claim] = Driver(using).claim()
    assert claim.is_cancelled


@pytest.mark.django_db(databases=["default"], transaction=True)
@pytest.mark.parametrize("using", ["default"])
@pytest.mark.parametrize("kind", [note, note_in_a_coroutine])
def test_a_job_whose_worker_knows_of_the_request_does_not_start(using: str, kind: Any) -> None:
    driver = Driver(using)
    results = [kind.enqueue(1), kind.enqueue(2)]
    first, second = driver.claim()
    journal = SimpleNamespace(start=lambda *_: None, end=lambda _: None)
    context: Any = SimpleNamespace(journal=journal, waiter=SimpleNamespace(sleeping=False))
    lanes = Lanes(context, Configuration.Worker(threads=1), driver.executor)
    lanes.registration = cast(Any, SimpleNamespace(holds_lease=True))
    try:
        lanes.cancel(first)  # It runs nowhere yet.
        lanes.submit([(claim, driver.executor.task_of(claim)) for claim in (first, second)])
        done: list[Any] = []
        wait_for(lambda: done.extend(lanes.collect(2)) or len(done) == 2, 10, "both results")
    finally:
        cancellation.requested.clear()
        lanes.close()
    for each in done:
        driver.settle(each)
    assert RAN == [2]
    assert_cancelled(results[0])
    assert results[0].attempts == 0
