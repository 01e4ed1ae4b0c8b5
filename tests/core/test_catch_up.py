"""Slots that pass while no scheduler runs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from steady_queue_core import recurring
from steady_queue_core.schedules.cron import Schedule
from steady_queue_core.schedules.interval import Interval
from steady_queue_core.schedules.policies import following, from_text, to_text

from .samples import echo

PRESENT = datetime(2026, 11, 21, 12, 34, 56, tzinfo=UTC)
SECOND, HOUR, DAY = timedelta(seconds=1), timedelta(hours=1), timedelta(days=1)
SCHEDULES = [
    Interval(SECOND), Interval(timedelta(seconds=90)), Schedule("* * * * *", "UTC"),
    Schedule("17 * * * *", "UTC"), Schedule("30 6 * * 1-5", "Europe/Berlin"),
    Schedule("0 0 1 * *", "UTC"), Schedule("0 0 29 2 *", "UTC"),
]  # fmt: skip


def slots(schedule: Any, last: datetime) -> list[datetime]:
    """Return the slots after ``last``, the first one in the future included."""
    found = [schedule.next_after(last)]
    while found[-1] <= PRESENT:
        found.append(schedule.next_after(found[-1]))
    return found


@pytest.mark.parametrize("schedule", SCHEDULES, ids=lambda each: each.expression)
@pytest.mark.parametrize("gap", [SECOND, 95 * SECOND, HOUR, 5 * HOUR, 40 * DAY, 1500 * DAY])
def test_each_policy_gives_the_slot_that_it_says(schedule: Any, gap: timedelta) -> None:
    if gap / (schedule.next_after(PRESENT) - PRESENT) > 1e5:
        gap = HOUR
    last = schedule.next_after(PRESENT - gap)
    last = min(last, PRESENT)
    *missed, coming = slots(schedule, last)
    assert following(schedule.next_after, "skip", last, PRESENT) == coming
    assert (
        following(schedule.next_after, "last", last, PRESENT)
        == [coming, *missed][-1 if missed else 0]
    )
    recent = [slot for slot in missed if slot > PRESENT - 2 * HOUR]
    assert following(schedule.next_after, 2 * HOUR, last, PRESENT) == [*recent, coming][0]


def test_a_slot_for_every_second_is_found_without_going_through_years_of_them() -> None:
    asked = []

    def next_after(instant: datetime) -> datetime:
        asked.append(instant)
        return Interval(SECOND).next_after(instant)

    assert following(next_after, "last", PRESENT - 4000 * DAY, PRESENT) == PRESENT
    assert len(asked) < 100


@pytest.mark.parametrize("value", ["all", "", None, 5, timedelta(-1), timedelta(days=999_999)])
def test_other_policies_are_refused_when_the_module_is_imported(value: Any) -> None:
    with pytest.raises(ValueError, match="'odd': catch_up must be 'skip', 'last', or a timedelta"):
        recurring(schedule="@daily", key="odd", catch_up=value)(echo)


@pytest.mark.parametrize(
    ("policy", "text"),
    [("skip", "skip"), ("last", "last"), (DAY, "1 day"), (36 * HOUR, "36 hours"),
     (timedelta(0), "0 days"), (1.5 * SECOND, "1500000 microseconds")],
)  # fmt: skip
def test_a_policy_is_stored_in_words(policy: Any, text: str) -> None:
    assert to_text(policy) == text
    assert from_text(text) == policy


@pytest.mark.parametrize("text", ["", "all", "Skip", "5", "1 day ", "day", "-1 days"])
def test_words_that_are_no_policy_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a number of days"):
        from_text(text)
