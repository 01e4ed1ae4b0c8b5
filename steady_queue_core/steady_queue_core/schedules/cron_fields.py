"""Parses the five fields of a cron expression, and writes them out as numbers.

A field is ``*``, or a list of terms with commas between them. A term is a value (``5``, ``MON``),
a range (``1-5``; ``22-2`` wraps around), or one of these with a step (``*/15``, ``8-18/2``;
``5/10`` goes from 5 to the end). The day of month may be ``L``, the last one. The day of week is 0
(Sunday) to 6, or 7 for Sunday, and may be ``5#2``, the second Friday of the month, or ``5L`` or
``L5``, the last one. A day field may be ``?``, which is the same as ``*``.

If neither day field begins with ``*``, a day needs to match only one of them, otherwise both. That
is the rule of the original cron.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import product

MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
WEEKDAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
SHORTEST_MONTH = 28
"""Days that every month has."""

LAST_WEEKDAY = re.compile(r"L[^L]+|[^L]+L")
#: Extensions of other cron parsers, and why they are refused here.
FOREIGN = {
    r"H.*": "H stands for a hashed value, which is not in the expression",
    r"R.*": "R stands for a random value, which would differ in each process",
    r"L?W|\d+W|W\d+": "there is no nearest working day (W)",
}


@dataclass(frozen=True)
class Field:
    """One of the five fields: its name and its range of values."""

    name: str
    first: int
    last: int
    names: tuple[str, ...] = ()
    #: Another number for the first value.
    alias: int | None = None

    def values(self, text: str) -> Iterator[int]:
        """Yield the values of a term. Raises ValueError for an invalid term."""
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
            raise ValueError(f"{text!r} is no {self.name}{_why(text)}")
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
    """The terms of a day field by kind: croniter misreads mixed kinds."""

    plain: frozenset[int]
    #: Terms of the other kinds, in croniter's notation, such as ``("L5", "L1")``.
    others: tuple[tuple[str, ...], ...] = ()
    #: Whether it begins with ``*``, and so only narrows the other day field.
    open: bool = False

    def fields(self) -> Iterator[str]:
        """Yield a field for each kind of terms."""
        if self.plain:
            yield _written(self.plain)
        yield from (",".join(terms) for terms in self.others)


@dataclass(frozen=True)
class Fields:
    """The parsed five fields of an expression."""

    minutes: frozenset[int]
    hours: frozenset[int]
    of_month: Days
    months: frozenset[int]
    of_week: Days

    @classmethod
    def parse(cls, expression: str) -> Fields:
        """Parse five fields separated by spaces. Raises ValueError."""
        minute, hour, of_month, month, of_week = expression.upper().split(" ")
        return cls(
            minutes=_set(MINUTE, minute),
            hours=_set(HOUR, hour),
            of_month=_days_of_month("*" if of_month == "?" else of_month),
            months=_set(MONTH, month),
            of_week=_days_of_week("*" if of_week == "?" else of_week),
        )

    @property
    def takes_either_day(self) -> bool:
        """Whether a day that matches one of the day fields is enough."""
        return not (self.of_month.open or self.of_week.open)

    def written_out(self) -> list[str]:
        """Return expressions that together match the same dates as these fields.

        They contain only numbers, ``*``, ``L`` and ``5#2``. Both day fields must match.
        """
        days: Iterable[tuple[str, str]]
        if self.takes_either_day:
            days = [(field, "*") for field in self.of_month.fields()]
            days += [("*", field) for field in self.of_week.fields()]
        else:
            days = product(self.of_month.fields(), self.of_week.fields())
        minutes, hours, months = map(_written, (self.minutes, self.hours, self.months))
        return [f"{minutes} {hours} {day} {months} {weekday}" for day, weekday in days]


def _set(field: Field, text: str) -> frozenset[int]:
    return frozenset(value for term in text.split(",") for value in field.values(term))


def _days_of_month(text: str) -> Days:
    terms = text.split(",")
    plain = frozenset(value for term in terms if term != "L" for value in DAY_OF_MONTH.values(term))
    late = sorted(value for value in plain if value > SHORTEST_MONTH)
    others = (("L",),) if "L" in terms else ()
    if late and len(plain) < DAY_OF_MONTH.last:
        # Looking for the 30th in February, croniter 6 goes past the first of March.
        plain, others = plain.difference(late), (tuple(map(str, late)), *others)
    return Days(plain, others, text.startswith("*"))


def _days_of_week(text: str) -> Days:
    plain: set[int] = set()
    numbered: dict[str, None] = {}
    last: dict[str, None] = {}
    for term in text.split(","):
        day, sharp, number = term.partition("#")
        if sharp:
            if number not in ("1", "2", "3", "4", "5"):
                raise ValueError(f"{term!r} is no day of week: a month has up to five of each")
            numbered[f"{DAY_OF_WEEK.value(day)}#{number}"] = None
        elif LAST_WEEKDAY.fullmatch(term):
            last[f"L{DAY_OF_WEEK.value(term.strip('L'))}"] = None
        else:
            plain.update(DAY_OF_WEEK.values(term))
    others = tuple(tuple(terms) for terms in (numbered, last) if terms)
    return Days(frozenset(plain), others, text.startswith("*"))


def _written(values: frozenset[int]) -> str:
    return ",".join(map(str, sorted(values)))


def _why(text: str) -> str:
    reasons = (why for pattern, why in FOREIGN.items() if re.fullmatch(pattern, text))
    return "".join(f": {why}" for why in reasons)


def _digits(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 4 else None
