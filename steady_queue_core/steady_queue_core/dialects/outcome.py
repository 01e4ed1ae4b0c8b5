"""How claims end, and where their jobs go: the rules of a settlement that all dialects share."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from enum import Enum
from typing import NamedTuple

from ..errors import TaskCancelled
from ..features.batches.link import Link
from ..features.unique.key import JobKey
from .membership import MemberState
from .sequel import Sequel

#: The exception of jobs that were cancelled.
CANCELLED = f"{TaskCancelled.__module__}.{TaskCancelled.__qualname__}"


class Ending(Enum):
    """How a claim ends."""

    FINISHED = "finished"
    FAILED = "failed"
    #: The attempt failed, and the job runs again after ``Outcome.delay`` seconds.
    RETRIED = "retried"
    #: Given back before it started: the job is ready again and no attempt is counted.
    RELEASED = "released"


class Destination(Enum):
    """The execution row that replaces a claim."""

    #: No row: the job has finished.
    NONE = "none"
    FAILED = "failed"
    SCHEDULED = "scheduled"
    READY = "ready"
    #: Ready if the job has a permit at that moment; otherwise blocked until it is admitted.
    READY_OR_BLOCKED = "ready_or_blocked"


class Outcome(NamedTuple):
    """The end of one claim. Nothing changes unless ``job_id`` and ``token`` match the claim."""

    ending: Ending
    job_id: int
    token: int
    queue_name: str
    rank: int
    #: Attempts that have ended, including this one.
    attempts: int = 0
    worker_ids: str | None = None
    errors: str | None = None
    started_at: datetime | None = None
    last_attempted_at: datetime | None = None
    #: The encoded return value of a finished job.
    return_value: str | None = None
    #: Whether the row of a finished job is kept.
    preserve: bool = True
    #: Seconds until a retried job is due.
    delay: float = 0.0
    #: Class path and message of a failed job's last error.
    exception_class: str = ""
    message: str = ""
    #: The concurrency key of the claim; ``None`` for a job without a limit.
    concurrency_key: str | None = None
    #: The job and the token of another claim of the same key, which takes over the permit.
    heir: tuple[int, int] | None = None
    #: The unique key of the job. The facade frees it with the end of the job, not the dialect.
    unique_key: JobKey | None = None
    #: What the job has to do with a batch. The facade ends its membership, not the dialect.
    link: Link | None = None
    #: What else happens in the same transaction. The facade sees to it, not the dialect.
    sequel: Sequel | None = None
    #: What a failed job has in common with others that have failed for the same cause: 16
    #: hexadecimal digits. A dialect may leave it out; the failure then belongs to no group.
    fingerprint: str | None = None

    @property
    def is_limited(self) -> bool:
        """Whether the job has a concurrency limit. The empty string is a key like any other."""
        return self.concurrency_key is not None

    @property
    def ends_permit(self) -> bool:
        """Whether the job gives up its permit: to its heir, or back. One that is released keeps
        it."""
        return self.is_limited and self.ending is not Ending.RELEASED

    @property
    def deletes_job(self) -> bool:
        """Whether the row of the job is deleted."""
        return self.ending is Ending.FINISHED and not self.preserve

    @property
    def updates_job(self) -> bool:
        """Whether the attempt is written to the row of the job."""
        return self.ending is not Ending.RELEASED and not self.deletes_job

    @property
    def completes_job(self) -> bool:
        """Whether the job runs no more: its row gets the time of its completion."""
        return self.ending in (Ending.FINISHED, Ending.FAILED)

    @property
    def has_succeeded(self) -> bool:
        """Whether the job has finished, and has not failed."""
        return self.ending is Ending.FINISHED

    @property
    def has_sequel(self) -> bool:
        """Whether something else happens in the same transaction."""
        if self.sequel is not None:
            return True
        if self.unique_key is None and self.link is None:
            return False  # As for most.
        return self.completes_job and (self.unique_key is not None or self.ends_member)

    @property
    def only_ends_member(self) -> bool:
        """Whether nothing else happens than, at most, that a member ends for which only its batch
        waits."""
        if self.sequel is not None or (self.unique_key is not None and self.completes_job):
            return False
        return self.link is None or not self.ends_member or not self.link.has_dependents

    @property
    def ends_member(self) -> bool:
        """Whether the job is a member of a batch that does not wait for it any more."""
        return self.link is not None and not self.link.is_callback and self.completes_job

    @property
    def member_state(self) -> MemberState:
        """What becomes of the member whose job has ended."""
        if self.has_succeeded:
            return MemberState.SUCCEEDED
        is_cancelled = self.exception_class == CANCELLED
        return MemberState.CANCELLED if is_cancelled else MemberState.FAILED

    @property
    def destination(self) -> Destination:
        """Where the job goes when the claim ends."""
        if self.ending is Ending.FINISHED:
            return Destination.NONE
        if self.ending is Ending.FAILED:
            return Destination.FAILED
        if self.ending is Ending.RETRIED and self.delay > 0:
            return Destination.SCHEDULED
        return Destination.READY_OR_BLOCKED if self.is_limited else Destination.READY


def limited_keys(outcomes: Iterable[Outcome]) -> set[str]:
    """Return the concurrency keys of the jobs of a batch."""
    return {outcome.concurrency_key for outcome in outcomes if outcome.concurrency_key is not None}
