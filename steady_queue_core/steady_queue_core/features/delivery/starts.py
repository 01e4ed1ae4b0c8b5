"""Jobs that are to start at most once, or that another worker has taken over."""

from __future__ import annotations

from typing import Any

from ...endings import Snooze
from ...errors import Preempted, TooManySnoozesError, TransactionEndedError
from ..attempt_ending import AttemptEnding
from ..meaning import EndedJob, Meaning, Report
from .options import AT_MOST_ONCE

FINAL = (TransactionEndedError,)


def may_repeat(metadata: Any) -> bool:
    """Whether a job that has started, or may have, can start again."""
    return bool(metadata.delivery != AT_MOST_ONCE)


def snoozed(error: BaseException, job: EndedJob) -> Meaning | None:
    """Return what it means if the task puts off a job that must not start again."""
    if not isinstance(error, Snooze) or may_repeat(job.metadata):
        return None
    refused = TooManySnoozesError(
        "The job is to start at most once, and would start again. Let the task end "
        "otherwise, or choose another delivery."
    )
    refused.__cause__ = error
    return Meaning(refused, AttemptEnding.FAILED)


def preempted(error: BaseException, job: EndedJob) -> Meaning | None:
    """Return what it means if the attempt has lost its claim: nothing of it will be stored."""
    if not isinstance(error, Preempted) or not job.has_lost_claim:
        return None
    report = Report("task.preempted", "Task id=%s path=%s stops: it has lost its claim")
    return Meaning(error, AttemptEnding.RELEASED, report=report)


def failed(error: BaseException, job: EndedJob) -> Meaning | None:
    """Return what any other error means for a job that must not start again."""
    return None if may_repeat(job.metadata) else Meaning(error, AttemptEnding.FAILED)
