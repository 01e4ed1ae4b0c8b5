"""Times in SQLite: text in UTC, in Django's format, so that the text sorts as the times do."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

#: The present time; it moves on within a transaction. SQLite knows milliseconds, but everything
#: stored has six digits: text of different precision does not sort as the times do.
NOW_SQL = "(strftime('%Y-%m-%d %H:%M:%f', 'now') || '000')"
PRESENT = f"SELECT {NOW_SQL}"


def present(cursor: Any) -> str:
    """Return the database's present time, as text."""
    cursor.execute(PRESENT)
    return str(cursor.fetchone()[0])


def to_text(value: datetime) -> str:
    """Return an aware time as it is stored."""
    return value.astimezone(UTC).replace(tzinfo=None).isoformat(" ", "microseconds")


def later(text: str, seconds: float) -> str:
    """Return the text of a time some seconds after another."""
    return to_text(from_text(text) + timedelta(seconds=seconds))


def read(value: Any, default: datetime) -> datetime:
    """Return a stored time, or ``default`` for a value that is not a time, after manual edits."""
    try:
        return from_text(value)
    except (TypeError, ValueError, AttributeError):
        return default


def from_text(value: str | datetime) -> datetime:
    """Return a stored time, aware in UTC. Some statements convert columns, others do not."""
    if isinstance(value, str):
        value = datetime.fromisoformat(value)
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
