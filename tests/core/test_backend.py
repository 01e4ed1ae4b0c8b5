"""The backend and its tasks: what ``django.tasks`` asks of them, and what we add."""

from __future__ import annotations

import asyncio
import copy
import logging
import pickle
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from zoneinfo import ZoneInfo

import django
import pytest
from asgiref.sync import async_to_sync
from django.apps import apps
from django.db import connection, connections, transaction
from django.dispatch import Signal
from django.utils import timezone as django_timezone

from steady_queue_core import retries, task
from steady_queue_core import tasks as registry
from steady_queue_core.backend import SteadyQueueBackend
from steady_queue_core.compat import (
    NATIVE,
    InvalidTask,
    InvalidTaskBackend,
    Task,
    TaskResult,
    TaskResultDoesNotExist,
    TaskResultMismatch,
    TaskResultStatus,
    task_backends,
    task_enqueued,
    task_finished,
    task_started,
)
from steady_queue_core.configuration import ConfigurationError
from steady_queue_core.errors import UnregisteredTaskError
from steady_queue_core.models import Job, ReadyExecution, ScheduledExecution
from steady_queue_core.tasks import SteadyQueueTask, find_task

from ..app.models import Item
from .driver import Driver

if NATIVE:
    from django.tasks import task as stock_task
else:
    from django_tasks import task as stock_task

FRAMEWORK = "django.tasks" if NATIVE else "django_tasks"
BACKEND = "steady_queue_core.backend.SteadyQueueBackend"
OURS = {"BACKEND": BACKEND, "QUEUES": []}

real_transactions = pytest.mark.django_db(transaction=True)


@task
def echo(*args: Any, **kwargs: Any) -> Any:
    return [list(args), kwargs]


@task
def nothing() -> None:
    """Return nothing."""


@stock_task
def stock(a: int, b: int = 1) -> int:
    return a + b


@stock_task
async def stock_coroutine(a: int) -> int:
    await asyncio.sleep(0)
    return a + 1


@task(takes_context=True, max_attempts=3, backoff=lambda exception, task_result: 0)
def stubborn(context: Any, succeeds_in: int) -> str:
    if context.attempt < succeeds_in:
        raise ValueError(f"not in attempt {context.attempt}")
    return f"in attempt {context.attempt} of {context.task_result.id}"


@task(takes_context=True)
async def own_context(context: Any, name: str) -> list[Any]:
    result = context.task_result
    return [name, context.attempt, context.token, result.status, len(result.worker_ids)]


@task
def breaks() -> None:
    raise LookupError("broken on purpose")


@task
async def breaks_in_a_coroutine() -> None:
    raise LookupError("broken on purpose")


@task(priority=10, queue_name="mail", max_attempts=5, enqueue_on_commit=True)
def configured() -> None:
    """Have other options than the defaults."""


@task
def count_item(item: Item) -> Item:
    item.count += 1
    item.save()
    return item


def plain(a: int) -> int:
    return a * 2


async def plain_coroutine(a: int) -> int:
    return a * 3


def five_seconds(exception: BaseException, task_result: TaskResult) -> float:
    return 5


def no_task() -> None:
    """Be no task."""


def without_context_argument(a: int) -> int:
    return a


class Recorder:
    """Receives a signal and keeps what it brought."""

    def __init__(self, signal: Signal) -> None:
        self.signal = signal
        self.calls: list[SimpleNamespace] = []

    def __call__(self, sender: Any, task_result: TaskResult, **kwargs: Any) -> None:
        seen = SimpleNamespace(
            sender=sender,
            result=task_result,
            status=task_result.status,
            stored=Job.objects.filter(pk=task_result.id, finished_at=None).count(),
        )
        self.calls.append(seen)


@pytest.fixture(autouse=True)
def _registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget the tasks that a test makes."""
    monkeypatch.setattr(registry, "_registered", dict(registry._registered))


@pytest.fixture
def recorders() -> Iterator[dict[str, Recorder]]:
    signals = {"enqueued": task_enqueued, "started": task_started, "finished": task_finished}
    recorders = {name: Recorder(signal) for name, signal in signals.items()}
    for recorder in recorders.values():
        recorder.signal.connect(recorder)
    yield recorders
    for recorder in recorders.values():
        recorder.signal.disconnect(recorder)


@pytest.fixture
def connect() -> Iterator[Callable[[Signal, Callable[..., None]], None]]:
    """Connects receivers for the time of the test."""
    connected: list[tuple[Signal, Callable[..., None]]] = []

    def connect(signal: Signal, receiver: Callable[..., None]) -> None:
        signal.connect(receiver)
        connected.append((signal, receiver))

    yield connect
    for signal, receiver in connected:
        signal.disconnect(receiver)


def backend(alias: str = "default") -> SteadyQueueBackend:
    return task_backends[alias]


# --- the backend ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "flag", ["defer", "async_task", "get_result", "priority"], ids=lambda flag: f"supports_{flag}"
)
def test_every_feature_flag_is_set(flag: str) -> None:
    assert getattr(backend(), f"supports_{flag}") is True


def test_tasks_of_either_decorator_are_of_our_class() -> None:
    assert backend().task_class is SteadyQueueTask
    assert type(stock) is type(echo) is SteadyQueueTask
    assert stock.get_backend() is backend()


def test_a_backend_is_made_without_a_look_at_its_options(settings: Any) -> None:
    settings.TASKS = {"default": {**OURS, "OPTIONS": {"max_atempts": 3, "backoff": -1}}}
    problems = [(problem.id, problem.msg) for problem in backend().check()]
    assert [id for id, _ in problems] == ["steady_queue.E004"] * 2
    assert "did you mean 'max_attempts'?" in problems[0][1]
    with pytest.raises(ConfigurationError, match="max_atempts"):
        echo.enqueue()


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"database": "elsewhere"}, "'elsewhere', which is not in DATABASES (default)."),
        ({"backoff": "tests.core.missing.backoff"}, "cannot be imported"),
        ({"max_payload_depth": 201}, "max_payload_depth"),
    ],
)
def test_check_reports_options_that_cannot_work(
    settings: Any, options: dict[str, Any], problem: str
) -> None:
    settings.TASKS = {"default": {**OURS, "OPTIONS": options}}
    [found] = backend().check()
    assert found.id == "steady_queue.E004"
    assert problem in found.msg


def test_check_is_content_with_the_deepest_payload(settings: Any) -> None:
    settings.TASKS = {"default": {**OURS, "OPTIONS": {"max_payload_depth": 200}}}
    assert backend().check() == []
    assert backend().limits.max_depth == 200


# --- enqueue -------------------------------------------------------------------------------------


@pytest.mark.django_db
@pytest.mark.parametrize("func", [echo, stock, stock_coroutine])
def test_enqueue_returns_a_ready_result(func: Any) -> None:
    before = django_timezone.now()
    named = {} if func is stock_coroutine else {"b": 2}
    result = func.enqueue(1, **named)
    assert result.status == TaskResultStatus.READY
    assert not result.is_finished
    assert result.task == func
    assert result.id == str(Job.objects.get().pk)
    assert 0 < len(result.id) < 64
    assert result.args == [1]
    assert result.kwargs == named
    assert result.backend == "default"
    assert before - timedelta(seconds=1) <= result.enqueued_at <= django_timezone.now()
    assert (result.started_at, result.last_attempted_at, result.finished_at) == (None, None, None)
    assert (result.attempts, result.errors, result.worker_ids) == (0, [], [])
    with pytest.raises(ValueError, match="has not finished"):
        result.return_value  # noqa: B018


@pytest.mark.django_db
def test_aenqueue_and_aget_result() -> None:
    async def scenario() -> None:
        result = await echo.aenqueue(1, b=[2])
        found = await echo.aget_result(result.id)
        assert found == result
        await found.arefresh()
        assert found == result

    async_to_sync(scenario)()


@pytest.mark.django_db
def test_the_backend_takes_a_call_in_parts() -> None:
    result = backend().enqueue(echo, (1, 2), {"b": 3})
    assert (result.args, result.kwargs) == ([1, 2], {"b": 3})
    assert backend().get_result(result.id) == result
    again = async_to_sync(backend().aenqueue)(echo, [1, 2], {"b": 3})
    assert async_to_sync(backend().aget_result)(again.id) == again


@pytest.mark.django_db
def test_what_is_enqueued_is_a_copy() -> None:
    box = [1]
    result = echo.enqueue(box)
    box.append(2)
    assert echo.get_result(result.id).args == [[1]]


@pytest.mark.django_db
@pytest.mark.parametrize(
    "value",
    [
        datetime(2030, 1, 2, 3, 4, 5, 6, tzinfo=UTC),
        datetime(2030, 1, 2, 3, 4, tzinfo=ZoneInfo("Europe/Berlin")),
        date(2030, 1, 2),
        timedelta(days=-1, microseconds=1),
        Decimal("1.10"),
        (1, (2,)),
        {1, 2},
        b"\x00\xff",
        {1: "int key", (1, 2): "tuple key"},
        {"__sq_date__": "2030-01-01"},
        {"%s": "{0.__class__}"},
        2**64,
        -0.0,
        1e308,
    ],
    ids=repr,
)
def test_arguments_keep_their_types(value: Any) -> None:
    result = echo.get_result(echo.enqueue(value, key=value).id)
    assert result.args == [value]
    assert result.kwargs == {"key": value}
    assert repr(result.args) == repr([value])


@pytest.mark.django_db
@pytest.mark.parametrize("asynchronously", [False, True])
def test_a_task_is_validated_again_when_it_is_enqueued(
    monkeypatch: pytest.MonkeyPatch, asynchronously: bool
) -> None:
    validated = []
    monkeypatch.setattr(SteadyQueueBackend, "validate_task", lambda self, t: validated.append(t))
    if asynchronously:
        async_to_sync(echo.aenqueue)()
    else:
        echo.enqueue()
    assert validated == [echo]


@pytest.mark.django_db
def test_enqueue_does_not_wait_for_the_commit(recorders: dict[str, Recorder]) -> None:
    with transaction.atomic():
        result = echo.enqueue()
        assert Job.objects.filter(pk=result.id).exists()
        assert len(recorders["enqueued"].calls) == 1


@real_transactions
def test_a_rollback_takes_the_job_along() -> None:
    with transaction.atomic():
        result = echo.enqueue()
        transaction.set_rollback(True)
    assert not Job.objects.exists()
    assert not ReadyExecution.objects.exists()
    with pytest.raises(TaskResultDoesNotExist):
        echo.get_result(result.id)


@real_transactions
def test_the_rollback_of_a_savepoint_takes_only_its_own_jobs_along() -> None:
    with transaction.atomic():
        outer = echo.enqueue("outer")
        with transaction.atomic():
            echo.enqueue("inner")
            transaction.set_rollback(True)
    assert [str(job.pk) for job in Job.objects.all()] == [outer.id]


# --- options -------------------------------------------------------------------------------------


def test_using_returns_a_variant() -> None:
    due = datetime(2030, 1, 1, tzinfo=UTC)
    variant = echo.using(priority=5, queue_name="mail", run_after=due)
    assert (variant.priority, variant.queue_name, variant.run_after) == (5, "mail", due)
    assert (echo.priority, echo.queue_name, echo.run_after) == (0, "default", None)
    assert variant.func is echo.func
    assert variant.using(priority=6).queue_name == "mail"


def test_using_keeps_our_own_options() -> None:
    variant = configured.using(priority=-1)
    assert (variant.max_attempts, variant.enqueue_on_commit) == (5, True)
    assert variant.using(enqueue_on_commit=False).enqueue_on_commit is False
    delayed = configured.using(run_after=timedelta(seconds=5))
    assert (delayed.delay, delayed.run_after) == (timedelta(seconds=5), None)
    dated = delayed.using(run_after=datetime(2030, 1, 1, tzinfo=UTC))
    assert (dated.delay, dated.run_after) == (None, datetime(2030, 1, 1, tzinfo=UTC))


def test_tasks_cannot_be_changed_and_cannot_be_called() -> None:
    with pytest.raises(AttributeError):
        echo.priority = 5
    assert not callable(echo)
    assert echo.call(1, b=2) == [[1], {"b": 2}]
    assert async_to_sync(stock_coroutine.acall)(1) == 2
    assert (stock.name, stock.module_path) == ("stock", f"{__name__}.stock")


def test_tasks_can_be_copied_and_compared() -> None:
    assert copy.copy(echo) == copy.deepcopy(echo) == echo
    assert echo != echo.using(priority=1)


@pytest.mark.parametrize("priority", [-101, 101, 0.5, 2**63, -(2**63), float("inf")])
def test_a_priority_out_of_range_is_refused(priority: float) -> None:
    with pytest.raises(InvalidTask, match="whole number between -100 and 100"):
        echo.using(priority=priority)


@pytest.mark.parametrize("priority", ["high", float("nan"), [1]])
def test_a_priority_that_is_no_number_is_refused(priority: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        echo.using(priority=priority)


@real_transactions
def test_the_larger_priority_runs_first() -> None:
    priorities = [0, -100, 100, 1, -1, 100]
    ids = [int(echo.using(priority=priority).enqueue().id) for priority in priorities]
    assert [echo.get_result(str(id)).task.priority for id in ids] == priorities
    order = [ids[2], ids[5], ids[3], ids[0], ids[4], ids[1]]
    assert [claim.job_id for claim in Driver().claim()] == order


@pytest.mark.django_db
def test_only_the_queues_of_the_backend_are_accepted(settings: Any) -> None:
    settings.TASKS = {"default": {"BACKEND": BACKEND, "QUEUES": ["default", "mail"]}}
    assert echo.using(queue_name="mail").enqueue().task.queue_name == "mail"
    with pytest.raises(InvalidTask, match="Queue 'other' is not valid for backend"):
        echo.using(queue_name="other")


def test_without_queues_there_is_one(settings: Any) -> None:
    settings.TASKS = {"default": {"BACKEND": BACKEND}}
    assert backend().queues == {"default"}
    with pytest.raises(InvalidTask, match="Queue 'mail' is not valid"):
        echo.using(queue_name="mail")


@pytest.mark.django_db
@pytest.mark.parametrize(
    "name", ["a%", "a_b", "a'; DROP TABLE steady_queue_jobs; --", "é", "*", "a b", "x" * 255]
)
def test_with_an_empty_list_any_queue_is_accepted(name: str) -> None:
    result = echo.using(queue_name=name).enqueue()
    assert echo.get_result(result.id).task.queue_name == name


def test_takes_context_needs_an_argument_of_that_name() -> None:
    with pytest.raises(InvalidTask, match="first argument of 'context'"):
        task(takes_context=True)(without_context_argument)


@pytest.mark.parametrize("function", [len, int, SimpleNamespace(), nothing])
def test_a_task_is_a_function_of_a_module(function: Any) -> None:
    def inner() -> None:
        """Live in a function."""

    for refused in (inner, function):
        with pytest.raises(InvalidTask, match="module level"):
            task(refused)


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("max_attempts", 0, "max_attempts must be a whole number from 1 to 1000, not 0"),
        ("max_attempts", 1001, "not 1001"),
        ("max_attempts", True, "not True"),
        ("max_attempts", "3", "not '3'"),
        ("backoff", 5, "backoff must be a plain function .* not int 5"),
        ("backoff", plain_coroutine, "backoff must be a plain function"),
    ],
)
def test_wrong_options_of_ours_are_refused_in_the_decorator(
    option: str, value: Any, message: str
) -> None:
    with pytest.raises(InvalidTask, match=message):
        task(**{option: value})(plain)


@pytest.mark.parametrize("option", ["max_atempts", "run_after", "delay", "func", "timeout"])
def test_the_decorator_refuses_what_it_does_not_know(option: str) -> None:
    with pytest.raises(TypeError, match=f"unexpected keyword argument '{option}'"):
        task(**{option: None})


@pytest.mark.skipif(django.VERSION[:2] == (6, 0), reason="the decorator of Django 6.0 is strict")
def test_the_stock_decorator_takes_our_options() -> None:
    made = stock_task(max_attempts=4, backoff=five_seconds, enqueue_on_commit=False)(plain)
    assert type(made) is SteadyQueueTask
    assert (made.max_attempts, made.backoff) == (4, five_seconds)
    with pytest.raises(TypeError, match="max_atempts"):
        stock_task(max_atempts=4)(plain)


# --- defer ---------------------------------------------------------------------------------------


@real_transactions
def test_a_deferred_task_waits_until_it_is_due() -> None:
    due = django_timezone.now() + timedelta(hours=1)
    result = echo.using(run_after=due).enqueue()
    assert result.status == TaskResultStatus.READY
    assert echo.get_result(result.id) == result
    assert echo.get_result(result.id).task.run_after == due
    driver = Driver()
    driver.dispatch()
    assert driver.claim() == []
    ScheduledExecution.objects.update(due_at=django_timezone.now() - timedelta(seconds=1))
    driver.dispatch()
    assert driver.finish(result).return_value == [[], {}]


@pytest.mark.django_db
@pytest.mark.parametrize(
    "zone", [timezone(timedelta(hours=-9)), ZoneInfo("Asia/Kathmandu")], ids=str
)
def test_a_date_may_be_in_any_zone(zone: tzinfo) -> None:
    due = datetime(2037, 8, 1, 12, tzinfo=zone)
    result = echo.using(run_after=due).enqueue()
    assert ScheduledExecution.objects.get().due_at == due
    assert echo.get_result(result.id).task.run_after == due


@pytest.mark.django_db
def test_each_fold_of_an_ambiguous_time_is_an_instant_of_its_own() -> None:
    ambiguous = datetime(2036, 10, 26, 2, 30, tzinfo=ZoneInfo("Europe/Berlin"))
    for fold in (0, 1):
        echo.using(run_after=ambiguous.replace(fold=fold)).enqueue()
    first, second = ScheduledExecution.objects.order_by("job_id")
    assert second.due_at - first.due_at == timedelta(hours=1)


@pytest.mark.django_db
def test_a_timedelta_counts_from_the_enqueue_by_the_clock_of_the_database() -> None:
    result = echo.using(run_after=timedelta(minutes=5)).enqueue()
    scheduled = ScheduledExecution.objects.get()
    assert scheduled.due_at - result.enqueued_at == timedelta(minutes=5)
    assert echo.get_result(result.id).task.run_after == scheduled.due_at


@pytest.mark.django_db
@pytest.mark.parametrize(
    "past", [datetime(1970, 1, 1, tzinfo=UTC), timedelta(0), timedelta(days=-3650)], ids=str
)
def test_what_is_due_already_is_ready_at_once(past: datetime | timedelta) -> None:
    echo.using(run_after=past).enqueue()
    assert ReadyExecution.objects.count() == 1
    assert not ScheduledExecution.objects.exists()


@pytest.mark.django_db
def test_the_last_year_can_be_stored() -> None:
    due = datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)
    result = echo.using(run_after=due).enqueue()
    assert echo.get_result(result.id).task.run_after == due


@pytest.mark.parametrize(
    ("run_after", "message"),
    [
        (datetime(2030, 1, 1), "run_after must be an aware datetime"),
        (date(2030, 1, 1), "must be a datetime, not of type date"),
        ("tomorrow", "must be a datetime, not of type str"),
        (5, "must be a datetime, not of type int"),
        (datetime.max.replace(tzinfo=timezone(timedelta(hours=-1))), "outside the years 1 to 9999"),
        (datetime.min.replace(tzinfo=timezone(timedelta(hours=1))), "outside the years 1 to 9999"),
        (timedelta.max, "is more than 3650 days"),
        (timedelta.min, "is more than 3650 days"),
    ],
)
def test_other_times_are_refused(run_after: Any, message: str) -> None:
    with pytest.raises(InvalidTask, match=message):
        echo.using(run_after=run_after)


# --- results -------------------------------------------------------------------------------------


@pytest.mark.django_db
@pytest.mark.parametrize(
    "result_id",
    [
        "", "0", "-1", "1.0", "1e3", " 1", "1 ", "+1", "1_0", "0x1", "one", "%", "1;", "\0", "\n1",
        "\N{ARABIC-INDIC DIGIT ONE}", "\N{SUPERSCRIPT TWO}", "\N{FULLWIDTH DIGIT ONE}",
        "9223372036854775807", "9223372036854775808", "1" * 20, "1" * 5000,
        None, 1, 1.5, b"1", True, [], "3fa85f64-5717-4562-b3fc-2c963f66afa6",
    ],
    ids=lambda value: repr(value)[:24],
)  # fmt: skip
def test_an_id_of_no_result_is_unknown(result_id: Any) -> None:
    echo.enqueue()
    Job.objects.filter(pk=1).update(id=11)  # Nobody has the id 1.
    for read in (backend().get_result, echo.get_result):
        with pytest.raises(TaskResultDoesNotExist):
            read(result_id)
    for aread in (backend().aget_result, echo.aget_result):
        with pytest.raises(TaskResultDoesNotExist):
            async_to_sync(aread)(result_id)


@pytest.mark.django_db
def test_the_result_of_another_task_is_a_mismatch() -> None:
    result = echo.enqueue()
    with pytest.raises(TaskResultMismatch, match=f"received '{__name__}.echo'"):
        nothing.get_result(result.id)
    with pytest.raises(TaskResultMismatch):
        async_to_sync(nothing.aget_result)(result.id)
    assert echo.using(queue_name="other").get_result(result.id) == result


@real_transactions
def test_the_life_of_a_task_that_succeeds(recorders: dict[str, Recorder]) -> None:
    driver = Driver()
    result = echo.enqueue(1, b=2)
    [claim] = driver.claim()
    result.refresh()
    assert result.status == TaskResultStatus.RUNNING
    assert not result.is_finished
    assert result.worker_ids == [driver.name]
    assert result.attempts == 1
    assert result.started_at == result.last_attempted_at >= result.enqueued_at
    assert result.finished_at is None
    with pytest.raises(ValueError, match="has not finished"):
        result.return_value  # noqa: B018

    done = driver.run(claim)
    assert echo.get_result(result.id).status == TaskResultStatus.RUNNING
    driver.settle(done)
    async_to_sync(result.arefresh)()
    assert result.status == TaskResultStatus.SUCCESSFUL
    assert result.is_finished
    assert result.return_value == [[1], {"b": 2}]
    assert (result.attempts, result.worker_ids, result.errors) == (1, [driver.name], [])
    assert result.enqueued_at <= result.started_at <= result.finished_at
    assert result.last_attempted_at == result.started_at
    assert echo.get_result(result.id) == result


@real_transactions
def test_a_return_value_of_none_is_one() -> None:
    result = Driver().finish(nothing.enqueue())
    assert result.status == TaskResultStatus.SUCCESSFUL
    assert result.return_value is None


@real_transactions
@pytest.mark.parametrize("failing", [breaks, breaks_in_a_coroutine])
def test_the_life_of_a_task_that_fails(failing: Task) -> None:
    driver = Driver()
    result = driver.finish(failing.enqueue())
    assert result.status == TaskResultStatus.FAILED
    assert result.is_finished
    assert result.started_at <= result.finished_at
    with pytest.raises(ValueError, match="failed"):
        result.return_value  # noqa: B018
    [error] = result.errors
    assert error.exception_class_path == "builtins.LookupError"
    assert error.exception_class is LookupError
    assert error.traceback.startswith("Traceback (most recent call last):\n")
    assert error.traceback.endswith("LookupError: broken on purpose\n")
    assert f"in {failing.name}" in error.traceback
    assert (result.attempts, result.worker_ids) == (1, [driver.name])


@real_transactions
def test_a_task_that_waits_for_its_retry_is_ready_with_errors(
    recorders: dict[str, Recorder],
) -> None:
    driver = Driver()
    result = stubborn.enqueue(3)
    [claim] = driver.claim()
    driver.settle(driver.run(claim))
    result.refresh()
    assert result.status == TaskResultStatus.READY
    assert [error.exception_class for error in result.errors] == [ValueError]
    assert (result.attempts, result.finished_at) == (1, None)
    assert not recorders["finished"].calls
    first_started_at = result.started_at

    driver.finish(result)
    assert result.status == TaskResultStatus.SUCCESSFUL
    assert result.return_value == f"in attempt 3 of {result.id}"
    assert (result.attempts, len(result.errors)) == (3, 2)
    assert result.worker_ids == [driver.name] * 3
    assert result.started_at == first_started_at < result.last_attempted_at
    assert len(recorders["started"].calls) == 3
    assert [call.status for call in recorders["finished"].calls] == [TaskResultStatus.SUCCESSFUL]


@real_transactions
def test_attempts_come_to_an_end(recorders: dict[str, Recorder]) -> None:
    result = Driver().finish(stubborn.enqueue(4))
    assert result.status == TaskResultStatus.FAILED
    assert (result.attempts, len(result.errors)) == (3, 3)
    assert "not in attempt 3" in result.errors[-1].traceback
    [finished] = recorders["finished"].calls
    assert len(finished.result.errors) == 3


@real_transactions
@pytest.mark.parametrize("backoff", [lambda *args: None, lambda *args: 1 / 0, lambda *args: -1])
def test_a_backoff_can_give_up(settings: Any, backoff: Any) -> None:
    settings.TASKS = {"default": {**OURS, "OPTIONS": {"max_attempts": 3, "backoff": backoff}}}
    result = Driver().finish(breaks.enqueue())
    assert (result.status, result.attempts) == (TaskResultStatus.FAILED, 1)


@real_transactions
def test_a_backoff_that_cannot_be_imported_any_more_gives_up(settings: Any) -> None:
    options = {"max_attempts": 3, "backoff": "tests.core.missing.backoff"}
    settings.TASKS = {"default": {**OURS, "OPTIONS": options}}
    result = Driver().finish(breaks.enqueue())
    assert (result.status, result.attempts) == (TaskResultStatus.FAILED, 1)
    assert result.errors[0].exception_class is LookupError


@real_transactions
def test_the_backend_gives_the_attempts_that_a_task_does_not(settings: Any) -> None:
    settings.TASKS = {"default": {**OURS, "OPTIONS": {"max_attempts": 2, "backoff": 0}}}
    driver = Driver()
    assert driver.finish(breaks.enqueue()).attempts == 2
    assert driver.finish(stubborn.enqueue(9)).attempts == 3


@real_transactions
def test_a_task_gets_its_context() -> None:
    result = Driver().finish(own_context.enqueue("Ada"))
    assert result.return_value == ["Ada", 1, 1, "RUNNING", 1]


@real_transactions
def test_coroutines_and_stock_tasks_run() -> None:
    driver = Driver()
    results = [stock_coroutine.enqueue(1), stock.enqueue(1, b=5)]
    assert [driver.finish(result).return_value for result in results] == [2, 6]


@real_transactions
def test_model_instances_travel_by_primary_key() -> None:
    item = Item.objects.create(name="box")
    result = count_item.enqueue(item)
    item.name = "changed"
    item.save()
    Driver().finish(result)
    item.refresh_from_db()
    assert (item.name, item.count) == ("changed", 1)
    reference = result.return_value
    assert (reference.app_label, reference.model, reference.pk) == ("testapp", "item", item.pk)
    assert count_item.get_result(result.id).args == [reference]


@pytest.mark.django_db
def test_the_result_of_a_task_that_is_gone_can_be_read() -> None:
    result = echo.enqueue(1)
    Job.objects.update(task_path="no.longer.there")
    found = backend().get_result(result.id)
    assert (found.status, found.args) == (TaskResultStatus.READY, [1])
    assert (found.task.module_path, found.task.name) == ("no.longer.there", "there")
    assert found.task.queue_name == "default"
    with pytest.raises(UnregisteredTaskError, match=r"'no\.longer\.there' is not registered"):
        found.task.call()
    with pytest.raises(TaskResultMismatch):
        echo.get_result(result.id)


@pytest.mark.django_db
@pytest.mark.parametrize("damage", ["", "garbage", "{}", "[[1]]", "[1]", "null", "[" * 9999])
def test_a_damaged_row_can_be_read(damage: str) -> None:
    result = echo.enqueue(1)
    Job.objects.update(arguments=damage, errors=damage, worker_ids=damage, return_value=damage)
    found = backend().get_result(result.id)
    assert (found.args, found.kwargs, found.errors) == ([], {}, [])
    assert found.attempts == 0


@pytest.mark.django_db
def test_reading_a_result_imports_nothing() -> None:
    result = echo.enqueue()
    Job.objects.update(errors='[["antigravity.Error", "Traceback"]]')
    result.refresh()
    [error] = result.errors
    assert error.exception_class_path == "antigravity.Error"


@real_transactions
def test_a_job_that_is_not_kept_leaves_no_result(settings: Any) -> None:
    settings.TASKS = {"default": {**OURS, "OPTIONS": {"preserve_finished_jobs": False}}}
    driver = Driver()
    succeeded, failed = nothing.enqueue(), breaks.enqueue()
    driver.work()
    with pytest.raises(TaskResultDoesNotExist):
        succeeded.refresh()
    failed.refresh()
    assert failed.status == TaskResultStatus.FAILED


# --- the registry --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    [
        "os.system", "builtins.eval", "antigravity.fly", f"{__name__}.echo.func",
        f"{__name__}.echo.__globals__", f"{__name__}.no_task", f"{__name__}.Item",
        f"{__name__}.\N{CYRILLIC SMALL LETTER IE}cho", f"{__name__}..echo", f" {__name__}.echo",
        "a..b", "..", ".", "", "echo", "a." * 10_000, "blocked.task",
    ],
    ids=lambda path: path[-24:],
)  # fmt: skip
def test_only_tasks_are_found(monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    import sys

    # What Python keeps of a module that must not be imported.
    monkeypatch.setitem(sys.modules, "blocked", None)  # type: ignore[arg-type]
    before = set(sys.modules)
    with pytest.raises(UnregisteredTaskError, match="is not registered in this process"):
        find_task(path)
    assert set(sys.modules) == before


def test_finding_a_task_does_not_evaluate_what_stands_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from django.utils.functional import SimpleLazyObject

    import tests.app.tasks as module

    evaluated: list[int] = []
    lazy = SimpleLazyObject(lambda: evaluated.append(1))
    monkeypatch.setattr(module, "lazy", lazy, raising=False)
    with pytest.raises(UnregisteredTaskError):
        find_task("tests.app.tasks.lazy")
    assert not evaluated


def test_a_variant_does_not_take_the_place_of_its_task() -> None:
    echo.using(priority=50)
    assert find_task(f"{__name__}.echo") is echo


# --- other backends ------------------------------------------------------------------------------


@pytest.fixture
def several_backends(settings: Any) -> None:
    settings.TASKS = {
        "default": OURS,
        "second": {**OURS, "OPTIONS": {"max_attempts": 2, "backoff": 0}},
        "immediate": {"BACKEND": f"{FRAMEWORK}.backends.immediate.ImmediateBackend"},
        "dummy": {"BACKEND": f"{FRAMEWORK}.backends.dummy.DummyBackend"},
    }


@real_transactions
@pytest.mark.usefixtures("several_backends")
def test_two_backends_share_a_database() -> None:
    driver = Driver()
    first, second = breaks.enqueue(), breaks.using(backend="second").enqueue()
    driver.work()
    for result, alias, attempts in [(first, "default", 1), (second, "second", 2)]:
        result.refresh()
        assert (result.backend, result.attempts) == (alias, attempts)
        found = backend(alias).get_result(result.id)
        assert (found.backend, found.task.backend) == (alias, alias)


@real_transactions
@pytest.mark.usefixtures("several_backends")
def test_a_job_outlives_the_name_of_its_backend(settings: Any) -> None:
    result = echo.using(backend="second").enqueue(1)
    settings.TASKS = {"default": OURS}
    Driver().work()
    found = echo.get_result(result.id)
    assert found.return_value == [[1], {}]
    with pytest.raises(InvalidTaskBackend):
        found.refresh()


@pytest.mark.usefixtures("several_backends")
@pytest.mark.parametrize("function", [plain, plain_coroutine])
def test_our_decorator_serves_the_immediate_backend(function: Any) -> None:
    options: dict[str, Any] = {"max_attempts": 3, "backoff": five_seconds}
    made = task(backend="immediate", enqueue_on_commit=True, **options)(function)
    assert type(made) is Task
    result = made.enqueue(2)
    assert result.status == TaskResultStatus.SUCCESSFUL
    assert result.return_value == (4 if function is plain else 6)


@pytest.mark.usefixtures("several_backends")
def test_our_decorator_serves_the_dummy_backend(monkeypatch: pytest.MonkeyPatch) -> None:
    made = task(backend="dummy", priority=3, max_attempts=3)(plain)
    assert type(made) is Task
    monkeypatch.setitem(globals(), "plain", made)  # Where a decorator would leave it.
    result = made.enqueue(2)
    assert result.status == TaskResultStatus.READY
    assert task_backends["dummy"].results == [result]


@pytest.mark.usefixtures("several_backends")
@pytest.mark.parametrize(
    ("alias", "status"),
    [("immediate", TaskResultStatus.SUCCESSFUL), ("dummy", TaskResultStatus.READY)],
)
def test_a_task_of_ours_can_go_to_another_backend(alias: str, status: TaskResultStatus) -> None:
    for made in (echo, stock):
        assert made.using(backend=alias).enqueue(1).status == status


@real_transactions
@pytest.mark.usefixtures("several_backends")
def test_a_task_of_another_backend_can_come_to_us(monkeypatch: pytest.MonkeyPatch) -> None:
    made = stock_task(backend="dummy")(plain)
    assert type(made) is Task
    monkeypatch.setitem(globals(), "plain", made)
    result = made.using(backend="default", priority=7).enqueue(4)
    assert made.using(backend="default").get_result(result.id) == result
    # In another process nobody has enqueued it, and so nobody has registered it.
    del registry._registered[made.module_path]
    assert Driver().finish(result).return_value == 8


# --- signals and logs ----------------------------------------------------------------------------


@real_transactions
@pytest.mark.parametrize("failing", [False, True])
def test_signals_come_from_the_backend_class(recorders: dict[str, Recorder], failing: bool) -> None:
    driver = Driver()
    result = (breaks if failing else echo).enqueue()
    [enqueued] = recorders["enqueued"].calls
    driver.work()
    [started], [finished] = recorders["started"].calls, recorders["finished"].calls
    ending = TaskResultStatus.FAILED if failing else TaskResultStatus.SUCCESSFUL
    assert enqueued.status == TaskResultStatus.READY
    assert started.status == TaskResultStatus.RUNNING
    assert finished.status == ending
    for call in (enqueued, started, finished):
        assert call.sender is SteadyQueueBackend
        assert call.result.id == result.id
    assert enqueued.stored == started.stored == 1
    # The outcome is stored by the time that it is told.
    assert finished.stored == 0
    result.refresh()
    assert finished.result.worker_ids == started.result.worker_ids == result.worker_ids
    if failing:
        assert finished.result.errors == result.errors
    else:
        assert finished.result.return_value == result.return_value


@real_transactions
def test_a_subclass_sends_as_itself(settings: Any, recorders: dict[str, Recorder]) -> None:
    settings.TASKS = {"default": {**OURS, "BACKEND": f"{__name__}.CustomBackend"}}
    custom = task(plain)
    assert type(custom) is CustomTask
    custom.enqueue(1)
    Driver().work()
    for recorder in recorders.values():
        [call] = recorder.calls
        assert call.sender is CustomBackend


class CustomTask(SteadyQueueTask):
    __slots__ = ()


class CustomBackend(SteadyQueueBackend):
    task_class = CustomTask


@real_transactions
@pytest.mark.parametrize("problem", [ValueError("bad receiver"), SystemExit(3)], ids=repr)
@pytest.mark.parametrize("function", [echo, stock_coroutine], ids=lambda function: function.name)
def test_a_receiver_that_raises_changes_nothing(
    connect: Any, caplog: pytest.LogCaptureFixture, problem: BaseException, function: Task
) -> None:
    def receiver(**kwargs: Any) -> None:
        raise problem

    for signal in (task_enqueued, task_started, task_finished):
        connect(signal, receiver)
    result = Driver().finish(function.enqueue(1))
    assert result.status == TaskResultStatus.SUCCESSFUL
    raised = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert [record.exc_info[1] for record in raised if record.exc_info] == [problem] * 3


@real_transactions
def test_a_receiver_can_be_a_coroutine_function(connect: Any) -> None:
    seen = []

    async def receiver(task_result: TaskResult, **kwargs: Any) -> None:
        await asyncio.sleep(0)
        seen.append(task_result.status)

    for signal in (task_enqueued, task_started, task_finished):
        connect(signal, receiver)
    driver = Driver()
    driver.finish(echo.enqueue(1))
    driver.finish(stock_coroutine.enqueue(1))
    assert seen == ["READY", "RUNNING", "SUCCESSFUL"] * 2


@real_transactions
def test_each_step_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, logger=FRAMEWORK)
    driver = Driver()
    result, failed = nothing.enqueue(), breaks.enqueue()
    driver.work()
    records = [record for record in caplog.records if record.name.startswith(FRAMEWORK)]
    lines = [(record.levelname, record.getMessage()) for record in records]
    name, path = f"Task id={result.id} path=", f"{__name__}.nothing"
    assert ("DEBUG", f"{name}{path} enqueued backend=default") in lines
    assert ("INFO", f"{name}{path} state=RUNNING") in lines
    assert ("INFO", f"{name}{path} state=SUCCESSFUL") in lines
    [error] = [record for record in records if record.levelno >= logging.ERROR]
    assert error.getMessage() == f"Task id={failed.id} path={__name__}.breaks state=FAILED"
    assert error.exc_info is not None
    assert isinstance(error.exc_info[1], LookupError)
    assert len(records) == 6


# --- enqueue_on_commit ---------------------------------------------------------------------------


def _by_the_decorator(settings: Any) -> Task:
    return configured


def _by_using(settings: Any) -> Task:
    return echo.using(enqueue_on_commit=True)


def _by_options(settings: Any) -> Task:
    settings.TASKS = {"default": {**OURS, "OPTIONS": {"enqueue_on_commit": True}}}
    return nothing


on_commit = pytest.mark.parametrize("choose", [_by_the_decorator, _by_using, _by_options])


@real_transactions
@on_commit
def test_on_commit_the_job_is_enqueued(
    settings: Any, recorders: dict[str, Recorder], choose: Callable[[Any], Task]
) -> None:
    waiting = choose(settings)
    with transaction.atomic():
        result = waiting.enqueue()
        assert (result.id, result.enqueued_at) == ("", None)
        assert result.status == TaskResultStatus.READY
        with pytest.raises(TaskResultDoesNotExist):
            result.refresh()
        assert not Job.objects.exists()
        assert not recorders["enqueued"].calls
    assert result.id == str(Job.objects.get().pk)
    assert len(recorders["enqueued"].calls) == 1
    assert waiting.get_result(result.id).enqueued_at == result.enqueued_at
    assert Driver().finish(result).status == TaskResultStatus.SUCCESSFUL


@real_transactions
@on_commit
def test_on_rollback_nothing_is_enqueued(settings: Any, choose: Callable[[Any], Task]) -> None:
    waiting = choose(settings)
    with transaction.atomic():
        result = waiting.enqueue()
        transaction.set_rollback(True)
    assert result.id == ""
    assert not Job.objects.exists()


@real_transactions
@on_commit
def test_outside_a_transaction_there_is_nothing_to_wait_for(
    settings: Any, choose: Callable[[Any], Task]
) -> None:
    waiting = choose(settings)
    for result in (waiting.enqueue(), async_to_sync(waiting.aenqueue)()):
        assert waiting.get_result(result.id).enqueued_at == result.enqueued_at


@real_transactions
def test_using_can_ask_not_to_wait() -> None:
    with transaction.atomic():
        assert configured.using(enqueue_on_commit=False).enqueue().id


@real_transactions
def test_arguments_are_taken_when_the_task_is_enqueued() -> None:
    box = [1]
    with transaction.atomic():
        result = echo.using(enqueue_on_commit=True).enqueue(box)
        box.append(2)
    assert echo.get_result(result.id).args == [[1]]
    with transaction.atomic(), pytest.raises(TypeError, match=r"args\[0\] cannot be stored"):
        echo.using(enqueue_on_commit=True).enqueue(object())


@pytest.fixture
def second_database(tmp_path: Path, settings: Any) -> Iterator[str]:
    """A database of the queue's own, beside the project's."""
    connections.settings["queue"] = {
        **connections.settings["default"],
        "NAME": str(tmp_path / "queue.sqlite3"),
    }
    try:
        # Once it is open, the framework has no objection to a database that it does not know.
        connections["queue"].connect()
        with connections["queue"].schema_editor() as editor:
            for model in apps.get_app_config("steady_queue").get_models():
                editor.create_model(model)
        settings.TASKS = {"default": {**OURS, "OPTIONS": {"database": "queue"}}}
        yield "queue"
    finally:
        connections["queue"].close()
        del connections["queue"]
        del connections.settings["queue"]


@real_transactions
def test_jobs_can_live_in_a_database_of_their_own(second_database: str) -> None:
    with transaction.atomic():
        kept = echo.enqueue(1)
        dropped = echo.using(enqueue_on_commit=True).enqueue(2)
        transaction.set_rollback(True)
    assert not Job.objects.exists()
    assert [str(job.pk) for job in Job.objects.using("queue")] == [kept.id]
    assert dropped.id == ""
    with transaction.atomic():
        waiting = echo.using(enqueue_on_commit=True).enqueue(3)
        assert waiting.id == ""
    assert echo.get_result(waiting.id).args == [3]
    driver = Driver("queue")
    assert driver.finish(kept).return_value == [[1], {}]
    assert connections["queue"].settings_dict["NAME"] != connection.settings_dict["NAME"]


@real_transactions
def test_a_transaction_of_the_queue_database_is_waited_for_as_well(second_database: str) -> None:
    with transaction.atomic(using="queue"):
        result = echo.using(enqueue_on_commit=True).enqueue()
        assert result.id == ""
    assert echo.get_result(result.id).enqueued_at == result.enqueued_at


# --- pickles -------------------------------------------------------------------------------------

pickles = pytest.mark.skipif(django.VERSION < (6, 1), reason="Django pickles tasks since 6.1")


@pickles
@pytest.mark.parametrize(
    "made",
    [
        echo,
        stock,
        stock_coroutine,
        configured.using(priority=3, run_after=timedelta(hours=1)),
        echo.using(run_after=datetime(2030, 1, 1, tzinfo=UTC)),
    ],
)
def test_tasks_can_be_pickled(made: Task) -> None:
    assert pickle.loads(pickle.dumps(made)) == made


@pickles
@real_transactions
@pytest.mark.parametrize("made", [nothing, breaks])
def test_results_can_be_pickled(made: Task) -> None:
    result = made.enqueue()
    assert pickle.loads(pickle.dumps(result)) == result
    Driver().finish(result)
    again = pickle.loads(pickle.dumps(result))
    assert again == result
    again.refresh()
    assert again.errors == result.errors


# --- without time zones --------------------------------------------------------------------------


@pytest.fixture
def local_time(settings: Any) -> ZoneInfo:
    settings.USE_TZ = False
    settings.TIME_ZONE = "Asia/Kathmandu"
    return ZoneInfo("Asia/Kathmandu")


@real_transactions
def test_without_use_tz_instants_are_local_and_naive(local_time: ZoneInfo) -> None:
    driver = Driver()
    now = datetime.now(local_time).replace(tzinfo=None)
    with django_timezone.override("America/New_York"):
        result = echo.enqueue(1)
        assert echo.get_result(result.id) == result
        driver.finish(result)
    moments = [
        result.enqueued_at, result.started_at, result.last_attempted_at, result.finished_at
    ]  # fmt: skip
    for moment in moments:
        assert moment.tzinfo is None
        assert abs(moment - now) < timedelta(minutes=1)
    assert moments == sorted(moments)


@real_transactions
def test_without_use_tz_a_naive_time_is_local(local_time: ZoneInfo) -> None:
    driver = Driver()
    now = datetime.now(local_time).replace(tzinfo=None)
    past = echo.using(run_after=now - timedelta(seconds=5)).enqueue()
    future = echo.using(run_after=now + timedelta(minutes=5)).enqueue()
    aware = echo.using(run_after=datetime.now(UTC) + timedelta(minutes=5)).enqueue()
    delayed = echo.using(run_after=timedelta(minutes=5)).enqueue()
    driver.dispatch()
    assert [str(claim.job_id) for claim in driver.claim()] == [past.id]
    assert echo.get_result(future.id).task.run_after == now + timedelta(minutes=5)
    for result in (aware, delayed):
        due = echo.get_result(result.id).task.run_after
        assert due.tzinfo is None
        assert abs(due - now - timedelta(minutes=5)) < timedelta(minutes=1)


def test_exponential_backoffs_can_be_shared_between_tasks() -> None:
    shared = retries.exponential(first=2)
    made = [task(max_attempts=2, backoff=shared)(function) for function in (plain, five_seconds)]
    assert [each.backoff for each in made] == [shared, shared]
