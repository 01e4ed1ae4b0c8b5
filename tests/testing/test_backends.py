"""The backends for tests, which keep jobs in memory, and ours under Django's own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.core.checks import run_checks
from django.db import transaction
from django.dispatch import Signal
from django.test import SimpleTestCase, override_settings

from steady_queue_core import aenqueue_many, call, enqueue_many, limits_concurrency, task
from steady_queue_core.arguments import ModelReference, TaskArgumentError
from steady_queue_core.compat import (
    InvalidTask,
    TaskResultDoesNotExist,
    TaskResultStatus,
    task_backends,
    task_enqueued,
    task_finished,
    task_started,
)
from steady_queue_core.configured_backends import own_backends
from steady_queue_core.errors import TaskExpired, UnusableRecurringTaskError
from steady_queue_core.models import Job, RecurringTask
from steady_queue_core.testing import (
    DummyBackend,
    ImmediateBackend,
    arun_enqueued_tasks,
    override_backends,
    run_enqueued_tasks,
)
from steady_queue_core.testing.memory import memory_of

from ..app.models import Item
from ..core.samples import FRAMEWORK
from . import samples
from .samples import DONE

HOUR = timedelta(hours=1)
immediate = pytest.mark.steady_queue("immediate")
dummy = pytest.mark.steady_queue("dummy")
both = pytest.mark.parametrize("kind", ["immediate", "dummy"])


def backend() -> Any:
    return task_backends["default"]


# --- both -----------------------------------------------------------------------------------------


@both
def test_they_take_the_place_of_ours_and_keep_its_settings(kind: str, settings: Any) -> None:
    settings.TASKS = {
        "default": {
            "BACKEND": "steady_queue_core.backend.SteadyQueueBackend",
            "QUEUES": ["mail"],
            "OPTIONS": {"max_attempts": 4},
        },
        "other": {"BACKEND": f"{FRAMEWORK}.backends.dummy.DummyBackend"},
    }
    with override_backends(kind, max_payload_bytes=100):
        assert type(backend()) is {"immediate": ImmediateBackend, "dummy": DummyBackend}[kind]
        assert (backend().queues, backend().settings.max_attempts) == ({"mail"}, 4)
        assert backend().settings.max_payload_bytes == 100
        assert type(task_backends["other"]).__module__ == f"{FRAMEWORK}.backends.dummy"
        assert own_backends() == {}
    assert list(own_backends()) == ["default"]
    with pytest.raises(ValueError, match="'later' is no backend for tests"):
        override_backends("later")


@both
def test_what_could_not_be_stored_is_an_error(kind: str) -> None:
    with override_backends(kind, max_payload_bytes=1000):
        with pytest.raises(TaskArgumentError, match=r"args\[0\] cannot be stored"):
            samples.note.enqueue(object())
        with pytest.raises(TaskArgumentError, match="the limit is"):
            samples.note.enqueue("x" * 2000)
        with pytest.raises(TypeError, match="missing a required argument: 'what'"):
            samples.note.enqueue()
        with pytest.raises(InvalidTask, match="Queue name"):
            samples.note.using(queue_name=" ")
        assert backend().results == []


@both
def test_wrong_options_are_told_by_the_checks(kind: str) -> None:
    with override_backends(kind, max_attempt=3):
        assert ["max_attempt" in each.msg for each in backend().check()] == [True]
    with override_backends(kind):
        assert run_checks(tags=["steady_queue"], databases=[]) == []


@both
@pytest.mark.django_db
def test_models_and_others_come_back_as_from_the_database(kind: str) -> None:
    item = Item.objects.create(name="counted")
    with override_backends(kind):
        first = samples.count.enqueue(item)
        second = samples.dated.enqueue(date(2026, 2, 28))
        item.count = 99  # Not saved: the task fetches the row.
        run_enqueued_tasks()
        first, second = (each.task.get_result(each.id) for each in (first, second))
    assert isinstance(first.return_value, ModelReference)
    assert second.return_value == date(2026, 3, 1)
    assert isinstance(first.args[0], ModelReference)
    assert Item.objects.get().count == 1


@both
def test_the_signals_are_sent_by_them(
    kind: str, connect: Callable[[Signal, Callable[..., None]], None]
) -> None:
    seen: list[Any] = []

    def note(sender: Any, task_result: Any, **kwargs: Any) -> None:
        seen.append((sender, task_result.status))

    for signal in (task_enqueued, task_started, task_finished):
        connect(signal, note)
    with override_backends(kind):
        samples.note.enqueue("seen")
        run_enqueued_tasks()
        assert seen == [(type(backend()), each) for each in ("READY", "RUNNING", "SUCCESSFUL")]


@both
def test_each_begins_with_nothing_and_can_be_cleared(kind: str) -> None:
    for _ in range(2):
        with override_backends(kind):
            result = samples.note.enqueue(1)
            assert len(backend().results) == 1
            backend().clear()
            assert backend().results == []
            with pytest.raises(TaskResultDoesNotExist):
                result.refresh()


@both
def test_jobs_that_are_not_preserved_are_gone_when_they_have_ended(kind: str) -> None:
    with override_backends(kind, preserve_finished_jobs=False):
        samples.note.enqueue(1)
        run_enqueued_tasks()
        assert (DONE, backend().results) == ([1], [])


@both
def test_coroutines_enqueue(kind: str) -> None:
    async def several() -> list[Any]:
        results = await asyncio.gather(*(samples.note.aenqueue(n) for n in range(3)))
        results += await aenqueue_many([call(samples.note, 3)])
        await arun_enqueued_tasks()
        return [(await samples.note.aget_result(each.id)).return_value for each in results]

    with override_backends(kind):
        assert async_to_sync(several)() == [0, 1, 2, 3]


@both
def test_threads_have_their_jobs_in_common_and_each_runs_its_own(kind: str) -> None:
    found: list[Any] = []

    def elsewhere() -> None:
        found.extend(samples.note.enqueue(number) for number in range(20))

    with override_backends(kind):
        threads = [threading.Thread(target=elsewhere) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
        assert {each.status for each in found} == {"SUCCESSFUL" if kind == "immediate" else "READY"}
        assert len({each.id for each in found}) == len(backend().results) == 80
        assert len(run_enqueued_tasks()) == (0 if kind == "immediate" else 80)


@both
def test_jobs_for_later_wait_for_the_clock(kind: str) -> None:
    with override_backends(kind):
        samples.daily.using(run_after=24 * HOUR).enqueue(1)
        samples.note.using(run_after=datetime.now(UTC) + 36 * HOUR).enqueue("between")
        run_enqueued_tasks(until=HOUR)
        assert DONE == []
        run_enqueued_tasks(until=50 * HOUR)
        assert DONE == [1, "between", 2]
        past = samples.note.using(run_after=datetime.now(UTC) - HOUR).enqueue("past")
        run_enqueued_tasks()
        assert past.task.get_result(past.id).return_value == "past"


@pytest.mark.django_db(transaction=True)
@both
def test_commits_are_waited_for_where_there_are_transactions(kind: str) -> None:
    later = samples.note.using(enqueue_on_commit=True)
    with override_backends(kind):
        with transaction.atomic():
            result = later.enqueue(1)
            assert (result.id, result.status, backend().results) == ("", "READY", [])
        assert (result.id, len(backend().results)) == ("1", 1)
        assert ([1] if kind == "immediate" else []) == DONE
        later.enqueue(2)
        with transaction.atomic():
            later.enqueue(3)
            transaction.set_rollback(True)
        run_enqueued_tasks()
    assert DONE == [1, 2]


# --- immediate ------------------------------------------------------------------------------------


@immediate
def test_a_task_has_ended_when_it_is_enqueued() -> None:
    result = samples.note.enqueue("now")
    assert (result.status, result.return_value) == (TaskResultStatus.SUCCESSFUL, "now")
    assert (result.attempts, result.worker_ids) == (1, ["immediate"])
    assert samples.note.get_result(result.id) == result
    samples.chain.enqueue(2)
    assert [each.return_value for each in backend().results] == ["now", 2, 1, 0]


@immediate
def test_coroutine_tasks_run() -> None:
    assert samples.wait.enqueue(5).return_value == 5


@immediate
def test_a_failure_does_not_reach_the_caller() -> None:
    result = samples.fail.enqueue("broken")
    assert result.status == TaskResultStatus.FAILED
    [error] = result.errors
    assert error.exception_class is LookupError
    assert "LookupError: broken" in error.traceback


@pytest.mark.steady_queue("immediate", raise_errors=True)
def test_a_failure_reaches_the_caller_if_that_is_wanted() -> None:
    with pytest.raises(LookupError, match="broken"):
        samples.fail.enqueue("broken")
    [result] = backend().results
    assert result.status == TaskResultStatus.FAILED
    assert samples.stubborn.enqueue(3).attempts == 3


@pytest.mark.steady_queue("immediate", raise_errors=True)
def test_another_kind_of_backend_does_not_mind_what_it_does_not_know() -> None:
    with override_backends("dummy"):
        assert samples.fail.enqueue("broken").status == TaskResultStatus.READY
    with override_backends("immediate"), pytest.raises(LookupError, match="broken"):
        samples.fail.enqueue("broken")


@immediate
def test_retries_follow_at_once() -> None:
    result = samples.stubborn.enqueue(3)
    assert (result.status, result.attempts, len(result.errors)) == ("SUCCESSFUL", 3, 2)
    failed = samples.stubborn.enqueue(4)
    assert (failed.status, failed.attempts, len(failed.errors)) == ("FAILED", 3, 3)


@immediate
def test_limits_are_kept_while_tasks_enqueue() -> None:
    assert samples.only_one.enqueue().return_value is True
    samples.alone.enqueue("a", 2)
    assert DONE == [2, "end of 2", 1, "end of 1", 0]


@pytest.mark.django_db
@immediate
def test_a_broken_task_leaves_the_callers_transaction_usable() -> None:
    assert samples.break_the_transaction.enqueue("gone").status == "FAILED"
    assert samples.write_and_fail.enqueue("written").status == "FAILED"
    assert [item.name for item in Item.objects.all()] == ["written"]


@immediate
def test_many_run_at_once() -> None:
    results = enqueue_many([call(samples.note, 1), call(samples.fail, "x"), call(samples.note, 2)])
    assert [each.status for each in results] == ["SUCCESSFUL", "FAILED", "SUCCESSFUL"]


@pytest.mark.django_db
@both
def test_no_job_is_in_the_database(kind: str) -> None:
    with override_backends(kind):
        samples.note.enqueue(1)
    assert not Job.objects.exists()


# --- dummy ----------------------------------------------------------------------------------------


@dummy
def test_nothing_runs_until_it_is_told_to() -> None:
    result = samples.stubborn.enqueue(2)
    assert (result.status, DONE) == (TaskResultStatus.READY, [])
    with pytest.raises(ConnectionError):
        run_enqueued_tasks()
    [again] = run_enqueued_tasks(until=HOUR)
    assert (again.attempts, samples.stubborn.get_result(result.id).attempts) == (2, 2)


@dummy
def test_limits_discard_and_block() -> None:
    first, second = samples.only_one.enqueue(), samples.only_one.enqueue()
    assert [first.discarded, second.discarded, second.id] == [False, True, ""]
    samples.alone.enqueue("a")
    samples.alone.enqueue("a")
    assert len(run_enqueued_tasks(limit=2)) == 2
    assert len(run_enqueued_tasks()) == 1


@dummy
def test_a_result_that_runs_is_that_of_a_database() -> None:
    result = samples.look_at_the_result.enqueue()
    run_enqueued_tasks()
    assert [(result.id, TaskResultStatus.RUNNING, ["testing"], True, None)] == DONE


@dummy
def test_queues_are_those_of_a_worker() -> None:
    for name in ("b", "a1", "a2"):
        samples.note.using(queue_name=name).enqueue(name)
    assert [each.return_value for each in run_enqueued_tasks(["a*"])] == ["a1", "a2"]
    assert [each.return_value for each in run_enqueued_tasks()] == ["b"]


# --- Django's own ---------------------------------------------------------------------------------


@pytest.fixture(params=["immediate", "dummy"])
def theirs(request: pytest.FixtureRequest, settings: Any) -> str:
    kind: str = request.param
    path = f"{FRAMEWORK}.backends.{kind}.{kind.title()}Backend"
    settings.TASKS = {"default": {"BACKEND": path, "QUEUES": []}}
    return kind


@pytest.fixture
def made(theirs: str) -> Any:
    """A task of ours that was decorated under Django's backend."""
    decorated = task(max_attempts=3, enqueue_on_commit=False)(samples.note.func)
    return limits_concurrency(key="a", on_conflict="discard")(decorated)


def test_calls_work_and_have_our_results(theirs: str, made: Any) -> None:
    results = [made.enqueue(1), async_to_sync(made.aenqueue)(2)]
    results += enqueue_many([call(made, 3), call(samples.note, 4)])
    ended = theirs == "immediate"
    assert [each.status for each in results] == ["SUCCESSFUL" if ended else "READY"] * 4
    assert [each.discarded for each in results] == [False] * 4
    assert ([1, 2, 3, 4] if ended else []) == DONE


def test_what_they_cannot_take_is_a_clear_error(theirs: str, made: Any) -> None:
    for enqueue in (made.enqueue, async_to_sync(made.aenqueue), samples.note.enqueue):
        with pytest.raises(TypeError, match=r"args\[0\] of .*note: .*steady_queue_core.testing"):
            enqueue(Item(pk=1))
        with pytest.raises(TypeError, match="missing a required argument: 'what'"):
            enqueue()
    with pytest.raises(TypeError, match=r"calls\[0\]: kwargs\['what'\] of .*note"):
        enqueue_many([call(made, what=date(2026, 1, 1))])
    assert DONE == []


def test_a_delay_is_a_time_or_a_clear_error(theirs: str, made: Any) -> None:
    for later in (HOUR, datetime.now(UTC) + HOUR):
        if theirs == "immediate":
            with pytest.raises(InvalidTask, match="does not support run_after"):
                made.using(run_after=later).enqueue(1)
        else:
            due = made.using(run_after=later).enqueue(1)
            found = backend().results[-1].task.run_after
            assert abs(found - datetime.now(UTC) - HOUR) < timedelta(minutes=1)
            assert (due.id, due.task.run_after) == (backend().results[-1].id, found)


@pytest.mark.django_db(transaction=True)
def test_a_commit_is_waited_for(theirs: str, made: Any) -> None:
    with transaction.atomic():
        result = made.using(enqueue_on_commit=True).enqueue(1)
        assert (result.id, result.status, DONE) == ("", "READY", [])
    assert result.id
    assert result.is_finished is (theirs == "immediate")


@pytest.mark.django_db
def test_a_recurring_task_is_not_run_by_them(theirs: str) -> None:
    row = RecurringTask(key="daily", backend_name="default", static=False)
    with pytest.raises(UnusableRecurringTaskError, match="'default' is no Steady Queue backend"):
        row.run_now()


# --- without a database ---------------------------------------------------------------------------


@override_backends("immediate")
class WithoutDatabase(SimpleTestCase):
    def test_no_database_is_asked(self) -> None:
        assert samples.note.using(enqueue_on_commit=True).enqueue(1).return_value == 1
        assert run_enqueued_tasks(until=HOUR) == []


@override_settings(TASKS={"default": {"BACKEND": "steady_queue_core.testing.DummyBackend"}})
class NamedInSettings(SimpleTestCase):
    def test_the_backend_is_found_by_its_name(self) -> None:
        assert isinstance(backend(), DummyBackend)
        samples.note.enqueue(1)
        [result] = run_enqueued_tasks()
        assert result.return_value == 1


@both
def test_sealed_payloads_are_kept_in_memory_as_a_database_would(kind: str, settings: Any) -> None:
    options = {"payload": {"sign": True, "compress_over": 10}}
    settings.TASKS = {"default": {"BACKEND": f"steady_queue_core.testing.{kind.title()}Backend"}}
    settings.TASKS["default"] |= {"QUEUES": [], "OPTIONS": options}
    result = samples.note.enqueue("tea " * 100)
    run_enqueued_tasks()
    result.refresh()
    assert result.args == ["tea " * 100]
    assert result.return_value == "tea " * 100
    [job] = memory_of(backend()).jobs.values()
    assert job.row.arguments.startswith("~zs:")


@dummy
def test_what_waits_in_memory_can_be_cancelled() -> None:
    first, second = samples.note.enqueue(1), samples.note.enqueue(2)
    assert first.cancel()
    assert not first.cancel()
    first.refresh()
    assert first.status is TaskResultStatus.FAILED
    assert [each.exception_class_path for each in first.errors] == [
        "steady_queue_core.errors.TaskCancelled"
    ]
    run_enqueued_tasks()
    assert DONE == [2]
    second.refresh()
    assert not second.cancel()
    with pytest.raises(TaskResultDoesNotExist):
        backend().cancel("4711")


@immediate
def test_a_task_that_cancels_itself_in_memory_gets_no_other_attempt() -> None:
    result = samples.give_up.enqueue()
    assert DONE == [1]
    assert result.status is TaskResultStatus.FAILED
    assert [each.exception_class_path for each in result.errors] == [
        "builtins.LookupError", "steady_queue_core.errors.TaskCancelled"
    ]  # fmt: skip


@pytest.mark.django_db(transaction=True)
def test_a_task_that_cancels_itself_in_a_test_gets_no_other_attempt(settings: Any) -> None:
    result = samples.give_up.enqueue()
    run_enqueued_tasks(raise_errors=False)
    assert DONE == [1]
    result.refresh()
    assert [each.exception_class_path for each in result.errors] == [
        "builtins.LookupError", "steady_queue_core.errors.TaskCancelled"
    ]  # fmt: skip


@pytest.mark.parametrize("using", ["default"])
@pytest.mark.django_db
@immediate
def test_jobs_in_memory_are_delivered_transactionally_where_there_is_a_transaction(
    using: str,
) -> None:
    failed = samples.write_in_one_transaction.enqueue("gone", fails=True)
    done = samples.write_in_one_transaction.enqueue("kept")
    assert [failed.status, done.status] == [TaskResultStatus.FAILED, TaskResultStatus.SUCCESSFUL]
    assert [item.name for item in Item.objects.using(using)] == ["kept"]
    with pytest.raises(InvalidTask, match="A coroutine cannot be delivered 'transactional'"):
        samples.wait.using(delivery="transactional")


@dummy
def test_what_expires_in_memory_never_runs() -> None:
    hour = timedelta(hours=1)
    first = samples.note.using(expires=hour).enqueue(1)
    second = samples.note.using(expires=3 * hour).enqueue(2)
    for job in memory_of(backend()).jobs.values():
        job.row.enqueued_at -= 2 * hour
    run_enqueued_tasks(raise_errors=False)
    assert DONE == [2]
    for result in (first, second):
        result.refresh()
    assert [each.exception_class_path for each in first.errors] == [
        "steady_queue_core.errors.TaskExpired"
    ]
    assert (first.attempts, second.return_value) == (0, 2)


@pytest.mark.django_db(transaction=True)
def test_what_expires_in_a_test_never_runs(settings: Any) -> None:
    result = samples.note.using(expires=datetime(2020, 1, 1, tzinfo=UTC)).enqueue(1)
    with pytest.raises(TaskExpired, match="The job expired at 2020-01-01"):
        run_enqueued_tasks()
    result.refresh()
    assert (DONE, result.status) == ([], TaskResultStatus.FAILED)


@immediate
def test_a_result_that_is_not_to_be_kept_is_gone_from_memory() -> None:
    kept = samples.note.enqueue(1)
    gone = samples.note.using(retention=timedelta(0)).enqueue(2)
    assert [each.id for each in backend().results] == [kept.id]
    with pytest.raises(TaskResultDoesNotExist):
        gone.refresh()
