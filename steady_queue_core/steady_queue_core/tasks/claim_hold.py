"""The claim of an attempt, as its task knows it."""

from __future__ import annotations

from ..dialects import ClaimedJob
from ..errors import Preempted


class ClaimHold:
    """Whether an attempt may still store something for its job."""

    def __init__(self, claim: ClaimedJob) -> None:
        self.claim = claim
        #: Whether the claim is known to be lost. A lost claim never comes back.
        self.is_lost = False
        #: Whether the task has ended.
        self.is_closed = False

    def require(self) -> None:
        """Raise ``Preempted`` if nothing more is to be stored."""
        if self.is_closed:
            raise Preempted("The task has ended: nothing more is stored for its job.")
        if self.is_lost:
            raise self.lost()

    def lost(self) -> Preempted:
        """Take note that the claim is lost; return what tells the task."""
        self.is_lost = True
        return Preempted(
            f"This attempt has lost its claim of job {self.claim.job_id}, which runs elsewhere or "
            "has ended: the task is to stop."
        )

    def require_latest(self, token: object) -> None:
        """Raise ``Preempted`` if a row that was stored under ``token`` is of a later attempt."""
        if isinstance(token, int) and token > self.claim.token:
            raise self.lost()
