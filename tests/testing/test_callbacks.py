"""Callbacks, and what a task leaves to its outcome, in tests of a project."""

from __future__ import annotations

from typing import Any

import pytest

from steady_queue_core import task
from steady_queue_core.testing import run_enqueued_tasks

from ..models.recurrence import tasks

CALLS: list[tuple[Any, ...]] = []


@pytest.fixture(autouse=True)
def _empty() -> None:
    CALLS.clear()


@task
def told(*args: str) -> None:
    CALLS.append(("told", *args))


@task
def follow(number: int) -> None:
    CALLS.append(("follow", number))


@task(takes_context=True, on_success=told, on_failure=told)
def work(context: Any, fails: bool = False) -> None:
    context.enqueue(follow, 7)
    if fails:
        raise LookupError("no such order")


def test_the_immediate_backend_runs_them(settings: Any) -> None:
    settings.TASKS = {"default": {"BACKEND": "steady_queue_core.testing.ImmediateBackend"}}
    first, second = work.enqueue(), work.enqueue(fails=True)
    assert [
        ("follow", 7), ("told", first.id),
        ("told", second.id, "builtins.LookupError", "no such order"),
    ] == CALLS  # fmt: skip


@pytest.mark.parametrize("backend", ["steady_queue_core.testing.DummyBackend", None])
@pytest.mark.django_db
def test_run_enqueued_tasks_runs_them(settings: Any, backend: str | None) -> None:
    settings.TASKS = {"default": {"BACKEND": backend}} if backend else tasks("default")
    result = work.enqueue()
    run_enqueued_tasks()
    assert [("follow", 7), ("told", result.id)] == CALLS
