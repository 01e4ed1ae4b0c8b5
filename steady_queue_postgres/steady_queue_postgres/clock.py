"""The server's clock, and instants in UTC whatever the session's time zone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

#: The start of the statement: it moves on within a transaction, and is the same for all rows.
NOW_SQL = "statement_timestamp()"


def seconds(column: str) -> str:
    """Return SQL for an instant as seconds since 1970, which no session setting can change."""
    return f"date_part('epoch', {column})"


def read(value: float, otherwise: datetime | None = None) -> datetime:
    """Return an instant from its seconds since 1970.

    Return ``otherwise`` for ``infinity`` and years past 9999, which PostgreSQL knows and a manual
    edit may have stored.
    """
    try:
        return datetime.fromtimestamp(value, UTC)
    except (OverflowError, ValueError, OSError):
        if otherwise is None:
            raise
        return otherwise


def to_text(value: datetime | None) -> str | None:
    """Return an aware instant as text with its time zone."""
    return value.isoformat() if value else None


def to_microseconds(value: timedelta | None) -> int | None:
    """Return a duration as a whole number of microseconds."""
    return value // timedelta(microseconds=1) if value is not None else None
