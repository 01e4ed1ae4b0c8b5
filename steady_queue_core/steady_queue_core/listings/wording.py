"""Formats stored values, whatever they contain, as plain text."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime, timedelta

from django.utils import timezone

from ..dialects import portable
from ..printable import printable, printable_text

#: Maximum length of a text, and of a name in a table.
MOST_TEXT = 20_000
MOST_NAME = 120

UNITS = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))


def clean(value: object, most: int = MOST_TEXT) -> str:
    """Return text with what is unsafe to print escaped, except newlines and tabs, and truncated."""
    text = str(value)
    shown = printable_text(text[:most])
    return shown if len(text) <= most else f"{shown}… ({len(text):,} characters in all)"


def line(value: object) -> str:
    """Return text on a single line."""
    return " ".join(clean(value).split())


def name(value: object) -> str:
    """Return a name on a single line, truncated for a table cell."""
    text = str(value)
    return printable(text if len(text) <= MOST_NAME else text[: MOST_NAME - 1] + "…")


def moment(value: datetime | None) -> str:
    """Return a stored timestamp to the second, in the current time zone and with its name."""
    if value is None:
        return ""
    seen = portable.aware(value)
    with suppress(OverflowError):  # The last day of the calendar overflows in eastern zones.
        seen = seen.astimezone(timezone.get_current_timezone())
    return f"{seen:%Y-%m-%d %H:%M:%S %Z}"


def duration(value: timedelta) -> str:
    """Return a duration in its two largest units, or in milliseconds."""
    seconds = value.total_seconds()
    if seconds < 0:
        return f"-{duration(-value)}"
    if seconds < 1:
        return f"{round(seconds * 1000)} ms"
    parts: list[tuple[int, str]] = []
    left = int(seconds)
    for unit, size in UNITS:
        count, left = divmod(left, size)
        if count or parts:
            parts.append((count, unit))
    return " ".join(f"{count} {unit}" for count, unit in parts[:2] if count)


def between(start: datetime | None, end: datetime | None) -> str:
    """Return the time between two stored timestamps, if there are both."""
    if start is None or end is None:
        return ""
    return duration(portable.aware(end) - portable.aware(start))
