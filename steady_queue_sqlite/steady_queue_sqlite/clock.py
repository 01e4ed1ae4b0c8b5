"""Instants in SQLite: text in UTC, as Django writes it, so that both compare alike."""

from __future__ import annotations

from datetime import UTC, datetime

#: It knows milliseconds, and moves on within a transaction. With as many digits as all that is
#: stored: text of different precision does not compare as the instants do.
NOW_SQL = "(strftime('%Y-%m-%d %H:%M:%f', 'now') || '000')"


def to_text(value: datetime) -> str:
    """Return an aware instant as it is stored."""
    return value.astimezone(UTC).replace(tzinfo=None).isoformat(" ", "microseconds")


def read(value: object, otherwise: datetime) -> datetime:
    """Return a stored instant; of a row that somebody has damaged, ``otherwise``."""
    try:
        return from_text(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, AttributeError):
        return otherwise


def from_text(value: str | datetime) -> datetime:
    """Return a stored instant, aware in UTC. Columns come converted or not, by the statement."""
    if isinstance(value, str):
        value = datetime.fromisoformat(value)
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
