"""croniter finds the dates, and is given nothing that it reads in another way than cron.

Not shared between the runs of CI: one has the oldest croniter that may be installed, the other the
newest.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from itertools import islice
from threading import Barrier

import pytest
from croniter import croniter
from cronsim import CronSim
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from steady_queue_core.schedules.cron import InvalidScheduleError, Schedule
from steady_queue_core.schedules.cron_dates import CronDates, NoDateError

from .expressions import EXPRESSIONS

START = datetime(2025, 1, 1)


def dates(expression: str, count: int, start: datetime = START) -> list[datetime]:
    """Return the first dates of an expression on a clock that never changes."""
    schedule, instant, found = Schedule(expression, "UTC"), start.replace(tzinfo=UTC), []
    for _ in range(count):
        instant = schedule.next_after(instant)
        found.append(instant.replace(tzinfo=None))
    return found


@settings(max_examples=400, deadline=None)
@given(EXPRESSIONS, st.datetimes(datetime(2025, 1, 1), datetime(2036, 1, 1)))
def test_any_expression_matches_what_it_does_for_the_oracle(
    expression: str, start: datetime
) -> None:
    try:
        Schedule(expression, "UTC")
    except InvalidScheduleError as error:
        assume("matches no date" not in str(error))
        raise
    assert dates(expression, 8, start) == list(islice(CronSim(expression, start), 8))


@pytest.mark.parametrize("days", ["1,30", "2,31", "*/29", "1,29", "28-31", "L,1,31"])
def test_a_day_that_a_month_has_not_hides_no_other(days: str) -> None:
    """croniter before 7.0 goes past the first of March when it looks for the 30th of February."""
    expression = f"0 0 {days} * *"
    assert dates(expression, 60) == list(islice(CronSim(expression, START), 60))


@pytest.mark.parametrize(
    "expression",
    [
        "0-0 * * * *",
        "5-5 3 * * *",
        "0 0 1-1 * *",
        "0 0 1 APR-MAR/2 *",
        "0 0 13 * 5#1",
        "0 0 */2 * 1",
    ],
)
def test_what_croniter_alone_reads_otherwise_is_read_as_cron_does(expression: str) -> None:
    alone = croniter(expression, START, ret_type=datetime, max_years_between_matches=20)
    assert dates(expression, 20) != list(islice(alone.all_next(), 20))
    if "APR-MAR" not in expression:  # The oracle refuses ranges over the end.
        assert dates(expression, 20) == list(islice(CronSim(expression, START), 20))


def test_a_part_without_a_date_is_no_error_beside_another() -> None:
    assert CronDates(["0 0 31 4 *", "0 0 30 4 *"]).next_after(START) == datetime(2025, 4, 30)
    with pytest.raises(NoDateError):
        CronDates(["0 0 31 4 *"])


def test_the_iterators_of_an_expression_are_made_once_for_a_thread(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = []

    def counted(*args: object, **kwargs: object) -> croniter:
        made.append(args)
        return croniter(*args, **kwargs)

    monkeypatch.setattr("croniter.croniter", counted)
    expression = "7 7 1-7,L 7 1,5#2"
    for _ in range(3):
        Schedule(expression, "UTC").next_after(datetime(2025, 1, 1, tzinfo=UTC))
    parts = len(made)
    with ThreadPoolExecutor(1) as other:
        other.submit(dates, expression, 5).result()
    assert (parts, len(made)) == (4, 8)  # Numbers and L, weekdays and 5#2.


@pytest.fixture
def _hasty_threads() -> Iterator[None]:
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


@pytest.mark.usefixtures("_hasty_threads")
def test_threads_that_ask_for_the_same_expression_do_not_confuse_each_other() -> None:
    expression = "0 0 1 * *"
    starts = [datetime(2025 + n, 1, 15) for n in range(4)]
    expected = [dates(expression, 60, start) for start in starts]
    barrier = Barrier(len(starts))

    def found(start: datetime) -> list[list[datetime]]:
        barrier.wait(timeout=30)
        return [dates(expression, 60, start) for _ in range(5)]

    with ThreadPoolExecutor(len(starts)) as threads:
        for each, right in zip(threads.map(found, starts), expected, strict=True):
            assert each == [right] * 5


def test_seconds_and_their_fractions_do_not_count() -> None:
    late = datetime(2025, 6, 4, 10, 29, 59, 999_999)
    assert dates("30 10 * * *", 1, late) == [datetime(2025, 6, 4, 10, 30)]
    assert dates("30 10 * * *", 1, late + timedelta(microseconds=1)) == [
        datetime(2025, 6, 5, 10, 30)
    ]
