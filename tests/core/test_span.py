"""The time in which a schedule has runs, and schedules with a single one."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.test import override_settings
from hypothesis import given
from hypothesis import strategies as st

from steady_queue_core import recurring
from steady_queue_core.schedules import definition as recurring_task
from steady_queue_core.schedules.cron import InvalidScheduleError, Schedule
from steady_queue_core.schedules.definition import registered
from steady_queue_core.schedules.interval import Interval
from steady_queue_core.schedules.once import Once
from steady_queue_core.schedules.span import Span
from steady_queue_core.schedules.stored import stored_schedule
from steady_queue_core.schedules.values import RecurringDefinition

from .samples import echo

SECOND, MINUTE, HOUR, DAY = (timedelta(seconds=n) for n in (1, 60, 3600, 86_400))
TICK = timedelta(microseconds=1)
NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)
BERLIN = ZoneInfo("Europe/Berlin")


@pytest.fixture(autouse=True)
def _empty_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recurring_task, "_registry", {})


def runs(span: Span, start: datetime, most: int = 100) -> list[datetime]:
    found: list[datetime] = []
    run = span.next_after(start)
    while run is not None and len(found) < most:
        found.append(run)
        run = span.next_after(run)
    return found


def defined(**values: Any) -> RecurringDefinition:
    recurring(**{"schedule": "@hourly", "key": "k", **values})(echo)
    [found] = registered()
    return found


# --- bounds ----------------------------------------------------------------------------------


def test_the_first_and_the_last_instant_belong_to_it() -> None:
    hourly = Schedule("@hourly", "UTC")
    assert runs(Span(hourly, NOON, NOON + 2 * HOUR), NOON - 9 * DAY) == [
        NOON, NOON + HOUR, NOON + 2 * HOUR
    ]  # fmt: skip
    assert runs(Span(hourly, NOON + TICK, NOON + 2 * HOUR - TICK), NOON - DAY) == [NOON + HOUR]
    assert runs(Span(hourly, None, NOON), NOON - HOUR) == [NOON]
    assert runs(Span(hourly, None, NOON), NOON) == []
    assert runs(Span(hourly, NOON), NOON - DAY, most=1) == [NOON]


def test_an_interval_is_counted_from_its_start_whatever_the_present_is() -> None:
    start = NOON + timedelta(minutes=7, seconds=3, microseconds=5)
    span = Span(Interval(90 * MINUTE), start)
    assert runs(span, NOON - 400 * DAY, most=3) == [start + n * 90 * MINUTE for n in range(3)]
    assert span.next_after(start + 1000 * DAY) == start + 1000 * DAY + 90 * MINUTE
    assert span.next_after(start + 1000 * DAY + SECOND) == start + 1000 * DAY + 90 * MINUTE
    assert Span(Interval(90 * MINUTE)).next_after(NOON) == NOON + 90 * MINUTE


@given(
    period=st.integers(1, 10 * 365 * 86_400).map(lambda n: timedelta(seconds=n)),
    start=st.datetimes(datetime(1970, 1, 1), datetime(2999, 1, 1), timezones=st.just(UTC)),
    asked=st.timedeltas(timedelta(days=-3000), timedelta(days=30_000)),
)
def test_no_run_of_an_interval_drifts(period: timedelta, start: datetime, asked: timedelta) -> None:
    instant = start + asked
    run = Span(Interval(period), start).next_after(instant)
    assert run is not None
    assert run >= start
    assert (run - start) % period == timedelta(0)
    assert run > instant
    assert run == start or run - instant <= period


@pytest.mark.parametrize(
    ("starts", "expected"),
    [
        # 02:30 is shown twice, at 00:30 and at 01:30 in UTC: the first one is the run.
        (datetime(2026, 10, 25, 0, 30, tzinfo=UTC), datetime(2026, 10, 25, 0, 30, tzinfo=UTC)),
        (datetime(2026, 10, 25, 2, 30, fold=1, tzinfo=BERLIN),
         datetime(2026, 10, 26, 1, 30, tzinfo=UTC)),
        # 02:30 is skipped: the run is at 03:00, which is 01:00 in UTC.
        (datetime(2026, 3, 29, 1, 0, tzinfo=UTC), datetime(2026, 3, 29, 1, 0, tzinfo=UTC)),
        (datetime(2026, 3, 29, 3, 0, 1, tzinfo=BERLIN), datetime(2026, 3, 30, 0, 30, tzinfo=UTC)),
    ],
)  # fmt: skip
def test_it_may_begin_in_a_night_in_which_clocks_change(
    starts: datetime, expected: datetime
) -> None:
    nightly = defined(schedule="30 2 * * *", timezone="Europe/Berlin", starts_at=starts)
    assert nightly.span.next_after(starts - 30 * DAY) == expected


def test_an_end_in_the_repeated_hour_is_an_instant_and_no_time_of_the_day() -> None:
    first, second = (
        datetime(2026, 10, 25, 2, 0, fold=fold, tzinfo=BERLIN).astimezone(UTC) for fold in (0, 1)
    )
    hourly = Schedule("0 * * * *", "Europe/Berlin")
    assert runs(Span(hourly, None, first), first - SECOND) == [first]
    assert runs(Span(hourly, None, second), first - SECOND) == [first, second]


def test_an_interval_of_a_day_stays_at_its_hour_of_utc_when_clocks_change() -> None:
    start = datetime(2026, 10, 24, 9, 30, tzinfo=BERLIN)
    found = runs(Span(Interval(DAY), start.astimezone(UTC)), start - DAY, most=3)
    local = [run.astimezone(BERLIN).strftime("%d %H:%M") for run in found]
    assert local == ["24 09:30", "25 08:30", "26 08:30"]


# --- catching up -----------------------------------------------------------------------------


def test_what_was_missed_before_the_end_is_made_up_for_after_it() -> None:
    values: dict[str, Any] = {"schedule": MINUTE, "starts_at": NOON, "ends_at": NOON + 5 * MINUTE}
    late = NOON + 400 * DAY
    assert defined(**values).following(NOON, late) is None
    recurring_task.clear()
    last = defined(**values, catch_up="last")
    assert last.following(NOON, late) == NOON + 5 * MINUTE
    assert last.following(NOON - DAY, late) == NOON + 5 * MINUTE
    assert last.following(NOON + 5 * MINUTE, late) is None
    assert last.following(NOON, NOON + 3.5 * MINUTE) == NOON + 3 * MINUTE
    recurring_task.clear()
    recent = defined(**values, catch_up=2 * MINUTE)
    assert recent.following(NOON, NOON + 6 * MINUTE) == NOON + 5 * MINUTE
    assert recent.following(NOON + MINUTE, NOON + 5 * MINUTE) == NOON + 4 * MINUTE
    assert recent.following(NOON, late) is None


def test_the_last_run_of_years_of_seconds_is_found_at_once(monkeypatch: Any) -> None:
    asked: list[datetime] = []
    next_after = Interval.next_after

    def counted(self: Interval, instant: datetime) -> datetime:
        asked.append(instant)
        return next_after(self, instant)

    monkeypatch.setattr(Interval, "next_after", counted)
    ended = Span(Interval(SECOND), NOON - 900 * DAY, NOON)
    assert ended.following("last", NOON - 800 * DAY, NOON + 300 * DAY) == NOON
    assert len(asked) < 100


# --- a single run ----------------------------------------------------------------------------


def test_a_single_run_is_there_until_it_is_over() -> None:
    once = Once(NOON.astimezone(BERLIN))
    assert once.next_after(NOON - TICK) == NOON
    assert once.next_after(NOON) is None
    assert (once.expression, once.timezone_name) == ("at 2026-06-01T12:00:00+00:00", "UTC")
    assert stored_schedule(once.expression, "UTC") == once
    with pytest.raises(ValueError, match="aware"):
        once.next_after(datetime(2026, 1, 1))


def test_a_single_run_that_was_missed_is_late_rather_than_lost() -> None:
    once = defined(schedule=NOON)
    assert once.catch_up == "last"
    assert once.following(NOON - DAY, NOON + 300 * DAY) == NOON
    assert once.following(NOON, NOON + DAY) is None
    recurring_task.clear()
    punctual = defined(schedule=NOON, catch_up=HOUR)
    assert punctual.following(NOON - DAY, NOON + HOUR - TICK) == NOON
    assert punctual.following(NOON - DAY, NOON + HOUR) is None


@pytest.mark.parametrize(
    "text", ["at ", "at noon", "at 2026-06-01", "at 2026-06-01T12:00:00", "at 9999-12-31T23:59:59Z"]
)
def test_a_stored_instant_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(InvalidScheduleError, match=r"followed by an instant|not from 1970 to 2999"):
        stored_schedule(text, "UTC")


# --- what is refused, and what is read -------------------------------------------------------

NAIVE = datetime(2026, 6, 1, 12)
ONCE = "it runs once, at 2026-06-01T12:00:00+00:00, so that "
REFUSED: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"starts_at": NAIVE}, ValueError, "starts_at is a naive datetime, 2026-06-01T12:00:00: give"),
    ({"ends_at": NAIVE}, ValueError, "ends_at is a naive datetime"),
    ({"schedule": NAIVE}, ValueError, "the instant of a schedule is a naive datetime"),
    ({"starts_at": "tomorrow"}, TypeError, "starts_at must be a datetime, not str"),
    ({"ends_at": date(2026, 6, 1)}, TypeError, "ends_at must be a datetime, not date"),
    ({"ends_at": MINUTE}, TypeError, "ends_at must be a datetime, not timedelta"),
    ({"schedule": date(2026, 6, 1)}, ValueError, "a timedelta or a datetime, not date"),
    ({"starts_at": datetime(3000, 1, 1, tzinfo=UTC)}, ValueError, "starts_at is not from 1970 to "
     "2999: 3000-01-01"),
    ({"ends_at": datetime(1969, 12, 31, tzinfo=UTC)}, ValueError, "ends_at is not from 1970 to"),
    ({"ends_at": datetime.max.replace(tzinfo=ZoneInfo("America/Lima"))}, ValueError, "2999: 9999"),
    ({"starts_at": datetime.min.replace(tzinfo=ZoneInfo("Asia/Tokyo"))}, ValueError, "2999: 0001"),
    ({"schedule": datetime(9999, 1, 1, tzinfo=UTC)}, ValueError, "is not from 1970 to 2999"),
    ({"starts_at": NOON, "ends_at": NOON - SECOND}, ValueError, "it ends before it starts: ends_at"
     " is 2026-06-01 11:59:59+00:00, starts_at is 2026-06-01 12:00:00+00:00"),
    ({"schedule": "@yearly", "starts_at": NOON, "ends_at": NOON + DAY}, ValueError,
     "'@yearly' has no run from 2026-06-01 12:00:00+00:00 to 2026-06-02"),
    ({"repeats": 0}, ValueError, "repeats must be from 1 to 2147483647, not 0"),
    ({"repeats": -1}, ValueError, "repeats must be from 1 to 2147483647, not -1"),
    ({"repeats": 2**31}, ValueError, "not 2147483648"),
    ({"repeats": True}, TypeError, "repeats must be an integer, not bool"),
    ({"repeats": 2.0}, TypeError, "repeats must be an integer, not float"),
    ({"repeats": "3"}, TypeError, "repeats must be an integer, not str"),
    ({"overlap": "skipp"}, ValueError, "there is no overlap 'skipp'; did you mean 'skip'?"),
    ({"overlap": None}, ValueError, "there is no overlap None; valid are 'allow', 'queue', 'skip'"),
    ({"overlap": False}, ValueError, "there is no overlap False"),
    ({"overlap": ["skip"]}, ValueError, "there is no overlap ['skip']"),
    ({"schedule": NOON, "timezone": "UTC"}, ValueError, "an instant has its own time zone, but "
     "timezone='UTC' is given as well; leave it out"),
    ({"schedule": NOON, "repeats": 1}, ValueError, ONCE + "repeats would mean nothing"),
    ({"schedule": NOON, "overlap": "skip"}, ValueError, ONCE + "overlap would mean nothing"),
    ({"schedule": NOON, "starts_at": NOON, "ends_at": NOON}, ValueError,
     ONCE + "starts_at and ends_at would mean nothing; leave out what is given"),
]  # fmt: skip


@pytest.mark.parametrize(("values", "error", "message"), REFUSED, ids=lambda each: str(each)[:60])
def test_values_that_mean_nothing_are_refused_when_the_module_is_imported(
    values: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error) as caught:
        defined(**values)
    assert str(caught.value).startswith("the recurring task 'k': ")
    assert message in str(caught.value)
    assert registered() == []


def test_without_time_zones_naive_datetimes_are_local_time() -> None:
    with override_settings(USE_TZ=False, TIME_ZONE="Europe/Berlin"):
        found = defined(starts_at=NAIVE, ends_at=datetime(2026, 6, 1, 15))
    assert (found.starts_at, found.ends_at) == (NOON - 2 * HOUR, NOON + HOUR)


def test_the_limits_are_part_of_what_a_key_stands_for() -> None:
    with_all = defined(starts_at=NOON, ends_at=NOON + DAY, repeats=3, overlap="queue")
    assert with_all.is_tracked
    with pytest.raises(ValueError, match="the recurring key 'k' is used twice"):
        defined(starts_at=NOON, ends_at=NOON + DAY, repeats=4, overlap="queue")
    recurring_task.clear()
    assert not defined(starts_at=NOON).is_tracked
