"""Callbacks, and what a task leaves to its outcome: on every database, by the parts that a worker
and a supervisor are made of."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connections
from django.db.models import F

from steady_queue_core import Discard, Fail, limits_concurrency, task
from steady_queue_core.arguments import TaskArgumentError, decode_call
from steady_queue_core.compat import InvalidTask, task_enqueued
from steady_queue_core.dialects.registry import dialect_for
from steady_queue_core.errors import OutboxFullError, ProcessExitError
from steady_queue_core.models import (
    BlockedExecution,
    Job,
    ReadyExecution,
    Retention,
    ScheduledExecution,
)
from steady_queue_core.processes.base.database import QueueDatabase
from steady_queue_core.processes.base.journal_reader import JournalSnapshot
from steady_queue_core.processes.supervisor.recovery import Rescuer
from steady_queue_core.processes.worker import outcomes
from steady_queue_core.processes.worker.attempt import RunResult
from steady_queue_core.retries import constant
from steady_queue_core.tasks import outbox, registry
from steady_queue_core.tasks.copies import rebuilt
from steady_queue_core.tasks.metadata import JobMetadata

from ..core.driver import Driver
from .everywhere import on_every_database
from .recurrence import tasks

HERE = __name__
HOUR = timedelta(hours=1)


@pytest.fixture(autouse=True)
def _project(using: str, settings: Any) -> None:
    settings.TASKS = tasks(using, backoff=0)


@task(queue_name="told", priority=7)
def told_of_success(result_id: str) -> None:
    """Do nothing."""


@limits_concurrency(key="one", group="told")
@task(queue_name="told", max_attempts=4)
def told_of_failure(result_id: str, path: str, message: str) -> None:
    """Do nothing."""


@task(on_success=told_of_success, on_failure=f"{HERE}.told_of_failure", max_attempts=2)
def work(how: str = "succeed") -> str:
    end(how)
    return how


@task(delivery="transactional", on_success=told_of_success, on_failure=told_of_failure)
def work_in_a_transaction(how: str = "succeed") -> str:
    end(how)
    return how


def end(how: str) -> None:
    if how == "fail":
        raise Fail("no stock")
    if how == "raise":
        raise LookupError("no such order")
    if how == "discard":
        raise Discard("no longer wanted")


@task
def follow(number: int) -> None:
    """Do nothing."""


@limits_concurrency(key="one", group="follow")
@task
def follow_alone(number: int) -> None:
    """Do nothing."""


@task(takes_context=True, max_attempts=2, backoff=constant(0))
def leave(context: Any, how: str = "succeed") -> None:
    assert context.enqueue(follow, 1) is None
    context.enqueue(follow_alone, number=2)
    context.enqueue(follow_alone, 3)
    context.enqueue(follow.using(run_after=timedelta(hours=1)), context.attempt)
    if how == "raise once" and context.attempt == 1:
        raise LookupError
    end(how)


@task(takes_context=True)
async def leave_in_a_coroutine(context: Any) -> None:
    context.enqueue(follow, 1)
    await context.aenqueue(follow, 2)


@task(takes_context=True)
def leave_wrongly(context: Any) -> list[str]:
    wrong: list[tuple[Any, ...]] = [
        (follow, "x", "y"), (follow, object()), (end, "x"), (follow_elsewhere(), 1),
    ]  # fmt: skip
    found = []
    for call in wrong:
        try:
            context.enqueue(*call)
        except (TypeError, TaskArgumentError, InvalidTask) as error:
            found.append(type(error).__name__)
    return found


def follow_elsewhere() -> Any:
    return follow.using(backend="elsewhere")


def calls(using: str, path: str) -> list[list[Any]]:
    """Return the arguments of the jobs of a task, in their order."""
    rows = Job.objects.using(using).filter(task_path=f"{HERE}.{path}").order_by("pk")
    return [[*args, *kwargs.values()] for args, kwargs in map(decoded, rows)]


def decoded(row: Any) -> Any:
    return decode_call(row.arguments, resolve_models=False)


@on_every_database
def test_a_job_that_expires_has_failed(using: str) -> None:
    driver = Driver(using)
    result = work.using(expires=HOUR, failure_retention=HOUR).enqueue()
    Job.objects.using(using).update(enqueued_at=F("enqueued_at") - HOUR)
    driver.work()
    [[result_id, path, _]] = calls(using, "told_of_failure")
    assert (result_id, path) == (result.id, "steady_queue_core.errors.TaskExpired")
    assert Retention.objects.using(using).filter(pk=result.id).exists()


@on_every_database
def test_what_is_deleted_with_its_success_leaves_its_calls(using: str) -> None:
    gone = leave.using(on_success=told_of_success, retention=timedelta(0)).enqueue()
    kept = leave.using(on_success=told_of_success, retention=HOUR).enqueue()
    driver = Driver(using)
    for claim in driver.claim():
        driver.settle(driver.run(claim))
    assert calls(using, "told_of_success") == [[gone.id], [kept.id]]
    assert calls(using, "follow_alone") == [[2], [3]] * 2
    jobs = Job.objects.using(using)
    assert [jobs.filter(pk=each.id).exists() for each in (gone, kept)] == [False, True]
    assert [row.pk for row in Retention.objects.using(using).all()] == [int(kept.id)]


@on_every_database
@pytest.mark.parametrize("kind", [work, work_in_a_transaction])
def test_a_job_that_succeeds_has_one_callback(using: str, kind: Any) -> None:
    driver = Driver(using)
    result = kind.enqueue()
    [claim] = driver.claim()
    driver.settle(driver.run(claim))
    assert calls(using, "told_of_success") == [[result.id]]
    assert calls(using, "told_of_failure") == []
    row = Job.objects.using(using).get(task_path__endswith="told_of_success")
    assert (row.queue_name, row.priority) == ("told", 7)
    assert len(driver.work()) == 1  # It has no callback itself.


@on_every_database
@pytest.mark.parametrize("kind", [work, work_in_a_transaction])
def test_a_job_that_fails_for_good_has_one_callback(using: str, kind: Any) -> None:
    driver = Driver(using)
    result = kind.enqueue("raise")
    driver.work()
    assert calls(using, "told_of_success") == []
    assert calls(using, "told_of_failure") == [[result.id, "builtins.LookupError", "no such order"]]
    row = Job.objects.using(using).get(task_path__endswith="told_of_failure")
    assert (row.queue_name, row.max_attempts) == ("told", 4)


@on_every_database
def test_the_limit_of_a_callback_holds(using: str) -> None:
    driver = Driver(using)
    for _ in range(3):
        work.enqueue("fail")
    for claim in driver.claim():
        driver.settle(driver.run(claim))
    assert len(calls(using, "told_of_failure")) == 3
    assert ReadyExecution.objects.using(using).count() == 1
    assert BlockedExecution.objects.using(using).count() == 2


@on_every_database
def test_a_job_that_is_discarded_or_cancelled_has_none(using: str) -> None:
    driver = Driver(using)
    work.enqueue("discard")
    cancelled, asked = work.enqueue(), work.enqueue()
    assert cancelled.cancel()
    [first, second] = driver.claim()
    driver.settle(driver.run(first))
    assert asked.cancel()
    rescue(using, driver, {second.job_id})
    assert Job.objects.using(using).count() == 3


@on_every_database
def test_an_attempt_that_is_not_the_last_has_none(using: str) -> None:
    driver = Driver(using)
    work.enqueue("raise")
    [claim] = driver.claim()
    driver.settle(driver.run(claim))
    assert Job.objects.using(using).count() == 1


@on_every_database
def test_options_of_a_call_come_before_those_of_the_task(using: str) -> None:
    driver = Driver(using)
    other = told_of_success.using(queue_name="other", priority=-3)
    work.using(on_success=other).enqueue()
    driver.work()
    row = Job.objects.using(using).get(task_path__endswith="told_of_success")
    assert (row.queue_name, row.priority) == ("other", -3)


def rescue(using: str, driver: Driver, running: set[int], **finished: Any) -> None:
    snapshot = JournalSnapshot(frozenset(running), **finished)
    Rescuer(QueueDatabase(using)).rescue_process(
        driver.process.name, snapshot, ProcessExitError("killed")
    )


@on_every_database
@pytest.mark.parametrize("known", [True, False])
def test_the_end_of_a_process_stores_the_callback(
    using: str, known: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even where its task is not registered."""
    driver = Driver(using)
    once = rebuilt(work, max_attempts=1)
    results = [once.enqueue(), once.enqueue()]
    claims = driver.claim()
    if not known:
        monkeypatch.setattr(registry, "_registered", {})
        monkeypatch.setattr(registry, "_variant", lambda path: None)
    rescue(using, driver, {claims[0].job_id})
    monkeypatch.undo()
    assert calls(using, "told_of_failure") == [
        [results[0].id, "steady_queue_core.errors.ProcessExitError", "killed"]
    ]
    row = Job.objects.using(using).get(task_path__endswith="told_of_failure")
    assert (row.queue_name, row.backend_name) == ("told", "default")
    rescue(using, driver, {claims[0].job_id})
    assert len(calls(using, "told_of_failure")) == 1


@on_every_database
def test_a_row_that_cannot_be_read_has_its_callback(using: str) -> None:
    driver = Driver(using)
    result = work.enqueue()
    Job.objects.using(using).update(arguments="{")
    driver.work()
    [[result_id, path, _]] = calls(using, "told_of_failure")
    assert (result_id, path.rpartition(".")[2]) == (result.id, "DeserializationError")


@on_every_database
def test_a_lost_claim_has_neither_callback_nor_what_the_task_left(using: str) -> None:
    driver = Driver(using)
    work.enqueue()
    leave.enqueue()
    claims = driver.claim()
    done = [driver.run(claim) for claim in claims]
    rows = [RunResult(outcomes.released(claim)) for claim in claims]
    dialect, connection = dialect_for(using), connections[using]
    dialect.settle(connection, [each.outcome for each in rows])
    assert dialect.settle(connection, [each.outcome for each in done]) == set()
    assert Job.objects.using(using).count() == 2


@on_every_database
def test_a_row_cannot_name_what_is_no_callback(using: str) -> None:
    driver = Driver(using)
    wrong: list[Any] = [
        ("a.b", "", 0, "default"), ("a.b", "q", 101, "default"), ("a.b", "q", True, "default"),
        ("", "q", 0, "default"), ("a\n", "q", 0, "default"), ("a.b",), "a.b", 3,
        ("x" * 600, "q", 0, "default"), ("a.b", "q" * 600, 0, "default"),
    ]  # fmt: skip
    for value in wrong:
        text = JobMetadata(on_success=value).text()
        assert JobMetadata.read(text).on_success is None, value
        work.enqueue()
        Job.objects.using(using).filter(finished_at=None).update(metadata=text)
    driver.work()
    assert Job.objects.using(using).count() == len(wrong)


# --- what a task leaves to its outcome


@on_every_database
def test_what_a_task_leaves_is_stored_with_its_success(using: str) -> None:
    driver, told = Driver(using), []

    def receive(task_result: Any, **kwargs: Any) -> None:
        told.append((task_result.task.module_path.rpartition(".")[2], task_result.id))

    leave.enqueue()
    [claim] = driver.claim()
    done = driver.run(claim)
    assert Job.objects.using(using).count() == 1
    task_enqueued.connect(receive)
    try:
        driver.settle(done)
    finally:
        task_enqueued.disconnect(receive)
    assert calls(using, "follow") == [[1], [1]]
    assert calls(using, "follow_alone") == [[2], [3]]
    assert ScheduledExecution.objects.using(using).count() == 1
    assert BlockedExecution.objects.using(using).count() == 1
    ids = Job.objects.using(using).exclude(pk=claim.job_id).order_by("pk").values_list("pk")
    assert [task_id for _, task_id in told] == [str(pk) for (pk,) in ids]
    assert [name for name, _ in told] == ["follow", "follow_alone", "follow_alone", "follow"]


@on_every_database
@pytest.mark.parametrize("how", ["fail", "discard", "raise"])
def test_nothing_is_stored_of_a_task_that_does_not_succeed(using: str, how: str) -> None:
    leave.enqueue(how)
    Driver(using).work()
    assert Job.objects.using(using).count() == 1


@on_every_database
def test_only_the_attempt_that_succeeds_leaves_something(using: str) -> None:
    driver = Driver(using)
    leave.enqueue("raise once")
    for _ in range(2):
        [claim] = driver.claim()
        driver.settle(driver.run(claim))
    assert calls(using, "follow") == [[1], [2]]


@on_every_database
def test_coroutines_leave_calls_too(using: str) -> None:
    leave_in_a_coroutine.enqueue()
    Driver(using).work()
    assert calls(using, "follow") == [[1], [2]]


@on_every_database
def test_a_wrong_call_is_an_error_in_the_task(using: str, settings: Any) -> None:
    settings.TASKS = tasks(using) | {"elsewhere": tasks("nowhere")["default"]}
    result = Driver(using).finish(leave_wrongly.enqueue())
    invalid = InvalidTask.__name__  # Another one with the backport.
    assert result.return_value == ["TypeError", "TaskArgumentError", invalid, invalid]
    assert Job.objects.using(using).count() == 1


@on_every_database
def test_a_task_cannot_leave_more_than_fits(using: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("MOST_CALLS", 3), ("MOST_BYTES", 20)):
        with monkeypatch.context() as patch:
            patch.setattr(outbox, name, value)
            leave.using(max_snoozes=0).enqueue("fail")
            done = Driver(using).work()
            assert isinstance(done[-1].error, OutboxFullError)
    assert Job.objects.using(using).count() == 2
