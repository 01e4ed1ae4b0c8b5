"""Cron expressions that Steady Queue reads in another way, for those who come from there.

The original reads them by the ``crontab`` library. What that accepts and this package refuses is an
error that says why; only what both accept, and read differently, is told here.
"""

from __future__ import annotations

import re

from .cron import Schedule

SUNDAY_ALONE = re.compile(r"(0|SUN)-(0|SUN)", re.IGNORECASE)


def difference(schedule: Schedule) -> str:
    """Return how the original reads ``schedule``; empty: the same, time zones apart."""
    _, _, of_month, _, of_week = schedule.fields
    if schedule.takes_either_day:
        return (
            f"a day that matches {of_month!r} or {of_week!r} is enough, as in cron; in Steady "
            "Queue it had to match both"
        )
    if any(SUNDAY_ALONE.fullmatch(term.partition("/")[0]) for term in of_week.split(",")):
        return f"in {of_week!r} a range from Sunday to Sunday is one day; in Steady Queue, the week"
    return ""
