"""Queues that are full, under the backends for tests and with the testing kit."""

from __future__ import annotations

from typing import Any

import pytest

from steady_queue_core import call, enqueue_many, task
from steady_queue_core.compat import task_backends
from steady_queue_core.errors import QueueFull
from steady_queue_core.testing import run_enqueued_tasks

LIMITS = {"queue_limits": {"default": 3}}


@task
def work(number: int = 0) -> int:
    return number


@task
def spread(number: int) -> None:
    """Enqueue more than there is room for."""
    for each in range(number):
        work.enqueue(each)


def backend(name: str) -> dict[str, Any]:
    path = f"steady_queue_core.{name}"
    return {"default": {"BACKEND": path, "QUEUES": [], "OPTIONS": LIMITS}}


DUMMY, IMMEDIATE = "testing.backends.DummyBackend", "testing.backends.ImmediateBackend"
STORED = "backend.SteadyQueueBackend"


@pytest.mark.django_db
@pytest.mark.parametrize("name", [DUMMY, STORED])
def test_a_full_queue_takes_jobs_again_once_these_have_run(name: str, settings: Any) -> None:
    settings.TASKS = backend(name)
    for _ in range(3):
        enqueue_many([call(work)] * 2)
        with pytest.raises(QueueFull, match=r"2 calls were .* has 2 ready jobs, 2 of them are"):
            enqueue_many([call(work)] * 2)
        work.enqueue()
        with pytest.raises(QueueFull, match=r"work was not enqueued: .* has at least 3 ready jobs"):
            work.enqueue()
        assert len(run_enqueued_tasks()) == 3


@pytest.mark.django_db
@pytest.mark.parametrize("name", [DUMMY, STORED, IMMEDIATE])
def test_a_task_is_not_refused_what_it_enqueues(name: str, settings: Any) -> None:
    settings.TASKS = backend(name)
    spread.enqueue(7)
    results = run_enqueued_tasks()
    assert len(results) == (0 if name == IMMEDIATE else 8)
    assert work.enqueue().id


def test_what_runs_at_once_fills_no_queue(settings: Any) -> None:
    settings.TASKS = backend(IMMEDIATE)
    assert [work.enqueue(number).return_value for number in range(5)] == list(range(5))
    with pytest.raises(QueueFull, match="So many at once never fit"):
        enqueue_many([call(work)] * 4)
    assert len(task_backends["default"].results) == 5
