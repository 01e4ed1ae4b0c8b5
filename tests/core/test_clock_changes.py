"""What a cron expression does when the clocks change, in the years 2025 to 2035 (a merge: 2028).

Two witnesses who share no code with it. ``rule`` is the one that is written in docs/recurring.md,
read off a clock minute by minute. cronsim treats changes as Debian's cron does. Where the two
differ, a test says how, and why the rule is right by what the clocks show.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import accumulate, pairwise
from zoneinfo import ZoneInfo

import pytest
from cronsim import CronSim
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from steady_queue_core.schedules.cron import InvalidScheduleError, Schedule

from ..sizes import sized
from .expressions import EXPRESSIONS, HOURS, MINUTES, runs

pytestmark = [pytest.mark.shared, pytest.mark.slow]

ZONES = [
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",  # half an hour of daylight saving
    "America/Santiago",  # changes at midnight
    "UTC",
]
#: Further oddities, for what is tested around the changes alone.
MORE_ZONES = [
    *ZONES,
    "America/Nuuk",  # its gap ends the day
    "Africa/Casablanca",  # changes for Ramadan
]
#: A merge needs fewer of them.
YEARS = [datetime(2025, 1, 1, tzinfo=UTC), datetime(2036, 1, 1, tzinfo=UTC)]
#: Those in which cronsim loses its way where the hours are open; see the test.
MISREAD = {"Australia/Lord_Howe", "America/Santiago", "America/Nuuk"}
MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)

#: At most a few runs a day, for all the years.
SPARSE = [
    "30 2 * * *",
    "0 0 * * *",
    "0 6 1,15 * 1",
    "0 0 1 * *",
    "0 12 29 2 *",
    "0 3 L * *",
    "30 2 * 3,10 0L",
    "5 4 * * 1#1",
    "0 2 31 * *",
    "30 2 */2 * 0",
]
#: Times in the gap, in the repeated hour, and beside them.
FIXED = [
    "30 1 * * *",
    "45 23 * * *",
    "59 1-3/2 * * 0",
    "15 0,1,2,3,23 * * *",
    "0,15,30,45 2 * * *",
    "10-50/20 0-3 * * *",
    "0 0-23 * * *",
    "5/10 22-23 * * *",
]
FIXED_HOUR_ANY_MINUTE = ["*/10 1 * * *", "*/15 2,3 * * *", "* 0 * * *", "*/30 23 * * *"]
EVERY_HOUR = [
    "0 * * * *",
    "30 */2 * * *",
    "15 */5 * * *",
    "*/20 * * * *",
    "7 *,3 * * *",
]
EVERY_HOUR_ON_SOME_DAYS = ["0,45 */3 * * 0", "*/30 * * * SUN", "0 * L * *", "17 */4 1-7 * *"]


@pytest.fixture(autouse=True, scope="module")
def years(pytestconfig: pytest.Config) -> None:
    first, end = sized(pytestconfig, merge=(2028, 2029), whole=(2025, 2036))  # It is a leap year.
    YEARS[:] = [datetime(first, 1, 1, tzinfo=UTC), datetime(end, 1, 1, tzinfo=UTC)]


# --- the rule, and the oracle ----------------------------------------------------------------


def rule(expression: str, zone: str, start: datetime, end: datetime) -> list[datetime]:
    """Return the runs after ``start`` and before ``end`` by the rule as it is written.

    On a clock that never changes, cronsim says which times match.
    """
    clock = Clock.around(zone, start, end)
    matches = simulated(expression, clock.times[0], clock.times[-1])
    if expression.split()[1].startswith("*"):
        found = clock.when_shown(set(matches))
    else:
        found = list(dict.fromkeys(clock.first_moment(each) for each in matches))
    return [each for each in found if start < each < end]


@dataclass(frozen=True)
class Clock:
    """What a clock on the wall of a zone shows at each minute, and a day before and after."""

    instants: list[datetime]
    times: list[datetime]
    #: The latest time that it has shown so far.
    reached: list[datetime]

    @classmethod
    @cache
    def around(cls, zone: str, start: datetime, end: datetime) -> Clock:
        tz, count = ZoneInfo(zone), int((end - start + 2 * DAY) / MINUTE)
        instants = [start - DAY + n * MINUTE for n in range(count)]
        times = [shown(each, tz) for each in instants]
        return cls(instants, times, list(accumulate(times, max)))

    def when_shown(self, times: set[datetime]) -> list[datetime]:
        both = zip(self.instants, self.times, strict=True)
        return [instant for instant, time in both if time in times]

    def first_moment(self, time: datetime) -> datetime:
        """Return when the clock shows a time first; if it never does, the first moment after."""
        return self.instants[bisect_left(self.reached, time)]


def shown(instant: datetime, tz: ZoneInfo) -> datetime:
    """Return what a clock on the wall shows."""
    return instant.astimezone(tz).replace(tzinfo=None, fold=0)


def simulated(expression: str, start: datetime, end: datetime) -> list[datetime]:
    found = []
    for instant in CronSim(expression, start):
        if instant >= end:
            break
        found.append(instant)
    return found


def oracle(expression: str, zone: str, start: datetime, end: datetime) -> list[datetime]:
    """Return what Debian's cron would do, as cronsim says."""
    found = simulated(expression, start.astimezone(ZoneInfo(zone)), end)
    return [each.astimezone(UTC) for each in found if each > start]


@cache
def changes(zone: str) -> list[datetime]:
    """Return the midnights, UTC, after which the offset of the zone is another."""
    tz, (start, end) = ZoneInfo(zone), YEARS
    days = [start + n * DAY for n in range((end - start).days)]
    return [
        a for a, b in pairwise(days) if a.astimezone(tz).utcoffset() != b.astimezone(tz).utcoffset()
    ]


def windows(zone: str) -> list[tuple[datetime, datetime]]:
    """Return three days around each change of the clocks; for UTC, any three days."""
    return [(each - DAY, each + 2 * DAY) for each in changes(zone) or [YEARS[0] + DAY]]


# --- agreement -------------------------------------------------------------------------------


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("expression", SPARSE)
def test_fixed_times_follow_the_rule_and_the_oracle_through_the_years(
    expression: str, zone: str
) -> None:
    found = runs(expression, zone, *YEARS)
    assert found == oracle(expression, zone, *YEARS)
    around = [each for each in found if any(a < each < b for a, b in windows(zone))]
    assert around == [each for a, b in windows(zone) for each in rule(expression, zone, a, b)]


@pytest.mark.parametrize("zone", MORE_ZONES)
@pytest.mark.parametrize(
    "expression", FIXED + FIXED_HOUR_ANY_MINUTE + EVERY_HOUR + EVERY_HOUR_ON_SOME_DAYS
)
def test_the_rule_holds_around_each_change(expression: str, zone: str) -> None:
    for window in windows(zone):
        assert runs(expression, zone, *window) == rule(expression, zone, *window)


@pytest.mark.parametrize(
    ("expression", "zone"),
    [(expression, zone) for expression in FIXED for zone in MORE_ZONES]
    + [
        (expression, zone)
        for expression in EVERY_HOUR + EVERY_HOUR_ON_SOME_DAYS
        for zone in sorted({*MORE_ZONES} - MISREAD)
    ],
)
def test_the_oracle_agrees_around_each_change(expression: str, zone: str) -> None:
    for window in windows(zone):
        found = runs(expression, zone, *window)
        assert found == oracle(expression, zone, *window)


@pytest.mark.parametrize("zone", ZONES)
def test_the_clocks_change_as_often_as_they_are_known_to(zone: str) -> None:
    assert len(changes(zone)) == (0 if zone == "UTC" else 2 * (YEARS[1].year - YEARS[0].year))


@settings(max_examples=60, deadline=None)
@given(EXPRESSIONS, st.sampled_from(MORE_ZONES), st.data())
def test_any_expression_follows_the_rule_around_a_change(
    expression: str, zone: str, data: st.DataObject
) -> None:
    window = data.draw(st.sampled_from(windows(zone)))
    try:
        Schedule(expression, zone)
    except InvalidScheduleError:
        assume(False)
    assert runs(expression, zone, *window) == rule(expression, zone, *window)


@pytest.mark.thorough
@settings(max_examples=60, deadline=None)
@given(MINUTES, HOURS, st.sampled_from(MORE_ZONES), st.data())
def test_any_time_of_day_agrees_with_the_oracle_around_a_change(
    minutes: str, hours: str, zone: str, data: st.DataObject
) -> None:
    # What has tests of its own, below.
    assume(zone not in MISREAD if hours.startswith("*") else not minutes.startswith("*"))
    window = data.draw(st.sampled_from(windows(zone)))
    expression = f"{minutes} {hours} * * *"
    found = runs(expression, zone, *window)
    assert found == oracle(expression, zone, *window)


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("expression", ["30 1 * * *", "30 2 * * *", "15 0 * * *", "30 23 * * *"])
def test_a_fixed_time_runs_once_on_each_day_of_all_the_years(expression: str, zone: str) -> None:
    tz = ZoneInfo(zone)
    days = Counter(shown(each, tz).date() for each in runs(expression, zone, *YEARS))
    assert set(days.values()) == {1}
    assert len(days) in ((YEARS[1] - YEARS[0]).days, (YEARS[1] - YEARS[0]).days - 1)


# --- where the rule is another than the oracle's ---------------------------------------------


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("expression", FIXED_HOUR_ANY_MINUTE)
def test_a_fixed_hour_is_a_fixed_time_whatever_the_minutes(expression: str, zone: str) -> None:
    """For the oracle, a minute field that begins with ``*`` makes it one that runs whenever the
    clock shows a match: again in a repeated hour, and not for a time in a gap."""
    tz = ZoneInfo(zone)
    for window in windows(zone):
        ours = set(runs(expression, zone, *window))
        theirs = set(oracle(expression, zone, *window))
        for extra in theirs - ours:
            assert extra.astimezone(tz).fold == 1, "not the second time that the clock shows it"
        for extra in ours - theirs:
            before, after = shown(extra - MINUTE, tz), shown(extra, tz)
            # It is the end of a gap in which a time matches, or the oracle has misread the clock.
            assert simulated(expression, before, after + MINUTE)
            assert after - before > MINUTE or zone in MISREAD


@pytest.mark.parametrize("zone", sorted(MISREAD))
@pytest.mark.parametrize("expression", EVERY_HOUR + EVERY_HOUR_ON_SOME_DAYS)
def test_where_hours_are_open_the_oracle_misreads_the_clocks_of_some_zones(
    expression: str, zone: str
) -> None:
    """It goes by whole hours and from midnight to midnight: over the end of a repeated half hour,
    or into a gap that has midnight in it. What the clock shows, says who is right."""
    tz = ZoneInfo(zone)
    for window in windows(zone):
        ours = set(runs(expression, zone, *window))
        theirs = set(oracle(expression, zone, *window))
        for each, due in [
            *((each, True) for each in ours),
            *((each, False) for each in theirs - ours),
        ]:
            time = shown(each, tz)
            assert (time in simulated(expression, time - MINUTE, time + MINUTE)) is due


def test_two_forms_are_read_by_the_oracle_in_its_own_way() -> None:
    """A range of one value is that value, and a week ends on Saturday; both by the original."""
    week = datetime(2025, 6, 1, tzinfo=UTC), datetime(2025, 6, 8, 23, tzinfo=UTC)  # from a Sunday
    assert runs("0 5-5/6 * * *", "UTC", *week) == runs("0 5 * * *", "UTC", *week)
    assert oracle("0 5-5/6 * * *", "UTC", *week) == runs("0 5,11,17,23 * * *", "UTC", *week)
    assert runs("0 5 * * 1/3", "UTC", *week) == runs("0 5 * * 1,4", "UTC", *week)
    assert oracle("0 5 * * 1/3", "UTC", *week) == runs("0 5 * * 0,1,4", "UTC", *week)


# --- in so many words ------------------------------------------------------------------------


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
