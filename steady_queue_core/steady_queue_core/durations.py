"""Durations in settings (a ``timedelta`` or seconds), in stored text (``90 seconds``), and in
options of the command line (``90s``)."""

from __future__ import annotations

import re
from datetime import timedelta

LONGEST = timedelta(days=3650)
"""Ten years. Anything longer is probably a mistake in the unit."""

UNITS = {
    "day": timedelta(days=1),
    "hour": timedelta(hours=1),
    "minute": timedelta(minutes=1),
    "second": timedelta(seconds=1),
    "microsecond": timedelta(microseconds=1),
}
LETTERS = {name[0]: name for name in ("day", "hour", "minute", "second")}
OPTION = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,6})?)([dhms]?)")
WORDS = re.compile(rf"([0-9]{{1,15}}) ({'|'.join(UNITS)})s?")


def to_timedelta(value: object) -> timedelta:
    """Return ``value`` (a timedelta, or seconds as int or float) as a timedelta.

    Raises TypeError for other types (bool included), ValueError for negative values, NaN, and
    anything above ``LONGEST``.
    """
    if isinstance(value, timedelta):
        if not timedelta(0) <= value <= LONGEST:
            raise ValueError(f"not from 0 to {LONGEST.days} days")
        return value
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{type(value).__name__} is neither a timedelta nor a number of seconds")
    if not 0 <= value <= LONGEST.total_seconds():  # NaN is in no range
        raise ValueError(f"not from 0 to {LONGEST.days} days")
    return timedelta(seconds=value)


def in_words(duration: timedelta) -> str:
    """Return a duration in the largest unit that divides it, such as ``90 seconds``."""
    name, unit = next((name, unit) for name, unit in UNITS.items() if not duration % unit)
    count = duration // unit
    return f"{count} {name}" if count == 1 else f"{count} {name}s"


def from_words(text: str) -> timedelta:
    """Return the duration that ``in_words`` wrote; raise ValueError for any other text."""
    found = WORDS.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is not a number of days, hours, minutes or seconds")
    try:
        return int(found[1]) * UNITS[found[2]]
    except OverflowError:
        raise ValueError(f"{text!r} is more than {LONGEST.days} days") from None


def parse(text: str) -> timedelta:
    """Return the duration that an option of the command line says: ``90s``, ``10m``, ``24h``,
    ``7d``, or a number of seconds. Raises ValueError, with a message for the user."""
    found = OPTION.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"{text!r} is no duration: write 90s, 10m, 24h, 7d or a number of seconds")
    unit = LETTERS[found[2] or "s"]
    try:
        return to_timedelta(float(found[1]) * UNITS[unit])
    except (ValueError, OverflowError):
        raise ValueError(f"{text!r} is more than {LONGEST.days} days") from None
