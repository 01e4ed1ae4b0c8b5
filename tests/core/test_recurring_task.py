"""``@recurring``: what it registers, and what it refuses while a module is imported."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any

import pytest
from django.test import override_settings

from steady_queue_core import change_recurring_task, schedule_recurring_task
from steady_queue_core.models import RecurringTask
from steady_queue_core.schedules import definition as recurring_task
from steady_queue_core.schedules.cron import InvalidScheduleError, Schedule
from steady_queue_core.schedules.definition import recurring, registered
from steady_queue_core.schedules.values import VALUES, Changes, Options, RecurringDefinition


@pytest.fixture(autouse=True)
def _empty_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recurring_task, "_registry", {})


def greet(name: str = "you", *, loud: bool = False) -> None:
    """Say hello.

    Politely.
    """


@dataclass(frozen=True)
class Task:
    func: Any = greet
    priority: int = 0
    queue_name: str = "default"
    backend: str = "default"

    @property
    def module_path(self) -> str:
        return f"shop.tasks.{self.func.__name__}"

    def enqueue(self, *args: Any, **kwargs: Any) -> None: ...

    def using(self, **changes: Any) -> Task:
        if changes.get("queue_name") == "unknown":
            raise LookupError("the queue 'unknown' is not in QUEUES")
        return replace(self, **changes)


def test_the_task_is_registered_and_returned_unchanged() -> None:
    task = Task()
    decorated = recurring(
        schedule="0 12 * * *",
        key="noon",
        args=["Alice"],
        kwargs={"loud": True},
        queue_name="mail",
        priority=-7,
        timezone="Europe/Berlin",
    )(task)
    assert decorated is task
    assert registered() == [
        RecurringDefinition(
            key="noon",
            task=task,
            schedule=Schedule("0 12 * * *", "Europe/Berlin"),
            args=("Alice",),
            kwargs=MappingProxyType({"loud": True}),
            queue_name="mail",
            priority=-7,
            description="Say hello.",
        )
    ]
    with pytest.raises(TypeError):
        registered()[0].kwargs["loud"] = False  # type: ignore[index]  # Refused.


def test_the_zone_is_the_one_of_the_settings_unless_given() -> None:
    with override_settings(TIME_ZONE="Asia/Tokyo"):
        recurring(schedule="0 9 * * *", key="nine", description="")(Task())
    (nine,) = registered()
    assert nine.schedule.timezone_name == "Asia/Tokyo"
    assert nine.schedule.next_after(datetime(2025, 1, 1, 12, tzinfo=UTC)).hour == 0
    assert nine.description == ""


def test_schedules_stack_and_are_sorted_by_key() -> None:
    task = Task()
    recurring(schedule="0 10 * * *", args=("Bob",), key="b")(
        recurring(schedule="0 12 * * *", args=("Alice",), key="a")(task)
    )
    assert [(each.key, each.args) for each in registered()] == [("a", ("Alice",)), ("b", ("Bob",))]
    recurring_task.clear()
    assert registered() == []


def test_the_configured_task_has_the_queue_and_priority_that_are_given() -> None:
    task = Task(priority=3, queue_name="own")
    recurring(schedule="@daily", key="plain")(task)
    recurring(schedule="@daily", key="queue", queue_name="mail")(task)
    recurring(schedule="@daily", key="urgent", priority=0)(task)
    plain, queue, urgent = (each.configured_task() for each in registered())
    assert plain is task
    assert (queue.queue_name, queue.priority) == ("mail", 3)
    assert (urgent.queue_name, urgent.priority) == ("own", 0)


def test_a_key_that_is_taken_by_another_task_is_refused() -> None:
    def other() -> None: ...

    recurring(schedule="@daily", key="report")(Task())
    with pytest.raises(ValueError, match="used twice") as caught:
        recurring(schedule="@hourly", key="report")(Task(func=other))
    assert str(caught.value) == (
        "the recurring key 'report' is used twice: for shop.tasks.greet at '@daily' and for "
        "shop.tasks.other at '@hourly'; give each schedule a key of its own"
    )
    assert [each.schedule.expression for each in registered()] == ["@daily"]


def test_a_key_that_one_task_uses_for_two_schedules_is_refused() -> None:
    task = recurring(schedule="0 10 * * *", key="greet")(Task())
    with pytest.raises(ValueError, match="used twice"):
        recurring(schedule="0 12 * * *", key="greet")(task)


def test_a_module_that_is_imported_again_replaces_its_definition() -> None:
    def imported() -> Any:
        def greet() -> None: ...

        return Task(func=greet)

    recurring(schedule="@daily", key="report")(imported())
    again = recurring(schedule="@hourly", key="report")(imported())
    (report,) = registered()
    assert report.task is again
    assert report.schedule.expression == "@hourly"


@pytest.mark.parametrize("decorated", [greet, None, "shop.tasks.greet", Task, object()])
def test_only_tasks_can_be_decorated(decorated: Any) -> None:
    with pytest.raises(TypeError, match="which is not a task; put it above @task"):
        recurring(schedule="@daily", key="k")(decorated)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"schedule": "0 0 31 2 *"}, InvalidScheduleError, "'k': the cron expression .* no date"),
        ({"schedule": "every day"}, InvalidScheduleError, "'k': the cron expression 'every day'"),
        ({"schedule": None}, InvalidScheduleError, "not NoneType"),
        ({"timezone": "Berlin"}, InvalidScheduleError, "'k': the time zone 'Berlin' is not known"),
        ({"key": ""}, ValueError, "the key of a recurring task must not be empty"),
        ({"key": " "}, ValueError, "must not be empty"),
        ({"key": "x" * 256}, ValueError, "has 256 characters, at most 255 are allowed"),
        ({"key": "a\0"}, ValueError, "control character"),
        ({"key": 5}, TypeError, "must be a string, not int"),
        ({"args": "Alice"}, TypeError, "'k': args must be a list or tuple, not str"),
        ({"kwargs": ["a"]}, TypeError, "'k': kwargs must be a dict"),
        ({"kwargs": {1: 2}}, TypeError, "'k': kwargs must be a dict"),
        ({"args": ["a", "b"]}, ValueError, "'k': shop.tasks.greet cannot be called with its arg"),
        ({"kwargs": {"soft": 1}}, ValueError, "cannot be called .* argument 'soft'"),
        ({"description": 5}, TypeError, "'k': description must be a string, not int"),
        ({"queue_name": ""}, ValueError, "'k': queue_name '' is empty"),
        ({"queue_name": "unknown"}, ValueError, "'k': its backend refuses it: the queue 'unknown'"),
        ({"priority": 101}, ValueError, "'k': priority must be from -100 to 100, not 101"),
        ({"priority": "high"}, TypeError, "'k': priority must be an integer, not str"),
        ({"priority": True}, TypeError, "'k': priority must be an integer, not bool"),
    ],
)
def test_mistakes_are_refused_at_decoration(
    changes: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        recurring(**{"schedule": "@daily", "key": "k", **changes})(Task())
    assert registered() == []


def test_an_argument_that_cannot_be_stored_is_refused_at_once() -> None:
    with pytest.raises(ValueError, match=r"the recurring task 'noon': .*kwargs\['loud'\]"):
        recurring(schedule="0 12 * * *", key="noon", kwargs={"loud": object()})(Task())
    assert registered() == []


def test_options_that_there_are_not_are_refused_before_anything_is_decorated() -> None:
    for function, given in (
        (recurring, {"schedule": "@daily", "key": "k"}),
        (schedule_recurring_task, {"key": "k", "task": Task(), "schedule": "@daily"}),
        (change_recurring_task, {"key": "k"}),
    ):
        with pytest.raises(TypeError) as caught:
            function(**given, run_twice=True)  # type: ignore[operator]  # Refused.
        assert str(caught.value) == (
            f"{function.__name__}() got an unexpected keyword argument 'run_twice'"
        )


def test_every_value_is_an_option_and_can_be_changed() -> None:
    names = {value.name for value in VALUES}
    assert names == {*Options.__annotations__} - {"args", "kwargs", "timezone"}
    assert {*Changes.__annotations__} == {*Options.__annotations__, "schedule"}
    assert names <= {field.name for field in RecurringTask._meta.fields}
