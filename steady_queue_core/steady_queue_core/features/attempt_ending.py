"""How an attempt ends, as its middleware sees it."""

from __future__ import annotations

from enum import StrEnum


class AttemptEnding(StrEnum):
    """What becomes of a job after an attempt, by what the attempt has returned or raised."""

    #: It returned.
    FINISHED = "finished"
    #: It failed, and the job does not run again.
    FAILED = "failed"
    #: It failed, and the job runs again.
    RETRIED = "retried"
    #: The task puts its job off, with ``Snooze`` or ``context.sleep()``.
    SNOOZED = "snoozed"
    #: The task has discarded its job.
    DISCARDED = "discarded"
    #: Somebody has cancelled the job.
    CANCELLED = "cancelled"
    #: Nothing is stored of the attempt: its worker stops, or has lost the job.
    RELEASED = "released"

    @property
    def is_failure(self) -> bool:
        """Whether something went wrong."""
        return self in (AttemptEnding.FAILED, AttemptEnding.RETRIED)
