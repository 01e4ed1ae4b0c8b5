"""Intervals: when they are due, how they are shown, and what is refused."""

from __future__ import annotations

import random
from dataclasses import FrozenInstanceError, dataclass, replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from django.test import override_settings
from hypothesis import given
from hypothesis import strategies as st

from steady_queue_core.schedules import definition as recurring_task
from steady_queue_core.schedules.cron import InvalidScheduleError
from steady_queue_core.schedules.definition import recurring, registered
from steady_queue_core.schedules.interval import EPOCH, Interval
from steady_queue_core.schedules.values import RecurringDefinition

NOON = datetime(2026, 3, 29, 12, 0, 0, tzinfo=UTC)


@dataclass(frozen=True)
class Task:
    func: Any = random.random
    module_path: str = "shop.tasks.beat"
    backend: str = "default"

    def enqueue(self, *args: Any, **kwargs: Any) -> None: ...

    def using(self, **changes: Any) -> Task:
        return replace(self, **changes)


@pytest.mark.parametrize(
    ("seconds", "instant", "expected"),
    [
        (10, NOON, "12:00:10"),
        (10, NOON + timedelta(seconds=9, microseconds=999_999), "12:00:10"),
        (10, NOON - timedelta(microseconds=1), "12:00:00"),
        (1, NOON, "12:00:01"),
        (90, NOON, "12:01:30"),
        (3600, NOON + timedelta(minutes=59), "13:00:00"),
    ],
)
def test_the_next_run_is_the_next_multiple_since_the_epoch(
    seconds: int, instant: datetime, expected: str
) -> None:
    run = Interval(timedelta(seconds=seconds)).next_after(instant)

    assert f"{run:%H:%M:%S}" == expected
    assert run.tzinfo is UTC


@given(
    seconds=st.integers(1, 10 * 365 * 86_400),
    instant=st.datetimes(
        datetime(1900, 1, 1),
        datetime(2200, 1, 1),
        timezones=st.timezones(),
    ),
)
def test_a_run_is_after_the_instant_by_at_most_one_period_and_on_a_slot(
    seconds: int, instant: datetime
) -> None:
    period = timedelta(seconds=seconds)

    run = Interval(period).next_after(instant)

    assert timedelta(0) < run - instant.astimezone(UTC) <= period
    assert not (run - EPOCH) % period


def test_runs_follow_each_other_without_a_gap_from_any_start() -> None:
    interval = Interval(timedelta(seconds=7))
    early, late = NOON, NOON + timedelta(minutes=3)

    run = interval.next_after(early)
    while run <= late:
        run = interval.next_after(run)

    assert run == interval.next_after(late)


def test_the_clocks_of_a_time_zone_play_no_part() -> None:
    summer = timezone(timedelta(hours=2))
    interval = Interval(timedelta(hours=2))

    with override_settings(TIME_ZONE="Europe/Berlin"):
        assert interval.next_after(NOON.astimezone(summer)) == NOON + timedelta(hours=2)


def test_a_naive_datetime_is_refused() -> None:
    with pytest.raises(ValueError, match="needs an aware datetime"):
        Interval(timedelta(seconds=5)).next_after(datetime(2026, 1, 1))


@pytest.mark.parametrize(
    ("period", "expression"),
    [
        ({"seconds": 1}, "every second"),
        ({"seconds": 90}, "every 90 seconds"),
        ({"minutes": 1}, "every minute"),
        ({"minutes": 90}, "every 90 minutes"),
        ({"hours": 2}, "every 2 hours"),
        ({"hours": 24}, "every day"),
        ({"weeks": 2}, "every 14 days"),
    ],
)
def test_an_interval_says_in_words_what_it_is(period: dict[str, int], expression: str) -> None:
    interval = Interval(timedelta(**period))

    assert interval.expression == expression
    assert Interval.read(expression) == interval
    assert interval.timezone_name == "UTC"


@pytest.mark.parametrize(
    ("period", "message"),
    [
        (timedelta(0), "the interval 0:00:00 is not from one second to 3650 days"),
        (timedelta(seconds=-5), "is not from one second to 3650 days"),
        (timedelta(milliseconds=999), "is not from one second to 3650 days"),
        (timedelta(days=3651), "is not from one second to 3650 days"),
        (timedelta(seconds=1.5), "the interval 0:00:01.500000 is not a whole number of seconds"),
        (5, "an interval is a timedelta, not int"),
        ("5", "an interval is a timedelta, not str"),
    ],
)
def test_a_period_that_cannot_be_kept_is_refused(period: Any, message: str) -> None:
    with pytest.raises(InvalidScheduleError, match=message):
        Interval(period)


@pytest.mark.parametrize(
    "expression",
    ["", "every", "every ", "every 0 seconds", "every 1.5 hours", "every 5", "every second day",
     "every -5 seconds", "every 99999999999999 days", "every 9999 days", "every 5 weeks",
     "every 5 microseconds", "every \u0665 days", "every 5 days\n"],
)  # fmt: skip
def test_words_that_are_no_interval_are_refused(expression: str) -> None:
    with pytest.raises(InvalidScheduleError, match="interval"):
        Interval.read(expression)


def test_intervals_are_values() -> None:
    interval = Interval(timedelta(seconds=60))

    assert interval == Interval(timedelta(minutes=1))
    assert len({interval, Interval(timedelta(minutes=1))}) == 1
    with pytest.raises(FrozenInstanceError):
        interval.period = timedelta(seconds=1)  # type: ignore[misc]  # Refused.


def test_recurring_takes_a_timedelta_as_its_schedule(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recurring_task, "_registry", {})
    task = Task()

    decorated = recurring(schedule=timedelta(seconds=30), key="beat", description="")(task)

    assert decorated is task
    assert registered() == [
        RecurringDefinition(key="beat", task=task, schedule=Interval(timedelta(seconds=30)))
    ]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"schedule": timedelta(seconds=0.5)},
            "the recurring task 'beat': the interval 0:00:00.500000 is not from one second",
        ),
        (
            {"schedule": timedelta(seconds=5), "timezone": "Europe/Berlin"},
            "the recurring task 'beat': an interval has no time zone, but "
            "timezone='Europe/Berlin' is given",
        ),
        (
            {"schedule": 5},
            "the recurring task 'beat': schedule must be a cron expression, a timedelta or a "
            "datetime, not int",
        ),
    ],
)
def test_recurring_names_the_task_whose_interval_cannot_be_used(
    changes: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recurring_task, "_registry", {})

    with pytest.raises(InvalidScheduleError, match=message):
        recurring(**{"key": "beat", **changes})(Task())

    assert registered() == []
