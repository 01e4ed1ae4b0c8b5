"""Values as the subcommands print them: as text, and in JSON."""

from __future__ import annotations

from argparse import ArgumentTypeError
from datetime import UTC, datetime, timedelta
from typing import Any

from ..dialects import portable
from ..durations import parse
from ..listings.counts import BoundedCount
from ..models.job import parse_job_id


def seconds(duration: timedelta | None) -> float | None:
    """Return a duration for JSON: seconds, to the millisecond."""
    return None if duration is None else round(duration.total_seconds(), 3)


def instant(value: datetime | None) -> str | None:
    """Return a stored point in time for JSON: ISO 8601, in UTC."""
    return None if value is None else portable.aware(value).astimezone(UTC).isoformat()


def counted(count: BoundedCount) -> dict[str, Any]:
    """Return a count for JSON; one that is not ``exact`` is a lower bound."""
    return {"count": count.number, "exact": count.exact}


def in_words(number: int, text: str = "") -> str:
    """Return a number of jobs in words."""
    return "1 job" if text in ("", "1") and number == 1 else f"{text or format(number, ',')} jobs"


def duration_option(text: str) -> timedelta:
    """Read an option such as ``90s``, ``10m``, ``24h``, ``7d``, or a number of seconds."""
    try:
        return parse(text)
    except ValueError as error:
        raise ArgumentTypeError(str(error)) from error


def job_id_option(text: str) -> int:
    """Read the id of a job, with or without a ``#`` before it."""
    found = parse_job_id(text.removeprefix("#"))
    if found is None:
        raise ArgumentTypeError(f"{text!r} is not the id of a job")
    return found


def positive_option(text: str) -> int:
    """Read a number of at least 1."""
    if not (text.isascii() and text.isdigit() and 0 < int(text) < 2**31):
        raise ArgumentTypeError(f"{text!r} is not a number of at least 1")
    return int(text)
