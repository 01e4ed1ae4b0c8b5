"""Cron expressions, with cronsim as an independent oracle.

cronsim treats changes of the clocks as Debian's cron does. Two differences are ours and spelled out
in ``expected``: times that a gap moves onto the same moment are one run, and an expression with a
fixed hour is a fixed time even when its minute field begins with ``*``.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from cronsim import CronSim
from django.test import override_settings
from hypothesis import given, settings
from hypothesis import strategies as st

from steady_queue_core.cron import InvalidScheduleError, Schedule

ZONES = [
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",  # half an hour of daylight saving
    "America/Santiago",  # changes at midnight
    "America/Nuuk",  # its gap ends the day
    "Africa/Casablanca",  # changes for Ramadan
]
FIXED = [
    "30 2 * * *",
    "0 0 * * *",
    "0 6 1,15 * 1",
    "0 0 1 * *",
    "0 12 29 2 *",
    "0 3 L * *",
    "5 4 * * 1#1",
    "0 2 31 * *",
]
DENSE = [
    "30 1 * * *",
    "45 23 * * *",
    "59 1-3/2 * * 0",
    "15 0,1,2,3,23 * * *",
    "0,15,30,45 2 * * *",
    "0 0-23 * * *",
]
FIXED_WITH_MINUTE_STAR = ["*/10 1 * * *", "*/15 2,3 * * *", "* 0 * * *", "*/30 23 * * *"]
EVERY_HOUR = ["0 * * * *", "30 */2 * * *", "*/20 * * * *", "7 *,3 * * *"]
ON_SUNDAYS = ["0,45 */3 * * 0", "*/30 * * * SUN"]


def runs(expression: str, zone: str, start: datetime, end: datetime) -> list[datetime]:
    schedule = Schedule(expression, zone)
    found = []
    instant = start
    while (instant := schedule.next_after(instant)) < end:
        found.append(instant)
    return found


def simulated(expression: str, start: datetime, end: datetime) -> list[datetime]:
    found = []
    for instant in CronSim(expression, start):
        if instant >= end:
            break
        found.append(instant)
    return found


def expected(expression: str, zone: str, start: datetime, end: datetime) -> list[datetime]:
    tz = ZoneInfo(zone)
    if expression in FIXED_WITH_MINUTE_STAR:
        # Ours: read the times from a clock that never changes, then place each on the real one.
        naive = simulated(
            expression,
            start.astimezone(tz).replace(tzinfo=None),
            end.astimezone(tz).replace(tzinfo=None) + timedelta(days=1),
        )
        instants = [placed(local, tz) for local in naive]
    else:
        instants = [
            each.astimezone(UTC) for each in simulated(expression, start.astimezone(tz), end)
        ]
    # Ours: what a gap moves onto the same moment is one run.
    return [each for each in dict.fromkeys(instants) if start < each < end]


def placed(local: datetime, tz: ZoneInfo) -> datetime:
    while (instant := local.replace(tzinfo=tz).astimezone(UTC)).astimezone(tz).replace(
        tzinfo=None
    ) != local:
        local += timedelta(minutes=1)
    return instant


@cache
def windows_around_changes(zone: str) -> list[tuple[datetime, datetime]]:
    """Three days around each change of the clocks; for UTC, any three days."""
    tz, (start, end) = ZoneInfo(zone), TEN_YEARS
    days = [start + timedelta(days=n) for n in range((end - start).days)]
    changes = [
        after
        for before, after in pairwise(days)
        if before.astimezone(tz).utcoffset() != after.astimezone(tz).utcoffset()
    ]
    return [(day - timedelta(days=2), day + timedelta(days=1)) for day in changes or days[:1]]


@cache
def clocks_around_changes(zone: str) -> list[list[tuple[datetime, datetime]]]:
    """What a clock in the zone shows at each minute of those days."""
    tz = ZoneInfo(zone)
    return [
        [
            (instant, instant.astimezone(tz).replace(tzinfo=None, fold=0))
            for minute in range(int((end - start) / MINUTE))
            for instant in [start + minute * MINUTE]
        ]
        for start, end in windows_around_changes(zone)
    ]


MINUTE = timedelta(minutes=1)
TEN_YEARS = (datetime(2019, 1, 1, tzinfo=UTC), datetime(2029, 1, 1, tzinfo=UTC))


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("expression", FIXED)
def test_fixed_times_agree_with_the_oracle_for_ten_years(expression: str, zone: str) -> None:
    assert runs(expression, zone, *TEN_YEARS) == expected(expression, zone, *TEN_YEARS)


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("expression", DENSE + FIXED_WITH_MINUTE_STAR + EVERY_HOUR)
def test_dense_schedules_agree_with_the_oracle_around_each_change(
    expression: str, zone: str
) -> None:
    for window in windows_around_changes(zone):
        assert runs(expression, zone, *window) == expected(expression, zone, *window)


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("expression", EVERY_HOUR + ON_SUNDAYS)
def test_hourly_schedules_run_whenever_the_clock_shows_a_match(expression: str, zone: str) -> None:
    # On single days cronsim cannot be asked in a zone: it finds midnight inside a gap, and steps
    # over the end of an overlap of half an hour. On a clock that never changes, it can.
    for clock in clocks_around_changes(zone):
        instants, shown = zip(*clock, strict=True)
        matches = set(simulated(expression, min(shown) - timedelta(days=1), max(shown) + MINUTE))
        due = [instant for instant, local in clock if local in matches]
        assert runs(expression, zone, instants[0] - MINUTE, instants[-1] + MINUTE) == due


@pytest.mark.parametrize("zone", ZONES)
def test_a_fixed_time_runs_once_for_each_local_day_of_ten_years(zone: str) -> None:
    for expression in ("30 1 * * *", "30 23 * * *"):
        assert abs(len(runs(expression, zone, *TEN_YEARS)) - 3653) <= 1  # the window is in UTC


def test_a_time_in_the_spring_gap_runs_at_the_end_of_the_gap() -> None:
    schedule = Schedule("30 2 * * *", "Europe/Berlin")
    run = schedule.next_after(datetime(2025, 3, 29, 12, tzinfo=UTC))
    assert run == datetime(2025, 3, 30, 1, tzinfo=UTC)
    assert run.astimezone(ZoneInfo("Europe/Berlin")).hour == 3
    assert schedule.next_after(run) == datetime(2025, 3, 31, 0, 30, tzinfo=UTC)


def test_several_times_in_one_gap_are_one_run() -> None:
    found = runs(
        "0,15,30 2,3 * * *",
        "Europe/Berlin",
        datetime(2025, 3, 30, tzinfo=UTC),
        datetime(2025, 3, 30, 12, tzinfo=UTC),
    )
    assert found == [datetime(2025, 3, 30, 1, minute, tzinfo=UTC) for minute in (0, 15, 30)]


def test_a_time_in_the_autumn_overlap_runs_only_the_first_time() -> None:
    schedule = Schedule("30 2 * * *", "Europe/Berlin")
    run = schedule.next_after(datetime(2025, 10, 25, 12, tzinfo=UTC))
    assert run == datetime(2025, 10, 26, 0, 30, tzinfo=UTC)
    assert schedule.next_after(run) == datetime(2025, 10, 27, 1, 30, tzinfo=UTC)
    second_pass = datetime(2025, 10, 26, 1, 15, tzinfo=UTC)
    assert schedule.next_after(second_pass) == datetime(2025, 10, 27, 1, 30, tzinfo=UTC)


def test_an_hourly_schedule_runs_in_both_passes_of_the_repeated_hour() -> None:
    window = datetime(2025, 10, 25, 22, tzinfo=UTC), datetime(2025, 10, 26, 4, tzinfo=UTC)
    found = runs("@hourly", "Europe/Berlin", *window)
    assert found == [window[0] + timedelta(hours=n) for n in range(1, 6)]


def test_a_date_that_the_zone_skips_has_no_run() -> None:
    window = datetime(2011, 12, 29, tzinfo=UTC), datetime(2012, 1, 1, tzinfo=UTC)
    found = runs("0 12 * * *", "Pacific/Apia", *window)
    assert [run.astimezone(ZoneInfo("Pacific/Apia")).day for run in found] == [29, 31, 1]


def test_names_stand_for_their_expressions() -> None:
    start = datetime(2025, 6, 4, 10, 30, 15, 999_999, tzinfo=UTC)
    for name, run in {
        "@hourly": datetime(2025, 6, 4, 11, tzinfo=UTC),
        "@daily": datetime(2025, 6, 5, tzinfo=UTC),
        "@midnight": datetime(2025, 6, 5, tzinfo=UTC),
        "@weekly": datetime(2025, 6, 8, tzinfo=UTC),
        "@monthly": datetime(2025, 7, 1, tzinfo=UTC),
        "@yearly": datetime(2026, 1, 1, tzinfo=UTC),
        "@Annually": datetime(2026, 1, 1, tzinfo=UTC),
    }.items():
        assert Schedule(name, "UTC").next_after(start) == run


def test_the_zone_is_the_one_of_the_settings_unless_given() -> None:
    with override_settings(TIME_ZONE="Asia/Tokyo"):
        schedule = Schedule("0  9 * *   *")
    assert schedule == Schedule("0 9 * * *", "Asia/Tokyo")
    run = schedule.next_after(datetime(2025, 1, 1, 9, tzinfo=ZoneInfo("Asia/Tokyo")))
    assert run == datetime(2025, 1, 2, tzinfo=UTC)
    assert run.tzinfo is UTC


def test_a_naive_start_is_refused() -> None:
    with pytest.raises(ValueError, match="needs an aware datetime"):
        Schedule("* * * * *", "UTC").next_after(datetime(2025, 1, 1))


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("", "0 fields"),
        ("* * * *", "4 fields"),
        ("* * * * * *", "6 fields; five are needed"),
        ("0 0 * * * 0 2025", "7 fields"),
        ("@reboot", "@reboot is not a time"),
        ("@every", "not usable"),
        ("99 * * * *", "not usable"),
        ("*/0 * * * *", "not usable"),
        ("0 0 31 2 *", "matches no date"),
        ("0 0 30 2 *", "matches no date"),
        ("0 0 31 4,6,9,11 *", "matches no date"),
        ("a b c d e", "not usable"),
        ("H * * * *", "random field"),
        ("0 R(0-5) * * *", "random field"),
        ("0 h/2 * * *", "random field"),
        ("0\0 * * * *", "characters that cron does not know"),
        ("0\u00a00 * * *", "characters that cron does not know"),
        ("\uff10 0 * * *", "characters that cron does not know"),
        ("0 " * 100_000, "at most 200"),
        ("1-5," * 60 + "1 * * * *", "at most 200"),
    ],
)
def test_expressions_that_cannot_be_used_are_refused(expression: str, message: str) -> None:
    with pytest.raises(InvalidScheduleError, match=message):
        Schedule(expression, "UTC")


def test_something_else_than_a_string_is_refused() -> None:
    with pytest.raises(InvalidScheduleError, match="not int"):
        Schedule(5, "UTC")  # type: ignore[arg-type]


@pytest.mark.parametrize("zone", ["Europe/Berln", "../../etc/passwd", "Europe", "\0", "x" * 5000])
def test_unknown_zones_are_refused(zone: str) -> None:
    with pytest.raises(InvalidScheduleError, match="is not known"):
        Schedule("* * * * *", zone)


def test_an_unknown_zone_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(InvalidScheduleError, match="did you mean 'Europe/Berlin'"):
        Schedule("* * * * *", "Europe/Berln")


def fields(low: int, high: int) -> st.SearchStrategy[str]:
    number = st.integers(low, high)
    return st.one_of(
        st.just("*"),
        st.integers(1, high).map("*/{}".format),
        number.map(str),
        st.lists(number, min_size=1, max_size=4).map(lambda n: ",".join(map(str, sorted(n)))),
        st.tuples(number, number).map(sorted).map(lambda n: f"{n[0]}-{n[1]}"),
    )


@settings(max_examples=300, deadline=None)
@given(
    st.tuples(fields(0, 59), fields(0, 23), fields(1, 28), fields(1, 12), fields(0, 6)),
    st.sampled_from([*ZONES, "Pacific/Apia", "Asia/Kathmandu"]),
    st.datetimes(datetime(2005, 1, 1), datetime(2035, 1, 1), timezones=st.just(UTC)),
)
def test_runs_strictly_increase(parts: tuple[str, ...], zone: str, start: datetime) -> None:
    schedule = Schedule(" ".join(parts), zone)
    first = schedule.next_after(start)
    second = schedule.next_after(first)
    assert start < first < second
    # Whatever the moment one asks at before the first run, the answer is the same.
    assert schedule.next_after(start + (first - start) / 2) == first
    assert schedule.next_after(first - timedelta(microseconds=1)) == first


@settings(max_examples=300, deadline=timedelta(milliseconds=500))
@given(st.text(alphabet="0123456789*/-,LW#?@hrmonjan ", max_size=40) | st.text(max_size=300))
def test_any_text_is_a_schedule_or_refused_in_bounded_time(text: str) -> None:
    try:
        schedule = Schedule(text, "Europe/Berlin")
    except InvalidScheduleError:
        return
    start = datetime(2024, 1, 1, tzinfo=UTC)
    assert schedule.next_after(start) > start
