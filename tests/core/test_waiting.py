"""``result.wait()`` and ``await_result()``: what they return, refuse and leave alone."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.db import OperationalError, connection, connections, transaction
from django.db.transaction import TransactionManagementError

from steady_queue_core.compat import TaskResult, TaskResultDoesNotExist, TaskResultStatus
from steady_queue_core.models import Job
from steady_queue_core.tasks import waiting
from steady_queue_core.tasks.waiting import seconds
from steady_queue_core.testing import override_backends

from .driver import Driver
from .samples import breaks, configured, echo, nothing, real_transactions, stock

Waiter = Callable[..., TaskResult]


def _wait(result: Any, timeout: Any = 20) -> TaskResult:
    return result.wait(timeout=timeout)


def _await(result: Any, timeout: Any = 20) -> TaskResult:
    return async_to_sync(result.await_result)(timeout=timeout)


both_ways = pytest.mark.parametrize("wait", [_wait, _await])


@pytest.fixture
def elsewhere() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1) as pool:
        yield pool
        pool.submit(lambda: connection.close()).result()


@real_transactions
@both_ways
def test_a_wait_returns_the_result_once_its_job_has_ended(
    elsewhere: ThreadPoolExecutor, wait: Waiter
) -> None:
    for called in (echo, stock, breaks):
        result = called.enqueue(1) if called is not breaks else called.enqueue()
        work = elsewhere.submit(_work_after_a_look)
        assert wait(result) is result
        work.result()
        assert result == called.get_result(result.id)
        assert result.is_finished
    assert result.status == TaskResultStatus.FAILED


def _work_after_a_look() -> None:
    time.sleep(0.05)  # The jobs would also be found if they had ended already.
    Driver().work()


@real_transactions
@both_ways
def test_a_result_that_has_ended_is_returned_without_a_query(
    django_assert_num_queries: Any, wait: Waiter
) -> None:
    result = Driver().finish(nothing.enqueue())
    with django_assert_num_queries(0):
        assert wait(result, 0) is result


@real_transactions
@both_ways
@pytest.mark.parametrize("timeout", [0, 0.05, timedelta(milliseconds=50)])
def test_a_wait_whose_time_is_over_names_the_job_and_its_state(wait: Waiter, timeout: Any) -> None:
    result = nothing.enqueue()
    seconds = timeout.total_seconds() if isinstance(timeout, timedelta) else timeout
    with pytest.raises(TimeoutError) as caught:
        wait(result, timeout)
    assert str(caught.value) == (
        f"{nothing.module_path} #{result.id} has not ended within {seconds:g} s: it is READY."
    )
    [_] = Driver().claim()
    with pytest.raises(TimeoutError, match="it is RUNNING"):
        wait(result, timeout)


@real_transactions
@both_ways
def test_a_job_that_is_deleted_ends_the_wait(wait: Waiter) -> None:
    result = nothing.enqueue()
    Job.objects.get().discard()
    with pytest.raises(TaskResultDoesNotExist, match=f"#{result.id} is gone: it was discarded"):
        wait(result)


@real_transactions
@both_ways
def test_inside_a_transaction_a_wait_is_refused(wait: Waiter) -> None:
    before = nothing.enqueue()
    with transaction.atomic():
        for result in (before, nothing.enqueue()):
            with pytest.raises(TransactionManagementError) as caught:
                # A coroutine has connections of its own, unless a thread in atomic() runs it.
                wait(result)
            assert str(caught.value) == (
                f"{nothing.module_path} #{result.id} cannot be waited for inside a transaction on "
                "'default', which may hold the job back until it commits, or never see its end. "
                "Wait after the commit."
            )


@real_transactions
@both_ways
def test_what_has_ended_is_returned_inside_a_transaction_too(wait: Waiter) -> None:
    result = nothing.enqueue()
    Driver().work()
    with transaction.atomic():
        assert wait(result).status == TaskResultStatus.SUCCESSFUL


@real_transactions
@both_ways
def test_a_job_that_waits_for_the_commit_cannot_be_waited_for(wait: Waiter) -> None:
    with transaction.atomic():
        result = configured.enqueue()
        with pytest.raises(TransactionManagementError) as caught:
            wait(result)
        assert str(caught.value) == (
            f"{configured.module_path} is not stored yet: it is enqueued when the transaction "
            "commits. Wait for it after the commit."
        )
    Driver().work()
    assert wait(result).status == TaskResultStatus.SUCCESSFUL


@pytest.mark.parametrize(
    ("timeout", "error", "text"),
    [
        (-1, ValueError, "timeout must not be negative: -1"),
        (float("nan"), ValueError, "timeout must not be negative: nan"),
        ("5", TypeError, "timeout must be seconds, a timedelta or None, not of type str"),
        (True, TypeError, "not of type bool"),
    ],
)
@pytest.mark.django_db
@both_ways
def test_a_bad_timeout_is_refused(wait: Waiter, timeout: Any, error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        wait(nothing.enqueue(), timeout)


def test_a_timeout_that_no_float_can_hold_is_very_long() -> None:
    assert 1e9 < seconds(10**400) - 0.5 < float("inf")


@both_ways
def test_jobs_in_memory_are_not_waited_for(wait: Waiter) -> None:
    with override_backends("dummy"):
        result = nothing.enqueue()
        with pytest.raises(RuntimeError, match="does not run by itself"):
            wait(result)


@real_transactions
def test_a_connection_that_was_lost_meanwhile_is_replaced_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    result = nothing.enqueue()
    Driver().work()
    looks: list[int] = []
    look = waiting.Wait._is_stored_as_ended

    def fail(self: Any, using: str) -> bool:
        looks.append(1)
        if len(looks) <= lost:
            monkeypatch.setattr(type(connections["default"]), "is_usable", lambda self: False)
            connection.errors_occurred = True
            raise OperationalError("the server has gone away")
        return look(self, using)

    monkeypatch.setattr(waiting.Wait, "_is_stored_as_ended", fail)
    lost = 2
    with pytest.raises(OperationalError):
        result.wait(timeout=20)
    looks.clear()
    lost = 1
    assert result.wait(timeout=20).is_finished
    assert len(looks) == 2


def test_looks_become_rare_and_never_outlast_the_limit() -> None:
    class Result:
        task, is_finished, id = nothing, False, "1"

    wait: Any = waiting.Wait(Result(), 100.0)  # type: ignore[arg-type]  # All that is looked at.
    pauses = []
    while wait.elapsed < 99.9:
        pauses.append(wait.next_pause(None))
        wait._began -= pauses[-1]
    assert pauses[0] == waiting.FIRST_PAUSE
    assert max(pauses) == waiting.LONGEST_PAUSE
    assert len(pauses) < 300
    wait._began -= 0.05
    assert 0.0 <= wait.next_pause(None) < 0.06
