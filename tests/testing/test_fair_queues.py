"""Fair queues in tests of a project: in memory, and in the test's database."""

from __future__ import annotations

from typing import Any

import pytest

from steady_queue_core import task
from steady_queue_core.testing import run_enqueued_tasks

from ..models.recurrence import tasks

DUMMY = "steady_queue_core.testing.DummyBackend"
DONE: list[str] = []


@pytest.fixture(autouse=True)
def _empty() -> None:
    DONE.clear()


@task(fair_key=lambda customer, number: customer)
def serve(customer: str, number: int) -> None:
    DONE.append(f"{customer}{number}")


@pytest.fixture(params=[DUMMY, None], ids=["memory", "stored"])
def _project(request: pytest.FixtureRequest, settings: Any, db: None) -> None:
    options = {"fair_queues": ["default"]}
    settings.TASKS = tasks("default", **options)
    if request.param is not None:
        settings.TASKS = {"default": {"BACKEND": request.param, "OPTIONS": options}}


@pytest.mark.usefixtures("_project")
def test_customers_share_and_who_comes_later_waits_for_one_round() -> None:
    for number in range(4):
        serve.enqueue("a", number)
    for number in range(2):
        serve.enqueue("b", number)
    run_enqueued_tasks(limit=2)
    serve.enqueue("c", 0)
    run_enqueued_tasks()
    assert DONE[:2] == ["a0", "b0"]
    assert sorted(DONE[2:5]) == ["a1", "b1", "c0"]
    assert DONE[5:] == ["a2", "a3"]


@pytest.mark.usefixtures("_project")
def test_priorities_come_first() -> None:
    serve.enqueue("a", 0)
    serve.enqueue("a", 1)
    serve.using(priority=5).enqueue("a", 2)
    serve.enqueue("b", 0)
    run_enqueued_tasks()
    assert DONE == ["a2", "a0", "b0", "a1"]
