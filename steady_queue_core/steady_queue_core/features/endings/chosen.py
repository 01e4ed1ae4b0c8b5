"""What the endings mean that a task chooses: the job comes back, is discarded, or fails."""

from __future__ import annotations

from ...endings import Discard, Fail, Retry, Snooze
from ...errors import TooManySnoozesError
from ...printable import LONGEST_MESSAGE, bounded
from ..attempt_ending import AttemptEnding
from ..meaning import EndedJob, Meaning, Report

FINAL = (Fail, TooManySnoozesError)
FORGOTTEN = {"snoozes": 0}


def snoozed(error: BaseException, job: EndedJob) -> Meaning | None:
    """Return what it means if the task puts its job off: it does, unless it has done so too
    often."""
    if not isinstance(error, Snooze):
        return None
    own = job.metadata.max_snoozes
    most = job.settings.max_snoozes if own is None else own
    snoozes = job.metadata.snoozes + 1
    if snoozes > most:
        return Meaning(_too_many(most, error), AttemptEnding.FAILED)
    text, values = "Task id=%s path=%s snoozes for %.1f s (%d of %d)", (error.delay, snoozes, most)
    return Meaning(
        error,
        AttemptEnding.SNOOZED,
        error.delay,
        {"snoozes": snoozes},
        Report("task.snoozed", text, values),
    )


def discarded(error: BaseException, job: EndedJob) -> Meaning | None:
    """Return what it means if the task discards its job."""
    if not isinstance(error, Discard):
        return None
    reason = bounded(error.reason, LONGEST_MESSAGE)
    report = Report("task.discarded", "Task id=%s path=%s has discarded its job: %s", (reason,))
    changes = {"discarded": reason}
    return Meaning(error, AttemptEnding.DISCARDED, changes=changes, report=report)


def retried(error: BaseException, job: EndedJob) -> Meaning | None:
    """Return what it means if the task says when it is to run again."""
    if not isinstance(error, Retry) or error.delay is None:
        return None
    return Meaning(error, AttemptEnding.RETRIED, error.delay)


def _too_many(most: int, snooze: Snooze) -> TooManySnoozesError:
    times = "once" if most == 1 else f"{most} times"
    error = TooManySnoozesError(
        f"The job has snoozed {times}, as often as it may, and would do so again. Raise "
        "max_snoozes, or let the task end otherwise."
    )
    error.__cause__ = snooze
    return error
