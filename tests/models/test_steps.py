"""Durable steps and sleeps as tasks see them: on every database, by the parts that a worker and a
supervisor are made of."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.core.exceptions import SynchronousOnlyOperation
from django.db import OperationalError, connections
from django.db.models import F
from django.db.transaction import atomic, set_rollback

from steady_queue_core import Discard, Preempted, Retry, Snooze, task
from steady_queue_core.arguments import DeserializationError, TaskArgumentError, decode, encode
from steady_queue_core.dialects import Dialect, Ending, StepRecord
from steady_queue_core.dialects.registry import dialect_for
from steady_queue_core.errors import ProcessExitError, StepOrderError, StepRefusedError
from steady_queue_core.models import ClaimedExecution, Job, ScheduledExecution, Step
from steady_queue_core.models.operations.clear import (
    FailedJobs,
    FinishedJobs,
    RetainedJobs,
    StraySteps,
)
from steady_queue_core.payloads import PayloadSignatureError, UnsignedPayloadError
from steady_queue_core.processes.base.database import QueueDatabase
from steady_queue_core.processes.base.journal_reader import FinishedEntry, JournalSnapshot
from steady_queue_core.processes.dispatcher.retention import expired
from steady_queue_core.processes.supervisor.recovery import Rescuer
from steady_queue_core.processes.worker import outcomes
from steady_queue_core.retries import constant

from ..core.driver import Driver
from .everywhere import on_every_database, on_every_server
from .recurrence import tasks

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
#: Is not over before it is looked at, even where another program has the processor meanwhile.
NAP = 0.1
VALUE = {"row": 17, "at": HOUR, "names": ("Åsa", "\\", "'x' %s")}

#: What a test lets the task do in each attempt.
script: list[Any] = []
#: What the attempts have found, and which functions were called.
found: list[Any] = []
called: list[Any] = []


@pytest.fixture(autouse=True)
def _project(using: str, settings: Any) -> None:
    settings.TASKS = tasks(using, backoff=0)
    for each in (script, found, called):
        each.clear()


@task(takes_context=True, max_attempts=5, backoff=constant(0))
def work(context: Any) -> None:
    script.pop(0)(context)


@task(takes_context=True)
def work_once(context: Any) -> None:
    work.func(context)


@task(takes_context=True, max_attempts=5, backoff=constant(0))
async def work_in_a_coroutine(context: Any) -> None:
    await script.pop(0)(context)


@task(takes_context=True, delivery="transactional", max_attempts=2)
def work_in_a_transaction(context: Any) -> None:
    script.pop(0)(context)


@task(takes_context=True, delivery="at_most_once")
def work_at_most_once(context: Any) -> None:
    script.pop(0)(context)


def give(value: Any, *, by: str = "") -> Any:
    called.append(by or value)
    return value


async def agive(value: Any) -> Any:
    await asyncio.sleep(0)
    return give(value)


def fail() -> Any:
    called.append("fail")
    raise LookupError


def taking(*names: str, then: Exception | None = None) -> Any:
    """Return an attempt that takes these steps."""

    def run(context: Any) -> None:
        for name in names:
            found.append(context.step(name, give, name))
        if then is not None:
            raise then

    return run


def nothing(context: Any) -> None:
    """Do nothing."""


@contextmanager
def statements(using: str) -> Iterator[list[str]]:
    """Collect the statements that this thread executes."""
    executed: list[str] = []

    def note(execute: Any, sql: str, *rest: Any) -> Any:
        executed.append(sql)
        return execute(sql, *rest)

    with connections[using].execute_wrapper(note):
        yield executed


def rows(using: str) -> list[Any]:
    return list(Step.objects.using(using).order_by("job_id", "position", "id"))


def names(using: str) -> list[str]:
    return [row.name for row in rows(using)]


def give_to_another(using: str) -> None:
    """Let the only claim end as that of a dead process does, and the next attempt begin."""
    ClaimedExecution.objects.using(using).update(token=F("token") + 2**32)


def pass_time(using: str, by: timedelta) -> None:
    """Let scheduled jobs, and the sleeps of their tasks, be older."""
    for row in ScheduledExecution.objects.using(using):
        ScheduledExecution.objects.using(using).filter(pk=row.pk).update(due_at=row.due_at - by)
    for step in Step.objects.using(using).filter(is_sleep=True):
        data = encode(decode(step.data) - by)
        Step.objects.using(using).filter(pk=step.pk).update(data=data)


def run_on(using: str, driver: Driver) -> None:
    """Run the jobs, once those are due that sleep."""
    scheduled = ScheduledExecution.objects.using(using)
    deadline = time.monotonic() + 10
    while scheduled.exists():
        assert time.monotonic() < deadline
        driver.dispatch()
    driver.work()


# --- steps


@on_every_database
def test_a_step_that_is_stored_is_not_taken_again(using: str) -> None:
    script[:] = [taking("a", "b", then=LookupError()), taking("a", "b", "c")]
    result = Driver(using).finish(work.enqueue())
    assert result.attempts == 2
    assert called == ["a", "b", "c"]
    assert found == ["a", "b", "a", "b", "c"]
    assert names(using) == ["a", "b", "c"]  # Kept as long as the job.


@on_every_database
def test_all_attempts_see_the_value_as_it_is_stored(using: str) -> None:
    def run(context: Any) -> None:
        value = context.step("value", give, VALUE, by="value")
        assert value is not VALUE
        found.append(value)
        found.append(context.step("none", give, None, by="none"))
        if len(found) < 4:
            raise LookupError

    script[:] = [run, run]
    Driver(using).finish(work.enqueue())
    assert found == [VALUE, None] * 2
    assert called == ["value", "none"]


@on_every_database
def test_a_step_that_has_failed_is_taken_again(using: str) -> None:
    def run(context: Any) -> None:
        context.step("a", give, 1)
        with pytest.raises(LookupError):
            context.step("b", fail)
        assert context.step("b", give, 2) == 2  # Also by the same attempt.
        context.step("c", fail)

    def succeed(context: Any) -> None:
        found.extend(context.step(name, give, name) for name in "abc")

    script[:] = [run, succeed]
    Driver(using).finish(work.enqueue())
    assert called == [1, "fail", 2, "fail", "c"]
    assert found == [1, 2, "c"]


@on_every_database
def test_the_row_says_what_was_stored_by_whom_and_when(using: str) -> None:
    driver, dialect = Driver(using), dialect_for(using)
    script[:] = [taking("charge")]
    work.enqueue()
    [claim] = driver.claim()
    before = dialect.current_time(connections[using])
    done = driver.run(claim)
    [row] = rows(using)
    assert (row.job_id, row.token, row.name) == (claim.job_id, claim.token, "charge")
    assert (row.position, row.is_sleep, row.data) == (0, False, '"charge"')
    assert before <= row.stored_at <= dialect.current_time(connections[using])
    assert done.outcome.sequel is None
    driver.settle(done)


@on_every_database
@pytest.mark.parametrize("ending", [Snooze(0.001), Retry(0.001)])
def test_steps_outlast_an_ending_that_the_task_has_chosen(using: str, ending: Exception) -> None:
    script[:] = [taking("a", then=ending), taking("a", then=ending), taking("a")]
    driver = Driver(using)
    work.enqueue()
    while script:
        run_on(using, driver)
    assert called == ["a"]


@on_every_database
def test_a_job_that_has_failed_for_good_goes_on_when_it_is_retried(using: str) -> None:
    script[:] = [taking("a", then=LookupError()), taking("a", "b")]
    result = work_once.enqueue()
    driver = Driver(using)
    driver.work()
    assert Job.objects.using(using).retry_failed() == 1
    assert driver.finish(result).status.name == "SUCCESSFUL"
    assert called == ["a", "b"]


@on_every_database
def test_an_attempt_after_a_crash_goes_on(using: str) -> None:
    driver = Driver(using)
    script[:] = [taking("a"), taking("a", "b")]
    work.enqueue()
    [claim] = driver.claim()
    driver.run(claim)
    snapshot = JournalSnapshot(frozenset([claim.job_id]), {})
    error = ProcessExitError("gone")
    Rescuer(QueueDatabase(using)).rescue_process(driver.name, snapshot, error)
    Driver(using).work()
    assert called == ["a", "b"]


@on_every_database
def test_an_attempt_after_one_that_was_broken_off_goes_on(using: str) -> None:
    driver = Driver(using)
    script[:] = [taking("a"), taking("a", "b")]
    work.enqueue()
    [claim] = driver.claim()
    driver.run(claim)
    dialect_for(using).settle(connections[using], [outcomes.released(claim)])
    driver.work()
    assert called == ["a", "b"]


# --- names


@on_every_database
def test_names_are_compared_exactly(using: str) -> None:
    alike = [
        "a",
        "A",
        "á",
        "a ",
        " a",
        "\N{FULLWIDTH LATIN SMALL LETTER A}",
        "ß",
        "ss",
        "\N{PILE OF POO}" * 255,
    ]
    script[:] = [taking(*alike, then=LookupError()), taking(*alike)]
    Driver(using).finish(work.enqueue())
    assert called == alike
    assert found == alike * 2
    assert names(using) == alike


@on_every_database
def test_bad_names_are_refused(using: str) -> None:
    wrong: dict[str, Any] = {
        "must be a string, not int": 17,
        "must be a string, not NoneType": None,
        "must not be empty": "",
        "has 256 characters, more than 255": "x" * 256,
        "holds a control character: 'a": "a\n",
        r"holds a control character: '\\x00": "\0",
        r"holds a control character: '\\ud800": "\ud800",
    }

    def run(context: Any) -> None:
        for message, name in wrong.items():
            with pytest.raises((TypeError, ValueError), match=message):
                context.step(name, give, 1)
            with pytest.raises((TypeError, ValueError), match=message):
                context.sleep(name, 1)

    script[:] = [run]
    assert Driver(using).finish(work.enqueue()).status.name == "SUCCESSFUL"
    assert (called, rows(using)) == ([], [])


@on_every_database
def test_a_name_is_used_once_in_an_attempt(using: str) -> None:
    def run(context: Any) -> None:
        context.step("a", give, 1)
        for again in (lambda: context.step("a", give, 2), lambda: context.sleep("a", 1)):
            with pytest.raises(ValueError, match=r"has taken the step 'a' already.*number them"):
                again()

    def nest(context: Any) -> None:
        context.step("a", give, 1)
        with pytest.raises(ValueError, match="'b' already"):
            context.step("b", context.step, "b", give, 2)

    script[:] = [lambda context: (run(context), fail()), nest]
    Driver(using).finish(work.enqueue())
    assert called == [1, "fail"]


@on_every_database
def test_what_is_no_function_is_refused(using: str) -> None:
    def run(context: Any) -> None:
        with pytest.raises(TypeError, match="pass a function and its arguments, not the int"):
            context.step("a", 17)
        with pytest.raises(TypeError, match=r"is a coroutine. Await context.astep\(\)"):
            context.step("a", agive, 1)
        with pytest.raises(TypeError, match="returned something to await"):
            context.step("a", lambda: agive(1))
        context.step("a", give, 1)

    script[:] = [run]
    assert Driver(using).finish(work.enqueue()).status.name == "SUCCESSFUL"
    assert called == [1]


# --- order


@on_every_database
@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ("ba", "has the step 'b' as number 1, where an attempt before has stored the step 'a', and "
               "'b' as number 2"),
        ("xb", "has the step 'x' as number 1, where an attempt before has stored the step 'a'."),
        ("b", "has the step 'b' as number 1, where an attempt before has stored the step 'a'"),
        ("axb", "has the step 'x' as number 2, where an attempt before has stored the step 'b'."),
        ("abxc", None),
    ],
)  # fmt: skip
def test_a_changed_order_is_an_error_that_names_both(
    using: str, changed: str, message: str | None
) -> None:
    script[:] = [taking("a", "b", then=LookupError()), taking(*changed)]
    result = Driver(using).finish(work.enqueue())
    if message is None:
        assert result.status.name == "SUCCESSFUL"
        return
    # No other attempt would do better.
    assert (result.status.name, result.attempts) == ("FAILED", 2)
    assert result.errors[-1].exception_class is StepOrderError
    assert message in result.errors[-1].traceback
    assert "Once the former order is back" in result.errors[-1].traceback
    assert called == ["a", "b"]
    # So it is.
    script[:] = [taking("a", "b", "c")]
    assert Job.objects.using(using).retry_failed() == 1
    assert Driver(using).finish(result).status.name == "SUCCESSFUL"
    assert called == ["a", "b", "c"]


@on_every_database
def test_a_step_that_goes_where_none_was_stored_is_an_error(using: str) -> None:
    def run(context: Any) -> None:
        for name in "ab":
            with pytest.raises(LookupError):
                context.step(name, fail)
        context.step("c", give, 1)
        fail()

    script[:] = [run, taking("c")]
    result = Driver(using).finish(work.enqueue())
    assert (
        "has the step 'c' as number 1, where no attempt before has stored one, and 'c' as number 3"
    ) in result.errors[-1].traceback


@on_every_database
def test_a_sleep_that_has_become_a_step_is_an_error(using: str) -> None:
    def rest(context: Any) -> None:
        context.sleep("a", NAP)

    script[:] = [rest, taking("a")]
    driver = Driver(using)
    result = work.enqueue()
    driver.work()
    run_on(using, driver)
    result.refresh()
    assert "it was a sleep in an attempt before" in result.errors[-1].traceback


# --- lost claims


@on_every_database
def test_whoever_has_lost_the_claim_stores_nothing(using: str) -> None:
    def lose(context: Any) -> None:
        context.step("a", give, 1)
        give_to_another(using)
        with pytest.raises(Preempted, match="has lost its claim of job"):
            context.step("b", give, 2)
        with pytest.raises(Preempted):
            context.step("c", give, 3)
        assert names(using) == ["a"]
        context.sleep("d", HOUR)

    script[:] = [lose]
    work.enqueue()
    driver = Driver(using)
    [claim] = driver.claim()
    done = driver.run(claim)
    assert done.outcome.ending is Ending.RELEASED
    assert called == [1, 2]  # Of the third it was known before.


@on_every_database
def test_the_sleep_of_a_lost_claim_is_not_stored(using: str) -> None:
    def run(context: Any) -> None:
        give_to_another(using)
        context.sleep("a", HOUR)

    script[:] = [run]
    work.enqueue()
    driver = Driver(using)
    done = driver.run(driver.claim()[0])
    assert [each.name for each in done.outcome.sequel.sleeps] == ["a"]
    assert dialect_for(using).settle(connections[using], [done.outcome]) == set()
    assert rows(using) == []


@on_every_database
def test_what_a_later_attempt_has_stored_is_not_given_to_an_earlier_one(using: str) -> None:
    driver = Driver(using)
    script[:] = [taking("a", then=LookupError()), taking("a")]
    work.enqueue()
    driver.settle(driver.run(driver.claim()[0]))
    [claim] = driver.claim()
    give_to_another(using)
    step = StepRecord(claim.job_id, claim.token + 2**32, "b", 1, False, "1")
    assert dialect_for(using).save_step(connections[using], step)
    assert driver.run(claim).outcome.ending is Ending.RELEASED
    assert found == ["a"]


@on_every_database
def test_nothing_is_stored_after_the_task_has_ended(using: str) -> None:
    kept: list[Any] = []
    script[:] = [kept.append]
    driver = Driver(using)
    work.enqueue()
    done = driver.run(driver.claim()[0])
    for late in (lambda: kept[0].step("a", give, 1), lambda: kept[0].sleep("b", 1)):
        with pytest.raises(Preempted, match="The task has ended"):
            late()
    driver.settle(done)
    assert (called, rows(using)) == ([], [])


# --- what cannot be stored, or read


@on_every_database
def test_values_that_cannot_be_stored_are_refused(using: str) -> None:
    def run(context: Any) -> None:
        with pytest.raises(TaskArgumentError, match=r"step 'charge'\['a'\]"):
            context.step("charge", give, {"a": object()}, by="1")
        with pytest.raises(TaskArgumentError, match=r"step 'charge' .*Pass its primary key"):
            context.step("charge", give, [Job.objects.using(using).get()], by="2")
        with pytest.raises(TaskArgumentError, match=r"step 'charge'.* 1,048,576"):
            context.step("charge", give, "x" * 2**20, by="3")
        assert rows(using) == []
        context.step("charge", give, 4)

    script[:] = [run]
    assert Driver(using).finish(work.enqueue()).status.name == "SUCCESSFUL"
    assert called == ["1", "2", "3", 4]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("using", ["default"])
def test_a_step_whose_value_cannot_be_stored_is_not_taken_once_more(using: str) -> None:
    script[:] = [lambda context: context.step("charge", give, object(), by="1")]
    result = Driver(using).finish(work.enqueue())
    assert (result.status.name, result.attempts, called) == ("FAILED", 1, ["1"])


@on_every_database
@pytest.mark.parametrize("text", ["{", "", '{"a":NaN}', "[1", "~z::!!!"])
def test_a_row_that_does_not_decode_fails_the_job(using: str, text: str) -> None:
    script[:] = [taking("a", then=LookupError()), taking("a")]
    driver, result = Driver(using), work.enqueue()
    driver.settle(driver.run(driver.claim()[0]))
    Step.objects.using(using).update(data=text)
    driver.finish(result)
    assert issubclass(result.errors[-1].exception_class, DeserializationError)
    assert (called, result.attempts) == (["a"], 2)


@on_every_database
def test_a_row_names_no_model_instance(using: str) -> None:
    script[:] = [taking("a", then=LookupError()), taking("a")]
    driver, result = Driver(using), work.enqueue()
    driver.settle(driver.run(driver.claim()[0]))
    Step.objects.using(using).update(data=encode([Job.objects.using(using).get()]))
    driver.finish(result)
    assert "The stored step 'a' refers to a model instance" in result.errors[-1].traceback


@pytest.mark.parametrize(
    "using", [pytest.param("default", marks=pytest.mark.django_db(transaction=True))]
)
@pytest.mark.parametrize(
    ("column", "value"), [("name", b"a"), ("position", "first"), ("position", None)]
)
def test_a_damaged_row_fails_the_job(using: str, column: str, value: Any) -> None:
    """SQLite stores anything anywhere."""
    script[:] = [taking("a", then=LookupError()), taking("a")]
    driver, result = Driver(using), work.enqueue()
    driver.settle(driver.run(driver.claim()[0]))
    with connections[using].cursor() as cursor:
        if value is None:
            value = b"\xff"
        cursor.execute(f"UPDATE steady_queue_steps SET {column} = %s", [value])
    driver.finish(result)
    assert result.errors[-1].exception_class is DeserializationError
    assert "A stored step of job" in result.errors[-1].traceback
    assert called == ["a"]


@on_every_database
def test_a_sleep_whose_row_says_something_else_fails_the_job(using: str) -> None:
    def rest(context: Any) -> None:
        context.sleep("a", 0.2)

    for text in ('"tomorrow"', encode(datetime(2030, 1, 1)), "17", "null"):
        script[:] = [rest, rest]
        driver, result = Driver(using), work.enqueue()
        driver.work()
        Step.objects.using(using).filter(job_id=result.id).update(data=text)
        run_on(using, driver)
        result.refresh()
        assert result.errors[-1].exception_class is DeserializationError
        assert "The stored sleep 'a' does not say when" in result.errors[-1].traceback


@on_every_database
def test_a_sleep_whose_row_was_forged_is_bounded(using: str) -> None:
    def rest(context: Any) -> None:
        context.sleep("a", 0.2)

    script[:] = [rest, rest]
    driver, result = Driver(using), work.enqueue()
    driver.work()
    forged = datetime.max.replace(tzinfo=UTC)
    Step.objects.using(using).update(data=encode(forged))
    run_on(using, driver)
    [row] = ScheduledExecution.objects.using(using)
    assert row.job_id == int(result.id)
    assert abs((row.due_at - datetime.now(UTC)).days - 3650) <= 1


@on_every_database
def test_values_are_sealed(using: str, settings: Any) -> None:
    options = {"sign": True, "encrypt": True, "compress_over": 10}
    settings.TASKS = tasks(using, backoff=0, payload=options)

    def run(context: Any) -> None:
        found.append(context.step("a", give, "x" * 1000, by="a"))
        context.sleep("b", NAP)

    script[:] = [run, run]
    driver, result = Driver(using), work.enqueue()
    driver.work()
    a, b = rows(using)
    assert a.data.startswith("~zes:")
    assert b.data.startswith("~")
    run_on(using, driver)
    result.refresh()
    assert result.status.name == "SUCCESSFUL"
    assert found == ["x" * 1000] * 2
    assert called == ["a"]


@on_every_database
@pytest.mark.parametrize("how", ["another job", "another step", "plain", "a sleep"])
def test_what_was_signed_for_something_else_is_refused(using: str, settings: Any, how: str) -> None:
    settings.TASKS = tasks(using, backoff=0, payload={"sign": True})
    driver = Driver(using)
    script[:] = [taking("a", "b", then=LookupError())] * 2
    first, _ = work.enqueue(), work.enqueue()
    for claim in driver.claim():
        driver.settle(driver.run(claim))
    a, b, other, _ = rows(using)
    data = {"another job": other.data, "another step": b.data, "plain": '"a"', "a sleep": a.data}
    Step.objects.using(using).filter(pk=a.pk).update(data=data[how], is_sleep=how == "a sleep")
    rest = (lambda context: context.sleep("a", 1)) if how == "a sleep" else taking("a")
    script[:] = [rest] * 2 if how == "a sleep" else [rest, taking("a")]
    driver.finish(first)
    wanted = UnsignedPayloadError if how == "plain" else PayloadSignatureError
    assert first.errors[-1].exception_class is wanted


# --- transactions


@on_every_database
def test_a_step_commits_with_the_tasks_own_transaction(using: str) -> None:
    def roll_back(context: Any) -> None:
        context.step("a", give, 1)
        with atomic(using=using):
            context.step("b", give, 2)
            set_rollback(True, using=using)
        assert names(using) == ["a"]
        # It has not happened, so it may be tried again.
        with atomic(using=using):
            assert context.step("b", give, 3) == 3
            with pytest.raises(ValueError, match="'b' already"):
                context.step("b", give, 4)
            set_rollback(True, using=using)
        fail()

    def commit(context: Any) -> None:
        context.step("a", give, 5)
        with atomic(using=using):
            context.step("b", give, 6)
        with pytest.raises(ValueError, match="'b' already"):
            context.step("b", give, 7)
        fail()

    script[:] = [roll_back, commit, taking("a", "b")]
    Driver(using).finish(work.enqueue())
    assert found == [1, 6]
    assert called == [1, 2, 3, "fail", 6, "fail"]


@on_every_database
def test_a_sleep_outlasts_the_transaction_that_it_ends(using: str) -> None:
    """It is stored with the outcome."""

    def run(context: Any) -> None:
        with atomic(using=using):
            context.step("a", give, 1)
            context.sleep("b", NAP)

    script[:] = [run, run]
    driver, result = Driver(using), work.enqueue()
    driver.work()
    assert names(using) == ["b"]
    run_on(using, driver)
    result.refresh()
    assert result.status.name == "SUCCESSFUL"
    assert called == [1, 1]
    assert names(using) == ["a", "b"]


@on_every_server
def test_in_a_transaction_a_claim_that_was_lost_meanwhile_is_seen(using: str) -> None:
    """Although the transaction has read the claim before, and would go on seeing it."""

    def look(context: Any) -> None:
        with atomic(using=using):
            assert ClaimedExecution.objects.using(using).exists()
            elsewhere(lambda: give_to_another(using))
            with pytest.raises(Preempted):
                context.step("a", give, 1)

    script[:] = [look]
    work.enqueue()
    driver = Driver(using)
    driver.run(driver.claim()[0])
    assert rows(using) == []


def elsewhere(operation: Any) -> None:
    """Do something on another connection."""

    def run() -> None:
        try:
            operation()
        finally:
            for connection in connections.all(initialized_only=True):
                connection.close()

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()


@on_every_database
def test_a_task_that_is_delivered_transactionally_takes_no_steps(using: str) -> None:
    def run(context: Any) -> None:
        for refused in (lambda: context.step("a", give, 1), lambda: context.sleep("b", 1)):
            with pytest.raises(StepRefusedError, match="choose another delivery"):
                refused()

    script[:] = [run]
    Driver(using).finish(work_in_a_transaction.enqueue())
    assert called == []


@on_every_database
def test_a_task_that_starts_at_most_once_does_not_sleep(using: str) -> None:
    def run(context: Any) -> None:
        context.step("a", give, 1)
        with pytest.raises(StepRefusedError, match="would start again afterwards"):
            context.sleep("b", 1)

    script[:] = [run]
    assert Driver(using).finish(work_at_most_once.enqueue()).status.name == "SUCCESSFUL"
    assert called == [1]


@on_every_database
def test_an_error_of_the_database_is_raised(using: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: Any) -> Any:
        raise OperationalError("no space left")

    def run(context: Any) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(Dialect, "save_step", refuse)
            patch.setattr(Dialect, "is_lost_connection", lambda *args: False)
            with pytest.raises(OperationalError, match="no space left"):
                context.step("a", give, 1)
        context.step("a", give, 2)

    script[:] = [run]
    Driver(using).finish(work.enqueue())
    assert called == [1, 2]


# --- sleeps


@on_every_database
@pytest.mark.parametrize("given", [3 * DAY, 3 * 86_400, 3 * 86_400.0, "at"])
def test_a_job_sleeps_and_resumes(using: str, given: Any) -> None:
    """It counts no attempt and no snooze."""

    def run(context: Any) -> None:
        delay = datetime.now(UTC) + 3 * DAY if given == "at" else given
        context.step("a", give, "a")
        try:
            context.sleep("cool", delay)
        except Exception:
            pytest.fail("caught")
        context.step("b", give, "b")
        found.append(context.attempt)

    script[:] = [run, run, run]
    driver, result = Driver(using), work_once.enqueue()
    before = dialect_for(using).current_time(connections[using])
    driver.work()
    result.refresh()
    assert (result.status.name, result.attempts, result.errors) == ("READY", 0, [])
    [row] = ScheduledExecution.objects.using(using)
    # SQLite rounds its clock to milliseconds.
    assert timedelta(milliseconds=-1) <= row.due_at - before - 3 * DAY < timedelta(seconds=30)
    assert not ClaimedExecution.objects.using(using).exists()
    assert [(step.name, step.is_sleep) for step in rows(using)] == [("a", False), ("cool", True)]
    # Somebody runs it early: it goes on sleeping, for what is left.
    pass_time(using, DAY)
    assert Job.objects.using(using).run_now() == 1
    driver.work()
    [again] = ScheduledExecution.objects.using(using)
    assert abs(row.due_at - DAY - again.due_at) < timedelta(seconds=5)
    assert len(rows(using)) == 2
    pass_time(using, 2 * DAY)
    run_on(using, driver)
    result.refresh()
    assert (result.status.name, result.attempts) == ("SUCCESSFUL", 1)
    assert called == ["a", "b"]
    assert found == [1]
    assert "snoozes" not in (Job.objects.using(using).get().metadata or "")


@on_every_database
def test_what_is_over_does_not_end_the_attempt(using: str) -> None:
    def run(context: Any) -> None:
        context.sleep("a", 0)
        context.sleep("b", timedelta(0))
        context.sleep("c", datetime(2020, 1, 1, tzinfo=UTC))
        context.step("d", give, 1)

    script[:] = [run]
    result = Driver(using).finish(work.enqueue())
    assert result.status.name == "SUCCESSFUL"
    assert [(row.name, row.position) for row in rows(using)] == [("d", 3)]


@on_every_database
def test_bad_delays_are_refused(using: str) -> None:
    def run(context: Any) -> None:
        for delay in (-1, "1", None, True, float("nan"), timedelta(-1), timedelta(days=3651)):
            with pytest.raises((TypeError, ValueError), match="sleep: pass a number of seconds"):
                context.sleep("a", delay)
        with pytest.raises(ValueError, match="has no time zone"):
            context.sleep("a", datetime(2030, 1, 1))
        with pytest.raises(ValueError, match="more than 3650 days from now"):
            context.sleep("a", datetime(9999, 12, 31, tzinfo=UTC))

    script[:] = [run]
    assert Driver(using).finish(work.enqueue()).status.name == "SUCCESSFUL"
    assert rows(using) == []


@on_every_database
def test_sleeps_are_not_bounded_by_max_snoozes(using: str) -> None:
    def run(context: Any) -> None:
        for number in range(3):
            context.sleep(f"nap {number}", NAP)

    script[:] = [run] * 4
    driver, result = Driver(using), work_once.using(max_snoozes=0).enqueue()
    while script:
        run_on(using, driver)
    result.refresh()
    assert (result.status.name, result.attempts) == ("SUCCESSFUL", 1)


@on_every_database
def test_a_sleep_that_was_begun_is_stored_however_the_attempt_ends(using: str) -> None:
    def run(context: Any) -> None:
        with pytest.raises(BaseException, match="sleep 'a' until"):
            context.sleep("a", HOUR)
        raise LookupError

    script[:] = [run]
    driver, result = Driver(using), work_once.enqueue()
    driver.finish(result)
    assert result.status.name == "FAILED"
    assert names(using) == ["a"]


@on_every_database
def test_a_sleep_of_another_job_is_a_failure(using: str) -> None:
    def keep(context: Any) -> None:
        try:
            context.sleep("a", HOUR)
        except BaseException as error:
            found.append(error)

    def reuse(context: Any) -> None:
        raise found[0]

    script[:] = [keep, reuse]
    driver = Driver(using)
    driver.finish(work_once.enqueue())
    assert driver.finish(work_once.enqueue()).status.name == "FAILED"


# --- coroutines


@on_every_database
def test_coroutines_take_steps(using: str) -> None:
    async def run(context: Any) -> None:
        found.append(await context.astep("a", agive, VALUE["at"]))
        found.append(await context.astep("b", give, 2))
        found.append(await context.astep("c", sync_to_async(give), 3))
        await context.asleep("d", NAP)
        for name, arguments in {"step": ["x", give, 1], "sleep": ["x", 1]}.items():
            with pytest.raises(SynchronousOnlyOperation, match=f"await context.a{name}"):
                getattr(context, name)(*arguments)
        await context.astep("e", agive, 5)

    script[:] = [run, run]
    driver, result = Driver(using), work_in_a_coroutine.enqueue()
    driver.work()
    run_on(using, driver)
    result.refresh()
    assert (result.status.name, result.attempts) == ("SUCCESSFUL", 1)
    assert found == [HOUR, 2, 3] * 2
    assert called == [HOUR, 2, 3, 5]


@on_every_database
def test_steps_that_are_gathered_keep_their_order(using: str) -> None:
    """However long each of them takes."""
    delays = {1: [0.05, 0.02, 0.0], 2: [0.0, 0.05, 0.02]}

    async def run(context: Any) -> None:
        waits = delays[1 if len(script) else 2]

        async def one(name: str, wait: float) -> str:
            await asyncio.sleep(wait)
            called.append(name)
            if name == "b" and script:
                raise LookupError
            return name

        steps = [context.astep(n, one, n, w) for n, w in zip("abc", waits, strict=True)]
        done = await asyncio.gather(*steps, return_exceptions=True)
        found.append(done)
        await context.astep("d", agive, "d")
        if script:
            raise LookupError

    script[:] = [run, run]
    result = Driver(using).finish(work_in_a_coroutine.enqueue())
    assert result.status.name == "SUCCESSFUL", result.errors
    assert [str(each) for each in found[0]] == ["a", "", "c"]
    assert found[1] == ["a", "b", "c"]
    assert sorted(called) == ["a", "b", "b", "c", "d"]
    assert [row.name for row in rows(using)] == ["a", "b", "c", "d"]


@on_every_database
@pytest.mark.parametrize("end", ["failure", "sleep", "return"])
def test_no_step_goes_on_behind_the_end_of_its_attempt(using: str, end: str) -> None:
    begun, ended = threading.Event(), list[str]()

    async def slowly() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0)
            ended.append("cancelled")

    def in_a_thread() -> None:
        begun.set()
        time.sleep(0.02)
        ended.append("let go on")

    async def end_attempt(context: Any) -> None:
        while not begun.is_set():
            await asyncio.sleep(0.001)
        if end == "failure":
            raise RuntimeError
        if end == "sleep":
            await context.asleep("nap", 60)

    async def run(context: Any) -> None:
        steps = context.astep("slow", slowly), context.astep("thread", in_a_thread)
        found.append([asyncio.ensure_future(each) for each in steps])
        await end_attempt(context)

    async def gather(context: Any) -> None:
        steps = context.astep("slow", slowly), context.astep("thread", in_a_thread)
        await asyncio.gather(*steps, end_attempt(context))

    script.append(run if end == "return" else gather)
    driver, result = Driver(using), work_in_a_coroutine.enqueue()
    [claim] = driver.claim()
    driver.run(claim)
    assert sorted(ended) == ["cancelled", "let go on"]
    assert result.id
    assert names(using) == ["thread"]


@on_every_database
@pytest.mark.parametrize("grouped", [True, False])
def test_sleeps_that_are_gathered_begin_together(using: str, grouped: bool) -> None:
    async def run(context: Any) -> None:
        if grouped:
            async with asyncio.TaskGroup() as group:
                group.create_task(context.asleep("a", 2 * NAP))
                group.create_task(context.asleep("b", NAP))
        else:
            await asyncio.gather(context.asleep("a", 2 * NAP), context.asleep("b", NAP))
        found.append("over")

    script[:] = [run] * 5
    driver, result = Driver(using), work_in_a_coroutine.enqueue()
    driver.work()
    assert names(using) == ["a", "b"]
    until = [row.data for row in rows(using)]
    while not found:
        run_on(using, driver)
    result.refresh()
    assert result.status.name == "SUCCESSFUL"
    assert [row.data for row in rows(using)] == until


@on_every_database
def test_what_a_coroutine_gets_to_await_from_a_function_is_refused(using: str) -> None:
    async def run(context: Any) -> None:
        with pytest.raises(TypeError, match="returned something to await"):
            await context.astep("a", lambda: agive(1))
        with pytest.raises(TypeError, match="pass a function"):
            await context.astep("a", 17)
        with pytest.raises(ValueError, match="'b' already"):
            await asyncio.gather(context.astep("b", agive, 1), context.astep("b", agive, 2))

    script[:] = [run]
    assert Driver(using).finish(work_in_a_coroutine.enqueue()).status.name == "SUCCESSFUL"


@on_every_database
def test_threads_of_a_task_may_take_steps(using: str) -> None:
    def run(context: Any) -> None:
        for name in "abc":
            elsewhere(lambda name=name: found.append(context.step(name, give, name)))
        if script:
            raise LookupError

    script[:] = [run, run]
    Driver(using).finish(work.enqueue())
    assert called == ["a", "b", "c"]
    assert found == ["a", "b", "c"] * 2


# --- what it costs


@on_every_database
def test_a_job_without_steps_asks_for_none(using: str) -> None:
    driver = Driver(using)
    script[:] = [taking(then=LookupError()), nothing]
    work.enqueue()
    for _ in range(2):
        [claim] = driver.claim()
        with statements(using) as executed:
            done = driver.run(claim)
        assert not executed
        assert done.outcome.sequel is None
        driver.settle(done)


@on_every_database
def test_stored_steps_are_read_in_one_query(using: str) -> None:
    driver = Driver(using)
    script[:] = [taking(*"abcdef", then=LookupError()), taking(*"abcdef")]
    work.enqueue()
    [claim] = driver.claim()
    with statements(using) as executed:
        driver.settle(driver.run(claim))
    assert not any("SELECT" in each.lstrip()[:6] and "steps" in each for each in executed)
    [claim] = driver.claim()
    with statements(using) as executed:
        driver.run(claim)
    assert len(executed) == 1


# --- where rows go


@on_every_database
def test_nothing_stays_of_a_job_that_is_not_preserved(using: str, settings: Any) -> None:
    settings.TASKS = tasks(using, backoff=0, preserve_finished_jobs=False)

    def discard(context: Any) -> None:
        context.step("a", give, 1)
        raise Discard("enough")

    for attempts in ([taking("a")], [taking("a", then=LookupError()), taking("a")], [discard]):
        script[:] = attempts
        work.enqueue()
        Driver(using).work()
        assert (rows(using), Job.objects.using(using).count()) == ([], 0)


@on_every_database
def test_a_job_that_ended_when_its_worker_died_leaves_nothing(using: str, settings: Any) -> None:
    for preserve in (True, False):
        settings.TASKS = tasks(using, backoff=0, preserve_finished_jobs=preserve)
        driver = Driver(using)
        script[:] = [taking("a")]
        work.enqueue()
        [claim] = driver.claim()
        done = driver.run(claim)
        entry = FinishedEntry.read(FinishedEntry.of(done.outcome))
        snapshot = JournalSnapshot(frozenset(), {claim.job_id: entry})
        Rescuer(QueueDatabase(using)).rescue_process(driver.name, snapshot, ProcessExitError("x"))
        assert len(rows(using)) == preserve
        Step.objects.using(using).all().delete()


@on_every_database
def test_a_row_goes_with_its_job(using: str) -> None:
    """However that is deleted."""

    def one(attempt: Any, **options: Any) -> Any:
        script[:] = [attempt]
        result = work_once.using(**options).enqueue()
        Driver(using).work()
        assert len(rows(using)) == 2
        return Job.objects.using(using).get(pk=result.id)

    well, failing = taking("a", "b"), taking("a", "b", then=LookupError())
    jobs = Job.objects.using(using)
    later = dialect_for(using).current_time(connections[using]) + HOUR
    one(failing).discard()
    assert rows(using) == []
    one(well)
    assert FinishedJobs(jobs.all(), later).clear(10) == 1
    assert rows(using) == []
    one(failing)
    assert FailedJobs(jobs.all(), later).clear(10) == 1
    assert rows(using) == []
    one(well, retention=timedelta(seconds=1))
    assert RetainedJobs(jobs.all(), later).clear(10) == 1
    assert rows(using) == []
    one(well)
    assert jobs.clear_finished_in_batches(finished_before=later) == 1
    assert rows(using) == []
    one(failing).delete()
    assert rows(using) == []
    script[:] = [lambda context: context.sleep("c", HOUR)]
    work.enqueue()
    Driver(using).work()
    assert len(rows(using)) == 1
    assert jobs.discard() == 1  # It sleeps.
    assert rows(using) == []


@on_every_database
def test_what_a_job_has_left_behind_is_cleared(using: str) -> None:
    """Here somebody has deleted jobs in SQL."""
    script[:] = [taking("a", "b", then=LookupError())] * 4
    results = [work_once.enqueue() for _ in script]
    Driver(using).work()
    for result in results[1:3]:
        with connections[using].cursor() as cursor:
            cursor.execute("DELETE FROM steady_queue_jobs WHERE id = %s", [int(result.id)])
    strays = StraySteps(using, Job.objects.using(using))
    cleared = 0
    while not strays.exhausted:
        cleared += strays.clear(3)
    assert cleared == 4
    kept = [int(results[0].id)] * 2 + [int(results[3].id)] * 2
    assert [row.job_id for row in rows(using)] == kept
    assert "StraySteps" in dict(expired(using, dialect_for(using).current_time(connections[using])))


@on_every_database
def test_a_job_that_sleeps_can_be_cancelled(using: str) -> None:
    script[:] = [lambda context: context.sleep("a", HOUR)]
    result = work.enqueue()
    Driver(using).work()
    assert result.cancel()
    result.refresh()
    assert result.status.name == "FAILED"
    assert names(using) == ["a"]


@on_every_database
def test_statements_are_logged(using: str, settings: Any) -> None:
    """With ``DEBUG`` Django formats them."""
    settings.DEBUG = True
    connections[using].close()
    script[:] = [taking("100 %s", then=LookupError()), taking("100 %s")]
    assert Driver(using).finish(work.enqueue()).status.name == "SUCCESSFUL"
    assert called == ["100 %s"]
