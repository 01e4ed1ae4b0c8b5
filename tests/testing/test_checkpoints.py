"""Checkpoints and progress in tests of a project."""

from __future__ import annotations

from typing import Any

import pytest

from steady_queue_core import Preempted, task
from steady_queue_core.arguments import TaskArgumentError
from steady_queue_core.compat import task_backends
from steady_queue_core.retries import constant
from steady_queue_core.tasks import SteadyQueueTaskContext
from steady_queue_core.testing import run_enqueued_tasks

from ..models.recurrence import tasks

TESTING = "steady_queue_core.testing."
FOUND: list[Any] = []
CONTEXTS: list[Any] = []


@pytest.fixture(autouse=True)
def _empty() -> None:
    FOUND.clear()
    CONTEXTS.clear()


@task(takes_context=True, max_attempts=3, backoff=constant(0))
def work(context: Any) -> None:
    assert context.is_held()
    CONTEXTS.append(context)
    FOUND.append(context.checkpointed)
    with pytest.raises(TaskArgumentError):
        context.checkpoint(object())
    context.progress(context.attempt, 3, "attempts")
    context.progress(context.attempt, 3, "attempts so far")
    if context.attempt < 3:
        context.checkpoint({"attempt": context.attempt})
        raise LookupError


@task(takes_context=True, max_attempts=2, backoff=constant(0))
async def work_in_a_coroutine(context: Any) -> None:
    assert await context.ais_held()
    FOUND.append(context.checkpointed)
    await context.aprogress(context.attempt, 2)
    await context.acheckpoint(context.attempt)
    if context.attempt < 2:
        raise LookupError


@pytest.mark.parametrize("backend", ["ImmediateBackend", "DummyBackend", None])
@pytest.mark.parametrize("payload", [{}, {"sign": True}])
@pytest.mark.django_db
def test_tasks_resume_and_tell_their_progress(
    settings: Any, backend: str | None, payload: Any
) -> None:
    settings.TASKS = tasks("default", payload=payload)
    if backend is not None:
        settings.TASKS["default"] = {
            "BACKEND": TESTING + backend, "OPTIONS": {"payload": payload}
        }  # fmt: skip
    result = work.enqueue()
    run_enqueued_tasks(raise_errors=False)
    result.refresh()
    assert FOUND == [None, {"attempt": 1}, {"attempt": 2}]
    assert str(result.progress) == "3 of 3 (100%): attempts so far"
    assert result.progress.updated_at is not None
    for context in CONTEXTS:
        with pytest.raises(Preempted):
            context.checkpoint("too late")


@pytest.mark.parametrize("backend", ["ImmediateBackend", "DummyBackend"])
def test_none_of_it_needs_a_database(settings: Any, backend: str) -> None:
    settings.TASKS = {"default": {"BACKEND": TESTING + backend}}
    result = work.enqueue()
    run_enqueued_tasks(raise_errors=False)
    result.refresh()
    assert result.progress.percent == 100
    [listed] = task_backends["default"].results
    assert listed.progress == result.progress


@pytest.mark.parametrize("backend", ["ImmediateBackend", "DummyBackend", None])
@pytest.mark.django_db(transaction=True)
def test_so_do_coroutines(settings: Any, backend: str | None) -> None:
    settings.TASKS = {"default": {"BACKEND": TESTING + backend}} if backend else tasks("default")
    result = work_in_a_coroutine.enqueue()
    run_enqueued_tasks(raise_errors=False)
    result.refresh()
    assert FOUND == [None, 1]
    assert result.progress.done == 2


def test_a_context_that_a_test_has_made_says_that_it_is_none() -> None:
    context: Any = SteadyQueueTaskContext(task_result=None, token=1)
    calls = [
        lambda: context.checkpoint(1), lambda: context.progress(1), context.is_held,
        lambda: context.checkpointed,
    ]  # fmt: skip
    for call in calls:
        with pytest.raises(RuntimeError, match="does not belong to an attempt"):
            call()
