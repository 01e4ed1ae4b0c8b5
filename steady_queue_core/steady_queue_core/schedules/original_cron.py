"""Finds cron expressions with another meaning in the package ``steady_queue``.

That package reads them with the ``crontab`` library. Expressions that only ``crontab`` accepts are
errors here. This module reports those that both accept but interpret differently.
"""

from __future__ import annotations

import re

from .cron import Schedule

SUNDAY_ALONE = re.compile(r"(0|SUN)-(0|SUN)", re.IGNORECASE)


def difference(schedule: Schedule) -> str:
    """Return how ``steady_queue`` reads ``schedule`` differently; empty if it does not."""
    _, _, of_month, _, of_week = schedule.fields
    if schedule.takes_either_day:
        return (
            f"a day that matches {of_month!r} or {of_week!r} is enough, as in cron; in Steady "
            "Queue it had to match both"
        )
    if any(SUNDAY_ALONE.fullmatch(term.partition("/")[0]) for term in of_week.split(",")):
        return f"in {of_week!r} a range from Sunday to Sunday is one day; in Steady Queue, the week"
    return ""
