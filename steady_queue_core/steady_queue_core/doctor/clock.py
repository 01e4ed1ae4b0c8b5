"""The clocks of this host and of the database."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from ..listings.wording import duration
from .finding import Finding, warning
from .patient import Patient

MOST = timedelta(seconds=5)


def host_time() -> datetime:
    """Return the time of this host."""
    return datetime.now(UTC)


def skew(patient: Patient) -> Iterator[Finding]:
    before = host_time()
    present = patient.database.current_time()
    yield from compared(before, present, host_time())


def compared(before: datetime, present: datetime, after: datetime) -> Iterator[Finding]:
    """Yield that the database's time is not between two of this host."""
    ahead = max(present - after, timedelta(0)) - max(before - present, timedelta(0))
    if abs(ahead) > MOST:
        direction = "ahead of" if ahead > timedelta(0) else "behind"
        yield warning(
            "clock-skew",
            f"The database's clock is {duration(abs(ahead))} {direction} the one of this host. "
            "Jobs are due by the database's clock.",
            "Synchronise both with NTP. Give run_after as a timedelta to use one clock only.",
        )


EXAMINATIONS = (skew,)
