"""A run that seems to have lost the database holds up no run of another recurring task."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import InterfaceError, OperationalError

from steady_queue_core import middleware, schedule_recurring_task
from steady_queue_core.processes.base.database import Unavailable
from steady_queue_core.schedules import definition as recurring_task

from .recurrence import SECOND, Plan, greet, tasks

pytestmark = pytest.mark.django_db(transaction=True)


class Rude(middleware.Middleware):
    """Raises what it is told to, for the first one of the tasks."""

    error: BaseException | None = None

    def enqueue(self, calls: Any, proceed: Any) -> Any:
        if self.error is not None and calls[0].recurring == "a":
            raise self.error
        return proceed(calls)


@pytest.fixture
def rude(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Rude]:
    settings.TASKS = tasks("default")
    monkeypatch.setattr(recurring_task, "_registry", {})
    installed = Rude()
    middleware.install(installed)
    yield installed
    middleware.uninstall(installed)


def begun() -> Plan:
    plan = Plan("default")
    for key in ("a", "b"):
        schedule_recurring_task(key, greet, schedule=SECOND)
    plan.begin()
    return plan


@pytest.mark.parametrize("kind", [InterfaceError, OperationalError])
def test_others_are_enqueued_and_the_run_is_tried_again(rude: Rude, kind: Any) -> None:
    plan = begun()
    rude.error = kind("connection already closed")
    first = plan.clock + SECOND
    assert plan.pass_by(SECOND) == first + SECOND
    assert (plan.slots("a"), plan.slots("b")) == ([], [first])
    rude.error = None
    plan.pass_by(SECOND)
    assert plan.slots("a") == [first]


def test_without_a_database_nothing_else_is_tried(
    rude: Rude, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan, tried = begun(), []

    def is_away(operation: Any, **_: Any) -> Any:
        tried.append(operation)
        raise Unavailable(1.0, lost=True)

    monkeypatch.setattr(plan.due_times.database, "run", is_away)
    with pytest.raises(Unavailable):
        plan.pass_by(SECOND)
    assert len(tried) == 2  # The first run, and the question whether there is a database.


def test_a_database_that_refuses_all_of_them_is_out(
    rude: Rude, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = begun()

    def is_read_only(operation: Any, **_: Any) -> Any:
        raise Unavailable(1.0, lost=True, refused=True)

    monkeypatch.setattr(plan.due_times.database, "run", is_read_only)
    with pytest.raises(Unavailable):
        plan.pass_by(SECOND)
