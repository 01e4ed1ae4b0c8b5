"""What becomes of a job that is run: on every database, by the parts that a worker is made of."""

from __future__ import annotations

import asyncio
import gc
import logging
from datetime import timedelta
from typing import Any, NoReturn
from weakref import WeakSet

import pytest
from asgiref.sync import sync_to_async
from django.db import connections

from steady_queue_core import limits_concurrency, task
from steady_queue_core.backend import SteadyQueueBackend
from steady_queue_core.compat import TaskResultStatus, task_finished
from steady_queue_core.dialects import dialect_for, portable
from steady_queue_core.errors import UnregisteredTaskError
from steady_queue_core.models import (
    BlockedExecution,
    ClaimedExecution,
    FailedExecution,
    Job,
    Permit,
    ReadyExecution,
    ScheduledExecution,
)
from steady_queue_core.processes.worker.attempt import RunResult
from steady_queue_core.processes.worker.error_text import MOST_EARLIER
from steady_queue_core.retries import constant

from ..core.driver import Driver
from .everywhere import Jobs, on_every_database
from .recurrence import tasks

HOUR = timedelta(hours=1)


@task
def breaks(word: str) -> NoReturn:
    raise LookupError(f"broken by {word}")


@task
def recurses() -> None:
    recurses.func()


@task(takes_context=True)
def tells_its_id(context: Any) -> str:
    return str(context.task_result.id)


@task(takes_context=True, max_attempts=3, backoff=constant(0))
def succeeds_in(context: Any, attempt: int) -> int:
    if context.attempt < attempt:
        raise ValueError(f"not in attempt {context.attempt}")
    return int(context.attempt)


@task
def rests() -> None:
    """Do nothing."""


one = limits_concurrency(key="one", group="outcomes")
once = limits_concurrency(key="one", group="outcomes once", on_conflict="discard")


@one
@task
def breaks_alone() -> NoReturn:
    raise LookupError("broken")


@one
@task
def rests_alone() -> None:
    """Do nothing, one at a time."""


@once
@task
def rests_unless_another_does(name: str = "") -> None:
    """Do nothing, one at a time."""


@pytest.fixture(autouse=True)
def _project(using: str, settings: Any) -> None:
    settings.TASKS = tasks(using)


def ids(model: Any, using: str) -> list[int]:
    return sorted(model.objects.using(using).values_list("pk", flat=True))


@on_every_database
def test_a_failure_is_kept_with_its_class_message_and_traceback(using: str) -> None:
    result = Driver(using).finish(breaks.enqueue("Ada"))
    failed = FailedExecution.objects.using(using).get()
    assert (str(failed.pk), failed.exception_class) == (result.id, "builtins.LookupError")
    assert failed.message == "broken by Ada"
    [error] = result.errors
    assert error.exception_class_path == "builtins.LookupError"
    assert "in breaks" in error.traceback
    assert result.status == TaskResultStatus.FAILED
    assert ids(ClaimedExecution, using) == []


@on_every_database
def test_a_stack_that_overflows_is_a_failure_like_any(using: str) -> None:
    driver = Driver(using)
    driver.finish(recurses.enqueue())
    failed = FailedExecution.objects.using(using).get()
    assert failed.exception_class == "builtins.RecursionError"
    assert driver.finish(rests.enqueue()).status == TaskResultStatus.SUCCESSFUL


@on_every_database
def test_a_task_can_learn_the_id_of_its_job(using: str) -> None:
    result = tells_its_id.enqueue()
    assert Driver(using).finish(result).return_value == result.id


@on_every_database
@pytest.mark.parametrize("limited", [False, True], ids=["without a limit", "with a limit"])
def test_a_job_whose_task_is_gone_fails_and_keeps_nobody_waiting(
    using: str, limited: bool, settings: Any
) -> None:
    settings.TASKS = tasks(using, unknown_task_patience=0)
    driver = Driver(using)
    decorated: Any = breaks_alone if limited else rests
    gone, next_one = (int(decorated.enqueue().id) for _ in range(2))
    Job.objects.using(using).filter(pk=gone).update(task_path="tests.models.gone.away")
    assert ids(BlockedExecution, using) == [next_one] * limited

    refuse(driver)

    failed = FailedExecution.objects.using(using).get()
    assert (failed.pk, failed.exception_class) == (
        gone,
        "steady_queue_core.errors.UnregisteredTaskError",
    )
    assert "tests.models.gone.away" in failed.message
    assert ids(ReadyExecution, using) == [next_one]
    assert ids(Permit, using) == [next_one] * limited


def refuse(driver: Driver) -> RunResult:
    """Have the next job claimed by a worker that does not know its task."""
    [claim] = driver.claim(limit=1)
    with pytest.raises(UnregisteredTaskError) as raised:
        driver.executor.task_of(claim)
    done = driver.executor.unknown(claim, raised.value)
    driver.settle(done)
    return done


def make_due(using: str, job_id: int, ago: timedelta = timedelta(seconds=1)) -> None:
    past = dialect_for(using).current_time(connections[using]) - ago
    row = ScheduledExecution.objects.using(using).filter(pk=job_id)
    assert row.update(due_at=portable.storable(past))


AWAY = "tests.models.newer.task"


@on_every_database
@pytest.mark.parametrize("limited", ["", "blocks", "discards"])
def test_a_job_is_left_to_workers_that_know_its_task_and_uses_up_no_attempt(
    using: str, limited: str
) -> None:
    driver = Driver(using)
    decorated: Any = {"": rests, "blocks": rests_alone, "discards": rests_unless_another_does}[
        limited
    ]
    result = decorated.enqueue()
    job = Job.objects.using(using).filter(pk=result.id)
    known = job.get().task_path
    job.update(task_path=AWAY)
    for _ in range(2):
        outcome = refuse(driver).outcome
        assert 0.5 < outcome.delay < 2.0
        assert ids(ScheduledExecution, using) == [outcome.job_id]
        # Its place is free for others meanwhile.
        assert ids(Permit, using) == []
        result.refresh()
        assert (result.status, result.attempts) == (TaskResultStatus.READY, 0)
        [error] = result.errors
        assert f"Task {AWAY!r} is not registered" in error.traceback
        make_due(using, outcome.job_id)
        if limited:
            other = int(decorated.enqueue().id)
            driver.dispatch()
            # It has been at work, and is not thrown away.
            assert ids(BlockedExecution, using) == [outcome.job_id]
            [claim] = driver.claim()
            driver.settle(driver.run(claim))
            assert Job.objects.using(using).get(pk=other).finished_at is not None
        driver.dispatch()
    job.update(task_path=known)
    result = driver.finish(result)
    assert (result.status, result.attempts) == (TaskResultStatus.SUCCESSFUL, 1)
    assert result.errors == []
    assert ids(Permit, using) == []


@on_every_database
def test_when_the_patience_is_over_the_job_uses_up_its_attempts(using: str, settings: Any) -> None:
    settings.TASKS = tasks(using, max_attempts=2, backoff=0, unknown_task_patience=60)
    driver = Driver(using)
    result = rests.enqueue()
    job = Job.objects.using(using).filter(pk=result.id)
    job.update(task_path=AWAY)
    first = refuse(driver).outcome
    assert (first.attempts, first.delay > 0) == (0, True)
    # As if that had been a century ago.
    job.update(errors=job.get().errors.replace(" since 20", " since 19"))
    make_due(using, first.job_id)
    driver.dispatch()
    for attempt in (1, 2):
        outcome = refuse(driver).outcome
        assert (outcome.attempts, outcome.delay) == (attempt, 0)
    result.refresh()
    assert result.status == TaskResultStatus.FAILED
    assert [error.exception_class for error in result.errors] == [UnregisteredTaskError] * 2
    # By hand it is tried again from the beginning.
    assert job.get().retry()
    assert refuse(driver).outcome.attempts == 0


@on_every_database
def test_an_unknown_task_is_told_of_once(using: str, caplog: pytest.LogCaptureFixture) -> None:
    driver = Driver(using)
    for _ in range(3):
        rests.enqueue()
    Job.objects.using(using).update(task_path=AWAY)
    for _ in range(3):
        refuse(driver)
    told = [record for record in caplog.records if AWAY in record.getMessage()]
    assert [(record.levelname, record.event) for record in told] == [("WARNING", "task.unknown")]


@on_every_database
def test_a_failed_row_that_is_there_already_is_replaced(using: str) -> None:
    """Which only a stranger can bring about."""
    driver = Driver(using)
    job_id = int(breaks.enqueue("Ada").id)
    present = portable.storable(Jobs(using).dialect.current_time(connections[using]))
    FailedExecution.objects.using(using).create(
        job_id=job_id, created_at=present, exception_class="a.B", message="of old"
    )
    driver.work()
    failed = FailedExecution.objects.using(using).get()
    assert (failed.exception_class, failed.message) == ("builtins.LookupError", "broken by Ada")
    assert ids(ClaimedExecution, using) == ids(ReadyExecution, using) == []


@on_every_database
def test_a_failure_is_told_once(using: str, caplog: pytest.LogCaptureFixture) -> None:
    told: list[Any] = []

    def keep(sender: Any, task_result: Any, **kwargs: Any) -> None:
        told.append((sender, task_result.id))

    task_finished.connect(keep)
    try:
        result = Driver(using).finish(breaks.enqueue("Ada"))
    finally:
        task_finished.disconnect(keep)
    assert told == [(SteadyQueueBackend, result.id)]
    [record] = [each for each in caplog.records if each.levelno >= logging.WARNING]
    assert isinstance(record.exc_info and record.exc_info[1], LookupError)


@on_every_database
def test_after_its_last_attempt_a_job_may_be_given_all_of_them_again(using: str) -> None:
    driver = Driver(using)
    result = driver.finish(succeeds_in.enqueue(8))
    for rounds in (1, 2):
        assert (result.status, len(result.errors)) == (TaskResultStatus.FAILED, 3 * rounds)
        assert Job.objects.using(using).get(pk=result.id).retry()
        driver.finish(result)
    assert (result.status, result.return_value) == (TaskResultStatus.SUCCESSFUL, 8)
    assert len(result.errors) == 7


@pytest.mark.parametrize(
    "using", [pytest.param("default", marks=pytest.mark.django_db(transaction=True))]
)
def test_the_errors_of_the_last_attempts_are_kept_however_often_it_is_retried(using: str) -> None:
    driver, result, sizes = Driver(using), breaks.enqueue("x" * 20_000), []
    while result.attempts < 45:
        driver.finish(result)
        job = Job.objects.using(using).get(pk=result.id)
        sizes.append(len(job.errors or ""))
        assert job.retry()
    errors = breaks.get_result(result.id).errors
    assert len(errors) == MOST_EARLIER + 1
    # The durations of attempts have more digits or fewer.
    assert max(sizes) - min(sizes[-2:]) < 20 * MOST_EARLIER
    assert max(sizes) < 500_000


@on_every_database
def test_a_job_of_later_runs_when_it_is_due_and_is_gone_if_it_is_not_to_be_kept(
    using: str, settings: Any
) -> None:
    settings.TASKS = tasks(using, preserve_finished_jobs=False)
    driver = Driver(using)
    rests.using(run_after=HOUR).enqueue()
    driver.dispatch()
    assert driver.work() == []
    past = portable.storable(Jobs(using).dialect.current_time(connections[using]) - HOUR)
    ScheduledExecution.objects.using(using).update(due_at=past)
    driver.dispatch()
    assert len(driver.work()) == 1
    assert ids(Job, using) == []


@on_every_database
def test_a_call_is_discarded_until_the_one_before_it_has_ended(using: str) -> None:
    driver = Driver(using)
    first = rests_unless_another_does.enqueue()
    [claim] = driver.claim()
    assert rests_unless_another_does.enqueue("while it runs").discarded
    assert not rests.enqueue().discarded
    driver.settle(driver.run(claim))
    second = rests_unless_another_does.enqueue("afterwards")
    assert not second.discarded
    assert driver.finish(second).status == TaskResultStatus.SUCCESSFUL
    assert str(claim.job_id) == first.id


class Held:
    """Something large that a task has in hand."""


#: What tasks had in hand, as far as it lives.
held: WeakSet[Held] = WeakSet()


@task(max_attempts=2, backoff=constant(0))
def fails_with_much(how: str) -> None:
    much = Held()
    held.add(much)
    try:
        raise LookupError(how)
    except LookupError as error:
        if how == "chained":
            raise RuntimeError from error
        kept = error
        if how == "known to itself":
            raise kept  # noqa: B904 - what it leaves is to be seen


@task(max_attempts=2, backoff=constant(0))
async def fails_with_much_in_a_coroutine(how: str) -> None:
    await asyncio.gather(asyncio.sleep(0), sync_to_async(fails_with_much.func)(how))


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("using", ["default"])
@pytest.mark.parametrize("how", ["chained", "known to itself"])
@pytest.mark.parametrize("failing", [fails_with_much, fails_with_much_in_a_coroutine])
def test_what_a_failed_task_had_in_hand_is_let_go(using: str, how: str, failing: Any) -> None:
    driver, result = Driver(using), failing.enqueue(how)
    gc.collect()
    gc.disable()
    try:
        driver.finish(result)
        assert (len(result.errors), len(held)) == (2, 0)
    finally:
        gc.enable()
