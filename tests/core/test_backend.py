"""The backend and its tasks: what ``django.tasks`` asks of them, and what we add."""

from __future__ import annotations

import copy
import dataclasses
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from decimal import Decimal
from types import SimpleNamespace
from typing import Any
from zoneinfo import ZoneInfo

import django
import pytest
from asgiref.sync import async_to_sync
from django.db import transaction
from django.utils import timezone as django_timezone

from steady_queue_core import backend as backend_module
from steady_queue_core import call, enqueue_many, retries, task
from steady_queue_core.backend import SteadyQueueBackend
from steady_queue_core.compat import (
    InvalidTask,
    InvalidTaskBackend,
    TaskResultDoesNotExist,
    TaskResultStatus,
    task_backends,
)
from steady_queue_core.configuration import ConfigurationError
from steady_queue_core.errors import UnregisteredTaskError
from steady_queue_core.models import Job, ReadyExecution, ScheduledExecution
from steady_queue_core.tasks import registry, validation
from steady_queue_core.tasks.definition import SteadyQueueTask

from . import samples
from .driver import Driver
from .samples import (
    BACKEND,
    OURS,
    Recorder,
    backend,
    breaks,
    configured,
    echo,
    five_seconds,
    nothing,
    plain,
    plain_coroutine,
    real_transactions,
    stock,
    stock_coroutine,
    stock_task,
    without_arguments,
)

# --- the backend ----------------------------------------------------------------------------------


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
        ({"database": "elsewhere"}, "'elsewhere', which is not in DATABASES (default"),
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
    assert backend().payload_limits.max_depth == 200


# --- enqueue --------------------------------------------------------------------------------------


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


# --- options --------------------------------------------------------------------------------------


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
    assert (stock.name, stock.module_path) == ("stock", f"{samples.__name__}.stock")


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


def test_the_context_is_the_first_argument_whatever_its_name() -> None:
    assert task(takes_context=True)(plain).takes_context
    with pytest.raises(InvalidTask, match="does not have a first argument of 'context'") as refused:
        task(takes_context=True)(without_arguments)
    code = without_arguments.__code__
    place = f"{without_arguments.__module__}.without_arguments ({code.co_filename}:"
    assert str(refused.value).startswith(f"{place}{code.co_firstlineno}): ")


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


@pytest.mark.parametrize("option", ["max_atempts", "run_after", "delay", "func", "time_out"])
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


# --- defer ----------------------------------------------------------------------------------------


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
def test_the_last_year_can_be_stored_but_its_last_day() -> None:
    due = datetime(9999, 12, 30, 23, 59, 59, 999999, tzinfo=UTC)
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
        (datetime(9999, 12, 31, tzinfo=UTC), "outside the years 1 to 9999 in some time zone"),
        (datetime(1, 1, 1, 23, tzinfo=UTC), "outside the years 1 to 9999 in some time zone"),
        (timedelta.max, "is more than 3650 days"),
        (timedelta.min, "is more than 3650 days"),
    ],
)
def test_other_times_are_refused(run_after: Any, message: str) -> None:
    with pytest.raises(InvalidTask, match=message):
        echo.using(run_after=run_after)


# --- without time zones ---------------------------------------------------------------------------


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


# --- other backends -------------------------------------------------------------------------------


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
    result = made.enqueue(2)
    assert result.status == TaskResultStatus.SUCCESSFUL
    assert result.return_value == (4 if function is plain else 6)


@pytest.mark.usefixtures("several_backends")
def test_our_decorator_serves_the_dummy_backend(monkeypatch: pytest.MonkeyPatch) -> None:
    made = task(backend="dummy", priority=3, max_attempts=3)(plain)
    monkeypatch.setattr(samples, "plain", made)  # Where a decorator would leave it.
    result = made.enqueue(2)
    assert result.status == TaskResultStatus.READY
    assert [each.id for each in task_backends["dummy"].results] == [result.id]


@pytest.mark.usefixtures("several_backends")
@pytest.mark.parametrize(
    ("alias", "status"),
    [("immediate", TaskResultStatus.SUCCESSFUL), ("dummy", TaskResultStatus.READY)],
)
def test_a_task_of_ours_can_go_to_another_backend(alias: str, status: TaskResultStatus) -> None:
    for made in (echo, stock):
        assert made.using(backend=alias).enqueue(1).status == status


@pytest.fixture
def elsewhere(several_backends: None, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A task of another backend, where a decorator would have left it."""
    made = stock_task(backend="dummy")(plain)
    monkeypatch.setattr(samples, "plain", made)
    return made


@real_transactions
def test_a_task_of_another_backend_comes_to_us_if_its_module_says_so(
    elsewhere: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(samples, "ours", elsewhere.using(backend="default"), raising=False)
    result = elsewhere.using(backend="second", priority=7).enqueue(4)
    assert elsewhere.using(backend="second").get_result(result.id) == result
    # In another process nobody has enqueued it.
    del registry._registered[elsewhere.module_path]
    assert Driver().finish(result).return_value == 8


@pytest.mark.django_db
def test_a_task_of_another_backend_is_refused_if_workers_would_not_know_it(elsewhere: Any) -> None:
    with pytest.raises(InvalidTask, match=r"plain_queued = plain\.using\(backend='default'\)"):
        elsewhere.using(backend="default").enqueue(4)
    with pytest.raises(InvalidTask, match=r"calls\[0\]: .*plain is not declared for 'default'"):
        enqueue_many([call(elsewhere.using(backend="default"), 4)])
    assert Job.objects.count() == 0


@real_transactions
@pytest.mark.usefixtures("elsewhere")
def test_a_row_cannot_name_a_task_of_another_backend() -> None:
    echo.enqueue(4)
    Job.objects.update(task_path=f"{samples.__name__}.plain")
    driver = Driver()
    [claim] = driver.claim()
    with pytest.raises(UnregisteredTaskError):
        driver.executor.task_of(claim)


@pytest.mark.django_db
def test_a_task_that_was_valid_is_not_validated_anew_but_by_who_changes_the_rules(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    echo.enqueue()
    backend, validated = echo.get_backend(), []
    with monkeypatch.context() as patch:
        patch.setattr(
            backend_module, "require_valid", lambda task, delivery: validated.append(task)
        )
        echo.enqueue()
        assert validated == []
        variant = dataclasses.replace(echo, priority=5)  # Which validates it, too.
        validated.clear()
        variant.enqueue()
        variant.enqueue()
        assert validated == [variant]
    monkeypatch.setattr(backend, "validate_task", validated.append)
    echo.enqueue()
    assert validated == [variant, echo]


@pytest.mark.django_db
def test_a_backend_remembers_a_bounded_number_of_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(validation, "MOST_VALID", 3)
    backend: Any = echo.get_backend()
    for priority in range(10):
        dataclasses.replace(echo, priority=priority).enqueue()
        assert len(backend._valid) <= 3


@pytest.mark.parametrize(
    "module", ["__main__", "builtins", "django.core.management.commands.shell"]
)
@real_transactions
def test_a_task_of_a_script_or_a_shell_is_refused_unless_its_module_is_declared(
    settings: Any, module: str
) -> None:
    def script() -> None: ...

    script.__module__ = module
    script.__qualname__ = "script"
    made = task(script)
    with pytest.raises(InvalidTask) as raised:
        made.enqueue()
    assert str(raised.value) == (
        f"{module}.script cannot be enqueued: {module} is another module in a worker, which would "
        "not find it. Define it in the tasks.py of an installed app. If workers are started from "
        f"the same file, name {module!r} in STEADY_QUEUE['task_modules']."
    )
    with pytest.raises(InvalidTask):
        enqueue_many([call(made)])
    settings.STEADY_QUEUE = {"task_modules": [module]}
    made.enqueue()
    assert Job.objects.get().task_path == f"{module}.script"
