"""Each recurring task has one shard, which its arguments decide about."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from threading import Barrier, BrokenBarrierError
from typing import Any

import pytest

from steady_queue_core import (
    change_recurring_task,
    dynamic_tasks,
    recurring,
    schedule_recurring_task,
    unschedule_recurring_task,
)
from steady_queue_core.compat import InvalidTask
from steady_queue_core.configured_backends import recurring_tasks_on
from steady_queue_core.conformance import threads
from steady_queue_core.errors import (
    RecurringTaskExistsError,
    StaticRecurringTaskError,
    UnknownRecurringTaskError,
)
from steady_queue_core.models import RecurringTask, UniqueKey
from steady_queue_core.schedules import definition as recurring_task
from steady_queue_core.sharding import routing

from ..models.recurrence import MINUTE, Plan
from .places import Shards, on_every_pair, on_sqlite
from .tasks import greet, note, report

NUMBER = 12


@pytest.fixture(autouse=True)
def _schedules(monkeypatch: pytest.MonkeyPatch, shards: Shards) -> None:
    """Have a recurring task for each of some customers, and two without."""
    monkeypatch.setattr(recurring_task, "_registry", {})
    for number in range(NUMBER):
        args: dict[str, Any] = {"args": [number]} if number % 2 else {}
        given = args or {"kwargs": {"customer_id": number}}
        recurring(schedule="* * * * *", key=f"greet {number}", priority=3, **given)(greet)
    recurring(schedule="* * * * *", key="note", args=["x"])(note)
    recurring(schedule="* * * * *", key="report")(report)


def expected(shards: Shards) -> dict[str, set[str]]:
    places = {f"greet {number}": number for number in range(NUMBER)}
    keys: dict[str, object] = {**places, "note": "note", "report": "one place"}
    found: dict[str, set[str]] = {"east": set(), "west": set()}
    for schedule, key in keys.items():
        found[shards.backend.shard_for(key).alias].add(schedule)
    return found


@on_every_pair
def test_exactly_one_shard_has_each_schedule(west: str, shards: Shards) -> None:
    wanted = expected(shards)
    assert min(map(len, wanted.values())) > 2
    for shard, using in shards.databases.items():
        assert {each.key for each in recurring_tasks_on(using)} == wanted[shard]
        Plan(using).mirror()
        rows = RecurringTask.objects.using(using)
        assert {row.key for row in rows.all()} == wanted[shard]
        assert {row.backend_name for row in rows.all()} == {shard}
        assert {row.priority for row in rows.filter(key__startswith="greet")} == {3}


@on_every_pair
@pytest.mark.parametrize("home", ["east", "west"])
def test_a_new_key_is_added_to_one_of_two_shards(
    west: str, shards: Shards, home: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever looks for it first has added it before another one looks."""
    names = [f"new {number}" for number in range(20)]
    name = next(each for each in names if routing.shard_of(each, ("east", "west")) == home)
    both, look = Barrier(2), dynamic_tasks._shard_with

    def looking(key: str, backend: str) -> str | None:
        found = look(key, backend)
        with suppress(BrokenBarrierError):
            both.wait(1.0)
        return found

    monkeypatch.setattr(dynamic_tasks, "_shard_with", looking)

    def add(shard: str) -> bool:
        [customer] = shards.keys(shard)
        try:
            schedule_recurring_task(name, greet, schedule="* * * * *", args=[customer])
        except RecurringTaskExistsError:
            return False
        return True

    added = [threads.start(using, partial(add, shard)) for shard, using in shards.databases.items()]
    assert sorted(each.result(20) for each in added) == [False, True]
    counts = [
        RecurringTask.objects.using(using).filter(pk=name).count()
        for using in shards.databases.values()
    ]
    assert sorted(counts) == [0, 1]
    assert not any(UniqueKey.objects.using(using).exists() for using in shards.databases.values())


@on_every_pair
def test_runs_are_enqueued_in_the_shard(west: str, shards: Shards) -> None:
    wanted = expected(shards)
    for shard, using in shards.databases.items():
        plan = Plan(using)
        plan.mirror()
        plan.begin()
        plan.pass_by(MINUTE)
        jobs = shards.jobs(shard)
        assert len(jobs) == len(wanted[shard])
        assert {job.backend_name for job in jobs} == {shard}
        row = RecurringTask.objects.using(using).filter(key__startswith="greet").first()
        result = row.run_now()
        assert result.backend == shard
        result.refresh()


@on_sqlite
def test_a_new_shard_takes_its_schedules_and_leaves_the_others_alone(
    west: str, shards: Shards
) -> None:
    shards.settings.TASKS["default"]["OPTIONS"]["shards"] = ["east"]
    shards.settings.TASKS = {**shards.settings.TASKS}
    plans = {shard: Plan(using) for shard, using in shards.databases.items()}
    for plan in plans.values():
        plan.mirror()
    assert (len(plans["east"].keys), len(plans["west"].keys)) == (NUMBER + 2, 0)
    shards.configure()
    for plan in plans.values():
        plan.mirror()
    assert {shard: set(plan.keys) for shard, plan in plans.items()} == expected(shards)


@on_sqlite
def test_those_of_a_backend_that_is_gone_are_nowhere(west: str, shards: Shards) -> None:
    recurring(schedule="* * * * *", key="of east", args=[1])(greet.using(backend="east"))
    shards.settings.TASKS = {name: shards.settings.TASKS[name] for name in ("east", "west")}
    assert [each.key for each in recurring_tasks_on("default")] == ["of east"]


@on_sqlite
def test_a_task_without_a_key_is_refused_elsewhere(west: str, shards: Shards) -> None:
    with pytest.raises(InvalidTask):
        note.enqueue("x")


def places(shards: Shards, key: str) -> list[str]:
    """Return the shards that have a recurring task of this key."""
    found = [
        (shard, RecurringTask.objects.using(using).filter(key=key).first())
        for shard, using in shards.databases.items()
    ]
    assert all(row.backend_name == shard for shard, row in found if row is not None)
    return [shard for shard, row in found if row is not None]


@on_every_pair
def test_a_task_that_is_added_at_run_time_goes_by_its_arguments(west: str, shards: Shards) -> None:
    [east], [key] = shards.keys("east"), shards.keys("west")
    for shard, args in {"east": [east], "west": [key]}.items():
        name = f"added in {shard}"
        schedule_recurring_task(name, greet, schedule="* * * * *", args=args)
        assert places(shards, name) == [shard]
        plan = Plan(shards.databases[shard])
        plan.begin()
        plan.pass_by(MINUTE)
        assert plan.slots(name)
    with pytest.raises(RecurringTaskExistsError):
        schedule_recurring_task("added in west", greet, schedule="* * * * *", args=[east])
    # It stays where it is.
    schedule_recurring_task("added in west", greet, schedule="1 * * * *", args=[east], replace=True)
    row = change_recurring_task("added in west", args=[east], priority=7)
    assert (row.schedule, row.priority) == ("1 * * * *", 7)
    assert places(shards, "added in west") == ["west"]
    unschedule_recurring_task("added in west")
    assert places(shards, "added in west") == []


@on_sqlite
def test_functions_of_run_time_name_what_they_do_not_find(west: str, shards: Shards) -> None:
    for refused in (unschedule_recurring_task, change_recurring_task):
        with pytest.raises(
            UnknownRecurringTaskError, match=r"^There is no recurring task 'nothing'\.$"
        ):
            refused("nothing")
        with pytest.raises(StaticRecurringTaskError):
            refused("greet 1")
    with pytest.raises(StaticRecurringTaskError):
        schedule_recurring_task("greet 1", greet, schedule="* * * * *", args=[1])


@on_sqlite
def test_a_task_without_a_key_goes_by_that_of_its_schedule(west: str, shards: Shards) -> None:
    for number in range(8):
        name = f"note {number}"
        schedule_recurring_task(name, note, schedule="* * * * *", args=["x"])
        assert places(shards, name) == [shards.backend.shard_for(name).alias]
