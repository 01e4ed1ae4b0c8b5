"""Schedules that begin, end, run so many times or once, and whose runs do not overlap: on every
database, with a clock that goes as the test says."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connections

from steady_queue_core import (
    Retry,
    Unique,
    change_recurring_task,
    limits_concurrency,
    recurring,
    schedule_recurring_task,
    task,
)
from steady_queue_core.compat import task_enqueued
from steady_queue_core.dialects import portable
from steady_queue_core.errors import UnusableRecurringTaskError
from steady_queue_core.models import Job, RecurringExecution, RecurringTask
from steady_queue_core.processes.base import connections as connections_module
from steady_queue_core.processes.scheduler.due_times import BUSY_PAUSE, WAITING_PAUSE
from steady_queue_core.processes.scheduler.run_track import COLUMNS
from steady_queue_core.retries import constant
from steady_queue_core.schedules import definition as recurring_task
from steady_queue_core.schedules.stored import definition_of

from ..core.driver import Driver
from .everywhere import on_every_database, on_every_server
from .recurrence import DAY, HOUR, MINUTE, SECOND, Plan, greet, tasks

#: What tasks have seen.
seen: list[Any] = []


@task(takes_context=True, max_attempts=3, backoff=constant(0))
def tell(context: Any) -> None:
    """Tell for when this was meant, and fail twice."""
    seen.append(context.intended_time)
    if context.attempt < 3:
        raise Retry(0)


@task(takes_context=True)
async def tell_in_a_coroutine(context: Any) -> None:
    seen.append(context.intended_time)


@task(unique=Unique(key="one"))
def unique() -> None:
    """Do nothing."""


@task
def fail() -> None:
    raise LookupError


@limits_concurrency(key="one", on_conflict="discard")
@task
def alone() -> None:
    """Not while another one waits or runs."""


@pytest.fixture(autouse=True)
def _project(using: str, settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.TASKS = tasks(using)
    settings.STEADY_QUEUE = {"scheduler": {"dynamic_tasks_enabled": True}}
    monkeypatch.setattr(recurring_task, "_registry", {})
    seen.clear()


@pytest.fixture
def plan(using: str) -> Plan:
    return Plan(using)


@pytest.fixture(params=["static", "dynamic"])
def add(request: pytest.FixtureRequest, plan: Plan) -> Callable[..., None]:
    """Adds the task ``k``, which is there since just now, in code or at run time."""

    def add(func: Any = greet, **values: Any) -> None:
        if request.param == "static":
            recurring(**{"schedule": MINUTE, "key": "k", **values})(func)
            plan.mirror()
        else:
            schedule_recurring_task("k", func, **{"schedule": MINUTE, **values})
        plan.begin()

    return add


def runs(plan: Plan, key: str = "k") -> list[datetime]:
    """Return the slots of which each has a job, and no other has the same."""
    rows = RecurringExecution.objects.using(plan.using).filter(task_key=key).exclude(job_id=None)
    found = list(rows.order_by("run_at").values_list("run_at", "job_id"))
    assert len({job for _, job in found}) == len(found)
    return [portable.aware(slot) for slot, _ in found]


def minutes(plan: Plan, began: datetime) -> list[float]:
    return [(slot - began) / MINUTE for slot in runs(plan)]


def end_all(plan: Plan) -> None:
    """Run all jobs that are ready to their ends."""
    Driver(plan.using).work()


# --- beginning and end -----------------------------------------------------------------------


@on_every_database
def test_there_are_slots_from_the_start_to_the_end_and_then_it_is_finished(
    plan: Plan, add: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "steady_queue.scheduler")
    began = plan.clock
    add(starts_at=began + 90 * SECOND, ends_at=began + 210 * SECOND, schedule=MINUTE)
    for _ in range(20):
        plan.pass_by(30 * SECOND)
    assert minutes(plan, began) == [1.5, 2.5, 3.5]
    assert plan.pass_by(DAY) is None
    plan.look()
    plan.pass_by(DAY)
    finished = [each for each in caplog.messages if "finished" in each]
    assert finished == ["Recurring task 'k' is finished: it has no further run"]


@on_every_database
def test_a_row_keeps_its_limits_to_the_microsecond(plan: Plan, settings: Any) -> None:
    start = plan.clock + timedelta(microseconds=123_456)
    for use_tz in (True, False):
        settings.USE_TZ = use_tz
        settings.TIME_ZONE = "Europe/Berlin"
        given = (start, start + DAY) if use_tz else (start.astimezone(), start + DAY)
        schedule_recurring_task(
            "k", greet, schedule=HOUR, starts_at=given[0], ends_at=given[1], repeats=7,
            overlap="queue", replace=True,
        )  # fmt: skip
        found = definition_of(plan.row("k"))
        assert (found.starts_at, found.ends_at) == (start, start + DAY)
        assert (found.repeats, found.overlap) == (7, "queue")
        assert found.span.next_after(plan.clock) == start


@on_every_database
def test_an_end_that_is_put_off_is_heeded_and_misses_nothing(plan: Plan) -> None:
    began = plan.clock
    schedule_recurring_task("k", greet, schedule=MINUTE, ends_at=began + MINUTE, catch_up=DAY)
    plan.begin()
    plan.pass_by(MINUTE)
    plan.pass_by(5 * MINUTE)
    change_recurring_task("k", ends_at=began + 8 * MINUTE)
    plan.since("k", plan.clock)
    plan.look()
    for _ in range(5):
        plan.pass_by(MINUTE)
    assert minutes(plan, began) == [1, 7, 8]
    change_recurring_task("k", ends_at=None)
    plan.since("k", plan.clock)
    plan.look()
    plan.pass_by(MINUTE)
    assert len(runs(plan)) == 4


@on_every_database
@pytest.mark.parametrize(
    ("policy", "expected"), [("skip", []), ("last", [5]), (DAY, [1, 2, 3, 4, 5])], ids=str
)
def test_what_no_scheduler_saw_is_made_up_for_up_to_the_end(
    plan: Plan, add: Any, policy: Any, expected: list[int]
) -> None:
    began = plan.clock
    add(starts_at=began + MINUTE, ends_at=began + 5 * MINUTE, catch_up=policy)
    plan.due_times = plan.start()
    plan.clock += 3 * HOUR
    plan.look()
    for _ in range(9):
        plan.pass_by(0 * SECOND)
    assert minutes(plan, began) == expected
    assert plan.pass_by(DAY) is None


# --- once ------------------------------------------------------------------------------------


@on_every_database
def test_a_single_run_is_enqueued_once_by_whoever_is_there(plan: Plan, add: Any) -> None:
    instant = plan.clock + timedelta(seconds=90, microseconds=7)
    add(schedule=instant)
    others = [plan.start() for _ in range(2)]
    for each in others:
        each.refresh(plan.clock)
    for _ in range(4):
        plan.pass_by(MINUTE)
        assert {each.enqueue_due(plan.clock) for each in others} <= {None, instant}
    another = plan.start()
    another.refresh(plan.clock)
    another.enqueue_due(plan.clock)
    assert runs(plan) == [instant]
    assert len(plan.jobs()) == 1


@on_every_database
def test_a_single_run_that_nobody_was_there_for_is_late(plan: Plan, add: Any) -> None:
    instant = plan.clock + MINUTE
    add(schedule=instant)
    plan.due_times = plan.start()
    plan.clock += 40 * DAY
    plan.look()
    plan.pass_by(0 * SECOND)
    plan.pass_by(DAY)
    assert runs(plan) == [instant]


@on_every_database
def test_a_single_run_of_the_code_that_was_over_before_does_not_run(plan: Plan) -> None:
    recurring(schedule=plan.clock - DAY, key="k")(greet)
    plan.mirror()
    plan.begin()
    assert plan.pass_by(MINUTE) is None
    assert plan.jobs() == []


@on_every_database
def test_another_instant_is_another_run(plan: Plan) -> None:
    began = plan.clock
    schedule_recurring_task("k", greet, schedule=began + MINUTE)
    plan.begin()
    plan.pass_by(MINUTE)
    change_recurring_task("k", schedule=began + 3 * MINUTE)
    plan.look()
    for _ in range(3):
        plan.pass_by(MINUTE)
    assert minutes(plan, began) == [1, 3]
    change_recurring_task("k", schedule="@hourly", timezone="UTC")
    change_recurring_task("k", schedule=began + 7 * DAY)
    assert plan.row("k").catch_up == "last"


# --- so many times ---------------------------------------------------------------------------


@on_every_database
def test_it_runs_as_often_as_it_repeats_and_then_no_more(
    plan: Plan, add: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "steady_queue.scheduler")
    began = plan.clock
    add(repeats=3)
    others = [plan.start(), plan.start()]
    for each in others:
        each.refresh(plan.clock)
    for _ in range(6):
        plan.pass_by(MINUTE)
        for each in others:
            each.enqueue_due(plan.clock)
    assert minutes(plan, began) == [1, 2, 3]
    assert (plan.row("k").runs, plan.row("k").runs_left) == (3, 0)
    assert len(plan.jobs()) == 3
    assert caplog.text.count("'k' is finished") == 3
    # Whoever comes later finds it finished.
    plan.mirror()
    another = plan.start()
    another.refresh(plan.clock)
    assert another.enqueue_due(plan.clock + MINUTE) is None
    assert len(plan.jobs()) == 3


@on_every_database
def test_missed_slots_count_only_if_they_are_made_up_for(plan: Plan, add: Any) -> None:
    began = plan.clock
    add(repeats=4, catch_up=2 * MINUTE)
    plan.pass_by(MINUTE)
    plan.clock += 10.5 * MINUTE
    for _ in range(6):
        plan.pass_by(0 * SECOND)
    for _ in range(6):
        plan.pass_by(MINUTE)
    # The second one was late, the two before the eleventh are made up for.
    assert minutes(plan, began) == [1, 2, 10, 11]


@on_every_database
def test_what_is_discarded_or_the_run_of_another_does_not_count(plan: Plan) -> None:
    for key, func in {"k": alone, "u": unique}.items():
        schedule_recurring_task(key, func, schedule=MINUTE, repeats=2)
    plan.begin()
    for _ in range(3):
        plan.pass_by(MINUTE)
    assert (plan.row("k").runs, plan.row("u").runs) == (1, 1)
    end_all(plan)
    plan.pass_by(MINUTE)
    end_all(plan)
    plan.pass_by(MINUTE)
    assert (plan.row("k").runs, plan.row("u").runs) == (2, 2)
    assert len(plan.jobs()) == 4


@on_every_database
def test_run_now_does_not_count(plan: Plan, add: Any) -> None:
    add(repeats=1)
    plan.row("k").run_now()
    plan.pass_by(MINUTE)
    plan.row("k").run_now()
    plan.pass_by(MINUTE)
    assert plan.row("k").runs == 1
    assert len(plan.jobs()) == 3


@on_every_database
def test_a_change_lets_it_run_on_and_a_replacement_begins_anew(plan: Plan) -> None:
    schedule_recurring_task("k", greet, schedule=MINUTE, repeats=2)
    plan.begin()

    def run() -> int:
        for _ in range(6):
            plan.look()
            plan.pass_by(MINUTE)
        return len(runs(plan))

    assert run() == 2
    change_recurring_task("k", repeats=3, description="One more.")
    assert run() == 3
    with pytest.raises(ValueError, match="repeats is 2, but there were 3 runs so far"):
        change_recurring_task("k", repeats=2)
    schedule_recurring_task("k", greet, schedule=MINUTE, repeats=2, replace=True)
    plan.since("k", plan.clock)
    assert run() == 5
    change_recurring_task("k", repeats=None)
    assert run() == 11
    change_recurring_task("k", repeats=2)
    assert run() == 13


@on_every_database
def test_the_count_of_the_code_outlasts_restarts_and_older_code(
    plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    def restart(**values: Any) -> None:
        monkeypatch.setattr(recurring_task, "_registry", {})
        if values:
            recurring(**{"schedule": MINUTE, "key": "k", **values})(greet)
        plan.mirror()
        plan.begin()

    restart(repeats=3)
    plan.pass_by(MINUTE)
    restart(repeats=3)
    plan.pass_by(MINUTE)
    restart()  # The older release of a host that is restarted.
    plan.pass_by(MINUTE)
    restart(repeats=3)
    for _ in range(4):
        plan.pass_by(MINUTE)
    assert len(runs(plan)) == 3
    restart(repeats=4)
    for _ in range(4):
        plan.pass_by(MINUTE)
    assert len(runs(plan)) == 4


@on_every_database
def test_what_is_counted_is_counted_although_its_row_was_not_mirrored(plan: Plan) -> None:
    recurring(schedule=MINUTE, key="k", repeats=2)(greet)
    both = [plan.start(), plan.start()]
    for each in both:
        each.refresh(plan.clock)
    for _ in range(5):
        plan.clock += MINUTE
        for each in both:
            each.enqueue_due(plan.clock)
    assert len(runs(plan)) == plan.row("k").runs == 2


@on_every_database
def test_a_row_that_is_inserted_for_the_count_forbids_no_slot(plan: Plan) -> None:
    plan.clock -= HOUR
    recurring(schedule=MINUTE, key="k", repeats=2)(greet)
    plan.due_times = plan.start()
    plan.look()
    for _ in range(3):
        plan.pass_by(MINUTE)
    assert len(runs(plan)) == 2


@on_every_database
def test_the_code_that_replaces_what_was_added_counts_anew(plan: Plan) -> None:
    schedule_recurring_task("k", greet, schedule=MINUTE, repeats=2)
    plan.begin()
    for _ in range(3):
        plan.pass_by(MINUTE)
    recurring(schedule=MINUTE, key="k", repeats=2)(greet)
    plan.mirror()
    plan.begin()
    for _ in range(3):
        plan.pass_by(MINUTE)
    assert len(runs(plan)) == 4


@on_every_server
def test_two_schedulers_at_once_do_not_run_it_too_often(plan: Plan, using: str) -> None:
    schedule_recurring_task("k", greet, schedule=SECOND, repeats=5, catch_up=DAY)
    plan.begin()
    end = plan.clock + 20 * SECOND
    barrier, failures = threading.Barrier(3), []

    def schedule() -> None:
        try:
            other = plan.start()
            other.refresh(plan.clock)
            barrier.wait(10)
            while (nearest := other.enqueue_due(end)) is not None and nearest <= end + SECOND:
                pass
        except Exception as error:
            failures.append(error)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=schedule) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert failures == []
    assert len(runs(plan)) == plan.row("k").runs == len(plan.jobs()) == 5


@on_every_server
@pytest.mark.parametrize("limits", [{"repeats": 1}, {"overlap": "skip"}], ids=str)
def test_another_slot_is_not_decided_about_before_this_one_is_stored(
    plan: Plan, limits: dict[str, Any]
) -> None:
    schedule_recurring_task("k", greet, schedule=MINUTE, **limits)
    plan.begin()
    other, later = plan.start(), plan.clock + 2 * MINUTE
    other.refresh(plan.clock + 90 * SECOND)
    nearest: list[Any] = []

    def decide() -> None:
        try:
            nearest.append(other.enqueue_due(later))
        finally:
            connections.close_all()

    def meanwhile(**kwargs: Any) -> None:
        if not nearest:
            thread = threading.Thread(target=decide)
            thread.start()
            thread.join(20)

    task_enqueued.connect(meanwhile)
    try:
        plan.pass_by(MINUTE)
    finally:
        task_enqueued.disconnect(meanwhile)
    assert nearest == [later + BUSY_PAUSE]
    other.enqueue_due(later)
    assert len(plan.jobs()) == 1


# --- for when it was meant -------------------------------------------------------------------


@on_every_database
def test_a_task_learns_for_when_it_was_meant_however_late_it_is(plan: Plan, add: Any) -> None:
    began = plan.clock
    add(tell, catch_up=DAY)
    plan.clock += 2.5 * MINUTE
    plan.pass_by(0 * SECOND)
    plan.pass_by(0 * SECOND)
    driver = Driver(plan.using)
    for _ in range(3):
        driver.work()
    assert sorted(seen) == [began + MINUTE] * 3 + [began + 2 * MINUTE] * 3
    assert {each.tzinfo for each in seen} == {UTC}


@on_every_database
@pytest.mark.parametrize("use_tz", [True, False])
def test_it_is_aware_in_every_project(plan: Plan, use_tz: bool, settings: Any) -> None:
    settings.USE_TZ, settings.TIME_ZONE = use_tz, "Asia/Tokyo"
    schedule_recurring_task("k", tell_in_a_coroutine, schedule=MINUTE)
    plan.begin()
    plan.pass_by(MINUTE)
    end_all(plan)
    plan.row("k").run_now()
    tell_in_a_coroutine.enqueue()
    end_all(plan)
    assert seen == [plan.clock, None, None]


@on_every_database
def test_only_tasks_that_can_ask_for_it_keep_it(plan: Plan, add: Any) -> None:
    add()
    plan.pass_by(MINUTE)
    [job] = plan.jobs()
    assert job.metadata is None


@on_every_database
def test_a_forged_instant_is_none(plan: Plan, add: Any) -> None:
    add(tell_in_a_coroutine)
    for text in ('{"intended_time":"soon"}', '{"intended_time":7}', "{"):
        plan.pass_by(MINUTE)
        Job.objects.using(plan.using).filter(finished_at=None).update(metadata=text)
        end_all(plan)
    assert seen == [None] * 3


# --- overlap ---------------------------------------------------------------------------------


@on_every_database
def test_a_run_is_left_out_while_the_previous_one_has_not_ended(
    plan: Plan, add: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "steady_queue.scheduler")
    began = plan.clock
    add(overlap="skip", repeats=3)
    other = plan.start()
    other.refresh(plan.clock)
    for minute in (1, 2, 3):
        plan.pass_by(MINUTE)
        # The other one is late: what was left out stays so.
        if minute == 2:
            end_all(plan)
        other.enqueue_due(plan.clock)
    assert minutes(plan, began) == [1, 3]
    assert plan.row("k").runs == 2
    [line] = [each for each in caplog.messages if "left out" in each]
    [first, _] = plan.jobs()
    assert line.endswith(f"is left out: its previous run, job {first.pk}, has not ended")


@on_every_database
@pytest.mark.parametrize("state", ["ready", "claimed", "scheduled"])
@pytest.mark.parametrize("overlap", ["skip", "queue"])
def test_a_run_that_waits_runs_or_is_retried_has_not_ended(
    plan: Plan, add: Any, overlap: str, state: str
) -> None:
    add(tell.using(run_after=DAY) if state == "scheduled" else tell, overlap=overlap)
    plan.pass_by(MINUTE)
    driver = Driver(plan.using)
    if state == "claimed":
        driver.claim()
    for _ in range(2):
        plan.pass_by(MINUTE)
        assert len(runs(plan)) == 1
        if state == "ready":
            # It fails, and is ready again.
            [claim] = driver.claim()
            driver.settle(driver.run(claim))


@on_every_database
@pytest.mark.parametrize("overlap", ["skip", "queue"])
@pytest.mark.parametrize("how", ["finished", "failed", "discarded", "deleted", "cancelled"])
def test_a_run_that_is_gone_keeps_no_other_waiting(
    plan: Plan, add: Any, overlap: str, how: str
) -> None:
    add(fail if how == "failed" else greet, overlap=overlap)
    plan.pass_by(MINUTE)
    plan.pass_by(MINUTE)
    [job] = plan.jobs()
    if how in ("finished", "failed"):
        end_all(plan)
    elif how == "deleted":
        Job.objects.using(plan.using).all().delete()
    elif how == "cancelled":
        job.cancel()
    else:
        job.discard()
    plan.pass_by(MINUTE)
    assert len(plan.jobs()) == (1 if how in ("deleted", "discarded") else 2)
    assert plan.jobs()[-1].pk != job.pk


@on_every_database
def test_a_run_that_failed_and_is_retried_by_hand_runs_again(plan: Plan, add: Any) -> None:
    add(overlap="skip")
    plan.pass_by(MINUTE)
    [job] = plan.jobs()
    job.cancel()
    job.retry()
    plan.pass_by(MINUTE)
    assert len(plan.jobs()) == 1


@on_every_database
def test_one_run_waits_for_the_end_of_the_previous_one_and_others_are_left_out(
    plan: Plan, add: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "steady_queue.scheduler")
    began = plan.clock
    add(tell_in_a_coroutine, overlap="queue")
    plan.pass_by(MINUTE)
    assert plan.pass_by(MINUTE) == plan.clock + WAITING_PAUSE
    for _ in range(130):
        plan.pass_by(SECOND)
    assert minutes(plan, began) == [1]
    waiting = plan.row("k").waiting_at
    assert waiting is not None
    assert portable.aware(waiting) == began + 2 * MINUTE
    end_all(plan)
    plan.pass_by(SECOND)
    assert minutes(plan, began) == [1, 2]
    assert plan.row("k").waiting_at is None
    end_all(plan)
    for _ in range(3):
        plan.pass_by(MINUTE)
        end_all(plan)
    assert minutes(plan, began) == [1, 2, 5, 6, 7]
    assert [(each - began) / MINUTE for each in seen] == [1, 2, 5, 6, 7]
    texts = [each.split(" for ")[-1] for each in caplog.messages if "waits" in each]
    assert len(texts) == 1
    assert "missed slots from" in caplog.text
    assert "on: its previous run had not ended" in caplog.text


@on_every_database
def test_with_a_period_of_catching_up_they_run_one_after_the_other(plan: Plan, add: Any) -> None:
    began = plan.clock
    add(overlap="queue", catch_up=HOUR)
    for _ in range(4):
        plan.pass_by(MINUTE)
    assert minutes(plan, began) == [1]
    for done in range(1, 5):
        assert minutes(plan, began) == list(range(1, done + 1))
        end_all(plan)
        plan.pass_by(0 * SECOND)
        plan.pass_by(0 * SECOND)


@on_every_database
@pytest.mark.parametrize("first_ends", [True, False])
def test_a_run_that_waits_outlasts_its_scheduler(plan: Plan, add: Any, first_ends: bool) -> None:
    began = plan.clock
    add(overlap="queue", repeats=3)
    other = plan.start()
    other.refresh(plan.clock)
    plan.pass_by(MINUTE)
    plan.pass_by(MINUTE)
    # It is killed. Another one comes, and a third was there.
    plan.clock += 10 * SECOND
    plan.due_times = plan.start()
    plan.look()
    if first_ends:
        end_all(plan)
    plan.pass_by(SECOND)
    other.enqueue_due(plan.clock)
    other.enqueue_due(plan.clock)
    assert minutes(plan, began) == ([1, 2] if first_ends else [1])
    if not first_ends:
        end_all(plan)
    for each in (other, plan.due_times):
        each.enqueue_due(plan.clock)
        each.enqueue_due(plan.clock)
    assert minutes(plan, began) == [1, 2]
    assert len(plan.jobs()) == plan.row("k").runs == 2


@on_every_database
def test_a_scheduler_that_was_away_takes_over_what_waits(plan: Plan, add: Any) -> None:
    began = plan.clock
    add(overlap="queue")
    other = plan.start()
    other.refresh(plan.clock)
    plan.pass_by(MINUTE)
    other.enqueue_due(plan.clock)
    plan.pass_by(MINUTE)  # Now the second one waits, and this scheduler is gone.
    end_all(plan)
    plan.clock += MINUTE
    # The other one comes for the second and the third.
    for _ in range(4):
        other.enqueue_due(plan.clock)
    assert minutes(plan, began)[:2] == [1, 2]
    end_all(plan)
    for _ in range(3):
        other.enqueue_due(plan.clock)
        plan.clock += MINUTE
    found = minutes(plan, began)
    assert found[:2] == [1, 2]
    assert len(found) == len(set(found)) >= 3


@on_every_database
def test_a_slot_that_is_due_after_one_that_waited_is_not_lost(plan: Plan, add: Any) -> None:
    began = plan.clock
    add(overlap="queue")
    plan.pass_by(MINUTE)
    plan.clock += MINUTE
    other = plan.start()
    other.refresh(plan.clock)  # It thinks of the third slot.
    plan.pass_by(0 * SECOND)  # The second one waits, and this scheduler is gone.
    end_all(plan)
    plan.clock += MINUTE
    for _ in range(3):
        other.enqueue_due(plan.clock)
    assert minutes(plan, began) == [1, 2]
    end_all(plan)
    other.enqueue_due(plan.clock)
    assert minutes(plan, began) == [1, 2, 3]


@on_every_database
def test_a_scheduler_that_is_late_does_not_push_aside_what_waits(plan: Plan, add: Any) -> None:
    began = plan.clock
    add(overlap="queue")
    late = plan.start()
    late.refresh(plan.clock)
    plan.pass_by(MINUTE)
    late.enqueue_due(plan.clock)
    plan.clock += 90 * SECOND
    plan.due_times = plan.start()
    plan.look()  # It leaves out the second slot.
    plan.pass_by(30 * SECOND)
    late.enqueue_due(plan.clock)
    end_all(plan)
    for _ in range(3):
        late.enqueue_due(plan.clock)
        end_all(plan)
        plan.pass_by(MINUTE)
    assert minutes(plan, began)[:3] == [1, 3, 4]


@on_every_database
def test_what_waits_is_over_when_the_task_is_disabled_or_changed(plan: Plan) -> None:
    for change in ("disable", "reschedule", "allow"):
        schedule_recurring_task("k", greet, schedule=MINUTE, overlap="queue", replace=True)
        plan.begin()
        plan.pass_by(MINUTE)
        plan.pass_by(MINUTE)
        waiting = plan.clock
        before = len(plan.jobs())
        if change == "disable":
            plan.row("k").disable()
            plan.row("k").enable()
        elif change == "reschedule":
            change_recurring_task("k", schedule=2 * MINUTE)
        else:
            change_recurring_task("k", overlap="allow")
            plan.look()
            for _ in range(2):
                plan.pass_by(MINUTE)
            change_recurring_task("k", overlap="queue")
        if change != "allow":
            plan.since("k", plan.clock)
        plan.look()
        end_all(plan)
        for _ in range(4):
            plan.pass_by(MINUTE)
            end_all(plan)
        assert waiting not in runs(plan), change
        assert len(plan.jobs()) > before
        RecurringExecution.objects.using(plan.using).all().delete()


@on_every_database
@pytest.mark.parametrize("overlap", ["skip", "queue"])
def test_a_task_that_has_just_begun_not_to_overlap_heeds_the_run_before(
    plan: Plan, overlap: Any
) -> None:
    schedule_recurring_task("k", greet, schedule=MINUTE)
    plan.begin()
    for expected in (1, 3):
        plan.pass_by(MINUTE)
        change_recurring_task("k", overlap=overlap)
        plan.look()
        for _ in range(3):
            plan.pass_by(MINUTE)
            assert len(runs(plan)) == expected
        end_all(plan)
        plan.pass_by(MINUTE)
        assert len(runs(plan)) == expected + 1
        end_all(plan)
        change_recurring_task("k", overlap="allow")
        plan.look()


@on_every_database
def test_a_task_of_the_code_heeds_the_run_before_it_began_not_to_overlap(
    plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    for overlap in ("skip", "allow", "skip"):
        monkeypatch.setattr(recurring_task, "_registry", {})
        recurring(schedule=MINUTE, key="k", overlap=overlap)(greet)  # type: ignore[arg-type]  # One of them.
        plan.mirror()
        plan.begin()
        for _ in range(2):
            plan.pass_by(MINUTE)
        if overlap != "allow":
            live = Job.objects.using(plan.using).filter(finished_at=None).count()
            assert live == (1 if len(runs(plan)) == 1 else 2)
            plan.pass_by(MINUTE)
            assert Job.objects.using(plan.using).filter(finished_at=None).count() == live
        if len(runs(plan)) == 1:
            end_all(plan)


@on_every_database
def test_run_now_heeds_no_other_run(plan: Plan, add: Any) -> None:
    add(overlap="skip")
    plan.pass_by(MINUTE)
    plan.row("k").run_now()
    assert len(plan.jobs()) == 2


# --- clocks ----------------------------------------------------------------------------------


@on_every_database
def test_a_clock_that_goes_back_repeats_nothing(plan: Plan, add: Any) -> None:
    began = plan.clock
    add(repeats=4)
    for _ in range(2):
        plan.pass_by(MINUTE)
    plan.clock -= HOUR
    plan.pass_by(0 * SECOND)
    restarted = plan.start()
    restarted.refresh(plan.clock)
    for _ in range(70):
        plan.pass_by(MINUTE)
        restarted.enqueue_due(plan.clock)
    assert minutes(plan, began) == [1, 2, 3, 4]


@on_every_database
def test_a_clock_that_jumps_over_the_end_ends_it(plan: Plan, add: Any) -> None:
    began = plan.clock
    add(ends_at=began + 10 * MINUTE)
    plan.pass_by(MINUTE)
    plan.pass_by(365 * DAY)
    assert plan.pass_by(MINUTE) is None
    # The one that it is late for runs; those after it are left out.
    assert minutes(plan, began) == [1, 2]


# --- what is refused -------------------------------------------------------------------------


@on_every_database
def test_what_would_never_run_is_refused(plan: Plan) -> None:
    past = plan.present() - DAY
    mistakes: list[dict[str, Any]] = [
        {"schedule": past},
        {"schedule": MINUTE, "ends_at": past},
        {"schedule": "@yearly", "ends_at": past + 2 * SECOND},
    ]
    for values in mistakes:
        with pytest.raises(ValueError, match=r"'odd' would never run: it is .* has no run after"):
            schedule_recurring_task("odd", greet, **values)
    assert plan.keys == []
    schedule_recurring_task("k", greet, schedule=MINUTE)
    for values in mistakes:
        with pytest.raises(ValueError, match="'k' would never run"):
            change_recurring_task("k", **values)
        with pytest.raises(ValueError, match="'k' would never run"):
            schedule_recurring_task("k", greet, replace=True, **values)
    row = plan.row("k")
    assert (row.schedule, row.ends_at) == ("every 1 minute".replace("1 ", ""), None)


@on_every_database
def test_values_that_mean_nothing_together_are_refused_at_a_change(plan: Plan) -> None:
    start = plan.clock + DAY
    schedule_recurring_task("k", greet, schedule=HOUR, starts_at=start, repeats=3)
    schedule_recurring_task("once", greet, schedule=start)
    mistakes: list[tuple[str, dict[str, Any], type[Exception], str]] = [
        ("k", {"ends_at": start - HOUR}, UnusableRecurringTaskError, "it ends before it starts"),
        ("k", {"schedule": start}, UnusableRecurringTaskError, "starts_at and repeats would mean"),
        ("k", {"repeats": 0}, ValueError, "repeats must be from 1"),
        ("k", {"overlap": "never"}, ValueError, "there is no overlap 'never'"),
        ("k", {"starts_at": start.replace(tzinfo=None)}, ValueError, "is a naive datetime"),
        ("once", {"repeats": 2}, UnusableRecurringTaskError, "it runs once"),
        ("once", {"timezone": "UTC"}, ValueError, "a single run has no time zone"),
        ("once", {"schedule": start, "timezone": "UTC"}, ValueError, "its own time zone"),
    ]
    before = [vars(plan.row(key)) for key in ("k", "once")]
    for key, values, error, message in mistakes:
        with pytest.raises(error, match=message):
            change_recurring_task(key, **values)
    for key, values in zip(("k", "once"), before, strict=True):
        now = vars(plan.row(key))
        assert {name: now[name] for name in now if name != "_state"}.items() <= values.items()
    change_recurring_task("k", schedule=start, starts_at=None, repeats=None)
    assert plan.row("k").schedule == f"at {start.isoformat()}"


# --- rows of strangers -----------------------------------------------------------------------

HOSTILE: dict[str, dict[str, Any]] = {
    "repeats 0": {"repeats": 0},
    "repeats negative": {"repeats": -5},
    "overlap": {"overlap": "sometimes"},
    "overlap empty": {"overlap": ""},
    "ends before": {
        "starts_at": datetime(2030, 1, 2, tzinfo=UTC), "ends_at": datetime(2030, 1, 1, tzinfo=UTC)
    },
    "far start": {"starts_at": datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)},
    "far end": {"ends_at": datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)},
    "early": {"starts_at": datetime(2, 1, 1, tzinfo=UTC)},
    "instant": {"schedule": "at high noon"},
    "naive instant": {"schedule": "at 2030-01-01T00:00:00"},
    "far instant": {"schedule": "at 9999-12-31T23:59:59.999999+00:00"},
    "repeated instant": {"schedule": "at 2030-01-01T00:00:00+00:00", "repeats": 3},
}  # fmt: skip


@on_every_database
def test_a_row_whose_limits_are_none_is_named_once_and_harms_no_other(
    plan: Plan, caplog: pytest.LogCaptureFixture
) -> None:
    for key in ("a good one", *HOSTILE, "zz good one"):
        schedule_recurring_task(key, greet, schedule=MINUTE, overlap="skip", repeats=9)
    for key, values in HOSTILE.items():
        stored = {
            name: portable.storable(value) if isinstance(value, datetime) else value
            for name, value in values.items()
        }
        plan.tasks.filter(key=key).update(**stored)
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            plan.look()
            plan.pass_by(MINUTE)
            end_all(plan)
    for key in HOSTILE:
        [line] = [each for each in caplog.messages if f"The recurring task {key!r}" in each]
        assert "cannot be run: " in line
        assert plan.slots(key) == []
        with pytest.raises(UnusableRecurringTaskError):
            plan.row(key).run_now()
    assert len(caplog.messages) == len(HOSTILE)
    for key in ("a good one", "zz good one"):
        assert len(runs(plan, key)) == 3


@on_every_database
@pytest.mark.parametrize(
    ("values", "runs_on"),
    [
        ({"runs": -3}, False),
        ({"runs": 2**31 - 1}, False),
        ({"last_job_id": -1}, True),
        ({"last_job_id": 2**62}, True),
        ({"waiting_at": datetime(9999, 12, 31, tzinfo=UTC)}, True),
        ({"waiting_at": datetime(1000, 1, 1, tzinfo=UTC)}, True),
        ({"waiting_at": datetime(9000, 1, 1, tzinfo=UTC), "active_since": None}, True),
        ({"waiting_at": datetime(1000, 1, 1, tzinfo=UTC), "active_since": None}, True),
    ],
    ids=str,
)
def test_what_runs_have_left_behind_may_be_nonsense(
    plan: Plan, add: Any, values: dict[str, Any], runs_on: bool, caplog: pytest.LogCaptureFixture
) -> None:
    add(overlap="queue", repeats=9)
    schedule_recurring_task("other", greet, schedule=MINUTE)
    stored = {
        name: portable.storable(value) if isinstance(value, datetime) else value
        for name, value in values.items()
    }
    plan.tasks.filter(key="k").update(**stored)
    plan.due_times = plan.start()
    plan.look()
    for _ in range(3):
        plan.pass_by(MINUTE)
        end_all(plan)
    assert len(runs(plan)) == (3 if runs_on else 0)
    assert set(runs(plan)) <= {plan.clock - n * MINUTE for n in range(3)}
    assert len(plan.slots("other")) == 3
    if values == {"runs": -3}:
        errors = [str(each.exc_info and each.exc_info[1]) for each in caplog.records]
        assert any("its number of runs is -3. Set the column runs" in each for each in errors)


ONLY_SQLITE = [
    "starts_at = 'soon'", "ends_at = '2026-99-99'", "waiting_at = 'later'", "repeats = 'often'",
    "runs = 'many'", "last_job_id = 'that one'", "overlap = x'00ff'", "repeats = 1e300",
    "starts_at = x'00ff'", "waiting_at = '2026-99-99 10:00:00'", "ends_at = 7", "schedule = 'at '",
    "ends_at = '2026-99-99 10:00:00'",
]  # fmt: skip


@pytest.mark.parametrize(
    "using", [pytest.param("default", marks=pytest.mark.django_db(transaction=True))]
)
@pytest.mark.parametrize("damage", ONLY_SQLITE)
@pytest.mark.parametrize("damaged", ["static", "dynamic"])
def test_limits_that_only_sqlite_stores_harm_no_other(
    plan: Plan, damage: str, damaged: str, caplog: pytest.LogCaptureFixture
) -> None:
    values: dict[str, Any] = {"schedule": MINUTE, "repeats": 9, "overlap": "queue"}
    recurring(key="static", **values)(greet)
    plan.mirror()
    for key in ("a", "dynamic", "z"):
        schedule_recurring_task(key, greet, **values)
    plan.due_times = plan.start()
    with plan.connection.cursor() as cursor:
        cursor.execute(
            f"UPDATE steady_queue_recurring_tasks SET {damage} WHERE key = %s", [damaged]
        )
    for _ in range(2):
        plan.look()
        plan.pass_by(MINUTE)
        end_all(plan)
    plan.mirror()
    for key in {"a", "static", "z"} - {damaged}:
        assert len(runs(plan, key)) == 2, key
    if damaged == "dynamic" and not damage.startswith(("waiting_at", "last_job_id")):
        told = [each for each in caplog.messages if "'dynamic'" in each]
        assert told
        assert runs(plan, "dynamic") == []
    elif damaged == "static" and not damage.startswith(("runs", "last_job_id")):
        # What the code says counts.
        assert len(runs(plan, "static")) == 2
    plan.tasks.all().delete()


@on_every_database
def test_a_row_that_is_damaged_meanwhile_is_noticed_at_its_next_slot(plan: Plan) -> None:
    schedule_recurring_task("k", greet, schedule=MINUTE, repeats=9)
    schedule_recurring_task("z", greet, schedule=MINUTE)
    plan.begin()
    plan.pass_by(MINUTE)
    plan.tasks.filter(key="k").update(repeats=-1)
    plan.pass_by(MINUTE)
    assert plan.due_times.outdated
    plan.look()
    plan.pass_by(MINUTE)
    assert (len(runs(plan)), len(plan.slots("z"))) == (1, 3)


@on_every_database
def test_what_an_earlier_version_inserts_has_no_limits(plan: Plan) -> None:
    schedule_recurring_task("k", greet, schedule=MINUTE)
    names = [
        field.column
        for field in RecurringTask._meta.concrete_fields
        if field.column not in (*COLUMNS, "starts_at", "ends_at", "repeats", "overlap")
    ]
    quoted = ", ".join(map(plan.connection.ops.quote_name, names))
    values = quoted.replace(plan.connection.ops.quote_name("key"), "'old'", 1)
    table = RecurringTask._meta.db_table
    with plan.connection.cursor() as cursor:
        cursor.execute(f"INSERT INTO {table} ({quoted}) SELECT {values} FROM {table}")
    old = plan.row("old")
    assert (old.overlap, old.repeats, old.runs, old.runs_left) == ("allow", None, 0, None)
    plan.begin()
    plan.pass_by(MINUTE)
    assert len(runs(plan, "old")) == 1


# --- what it costs ---------------------------------------------------------------------------


@on_every_database
def test_a_run_costs_more_only_where_something_is_counted(
    plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The one that counts is to stay.
    monkeypatch.setattr(connections_module, "has_left_wrappers", lambda connection: False)
    limits: list[dict[str, Any]] = [
        {},
        {"starts_at": plan.clock, "ends_at": plan.clock + DAY},
        {"repeats": 9},
        {"overlap": "skip"},
        {"overlap": "queue", "repeats": 9},
    ]
    costs = []
    for values in limits:
        schedule_recurring_task("k", greet, schedule=MINUTE, replace=True, **values)
        plan.begin()
        plan.pass_by(MINUTE)
        end_all(plan)
        executed: list[str] = []

        def note(execute: Any, sql: str, *rest: Any, seen: list[str] = executed) -> Any:
            seen.append(sql)
            return execute(sql, *rest)

        with plan.connection.execute_wrapper(note):
            plan.pass_by(MINUTE)
        end_all(plan)
        costs.append(len(executed))
    # The count; whether the last job lives, and which one was enqueued.
    assert costs == [costs[0], costs[0], costs[0] + 1, costs[0] + 2, costs[0] + 2]
