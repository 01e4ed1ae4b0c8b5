"""Recurring tasks that people add, change, remove, run, disable and enable."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connections
from django.db.transaction import atomic
from django.test.utils import CaptureQueriesContext

from steady_queue_core import (
    change_recurring_task,
    recurring,
    schedule_recurring_task,
    unschedule_recurring_task,
)
from steady_queue_core.dialects import portable
from steady_queue_core.errors import (
    RecurringTaskExistsError,
    StaticRecurringTaskError,
    UnknownRecurringTaskError,
    UnusableRecurringTaskError,
)
from steady_queue_core.models import process as processes
from steady_queue_core.processes.base.database import QueueDatabase
from steady_queue_core.processes.scheduler import mirror as mirroring
from steady_queue_core.processes.scheduler.mirror import Mirroring, mirror, warn_of_unscheduled
from steady_queue_core.processes.scheduler.scheduler import Scheduler
from steady_queue_core.schedules import definition as recurring_task

from .everywhere import on_every_database
from .recurrence import DAY, HOUR, MINUTE, SECOND, Recurrence, greet, send, tasks

DYNAMIC = {"scheduler": {"dynamic_tasks_enabled": True}}


@pytest.fixture(autouse=True)
def _project(using: str, settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.TASKS = tasks(using)
    settings.STEADY_QUEUE = DYNAMIC
    monkeypatch.setattr(recurring_task, "_registry", {})


# --- add, change, remove ---------------------------------------------------------------------


@on_every_database
def test_a_task_that_is_added_is_stored_with_all_that_was_said(using: str) -> None:
    found = Recurrence(using)
    before = found.present()

    row = schedule_recurring_task(
        "noon",
        greet,
        schedule="0  12 * * *",
        timezone="Europe/Berlin",
        args=["Ada"],
        kwargs={"loud": True},
        queue_name="slow",
        priority=-7,
        catch_up=36 * HOUR,
    )
    schedule_recurring_task("beat", send, schedule=90 * SECOND, description="Look alive.")

    assert found.keys == ["beat", "noon"]
    noon, beat = found.row("noon"), found.row("beat")
    assert noon == row
    assert not noon.static
    assert noon.enabled
    assert noon.task_path == greet.module_path
    assert (noon.schedule, noon.timezone) == ("0 12 * * *", "Europe/Berlin")
    assert noon.arguments == '{"args":["Ada"],"kwargs":{"loud":true}}'
    assert (noon.queue_name, noon.priority, noon.catch_up) == ("slow", -7, "36 hours")
    assert noon.description == "Say hello."
    assert noon.active_since is not None
    assert portable.aware(noon.active_since) >= before
    assert (beat.schedule, beat.queue_name, beat.priority) == ("every 90 seconds", "mail", 5)
    assert (beat.catch_up, beat.description) == ("skip", "Look alive.")


@on_every_database
def test_a_key_that_is_taken_is_refused_unless_the_task_is_to_be_replaced(using: str) -> None:
    found = Recurrence(using)
    schedule_recurring_task("noon", greet, schedule="0 12 * * *")
    with pytest.raises(RecurringTaskExistsError, match="is a recurring task 'noon' already"):
        schedule_recurring_task("noon", send, schedule="@hourly")
    assert found.row("noon").task_path == greet.module_path

    found.row("noon").disable()
    schedule_recurring_task("noon", send, schedule="@hourly", args=["ada"], replace=True)
    schedule_recurring_task("new", send, schedule="@hourly", replace=True)

    noon = found.row("noon")
    assert (noon.task_path, noon.schedule) == (send.module_path, "@hourly")
    assert noon.arguments == '{"args":["ada"],"kwargs":{}}'
    assert (noon.queue_name, noon.priority) == ("mail", 5)
    assert not noon.enabled
    assert found.keys == ["new", "noon"]


@on_every_database
def test_what_is_changed_changes_and_the_rest_stays(using: str) -> None:
    found = Recurrence(using)
    long_ago = found.present() - 9 * DAY
    schedule_recurring_task("noon", greet, schedule="0 12 * * *", timezone="Asia/Tokyo")

    def after(**changes: Any) -> dict[str, Any]:
        """Return the columns that are others now; not the instants, but whether it begins anew."""
        found.since("noon", long_ago)
        before = dict(vars(found.row("noon")))
        row = change_recurring_task("noon", **changes)
        now = vars(found.row("noon"))
        assert vars(row).items() >= {k: v for k, v in now.items() if k != "_state"}.items()
        different = {name for name in now if name != "_state" and now[name] != before[name]}
        assert "updated_at" in different
        return {
            name: portable.aware(now[name]) > long_ago if name == "active_since" else now[name]
            for name in different - {"updated_at"}
        }

    assert after(schedule="0 13 * * *") == {"schedule": "0 13 * * *", "active_since": True}
    assert after(schedule="0 13 * * * Asia/Kathmandu") == {
        "timezone": "Asia/Kathmandu",
        "active_since": True,
    }
    assert after(timezone="UTC") == {"timezone": "UTC", "active_since": True}
    assert after(kwargs={"loud": True}) == {"arguments": '{"args":[],"kwargs":{"loud":true}}'}
    assert after(args=["Ada"]) == {"arguments": '{"args":["Ada"],"kwargs":{}}'}
    assert after(queue_name="slow", priority=0, description="Now.") == {
        "queue_name": "slow",
        "description": "Now.",
    }
    assert after(priority=3, catch_up="last") == {"priority": 3, "catch_up": "last"}
    assert after(schedule=5 * MINUTE) == {"schedule": "every 5 minutes", "active_since": True}
    assert after(schedule="0 12 * * *", timezone="Asia/Tokyo") == {
        "schedule": "0 12 * * *",
        "timezone": "Asia/Tokyo",
        "active_since": True,
    }
    assert after() == {}


@on_every_database
def test_a_task_that_is_removed_is_gone_and_its_key_free(using: str) -> None:
    found = Recurrence(using)
    schedule_recurring_task("noon", greet, schedule="0 12 * * *")
    unschedule_recurring_task("noon")
    assert found.keys == []
    schedule_recurring_task("noon", send, schedule="@hourly")
    assert found.row("noon").task_path == send.module_path


@on_every_database
def test_a_key_that_nobody_has_cannot_be_changed_or_removed(using: str) -> None:
    schedule_recurring_task("noon", greet, schedule="0 12 * * *")
    for act in (unschedule_recurring_task, change_recurring_task):
        for key in ("midnight", "Noon", "noon "):
            with pytest.raises(UnknownRecurringTaskError, match=f"no recurring task '{key}'"):
                act(key)
    assert Recurrence(using).keys == ["noon"]


@on_every_database
def test_tasks_of_the_code_are_left_alone(using: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = Recurrence(using)
    recurring(schedule="0 12 * * *", key="noon")(greet)
    acts: list[Callable[[], Any]] = [
        lambda: schedule_recurring_task("noon", send, schedule="@hourly"),
        lambda: schedule_recurring_task("noon", send, schedule="@hourly", replace=True),
        lambda: change_recurring_task("noon", schedule="@hourly"),
        lambda: unschedule_recurring_task("noon"),
    ]
    for act in acts:  # Before a supervisor has mirrored it.
        with pytest.raises(StaticRecurringTaskError, match="'noon' is defined in the code"):
            act()
    assert found.keys == []
    mirror(found.connection, found.dialect)
    monkeypatch.setattr(recurring_task, "_registry", {})
    for act in acts:  # In a process that does not import the module.
        with pytest.raises(StaticRecurringTaskError, match="'noon' is defined in the code"):
            act()
    assert (found.row("noon").schedule, found.row("noon").static) == ("0 12 * * *", True)


@on_every_database
def test_values_that_cannot_be_used_are_refused_before_anything_is_stored(using: str) -> None:
    found = Recurrence(using)
    schedule_recurring_task("noon", greet, schedule="0 12 * * *")
    before = vars(found.row("noon"))
    mistakes: list[tuple[dict[str, Any], type[Exception], str]] = [
        ({"schedule": "0 0 31 2 *"}, ValueError, "matches no date"),
        ({"schedule": "now and then"}, ValueError, "'now and then' has 3 fields"),
        ({"schedule": 0.5 * SECOND}, ValueError, "is not from one second"),
        ({"schedule": 5}, ValueError, "not int"),
        ({"timezone": "Europe/Berln"}, ValueError, "did you mean 'Europe/Berlin'"),
        ({"args": "Ada"}, TypeError, "args must be a list or tuple"),
        ({"args": [object()]}, ValueError, r"args\[0\]"),
        ({"kwargs": {1: 2}}, TypeError, "kwargs must be a dict"),
        ({"queue_name": " "}, ValueError, "queue_name ' ' contains control or .* whitespace"),
        ({"priority": 101}, ValueError, "priority must be from -100 to 100"),
        ({"catch_up": "all"}, ValueError, "catch_up must be"),
        ({"description": 5}, TypeError, "description must be a string"),
    ]
    for values, error, message in mistakes:
        with pytest.raises(error, match=message):
            schedule_recurring_task("odd", greet, **{"schedule": "@daily", **values})
        with pytest.raises(error, match=message):
            change_recurring_task("noon", **values)
    unfit = [
        ({"args": ["a", "b"]}, "cannot be called with its arguments"),
        ({"kwargs": {"soft": True}}, "argument 'soft'"),
    ]
    for values, message in unfit:
        with pytest.raises(UnusableRecurringTaskError, match=f"^The recurring .*{message}"):
            schedule_recurring_task("odd", greet, **{"schedule": "@daily", **values})
        with pytest.raises(UnusableRecurringTaskError, match=f"^The recurring .*{message}"):
            change_recurring_task("noon", **values)
    with pytest.raises(TypeError, match="is not a task"):
        schedule_recurring_task("odd", greet.func, schedule="@daily")
    with pytest.raises(ValueError, match="'nowhere' is no Steady Queue backend"):
        unschedule_recurring_task("noon", backend="nowhere")
    assert found.keys == ["noon"]
    assert {k: v for k, v in vars(found.row("noon")).items() if k != "_state"}.items() <= (
        before.items()
    )


@on_every_database
def test_arguments_larger_than_the_backend_allows_are_refused(using: str, settings: Any) -> None:
    settings.TASKS = tasks(using, max_payload_bytes=100)
    with pytest.raises(UnusableRecurringTaskError, match="more than the 100 of max_payload_bytes"):
        schedule_recurring_task("long", greet, schedule="@daily", args=["x" * 100])
    assert Recurrence(using).keys == []


@on_every_database
def test_it_all_belongs_to_the_callers_transaction(using: str) -> None:
    found = Recurrence(using)
    schedule_recurring_task("noon", greet, schedule="0 12 * * *")

    def change_of_mind() -> None:
        schedule_recurring_task("new", greet, schedule="@daily")
        change_recurring_task("noon", schedule="@hourly")
        found.row("noon").disable()
        found.row("new").run_now()
        unschedule_recurring_task("noon")
        assert found.keys == ["new"]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        atomic(using=using)(change_of_mind)()
    assert found.keys == ["noon"]
    assert (found.row("noon").schedule, found.row("noon").enabled) == ("0 12 * * *", True)
    assert found.jobs() == []


@on_every_database
@pytest.mark.parametrize("static", [True, False])
def test_a_row_cannot_change_what_the_code_says_of_a_task(using: str, static: bool) -> None:
    found = Recurrence(using)
    schedule_recurring_task("report", send, schedule="@daily", args=["stranger@example.com"])
    found.tasks.update(static=static)
    recurring(schedule="@daily", key="report", args=["Ada"])(greet)
    found.row("report").run_now()
    assert [job.task_path for job in found.jobs()] == [greet.module_path]


@on_every_database
def test_a_row_of_the_code_is_not_run_where_there_is_no_such_code(using: str) -> None:
    found = Recurrence(using)
    schedule_recurring_task("gone", greet, schedule="@daily")
    found.tasks.update(static=True)
    with pytest.raises(UnusableRecurringTaskError, match="this process has no such code"):
        found.row("gone").run_now()
    assert found.jobs() == []


@pytest.mark.django_db
@pytest.mark.parametrize("using", ["default"])
def test_a_row_whose_instance_is_gone_cannot_be_run(using: str) -> None:
    found = Recurrence(using)
    user = User.objects.create_user("ada")
    schedule_recurring_task("letter", greet, schedule="@daily", args=[user])
    user.delete()
    with pytest.raises(UnusableRecurringTaskError, match=r"'letter' cannot be run: .*deleted"):
        found.row("letter").run_now()
    assert found.jobs() == []


@on_every_database
@pytest.mark.parametrize("replace", [False, True])
def test_of_several_who_add_a_key_at_once_one_does(using: str, replace: bool) -> None:
    outcomes: list[str] = []
    barrier = threading.Barrier(4)

    def add() -> None:
        try:
            barrier.wait(10)
            schedule_recurring_task("noon", greet, schedule="@daily", replace=replace)
            outcomes.append("added")
        except Exception as error:
            outcomes.append(type(error).__name__)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    lost = ["added" if replace else "RecurringTaskExistsError"] * 3
    assert sorted(outcomes) == [*lost, "added"]


@on_every_database
def test_a_hint_is_given_where_no_scheduler_would_look(
    using: str, settings: Any, caplog: pytest.LogCaptureFixture
) -> None:
    found = Recurrence(using)
    schedule_recurring_task("noon", greet, schedule="0 12 * * *")
    assert caplog.messages == []
    settings.STEADY_QUEUE = {}
    schedule_recurring_task("late", greet, schedule="0 23 * * *")
    assert "'late' is stored, but STEADY_QUEUE['scheduler']['dynamic_tas" in caplog.messages[0]
    warn_of_unscheduled(found.connection, found.dialect)
    assert caplog.messages[1].startswith("Recurring tasks that were added at run time (2) are not")
    found.tasks.all().delete()
    warn_of_unscheduled(found.connection, found.dialect)
    assert len(caplog.messages) == 2


# --- run now, disable, enable ----------------------------------------------------------------


@on_every_database
def test_any_task_can_be_run_now_and_that_is_no_slot(using: str) -> None:
    found = Recurrence(using)
    recurring(schedule="0 12 * * *", key="static", args=["Ada"], priority=2)(greet)
    mirror(found.connection, found.dialect)
    schedule_recurring_task("dynamic", send, schedule="@hourly", args=["bob"])
    found.row("dynamic").disable()

    results = [found.row(key).run_now() for key in ("static", "dynamic")]

    assert [int(result.id) for result in results] == [job.pk for job in found.jobs()]
    assert found.calls() == [
        ("default", 2, '{"args":["Ada"],"kwargs":{}}'),
        ("mail", 5, '{"args":["bob"],"kwargs":{}}'),
    ]
    assert found.slots("static") == found.slots("dynamic") == []


@on_every_database
@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("task_path", "os.system", "Task 'os.system' is not registered"),
        ("backend_name", "gone", "'gone' is no Steady Queue backend"),
        ("arguments", "{}", "is not that of a call's arguments"),
        ("arguments", '{"args":[1,2,3],"kwargs":{}}', "cannot be called with its arguments"),
        ("schedule", "whenever", "has 1 fields"),
        ("catch_up", "always", "'always' is not a number"),
        ("priority", 999, "priority must be from -100"),
    ],
)
def test_a_row_that_cannot_be_run_says_why(
    using: str, column: str, value: Any, message: str
) -> None:
    found = Recurrence(using)
    schedule_recurring_task("noon", greet, schedule="0 12 * * *")
    found.tasks.update(**{column: value})
    with pytest.raises(
        UnusableRecurringTaskError, match="recurring task 'noon' cannot be run"
    ) as e:
        found.row("noon").run_now()
    assert message in str(e.value)
    assert found.jobs() == []


@on_every_database
def test_a_task_is_disabled_and_enabled_once(using: str) -> None:
    found = Recurrence(using)
    schedule_recurring_task("noon", greet, schedule="0 12 * * *")
    row = found.row("noon")
    added = row.active_since

    assert (row.disable(), row.disable(), row.enabled) == (True, False, False)
    assert (found.row("noon").enabled, found.row("noon").active_since) == (False, added)

    assert (row.enable(), row.enable(), row.enabled) == (True, False, True)
    assert found.row("noon").enabled
    assert row.active_since == found.row("noon").active_since != added
    assert vars(found.row("noon"))["schedule"] == "0 12 * * *"


@on_every_database
def test_a_task_that_was_removed_meanwhile_cannot_be_switched(using: str) -> None:
    schedule_recurring_task("noon", greet, schedule="0 12 * * *")
    row = Recurrence(using).row("noon")
    unschedule_recurring_task("noon")
    for act in (row.disable, row.enable):
        with pytest.raises(UnknownRecurringTaskError, match="'noon' no longer exists"):
            act()


# --- the mirror of the code ------------------------------------------------------------------


@on_every_database
def test_a_disabled_task_of_the_code_stays_so_over_any_restart(
    using: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = Recurrence(using)

    def restart(**schedules: str) -> dict[str, tuple[str, bool]]:
        monkeypatch.setattr(recurring_task, "_registry", {})
        for key, schedule in schedules.items():
            recurring(schedule=schedule, key=key)(greet)
        mirror(found.connection, found.dialect)
        return {key: (found.row(key).schedule, found.row(key).enabled) for key in found.keys}

    both = restart(kept="@daily", off="@daily")
    assert both == {"kept": ("@daily", True), "off": ("@daily", True)}
    found.row("off").disable()
    assert restart(kept="@daily", off="@daily")["off"] == ("@daily", False)
    assert restart(kept="@daily", off="@hourly")["off"] == ("@hourly", False)
    # The code of an older release, which does not have it, nor the other one.
    assert restart() == {"off": ("@hourly", False)}
    assert restart(off="@hourly") == {"off": ("@hourly", False)}
    found.row("off").enable()
    assert restart() == {}


def scheduler_with(found: Recurrence, *keys: str, count: int | None = None) -> str:
    """Register a scheduler that names these tasks, of ``count``; return its name."""
    name = f"scheduler-{'-'.join(keys)}"
    known = {"keys": keys, "recurring_tasks": len(keys) if count is None else count}
    processes.register(
        found.using,
        kind=Scheduler.kind,
        name=name,
        pid=1,
        hostname="h",
        supervisor_id=None,
        metadata=json.dumps(known),
    )
    return name


@on_every_database
def test_a_task_that_another_release_has_is_kept_while_its_scheduler_lives(
    using: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = Recurrence(using)

    def start(*keys: str) -> None:
        monkeypatch.setattr(recurring_task, "_registry", {})
        for key in keys:
            recurring(schedule="@daily", key=key)(greet)

    start("both", "new")
    mirror(found.connection, found.dialect)
    newer = scheduler_with(found, "both", "new")
    start("both")
    supervised = Mirroring(QueueDatabase(using))
    supervised.begin()
    assert set(found.keys) == {"both", "new"}

    monkeypatch.setattr(mirroring, "PAUSE", 0.0)
    supervised.begin()
    supervised.step()
    assert set(found.keys) == {"both", "new"}
    processes.deregister(using, newer)
    supervised.step()
    assert set(found.keys) == {"both"}
    with CaptureQueriesContext(found.connection) as queries:
        supervised.step()
    assert not queries


@on_every_database
def test_a_scheduler_may_have_more_tasks_than_it_names(
    using: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = Recurrence(using)
    for key in ("a", "b", "c", "d"):
        recurring(schedule="@daily", key=key)(greet)
    mirror(found.connection, found.dialect)
    scheduler_with(found, "a", "c", count=3)
    monkeypatch.setattr(recurring_task, "_registry", {})
    assert mirror(found.connection, found.dialect)
    assert set(found.keys) == {"a", "c", "d"}


@on_every_database
def test_a_scheduler_that_was_declared_dead_or_damaged_keeps_no_task(
    using: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = Recurrence(using)
    recurring(schedule="@daily", key="k")(greet)
    mirror(found.connection, found.dialect)
    rows = processes.Process.objects.using(using)
    dead = scheduler_with(found, "k")
    rows.filter(name=dead).update(last_heartbeat_at=portable.storable(processes.NEVER_AGAIN))
    rows.filter(name=scheduler_with(found, "other")).update(metadata='{"keys": {"k": 1}}')
    monkeypatch.setattr(recurring_task, "_registry", {})
    assert not mirror(found.connection, found.dialect)
    assert found.keys == []


@on_every_database
def test_only_another_schedule_begins_anew(using: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = Recurrence(using)
    long_ago = found.present() - 9 * DAY

    def begins_anew(**values: Any) -> bool:
        monkeypatch.setattr(recurring_task, "_registry", {})
        recurring(**{"schedule": "@daily", "key": "k", "timezone": "UTC", **values})(greet)
        found.since("k", long_ago)
        mirror(found.connection, found.dialect)
        since = found.row("k").active_since
        assert since is not None
        return portable.aware(since) != long_ago

    assert begins_anew()
    assert not begins_anew(args=["Ada"], priority=3, catch_up="last")
    assert begins_anew(schedule="@hourly")
    assert not begins_anew(schedule="@hourly")
    assert begins_anew(schedule="@hourly", timezone="Asia/Tokyo")


@on_every_database
def test_a_task_of_the_code_takes_the_place_of_one_that_was_added(
    using: str, caplog: pytest.LogCaptureFixture
) -> None:
    found = Recurrence(using)
    schedule_recurring_task("noon", send, schedule="0 12 * * *", args=["ada"])
    schedule_recurring_task("other", send, schedule="0 12 * * *")
    recurring(schedule="0 13 * * *", key="noon")(greet)
    with caplog.at_level(logging.WARNING):
        mirror(found.connection, found.dialect)
        mirror(found.connection, found.dialect)
    assert caplog.messages == [
        "Recurring task 'noon' in code replaces the one that was added at run time"
    ]
    noon = found.row("noon")
    assert (noon.static, noon.schedule, noon.task_path) == (True, "0 13 * * *", greet.module_path)
    assert noon.arguments == '{"args":[],"kwargs":{}}'
    assert not found.row("other").static
