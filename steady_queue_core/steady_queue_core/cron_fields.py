"""The five fields of a cron expression, matched against a clock that never changes.

A field is ``*``, or a list of terms with commas between them. A term is a value (``5``, ``MON``),
a range (``1-5``; ``22-2`` goes over the end), or one of these with a step (``*/15``, ``8-18/2``;
``5/10`` goes from 5 to the end). The day of month may be ``L``, the last one. The day of week goes
from 0, or 7, Sunday, to 6, and may be ``5#2``, the second Friday of the month, or ``5L``, the last.

When neither day field begins with ``*``, a day that matches either of them counts, else it has to
match both. That is the rule of the original cron.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta

DAY = timedelta(days=1)
#: No date is further away than a 29 February on a certain day of the week, beyond a year without.
LONGEST_SEARCH = 41 * 366 * DAY

MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
WEEKDAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")


class NoDateError(ValueError):
    """An expression matches no date."""


@dataclass(frozen=True)
class Field:
    """One of the five: what its values are."""

    name: str
    first: int
    last: int
    names: tuple[str, ...] = ()
    #: Another number for the first value.
    alias: int | None = None

    def values(self, text: str) -> Iterator[int]:
        """Yield the values of a term; raise ValueError for one that is none."""
        base, slash, step = text.partition("/")
        start, dash, end = base.partition("-")
        if base == "*":
            low, high = self.first, self.last
        elif dash:
            low, high = self._number(start), self._number(end)
        else:
            low = self._number(start)
            high = self.last if slash else low
        if low > high and self.alias is not None and low == self.alias:
            low = self.first
        if low <= high:
            found = range(low, high + 1)
            yield from (self._proper(value) for value in found[:: self._step(slash, step)])
        else:
            around = [*range(low, self.last + 1), *range(self.first, high + 1)]
            yield from around[:: self._step(slash, step)]

    def value(self, text: str) -> int:
        return self._proper(self._number(text))

    def _proper(self, value: int) -> int:
        return self.first if value == self.alias else value

    def _number(self, text: str) -> int:
        if text in self.names:
            return self.first + self.names.index(text)
        number = _digits(text)
        highest = self.last if self.alias is None else self.alias
        if number is None or not self.first <= number <= highest:
            raise ValueError(f"{text!r} is no {self.name}")
        return number

    def _step(self, slash: str, text: str) -> int:
        step = _digits(text) if slash else 1
        if not step:
            raise ValueError(f"{text!r} is no step of a {self.name}")
        return step


MINUTE = Field("minute", 0, 59)
HOUR = Field("hour", 0, 23)
DAY_OF_MONTH = Field("day of month", 1, 31)
MONTH = Field("month", 1, 12, MONTHS)
DAY_OF_WEEK = Field("day of week", 0, 6, WEEKDAYS, alias=7)


@dataclass(frozen=True)
class Days:
    """Which dates match."""

    months: frozenset[int]
    #: 0 for the last one.
    of_month: frozenset[int]
    of_week: frozenset[int]
    #: Day of week and which one of the month, 1 to 5, or 0 for the last one.
    of_week_in_month: frozenset[tuple[int, int]]
    #: Whether one of the two kinds of days is enough.
    either: bool

    def match(self, day: date) -> bool:
        if day.month not in self.months:
            return False
        if self.either:
            return self._by_month(day) or self._by_week(day)
        return self._by_month(day) and self._by_week(day)

    def _by_month(self, day: date) -> bool:
        return day.day in self.of_month or (0 in self.of_month and _is_last(day, 1))

    def _by_week(self, day: date) -> bool:
        weekday = day.isoweekday() % 7
        return (
            weekday in self.of_week
            or (weekday, (day.day + 6) // 7) in self.of_week_in_month
            or ((weekday, 0) in self.of_week_in_month and _is_last(day, 7))
        )


@dataclass(frozen=True)
class Fields:
    """The times of an expression."""

    times: tuple[time, ...]
    days: Days

    @classmethod
    def parse(cls, expression: str) -> Fields:
        """Read five fields with blanks between them. Raises ValueError."""
        minute, hour, of_month, month, of_week = expression.upper().split(" ")
        minutes, hours = _set(MINUTE, minute), _set(HOUR, hour)
        plain, in_month = _days_of_week(of_week)
        return cls(
            times=tuple(time(h, m) for h in sorted(hours) for m in sorted(minutes)),
            days=Days(
                months=_set(MONTH, month),
                of_month=_days_of_month(of_month),
                of_week=plain,
                of_week_in_month=in_month,
                either=not (of_month.startswith("*") or of_week.startswith("*")),
            ),
        )

    def next_after(self, local: datetime) -> datetime:
        """Return the first matching minute after a naive ``local``. Raises ``NoDateError``."""
        day, limit = local.date(), local.date() + LONGEST_SEARCH
        later = bisect_right(self.times, local.time())
        if later < len(self.times) and self.days.match(day):
            return datetime.combine(day, self.times[later])
        while day < limit:
            day = self._next_day(day)
            if self.days.match(day):
                return datetime.combine(day, self.times[0])
        raise NoDateError("it matches no date")

    def _next_day(self, day: date) -> date:
        day += DAY
        while day.month not in self.days.months:
            day = (day.replace(day=28) + 4 * DAY).replace(day=1)
        return day


def _set(field: Field, text: str) -> frozenset[int]:
    return frozenset(value for term in text.split(",") for value in field.values(term))


def _days_of_month(text: str) -> frozenset[int]:
    terms = text.split(",")
    found = {value for term in terms if term != "L" for value in DAY_OF_MONTH.values(term)}
    return frozenset(found | ({0} if "L" in terms else set()))


def _days_of_week(text: str) -> tuple[frozenset[int], frozenset[tuple[int, int]]]:
    plain: set[int] = set()
    in_month: set[tuple[int, int]] = set()
    for term in text.split(","):
        day, sharp, number = term.partition("#")
        if sharp:
            if number not in ("1", "2", "3", "4", "5"):
                raise ValueError(f"{term!r} is no day of week: a month has up to five of each")
            in_month.add((DAY_OF_WEEK.value(day), int(number)))
        elif term.endswith("L"):
            in_month.add((DAY_OF_WEEK.value(term[:-1]), 0))
        else:
            plain.update(DAY_OF_WEEK.values(term))
    return frozenset(plain), frozenset(in_month)


def _digits(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 4 else None


def _is_last(day: date, period: int) -> bool:
    """Whether so many days later it is another month."""
    return (day + period * DAY).month != day.month
