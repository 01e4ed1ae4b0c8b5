"""Durations as people write them: a ``timedelta``, or a number of seconds."""

from __future__ import annotations

from datetime import timedelta

LONGEST = timedelta(days=3650)
"""Ten years: anything longer is a slip of the unit."""


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
