"""Jobs that have expired: when they were claimed, or while they waited in the worker."""

from __future__ import annotations

import math
from datetime import datetime

from ...dialects import ClaimedJob
from ...tasks.metadata import JobMetadata
from ..base.system import lease_clock
from . import unknown_tasks


def deadline_of(claim: ClaimedJob) -> datetime | None:
    """Return by when a claimed job has to start; ``None``: whenever.

    A job that has started keeps its later attempts, and so does one that has ended before and is
    retried by somebody.
    """
    if claim.metadata is None or claim.started_at is not None:
        return None
    # SQLite lets a row hold something other than text.
    if "expires" not in str(claim.metadata):
        return None
    if claim.errors and unknown_tasks.without_note(claim).errors:
        return None
    return JobMetadata.read(claim.metadata).deadline(claim.enqueued_at)


def had_expired(claim: ClaimedJob) -> bool:
    """Whether a job had expired when it was claimed, by the database's clock."""
    deadline = deadline_of(claim)
    return deadline is not None and deadline <= claim.claimed_at


class ExpiryClock:
    """Says of jobs that wait in this worker whether they have expired, without a query.

    Its time is that of the database or ahead of it, by no more than the last claim took: a job
    never starts late. It goes on while the host is suspended.
    """

    def __init__(self) -> None:
        #: Seconds since 1970 at the start of the lease clock.
        self._offset = math.nan

    def note_claim(self, claimed_at: datetime, asked_at: float) -> None:
        """Synchronize with a claim that was asked for at an instant of the lease clock."""
        self._offset = claimed_at.timestamp() - asked_at

    def has_expired(self, claim: ClaimedJob) -> bool:
        """Whether a job that was claimed since the last synchronization must not start."""
        deadline = deadline_of(claim)
        return deadline is not None and deadline.timestamp() <= self._offset + lease_clock()
