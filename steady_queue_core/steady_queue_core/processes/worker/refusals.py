"""Jobs that must not start, by their options: when they were claimed, or while they waited in the
worker."""

from __future__ import annotations

from datetime import UTC, datetime

from ...dialects import ClaimedJob
from ...features.at_work import REFUSALS
from ...tasks.metadata import JobMetadata
from ..base.system import lease_clock
from . import unknown_tasks


def refusal_of(claim: ClaimedJob, present: datetime) -> Exception | None:
    """Return why a claimed job must not start at an instant; ``None``: it may.

    A job that has started keeps its later attempts, and so does one that has ended before and is
    retried by somebody.
    """
    if claim.metadata is None or claim.started_at is not None:
        return None
    # SQLite lets a row hold something other than text.
    text = str(claim.metadata)
    asked = [each for each in REFUSALS if each.option in text]
    if not asked or (claim.errors and unknown_tasks.without_note(claim).errors):
        return None
    metadata = JobMetadata.read(claim.metadata)
    errors = (each.of(getattr(metadata, each.option), claim.enqueued_at, present) for each in asked)
    return next((error for error in errors if error is not None), None)


class StartClock:
    """Tells the time by which jobs that wait in this worker may start, without a query.

    It is that of the database or ahead of it, by no more than the last claim took: a job never
    starts late. It goes on while the host is suspended.
    """

    def __init__(self) -> None:
        #: Seconds since 1970 at the start of the lease clock.
        self._offset = -lease_clock()

    def note_claim(self, claimed_at: datetime, asked_at: float) -> None:
        """Synchronize with a claim that was asked for at an instant of the lease clock."""
        self._offset = claimed_at.timestamp() - asked_at

    def now(self) -> datetime:
        """Return the present time for jobs that were claimed before the last synchronization."""
        return datetime.fromtimestamp(self._offset + lease_clock(), UTC)
