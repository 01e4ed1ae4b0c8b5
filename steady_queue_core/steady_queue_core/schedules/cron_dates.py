"""Finds the dates of cron expressions with croniter.

croniter only gets naive local times, and only expressions that it reads like cron: numbers, ``*``,
``L`` and ``5#2``. It reads the rest of the language differently (``0-0`` is every minute, ``59/15``
more than the 59th), and also two restricted day fields. It is imported for the first schedule: most
processes of a project have none.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING

from .cron_fields import Fields

if TYPE_CHECKING:
    from croniter import croniter

ORIGIN = datetime(2000, 1, 1)
"""The start of the search for a first match."""
LONGEST_SEARCH = 41
"""Years. No date is further away than a 29 February on a certain day of the week, beyond a year
without one."""
KEPT = 1024
"""Number of expressions whose dates a thread caches."""


class NoDateError(ValueError):
    """An expression matches no date."""


class CronDates:
    """The times that any of several expressions matches.

    Not thread-safe, like croniter. Raises NoDateError if none of the expressions matches a date
    (such as 31 April).
    """

    def __init__(self, expressions: Iterable[str]) -> None:
        parts = (_part(expression) for expression in expressions)
        self._parts = [part for part in parts if _next(part, ORIGIN) is not None]
        if not self._parts:
            raise NoDateError("it matches no date")

    def next_after(self, local: datetime) -> datetime:
        """Return the first matching minute after a naive ``local``."""
        start = local.replace(second=0, microsecond=0)
        found = [date for part in self._parts if (date := _next(part, start)) is not None]
        if not found:
            raise NoDateError(f"it matches no date after {local}")
        return min(found)


class _Kept(threading.local):
    def __init__(self) -> None:
        self.dates_of = lru_cache(maxsize=KEPT)(
            lambda expression: CronDates(Fields.parse(expression).written_out())
        )


_kept = _Kept()


def dates_of(expression: str) -> CronDates:
    """Return the dates of five fields, cached for the calling thread. Raises ValueError."""
    return _kept.dates_of(expression)


def _part(expression: str) -> croniter:
    from croniter import croniter

    return croniter(
        expression,
        ORIGIN,
        day_or=False,
        max_years_between_matches=LONGEST_SEARCH,
        ret_type=datetime,
    )


def _next(part: croniter, start: datetime) -> datetime | None:
    from croniter import CroniterBadDateError

    try:
        date: datetime = part.get_next(start_time=start)
    except CroniterBadDateError:
        return None
    return date
