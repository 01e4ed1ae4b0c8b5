"""Cron expressions of all kinds, made up for tests, and the runs of a schedule."""

from __future__ import annotations

from datetime import datetime

from hypothesis import strategies as st

from steady_queue_core.schedules.cron import Schedule

Strategy = st.SearchStrategy[str]


def runs(expression: str, zone: str, start: datetime, end: datetime) -> list[datetime]:
    """Return the runs after ``start`` and before ``end``."""
    schedule = Schedule(expression, zone)
    found = []
    instant = start
    while (instant := schedule.next_after(instant)) < end:
        found.append(instant)
    return found


def field(low: int, high: int, *more: Strategy, steps: bool = True) -> Strategy:
    """Return fields with lists, ranges and steps; ``more``: further terms that they may have.

    Left out are two forms that cronsim reads in its own way: a step from a range of one value,
    which it extends to the end, and a step from a day of the week, which it lets go on to 7.
    """
    number = st.integers(low, high)
    step = st.integers(1, high)
    pair = st.lists(number, min_size=2, max_size=2, unique=True).map(sorted)
    terms = [
        st.just("*"),
        step.map("*/{}".format),
        number.map(str),
        pair.map(lambda n: f"{n[0]}-{n[1]}"),
        st.builds(lambda n, s: f"{n[0]}-{n[1]}/{s}", pair, step),
        number.map(lambda n: f"{n}-{n}"),
        *([st.builds("{}/{}".format, number, step)] if steps else []),
        *more,
    ]
    return st.lists(st.one_of(terms), min_size=1, max_size=3).map(",".join)


MINUTES = field(0, 59)
HOURS = field(0, 23)
DAYS_OF_MONTH = field(1, 31, st.just("L"))
MONTHS = field(1, 12, st.sampled_from(["JAN", "feb", "MAR-JUN", "Dec"]))
DAYS_OF_WEEK = field(
    0,
    7,
    st.sampled_from(["SUN", "mon-fri", "Sat", "5L", "0L", "7L"]),
    st.builds("{}#{}".format, st.integers(0, 7), st.integers(1, 5)),
    steps=False,
)
#: Any five fields.
EXPRESSIONS = st.tuples(MINUTES, HOURS, DAYS_OF_MONTH, MONTHS, DAYS_OF_WEEK).map(" ".join)
