"""Cron expressions: what they match, what they say, and what is refused. Changes of the clocks:
``test_clock_changes``."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from django.test import override_settings
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from steady_queue_core.schedules.cron import InvalidScheduleError, Schedule

from ..findings import for_each
from .expressions import EXPRESSIONS

pytestmark = pytest.mark.shared

ZONES = [
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",
    "America/Santiago",
    "America/Nuuk",
    "Africa/Casablanca",
    "Pacific/Apia",
    "Asia/Kathmandu",
]
START = datetime(2025, 1, 1, tzinfo=UTC)


def accepted(expression: str, zone: str) -> Schedule:
    """Return a schedule; leave out what can match no date, such as a 31 April."""
    try:
        return Schedule(expression, zone)
    except InvalidScheduleError as error:
        assume("matches no date" not in str(error))
        raise


def following(expression: str, count: int) -> list[str]:
    """Return the first runs after the beginning of 2025."""
    found = []
    instant = START
    for _ in range(count):
        instant = Schedule(expression, "UTC").next_after(instant)
        found.append(f"{instant:%m-%d %H:%M}")
    return found


@for_each(
    "expression, expected",
    [
        ("5-5 6-6/3 1-1 2-2 *", "02-01 06:05"),
        ("0 22-2/2 * * *", "01-01 02:00, 01-01 22:00, 01-02 00:00"),
        ("50-10/20 4 * * *", "01-01 04:10, 01-01 04:50, 01-02 04:10"),
        ("0 0 * * FRI-MON", "01-03 00:00, 01-04 00:00, 01-05 00:00, 01-06 00:00, 01-10 00:00"),
        ("0 0 * * 7-1", "01-05 00:00, 01-06 00:00, 01-12 00:00"),
        ("0 0 * * 5-7", "01-03 00:00, 01-04 00:00, 01-05 00:00, 01-10 00:00"),
        ("0 0 * * 4/2", "01-02 00:00, 01-04 00:00, 01-09 00:00"),
        ("0 0 1 NOV-FEB/2 *", "11-01 00:00, 01-01 00:00, 11-01 00:00"),
        ("0 0 L 2,4 *", "02-28 00:00, 04-30 00:00"),
        ("0 0 15,L 2 *", "02-15 00:00, 02-28 00:00"),
        ("0 9 * * 5L,1#1", "01-06 09:00, 01-31 09:00, 02-03 09:00, 02-28 09:00"),
        ("0 9 * * L5,1#1", "01-06 09:00, 01-31 09:00, 02-03 09:00, 02-28 09:00"),
        ("0 9 * * lfri,L1", "01-27 09:00, 01-31 09:00, 02-24 09:00, 02-28 09:00"),
        ("0 9 * * 1,5#2", "01-06 09:00, 01-10 09:00, 01-13 09:00"),
        ("0 9 * * 0#5", "03-30 09:00, 06-29 09:00"),
        ("0 0 13 * ?", "01-13 00:00, 02-13 00:00"),
        ("0 0 ? * 1", "01-06 00:00, 01-13 00:00"),
        ("59/15 0-0 * * *", "01-01 00:59, 01-02 00:59"),
        ("0 0 1 APR-MAR/2 *", "02-01 00:00, 04-01 00:00, 06-01 00:00"),
        ("0 0 13 * 5", "01-03 00:00, 01-10 00:00, 01-13 00:00, 01-17 00:00"),
        ("0 0 13 * 5#1", "01-03 00:00, 01-13 00:00, 02-07 00:00"),
        ("0 0 */2 * 1", "01-13 00:00, 01-27 00:00, 02-03 00:00"),
        ("0 0 13 * */5", "04-13 00:00, 06-13 00:00, 07-13 00:00"),
        ("0 0 31 2 1", "02-03 00:00, 02-10 00:00"),
        ("0 0 29 2 *", "02-29 00:00, 02-29 00:00"),
    ],
)
def test_an_expression_matches_what_it_says(expression: str, expected: str) -> None:
    dates = expected.split(", ")
    assert following(expression, len(dates)) == dates


def test_a_schedule_is_found_that_is_due_once_in_forty_years() -> None:
    leap_monday = Schedule("0 0 29 2 *,1", "UTC").next_after(datetime(2096, 3, 1, tzinfo=UTC))
    assert leap_monday == datetime(2104, 2, 29, tzinfo=UTC)
    rare = Schedule("0 0 */28 2 MON#5", "UTC")
    run = datetime(2072, 2, 29, tzinfo=UTC)
    assert rare.next_after(run) == datetime(2112, 2, 29, tzinfo=UTC)


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


@for_each(
    "expression, message",
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
        ("H * * * *", "'H' is no minute: H stands for a hashed value"),
        ("0 R(0-5) * * *", r"'R\(0' is no hour: R stands for a random value"),
        ("0 h/2 * * *", "'H' is no hour: H stands for a hashed value"),
        ("1,,2 * * * *", "'' is no minute"),
        ("5- * * * *", "'' is no minute"),
        ("*/ * * * *", "'' is no step of a minute"),
        ("*/99999 * * * *", "'99999' is no step of a minute"),
        ("0 24 * * *", "'24' is no hour"),
        ("0 0 0 * *", "'0' is no day of month"),
        ("0 0 32 * *", "'32' is no day of month"),
        ("0 0 15W * *", "'15W' is no day of month: there is no nearest working day"),
        ("0 0 LW * *", "'LW' is no day of month: there is no nearest working day"),
        ("0 ? * * *", "'\\?' is no hour"),
        ("0 0 ?,1 * *", "'\\?' is no day of month"),
        ("0 0 L-2 * *", "'L' is no day of month"),
        ("0 0 * 13 *", "'13' is no month"),
        ("0 0 * MON *", "'MON' is no month"),
        ("0 0 * * 8", "'8' is no day of week"),
        ("0 0 * * 1#6", "'1#6' is no day of week: a month has up to five of each"),
        ("0 0 * * 1#0", "'1#0' is no day of week"),
        ("0 0 * * L", "'L' is no day of week"),
        ("0 0 30 2 */2", "matches no date"),
        ("0 0 31 4 *,1", "matches no date"),
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
        Schedule(5, "UTC")  # type: ignore[arg-type]  # Refused.


@pytest.mark.parametrize("zone", ["Europe/Berln", "../../etc/passwd", "Europe", "\0", "x" * 5000])
def test_unknown_zones_are_refused(zone: str) -> None:
    with pytest.raises(InvalidScheduleError, match="is not known"):
        Schedule("* * * * *", zone)


def test_an_unknown_zone_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(InvalidScheduleError, match="did you mean 'Europe/Berlin'"):
        Schedule("* * * * *", "Europe/Berln")


@settings(max_examples=300, deadline=None)
@given(
    EXPRESSIONS,
    st.sampled_from(ZONES),
    st.datetimes(datetime(2005, 1, 1), datetime(2035, 1, 1), timezones=st.just(UTC)),
)
def test_runs_strictly_increase(expression: str, zone: str, start: datetime) -> None:
    schedule = accepted(expression, zone)
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


# --- a time zone in the expression ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "expression", "zone"),
    [
        ("0 9 * * * Europe/Berlin", "0 9 * * *", "Europe/Berlin"),
        ("  0  9 * *  1-5   America/Argentina/Buenos_Aires ", "0 9 * * 1-5",
         "America/Argentina/Buenos_Aires"),
        ("@daily Asia/Tokyo", "@daily", "Asia/Tokyo"),
        ("0 9 * * * UTC", "0 9 * * *", "UTC"),
        ("0 9 * * * EST", "0 9 * * *", "EST"),
        ("0 9 * * MON", "0 9 * * MON", "America/New_York"),
        ("0 9 * JAN/2 *", "0 9 * JAN/2 *", "America/New_York"),
    ],
)  # fmt: skip
@override_settings(TIME_ZONE="America/New_York")
def test_a_zone_may_follow_the_fields(written: str, expression: str, zone: str) -> None:
    schedule = Schedule(written)
    assert (schedule.expression, schedule.timezone_name) == (expression, zone)
    assert schedule == Schedule(expression, zone)


def test_the_zone_in_the_expression_decides_when_it_runs() -> None:
    start = datetime(2030, 7, 1, tzinfo=UTC)
    run = Schedule("0 9 * * * Europe/Berlin").next_after(start)
    assert run == datetime(2030, 7, 1, 7, tzinfo=UTC)


@pytest.mark.parametrize(
    ("written", "zone", "message"),
    [
        ("0 9 * * * Europe/Berlim", "", "'Europe/Berlim' is not known; did you mean 'Europe/Berl"),
        ("0 9 * * Europe/Berlin", "", "has 4 fields; five are needed"),
        ("0 9 * * * Berlin", "", "has 6 fields; five are needed"),
        ("0 9 * * * MON", "", "has 6 fields; five are needed"),
        ("0 0 9 * * * Europe/Berlin", "", "has 6 fields; five are needed"),
        ("Europe/Berlin 0 9 * * *", "", "has 6 fields; five are needed"),
        ("Europe/Berlin", "", "has 1 fields; five are needed"),
        ("0 9 * * * Europe/Berlin", "Asia/Tokyo", "'Asia/Tokyo' is given as well; leave one"),
    ],
)
def test_a_zone_that_cannot_be_used_is_refused(written: str, zone: str, message: str) -> None:
    with pytest.raises(InvalidScheduleError, match=message):
        Schedule(written, zone)


def test_the_same_zone_twice_is_no_contradiction() -> None:
    assert Schedule("0 9 * * * UTC", "UTC") == Schedule("0 9 * * *", "UTC")
