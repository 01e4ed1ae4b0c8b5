"""Durable steps and sleeps in tests of a project."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connections
from django.test import TestCase

from steady_queue_core import task
from steady_queue_core.models import Step
from steady_queue_core.retries import constant
from steady_queue_core.tasks import SteadyQueueTaskContext
from steady_queue_core.testing import run_enqueued_tasks

from ..models.recurrence import tasks

TESTING = "steady_queue_core.testing."
CALLED: list[Any] = []
DAYS = timedelta(days=3)


@pytest.fixture(autouse=True)
def _empty() -> None:
    CALLED.clear()


def give(value: Any) -> Any:
    CALLED.append(value)
    return value


@task(takes_context=True, max_attempts=3, backoff=constant(0))
def work(context: Any) -> list[Any]:
    found = [context.step("a", give, ("a", 1))]
    context.sleep("cool", DAYS)
    found.append(context.step("b", give, "b"))
    context.sleep("cool again", DAYS)
    if context.attempt < 2:
        raise LookupError
    return found


@task(takes_context=True, max_attempts=2, backoff=constant(0))
async def work_in_a_coroutine(context: Any) -> list[Any]:
    async def agive(value: Any) -> Any:
        return give(value)

    found = [await context.astep("a", agive, "a"), await context.astep("b", give, "b")]
    await context.asleep("cool", DAYS)
    if context.attempt < 2:
        raise LookupError
    return found


def configure(settings: Any, backend: str | None, payload: dict[str, Any]) -> None:
    settings.TASKS = tasks("default", payload=payload)
    if backend is not None:
        settings.TASKS["default"] = {
            "BACKEND": TESTING + backend, "OPTIONS": {"payload": payload}
        }  # fmt: skip


@pytest.mark.parametrize("backend", ["ImmediateBackend", "DummyBackend", None])
@pytest.mark.parametrize("payload", [{}, {"sign": True}])
@pytest.mark.django_db
def test_tasks_go_on_and_sleep(settings: Any, backend: str | None, payload: Any) -> None:
    configure(settings, backend, payload)
    result = work.enqueue()
    run_enqueued_tasks(raise_errors=False, until=3 * DAYS)
    result.refresh()
    assert (result.status.name, result.attempts) == ("SUCCESSFUL", 2)
    assert result.return_value == [("a", 1), "b"]
    assert CALLED == [("a", 1), "b"]


@pytest.mark.parametrize("backend", ["DummyBackend", None])
@pytest.mark.django_db
def test_they_sleep_as_long_as_the_test_does_not_move_on(
    settings: Any, backend: str | None
) -> None:
    configure(settings, backend, {})
    result = work.enqueue()
    for until in (None, DAYS - timedelta(hours=1)):
        run_enqueued_tasks(until=until)
        result.refresh()
        assert (result.status.name, CALLED) == ("READY", [("a", 1)])
    run_enqueued_tasks(until=DAYS + timedelta(hours=1))
    result.refresh()
    assert (result.status.name, CALLED) == ("READY", [("a", 1), "b"])


@pytest.mark.parametrize("backend", ["ImmediateBackend", "DummyBackend"])
def test_none_of_it_needs_a_database(settings: Any, backend: str) -> None:
    configure(settings, backend, {})
    result = work.enqueue()
    run_enqueued_tasks(raise_errors=False, until=3 * DAYS)
    result.refresh()
    assert result.return_value == [("a", 1), "b"]


@pytest.mark.parametrize("backend", ["ImmediateBackend", "DummyBackend", None])
@pytest.mark.django_db(transaction=True)
def test_so_do_coroutines(settings: Any, backend: str | None) -> None:
    configure(settings, backend, {})
    result = work_in_a_coroutine.enqueue()
    run_enqueued_tasks(raise_errors=False, until=3 * DAYS)
    result.refresh()
    assert result.return_value == ["a", "b"]
    assert CALLED == ["a", "b"]


@pytest.mark.django_db
def test_nothing_stays_in_memory_of_a_job_that_is_not_preserved(settings: Any) -> None:
    configure(settings, "DummyBackend", {})
    settings.TASKS["default"]["OPTIONS"]["preserve_finished_jobs"] = False
    from steady_queue_core.compat import task_backends

    work.enqueue()
    run_enqueued_tasks(raise_errors=False, until=3 * DAYS)
    backend: Any = task_backends["default"]
    assert backend.results == []
    assert not connections["default"].in_atomic_block or not Step.objects.exists()


@task(takes_context=True)
def repeat(context: Any) -> None:
    context.step("a", give, 1)
    context.step("a", give, 2)


class InATestCase(TestCase):
    """It is one transaction, which is not the task's."""

    def test_names_are_used_once(self) -> None:
        CALLED.clear()
        repeat.enqueue()
        with pytest.raises(ValueError, match="'a' already"):
            run_enqueued_tasks()
        assert CALLED == [1]


def test_a_context_that_a_test_has_made_says_that_it_is_none() -> None:
    context: Any = SteadyQueueTaskContext(task_result=None, token=1)
    for call in (lambda: context.step("a", give, 1), lambda: context.sleep("b", 1)):
        with pytest.raises(RuntimeError, match="does not belong to an attempt"):
            call()
