"""The scheduler's due times on every database: each slot of a task as its row is, once."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest
from django.db import OperationalError, connections
from django.db.transaction import atomic

from steady_queue_core import (
    Unique,
    change_recurring_task,
    limits_concurrency,
    recurring,
    schedule_recurring_task,
    task,
    unschedule_recurring_task,
)
from steady_queue_core.backend import SteadyQueueBackend
from steady_queue_core.compat import NATIVE, InvalidTask, task_enqueued
from steady_queue_core.models import RecurringExecution
from steady_queue_core.processes.base.database import Unavailable
from steady_queue_core.processes.scheduler.due_times import BUSY_PAUSE
from steady_queue_core.schedules import definition as recurring_task

from ..app.models import Item
from .everywhere import on_every_database, on_every_server
from .recurrence import DAY, HOUR, MINUTE, SECOND, Plan, greet, send, tasks

FRAMEWORK = "django.tasks" if NATIVE else "django_tasks"


@task(unique=True)
def once() -> None:
    """Do nothing."""


@task(unique=Unique(key="one", on_conflict="raise"))
def once_or_refused() -> None:
    """Do nothing."""


@task(unique=Unique(key="one", on_conflict="replace"))
def the_last_time() -> None:
    """Do nothing."""


FOR_ANYBODY = '{"args":[],"kwargs":{}}'
FOR_BOB = '{"args":["Bob"],"kwargs":{}}'

on_the_projects_database = pytest.mark.parametrize(
    "using", [pytest.param("default", marks=pytest.mark.django_db(transaction=True))]
)


@pytest.fixture(autouse=True)
def _project(using: str, settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.TASKS = tasks(using)
    settings.STEADY_QUEUE = {"scheduler": {"dynamic_tasks_enabled": True}}
    monkeypatch.setattr(recurring_task, "_registry", {})


@pytest.fixture
def plan(using: str) -> Plan:
    return Plan(using)


# --- added, changed, removed -----------------------------------------------------------------


@on_every_database
def test_a_task_that_is_added_is_enqueued_from_the_next_look_on(plan: Plan) -> None:
    plan.look()
    schedule_recurring_task(
        "beat", send, schedule=30 * SECOND, args=["ada"], queue_name="slow", priority=-2
    )
    schedule_recurring_task("each", greet, schedule="* * * * *", timezone="UTC")
    began = plan.clock
    assert plan.pass_by(30 * SECOND) is None
    plan.look()
    assert plan.pass_by(29 * SECOND) == plan.clock + SECOND
    assert plan.pass_by(SECOND) == plan.clock + 30 * SECOND
    assert plan.pass_by(30 * SECOND) == plan.clock + 30 * SECOND
    assert plan.slots_from("beat", began) == [MINUTE, 1.5 * MINUTE]
    assert plan.slots_from("each", began) == [MINUTE]
    assert sorted(plan.calls()) == [
        ("default", 0, FOR_ANYBODY),
        ("slow", -2, '{"args":["ada"],"kwargs":{}}'),
        ("slow", -2, '{"args":["ada"],"kwargs":{}}'),
    ]


@on_every_database
@pytest.mark.parametrize("on_conflict", ["existing", "raise", "replace"])
def test_a_run_whose_unique_key_is_taken_is_that_of_the_other_job(
    plan: Plan, on_conflict: str
) -> None:
    unique = {"existing": once, "raise": once_or_refused, "replace": the_last_time}[on_conflict]
    plan.look()
    schedule_recurring_task("beat", unique, schedule=30 * SECOND)
    plan.look()
    began = plan.clock
    plan.pass_by(30 * SECOND)
    plan.pass_by(30 * SECOND)
    assert plan.slots_from("beat", began) == [30 * SECOND, MINUTE]
    [job] = plan.jobs()
    job.discard()
    plan.pass_by(30 * SECOND)
    assert [each.pk for each in plan.jobs()] != [job.pk]


@on_every_database
def test_a_change_counts_for_the_very_next_slot_and_loses_none(plan: Plan) -> None:
    schedule_recurring_task("each", greet, schedule=MINUTE, args=["Ada"])
    plan.look()
    began = plan.clock
    plan.pass_by(MINUTE)
    change_recurring_task("each", args=["Bob"], queue_name="slow", priority=9)
    plan.pass_by(MINUTE)
    assert plan.due_times.outdated
    assert plan.slots_from("each", began) == [MINUTE]
    plan.look()
    assert not plan.due_times.outdated
    plan.pass_by(0 * SECOND)
    assert plan.slots_from("each", began) == [MINUTE, 2 * MINUTE]
    assert plan.calls() == [
        ("default", 0, '{"args":["Ada"],"kwargs":{}}'),
        ("slow", 9, FOR_BOB),
    ]


@on_every_database
def test_another_schedule_counts_from_the_next_look_on_and_missed_nothing(
    plan: Plan, caplog: pytest.LogCaptureFixture
) -> None:
    schedule_recurring_task("k", greet, schedule=HOUR, catch_up=DAY)
    plan.begin()
    plan.pass_by(HOUR)
    assert len(plan.slots("k")) == 1
    for schedule in ("every 2 minutes", "every 3 seconds", "* * * * *"):
        plan.clock += HOUR / 2
        plan.look()
        # By somebody who knows nothing of ``active_since``.
        plan.tasks.update(schedule=schedule)
        looked = plan.clock
        plan.clock += 5 * SECOND
        plan.look()
        for _ in range(5):
            plan.pass_by(0 * SECOND)
        assert all(slot > looked for slot in plan.slots("k")[1:])
        plan.clock += 2 * MINUTE
        plan.pass_by(0 * SECOND)
        assert plan.slots("k")[-1] > looked
        RecurringExecution.objects.using(plan.using).filter(run_at__gt=plan.slots("k")[0]).delete()
    assert [each for each in caplog.messages if "missed" in each] == []


@on_every_database
@pytest.mark.parametrize(
    ("column", "value", "seen"),
    [
        ("arguments", FOR_BOB, ("default", 0, FOR_BOB)),
        ("queue_name", "slow", ("slow", 0, FOR_ANYBODY)),
        ("priority", -3, ("default", -3, FOR_ANYBODY)),
    ],
)
def test_a_row_that_anybody_edits_is_noticed(
    plan: Plan, column: str, value: Any, seen: tuple[str, int, str]
) -> None:
    schedule_recurring_task("k", greet, schedule=MINUTE)
    plan.look()
    plan.tasks.update(**{column: value})
    plan.look()
    plan.pass_by(MINUTE)
    assert plan.calls() == [seen]


@on_every_database
def test_another_task_time_zone_or_policy_is_noticed(plan: Plan) -> None:
    schedule_recurring_task("k", greet, schedule="0 0 * * *", timezone="UTC")
    plan.look()
    coming = plan.pass_by(SECOND)
    plan.tasks.update(timezone="Asia/Kathmandu", task_path=send.module_path, catch_up="last")
    plan.look()
    assert plan.pass_by(0 * SECOND) != coming
    definition = plan.due_times.schedule.entries["k"].definition
    assert (definition.task.module_path, definition.catch_up) == (send.module_path, "last")


@on_every_database
def test_a_task_that_is_removed_has_no_further_slot_even_before_the_next_look(plan: Plan) -> None:
    schedule_recurring_task("k", greet, schedule=MINUTE)
    schedule_recurring_task("other", greet, schedule=MINUTE)
    plan.look()
    plan.pass_by(MINUTE)
    unschedule_recurring_task("k")
    plan.pass_by(MINUTE)
    assert plan.due_times.outdated
    plan.look()
    plan.pass_by(MINUTE)
    assert (len(plan.slots("k")), len(plan.slots("other"))) == (1, 3)


@on_every_database
def test_what_was_added_is_not_looked_at_unless_that_is_enabled(using: str) -> None:
    plan = Plan(using, dynamic=False)
    recurring(schedule=MINUTE, key="static")(greet)
    plan.due_times = plan.start()
    schedule_recurring_task("dynamic", greet, schedule=MINUTE)
    plan.look()
    plan.pass_by(MINUTE)
    assert (len(plan.slots("static")), len(plan.slots("dynamic"))) == (1, 0)


@on_every_database
def test_a_single_run_whose_time_comes_before_its_commit_is_late_rather_than_lost(
    plan: Plan,
) -> None:
    both = [plan.due_times, plan.start()]
    for each in both:
        each.refresh(plan.clock)
    # Committed now, and seen after the last look.
    schedule_recurring_task("k", greet, schedule=plan.clock - 30 * SECOND)
    assert plan.row("k").active_since is not None
    for _ in range(2):
        plan.clock += 5 * SECOND
        for each in both:
            each.refresh(plan.clock)
            each.enqueue_due(plan.clock)
    assert plan.slots_from("k", plan.clock) == [-40 * SECOND]
    assert len(plan.jobs()) == 1


@on_every_database
@pytest.mark.parametrize("has_run", [False, True], ids=["new", "known"])
@pytest.mark.parametrize(
    ("policy", "made_up"), [("skip", []), (MINUTE, [-20 * SECOND, -10 * SECOND, 0 * SECOND])]
)
def test_what_passes_before_the_commit_of_a_task_is_made_up_for_if_the_task_says_so(
    plan: Plan, policy: Any, made_up: list[Any], has_run: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """Nobody is warned, even if there was another task of that key."""
    if has_run:
        schedule_recurring_task("k", greet, schedule=MINUTE)
        plan.begin()
        plan.pass_by(MINUTE)
        unschedule_recurring_task("k")
        plan.clock += HOUR
    plan.look()
    began = plan.clock
    schedule_recurring_task("k", greet, schedule=10 * SECOND, catch_up=policy)
    plan.since("k", began - 25 * SECOND)
    plan.clock += 5 * SECOND
    plan.look()
    for _ in range(5):
        plan.pass_by(0 * SECOND)
    assert plan.slots_from("k", began)[has_run:] == made_up
    plan.pass_by(5 * SECOND)
    assert plan.slots_from("k", began)[has_run:] == [*made_up, 10 * SECOND]
    assert [each for each in caplog.messages if "missed" in each] == []


@on_every_database
def test_two_schedulers_enqueue_each_slot_of_what_was_added_once(plan: Plan) -> None:
    schedule_recurring_task("k", greet, schedule=SECOND)
    both = [plan.start(), plan.start()]
    for each in both:
        each.refresh(plan.clock)
    for _ in range(5):
        plan.clock += SECOND
        for each in both:
            each.enqueue_due(plan.clock)
    assert len(plan.slots("k")) == len(plan.jobs()) == 5


@on_every_database
def test_a_task_of_the_code_comes_before_one_that_was_added(
    plan: Plan, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    schedule_recurring_task("k", greet, schedule=MINUTE, args=["added"])
    recurring(schedule=MINUTE, key="k")(greet)
    plan.due_times = plan.start()
    for _ in range(3):
        plan.look()
        plan.pass_by(MINUTE)
    assert plan.calls() == [("default", 0, FOR_ANYBODY)] * 3
    assert [each for each in caplog.messages if "'k'" in each and "code" in each] == [
        "The recurring task 'k' is also defined in code, which takes precedence"
    ]


@on_every_database
def test_arguments_queue_and_priority_are_those_of_the_schedule(plan: Plan) -> None:
    each: dict[str, dict[str, Any]] = {
        "1 none": {},
        "2 args": {"args": ["Ada"], "queue_name": "slow"},
        "3 kwargs": {"kwargs": {"name": "Ada", "loud": True}, "priority": -4},
        "4 both": {"args": ("Ada",), "kwargs": {"loud": True}, "queue_name": "slow", "priority": 9},
    }
    for key, values in each.items():
        recurring(schedule=MINUTE, key=f"static {key}", **values)(greet)
        schedule_recurring_task(f"dynamic {key}", greet, schedule=MINUTE, **values)
    plan.begin()
    plan.pass_by(MINUTE)
    expected = [
        ("default", 0, FOR_ANYBODY),
        ("slow", 0, '{"args":["Ada"],"kwargs":{}}'),
        ("default", -4, '{"args":[],"kwargs":{"name":"Ada","loud":true}}'),
        ("slow", 9, '{"args":["Ada"],"kwargs":{"loud":true}}'),
    ]
    assert sorted(plan.calls()) == sorted(expected * 2)


@on_every_database
def test_a_slot_whose_job_is_refused_is_not_recorded(
    plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    for key in "abc":
        schedule_recurring_task(key, greet, schedule=MINUTE, args=[key])
    plan.begin()
    enqueue_now = SteadyQueueBackend.enqueue_now

    def refuse_b(self: Any, task: Any, args: Any, kwargs: Any, **others: Any) -> Any:
        result = enqueue_now(self, task, args, kwargs, **others)
        if args == ["b"]:
            raise InvalidTask("not this one")
        return result

    monkeypatch.setattr(SteadyQueueBackend, "enqueue_now", refuse_b)
    plan.pass_by(MINUTE)
    assert [len(plan.slots(key)) for key in "abc"] == [1, 0, 1]
    assert len(plan.jobs()) == 2


FAILURES: list[Exception] = []


def key_that_may_fail() -> str:
    if FAILURES:
        raise FAILURES.pop()
    return "one"


@limits_concurrency(key=key_that_may_fail, to=99)
@task
def of_a_key() -> None:
    """Do nothing."""


@pytest.fixture
def failures() -> Iterator[list[Exception]]:
    """What the next calls of the key function raise."""
    yield FAILURES
    FAILURES.clear()


@on_every_database
def test_a_run_that_cannot_be_enqueued_is_tried_again_if_it_is_not_to_be_lost(
    plan: Plan, failures: list[Exception], caplog: pytest.LogCaptureFixture
) -> None:
    slot = plan.clock + MINUTE
    schedule_recurring_task("k", of_a_key, schedule=slot)
    plan.begin()
    failures += [LookupError("no"), LookupError("no")]
    assert plan.pass_by(MINUTE) == plan.clock + SECOND
    assert plan.pass_by(SECOND / 2) == plan.clock + SECOND / 2
    assert len(failures) == 1
    plan.look()
    assert plan.pass_by(SECOND / 2) == plan.clock + 2 * SECOND
    assert plan.slots("k") == []
    assert plan.pass_by(2 * SECOND) is None
    assert plan.slots("k") == [slot]
    assert caplog.text.count("could not be enqueued") == 2


@on_every_database
@pytest.mark.parametrize(("policy", "first"), [("skip", 3), ("last", 2), (HOUR, 1)])
def test_catching_up_begins_with_runs_that_could_not_be_enqueued(
    plan: Plan, failures: list[Exception], policy: Any, first: int
) -> None:
    schedule_recurring_task("k", of_a_key, schedule=MINUTE, catch_up=policy)
    plan.begin()
    began = plan.clock
    failures += [LookupError("no")] * 99
    plan.pass_by(MINUTE)
    for _ in range(64):
        plan.pass_by(SECOND)
    failures.clear()
    for _ in range(90):
        plan.pass_by(SECOND)
    assert plan.slots_from("k", began) == [n * MINUTE for n in range(first, 4)]


@on_every_database
def test_a_run_that_can_never_be_enqueued_is_given_up(
    plan: Plan, failures: list[Exception]
) -> None:
    schedule_recurring_task("k", of_a_key, schedule=plan.clock + MINUTE)
    plan.begin()
    failures += [LookupError("no")] * 99
    due = plan.pass_by(MINUTE)
    while due is not None:
        assert SECOND <= due - plan.clock <= MINUTE
        due = plan.pass_by(due - plan.clock)
    assert len(failures) == 99 - 10
    assert plan.slots("k") == []


# --- disabled and enabled --------------------------------------------------------------------


@pytest.fixture(params=["static", "dynamic"])
def key(request: pytest.FixtureRequest, plan: Plan) -> str:
    """A task that is due each minute and makes up for all that it misses."""
    if request.param == "static":
        recurring(schedule=MINUTE, key="static", catch_up=DAY)(greet)
        plan.mirror()
    else:
        schedule_recurring_task("dynamic", greet, schedule=MINUTE, catch_up=DAY)
    plan.begin()
    return str(request.param)


@on_every_database
def test_a_disabled_task_has_no_slot_even_before_the_next_look(plan: Plan, key: str) -> None:
    plan.pass_by(MINUTE)
    plan.row(key).disable()
    for _ in range(3):
        plan.pass_by(MINUTE)
    assert len(plan.slots(key)) == len(plan.jobs()) == 1


@on_every_database
def test_what_a_task_missed_while_it_was_disabled_is_never_made_up_for(
    plan: Plan, key: str
) -> None:
    began = plan.clock
    plan.pass_by(MINUTE)
    plan.row(key).disable()
    plan.pass_by(MINUTE)
    plan.row(key).enable()
    plan.since(key, began + 4.5 * MINUTE)  # As if that was when it was enabled.
    # The scheduler comes late to all of these: five are to be made up for, three are not.
    plan.clock += 5 * MINUTE
    for _ in range(10):
        plan.pass_by(0 * SECOND)
    assert plan.slots_from(key, began) == [n * MINUTE for n in (1, 5, 6, 7)]
    another = plan.start()
    plan.since(key, began + 9.5 * MINUTE)
    plan.clock += 4 * MINUTE
    another.refresh(plan.clock)
    for _ in range(10):
        another.enqueue_due(plan.clock)
    assert plan.slots_from(key, began)[4:] == [n * MINUTE for n in (10, 11)]


@on_every_database
def test_a_disabled_task_stays_so_for_a_scheduler_that_starts_later(plan: Plan, key: str) -> None:
    plan.row(key).disable()
    plan.mirror()
    plan.due_times = plan.start()
    plan.look()
    plan.pass_by(MINUTE)
    assert plan.slots(key) == []
    plan.row(key).enable()
    plan.since(key, plan.clock)
    plan.pass_by(MINUTE)
    assert len(plan.slots(key)) == 1


@on_every_database
def test_a_task_of_the_code_runs_although_its_row_is_gone(plan: Plan) -> None:
    recurring(schedule=MINUTE, key="k")(greet)
    plan.due_times = plan.start()
    plan.look()
    plan.pass_by(MINUTE)
    assert len(plan.slots("k")) == 1


@pytest.fixture
def while_enqueueing() -> Iterator[list[Any]]:
    """Functions to call within the transaction of a slot."""
    acts: list[Any] = []

    def receive(**kwargs: Any) -> None:
        for act in acts:
            act()

    task_enqueued.connect(receive)
    yield acts
    task_enqueued.disconnect(receive)


def elsewhere(act: Any) -> Any:
    """Return what ``act`` returns on another connection."""
    found: list[Any] = []

    def run() -> None:
        try:
            found.append(act())
        finally:
            connections.close_all()

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(20)
    return found[0]


@on_every_server
def test_who_disables_a_task_waits_for_a_slot_that_is_being_enqueued(
    plan: Plan, key: str, while_enqueueing: list[Any]
) -> None:
    def free_rows() -> list[str]:
        with atomic(using=plan.using):
            rows = plan.tasks.filter(key=key)
            return [row.key for row in plan.dialect.lock_rows(plan.connection, rows, wait=False)]

    seen: list[Any] = []
    while_enqueueing.append(lambda: seen.append(elsewhere(free_rows)))
    plan.pass_by(MINUTE)
    assert len(plan.slots(key)) == 1
    assert seen == [[]]
    assert elsewhere(free_rows) == [key]


@on_every_server
def test_a_task_that_somebody_is_changing_keeps_no_other_waiting(plan: Plan, key: str) -> None:
    schedule_recurring_task("a", greet, schedule=MINUTE)
    schedule_recurring_task("z", greet, schedule=MINUTE)
    plan.begin()
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with atomic(using=plan.using):
            plan.row(key).disable()
            held.set()
            done.wait(20)
        connections.close_all()

    thread = threading.Thread(target=hold)
    thread.start()
    assert held.wait(10)
    try:
        assert plan.pass_by(MINUTE) == plan.clock + BUSY_PAUSE
        assert (len(plan.slots("a")), len(plan.slots(key)), len(plan.slots("z"))) == (1, 0, 1)
    finally:
        done.set()
        thread.join(20)
    # It was disabled before the slot could be enqueued.
    assert plan.pass_by(BUSY_PAUSE) == plan.clock - BUSY_PAUSE + MINUTE
    assert plan.slots(key) == []


# --- missed slots ----------------------------------------------------------------------------


@on_every_database
def test_a_task_misses_slots_from_when_it_was_added(
    plan: Plan, caplog: pytest.LogCaptureFixture
) -> None:
    began = plan.clock
    for key, policy in {"skip": "skip", "last": "last", "two": 2 * MINUTE}.items():
        schedule_recurring_task(key, greet, schedule=MINUTE, catch_up=policy)  # type: ignore[arg-type]  # Refused.
        plan.since(key, began)
    plan.clock += 3.5 * MINUTE
    plan.look()
    for _ in range(4):
        plan.pass_by(0 * SECOND)
    assert plan.slots_from("skip", began) == []
    assert plan.slots_from("last", began) == [3 * MINUTE]
    assert plan.slots_from("two", began) == [2 * MINUTE, 3 * MINUTE]
    # They have never run: nobody expects to be warned of what they missed.
    assert [each for each in caplog.messages if "missed" in each] == []


# --- the clock is set back -------------------------------------------------------------------


@on_every_database
@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize(
    ("policy", "made_up"), [("skip", []), ("last", [3 * MINUTE]), (DAY, [2 * MINUTE, 3 * MINUTE])]
)
def test_schedules_go_on_when_the_clock_was_ahead_and_is_set_right(
    plan: Plan, policy: Any, made_up: list[Any], restarted: bool, caplog: pytest.LogCaptureFixture
) -> None:
    schedule_recurring_task("k", greet, schedule=MINUTE)
    plan.begin()
    began = plan.clock
    plan.pass_by(MINUTE)
    plan.clock += HOUR
    plan.due_times = plan.start()
    plan.look()
    plan.pass_by(3 * MINUTE)
    ahead = plan.slots_from("k", began)
    assert ahead[-1] >= HOUR
    change_recurring_task("k", catch_up=policy)
    plan.look()

    plan.clock = began + 3.5 * MINUTE
    if restarted:
        plan.due_times = plan.start()
    else:
        assert plan.pass_by(0 * SECOND) is None
        assert plan.due_times.outdated
    plan.look()
    for _ in range(4):
        plan.pass_by(0 * SECOND)
    assert [each for each in plan.slots_from("k", began)[1:] if each < 5 * MINUTE] == made_up
    plan.pass_by(MINUTE)
    assert 4 * MINUTE in plan.slots_from("k", began)
    # What was enqueued early is not enqueued again.
    plan.clock = began + HOUR
    for _ in range(70):
        plan.pass_by(MINUTE)
    assert set(ahead) < set(plan.slots_from("k", began))
    assert len(plan.jobs()) == len(plan.slots("k"))
    events = [record.__dict__.get("event") for record in caplog.records]
    assert events.count("recurring.clock_set_back") == (not restarted)


@on_every_database
def test_a_clock_that_is_set_back_by_a_little_changes_nothing(
    plan: Plan, caplog: pytest.LogCaptureFixture
) -> None:
    schedule_recurring_task("k", greet, schedule=MINUTE)
    plan.begin()
    due = plan.pass_by(MINUTE)
    assert plan.pass_by(-5 * SECOND) == due
    plan.look()
    assert not plan.due_times.outdated
    assert plan.pass_by(SECOND) == due
    assert "set back" not in caplog.text


# --- rows of strangers -----------------------------------------------------------------------

HOSTILE: dict[str, dict[str, Any]] = {
    "expression": {"schedule": "99 * * * *"},
    "impossible date": {"schedule": "0 0 31 2 *"},
    "many fields": {"schedule": "* " * 120},
    "interval": {"schedule": "every 99999999999999 days"},
    "task": {"task_path": "os.system"},
    "path": {"task_path": "../../etc/passwd"},
    "arguments": {"arguments": "rm -rf /"},
    "call": {"arguments": '{"args":[1,2,3],"kwargs":{"x":1}}'},
    "deep": {"arguments": "[" * 100_000},
    "tag": {"arguments": '{"args":[{"__sq_eval__":"1"}],"kwargs":{}}'},
    "zone": {"timezone": "Europe/Atlantis", "schedule": "* * * * *"},
    "traversal": {"timezone": "../../../etc/passwd", "schedule": "* * * * *"},
    "backend": {"backend_name": "gone"},
    "dummy": {"backend_name": "dummy"},
    "other database": {"backend_name": "other"},
    "queue": {"queue_name": " "},
    "priority": {"priority": 32_000},
    "policy": {"catch_up": "for ever"},
    "long policy": {"catch_up": "999999999999999 days"},
}


@on_every_database
def test_a_row_that_cannot_be_run_is_named_once_and_harms_no_other(
    plan: Plan, settings: Any, caplog: pytest.LogCaptureFixture
) -> None:
    settings.TASKS = {
        **tasks(plan.using),
        "dummy": {"BACKEND": f"{FRAMEWORK}.backends.dummy.DummyBackend"},
        "other": {**tasks("elsewhere")["default"]},
    }
    for key in ("a good one", *HOSTILE, "zz good one"):
        schedule_recurring_task(key, greet, schedule=MINUTE)
    for key, values in HOSTILE.items():
        plan.tasks.filter(key=key).update(**values)
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            plan.look()
            plan.pass_by(MINUTE)
    for key in HOSTILE:
        [line] = [each for each in caplog.messages if f"The recurring task {key!r}" in each]
        assert "cannot be run: " in line
        assert len(line) <= 1000
        assert plan.slots(key) == []
    assert len(caplog.messages) == len(HOSTILE)
    for key in ("a good one", "zz good one"):
        assert len(plan.slots(key)) == 3

    plan.tasks.filter(key="zone").update(timezone="Europe/Utopia")
    plan.tasks.filter(key="task").update(task_path=greet.module_path)
    for _ in range(2):
        plan.look()
        plan.pass_by(MINUTE)
    assert len(caplog.messages) == len(HOSTILE) + 1
    assert "'Europe/Utopia' is not known" in caplog.messages[-1]
    assert len(plan.slots("task")) == 2


@on_the_projects_database
@pytest.mark.parametrize(
    "damage",
    [
        "active_since = 'yesterday'",
        "active_since = '2026-99-99 00:00:00'",
        "priority = 'high'",
        "arguments = x'00ff'",
        "task_path = x'00ff'",
        "schedule = x'00ff'",
        "enabled = 'maybe'",
        "created_at = 'never', updated_at = 7",
        "key = x'00ff'",
    ],
)
@pytest.mark.parametrize("damaged", ["static", "dynamic"])
def test_a_row_of_what_only_sqlite_stores_harms_no_other(
    plan: Plan, damage: str, damaged: str
) -> None:
    recurring(schedule=MINUTE, key="static")(greet)
    plan.mirror()
    for key in ("a", "dynamic", "z"):
        schedule_recurring_task(key, greet, schedule=MINUTE)
    plan.due_times = plan.start()
    with plan.connection.cursor() as cursor:
        cursor.execute(
            f"UPDATE steady_queue_recurring_tasks SET {damage} WHERE key = %s", [damaged]
        )
    for _ in range(2):
        plan.look()
        plan.pass_by(MINUTE)
    plan.mirror()
    assert plan.due_times.schedule.entries.keys() <= {"a", "dynamic", "static", "z"}
    # What is neither true nor false counts as false.
    for key in {"a", "static", "z"} - ({damaged} if "enabled" in damage else set()):
        assert len(plan.slots(key)) == 2, key
    plan.tasks.all().delete()


@on_every_database
def test_a_last_slot_at_the_end_of_time_harms_no_other(
    plan: Plan, caplog: pytest.LogCaptureFixture
) -> None:
    end = datetime(9999, 12, 31, 23, 59, 59, tzinfo=plan.clock.tzinfo)
    for key in ("a", "b", "c"):
        schedule_recurring_task(key, greet, schedule="* * * * *", timezone="Asia/Tokyo")
    plan.since("b", end)
    plan.look()
    plan.pass_by(MINUTE)
    assert (len(plan.slots("a")), len(plan.slots("b")), len(plan.slots("c"))) == (1, 0, 1)
    assert "The missed slots of recurring task 'b' are unknown" in caplog.messages


# --- arguments -------------------------------------------------------------------------------


@on_the_projects_database
def test_an_instance_is_read_anew_for_each_run(plan: Plan, while_enqueueing: list[Any]) -> None:
    item = Item.objects.create(name="first")
    seen: list[Any] = []
    task_enqueued.connect(
        lambda task_result, **kwargs: seen.append(task_result.args[0].name),
        weak=False,
        dispatch_uid="names",
    )
    schedule_recurring_task("k", greet, schedule=MINUTE, args=[item])
    schedule_recurring_task("z", greet, schedule=HOUR)
    plan.look()
    plan.pass_by(MINUTE)
    Item.objects.update(name="second")
    plan.pass_by(MINUTE)
    task_enqueued.disconnect(dispatch_uid="names")
    assert seen == ["first", "second"]


@on_the_projects_database
def test_an_instance_that_is_gone_keeps_only_its_own_task_from_its_slots(
    plan: Plan, caplog: pytest.LogCaptureFixture
) -> None:
    item = Item.objects.create(name="here today")
    schedule_recurring_task("a", greet, schedule=MINUTE, args=[item])
    schedule_recurring_task("b", greet, schedule=MINUTE)
    item.delete()
    plan.look()
    plan.pass_by(MINUTE)
    assert (len(plan.slots("a")), len(plan.slots("b"))) == (0, 1)
    [record] = caplog.records
    assert record.getMessage() == "Recurring task 'a' could not be enqueued"
    assert "does not exist" in (record.exc_text or str(record.exc_info))


@on_the_projects_database
def test_a_slot_waits_for_the_database_of_its_arguments_if_that_is_the_queues_own(
    plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    item = Item.objects.create(name="first")
    schedule_recurring_task("a", greet, schedule=MINUTE, args=[item])
    plan.look()
    with monkeypatch.context() as patched:
        patched.setattr(plan.connection, "cursor", _refuse)
        with pytest.raises(Unavailable):
            plan.pass_by(MINUTE)
    plan.pass_by(0 * SECOND)
    assert len(plan.slots("a")) == 1


def _refuse(*args: Any, **kwargs: Any) -> Any:
    raise OperationalError("the database is away")


# --- limits ----------------------------------------------------------------------------------


@limits_concurrency(key="one", on_conflict="discard")
@task
def alone() -> None:
    """Not while another one waits or runs."""


@on_every_database
def test_a_slot_whose_job_finds_its_limit_reached_is_over(
    plan: Plan, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "steady_queue.scheduler")
    recurring(schedule=MINUTE, key="alone")(alone)
    plan.begin()
    for _ in range(3):
        plan.pass_by(MINUTE)
    rows = RecurringExecution.objects.using(plan.using).order_by("run_at")
    [job] = plan.jobs()
    assert list(rows.values_list("job_id", flat=True)) == [job.pk, None, None]
    assert caplog.text.count("is discarded: its limit is reached") == 2
