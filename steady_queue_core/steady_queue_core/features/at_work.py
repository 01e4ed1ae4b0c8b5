"""What the features have to say while jobs are at work."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..arguments import DeserializationError, TaskArgumentError
from ..endings import usable
from ..errors import TaskCancelled
from .attempt_ending import AttemptEnding
from .delivery import crashes, starts
from .endings import chosen
from .expiry.refusal import REFUSALS as EXPIRY
from .meaning import EndedJob, Loss, Meaning, Means
from .refusal import Refusal
from .steps.sleep import FINAL as OF_STEPS
from .steps.sleep import slept

REFUSALS: tuple[Refusal, ...] = EXPIRY

#: Errors after which no attempt follows: the arguments, or the code, will be no better the next
#: time, or nobody knows what the task has done.
FINAL: tuple[type[BaseException], ...] = (
    DeserializationError,
    *chosen.FINAL,
    *crashes.FINAL,
    *starts.FINAL,
    *OF_STEPS,
)


def cancelled(error: BaseException, job: EndedJob) -> Meaning | None:
    """Return what it means if the job was cancelled: nobody wants it."""
    return Meaning(error, AttemptEnding.CANCELLED) if isinstance(error, TaskCancelled) else None


def final(error: BaseException, job: EndedJob) -> Meaning | None:
    """Return what it means if another attempt would be in vain. So it is with a result that cannot
    be stored: the work is done."""
    of_result = isinstance(error, TaskArgumentError) and error.is_of_result
    return Meaning(error, AttemptEnding.FAILED) if of_result or isinstance(error, FINAL) else None


#: The first answer counts.
MEANINGS: tuple[Means, ...] = (
    starts.snoozed,
    chosen.snoozed,
    slept,
    chosen.discarded,
    starts.preempted,
    cancelled,
    final,
    starts.failed,
    chosen.retried,
)
LOSSES: tuple[Loss, ...] = (crashes.lost,)
#: Return whether a job with this metadata that has started, or may have, can start again.
REPEATS: tuple[Callable[[Any], bool], ...] = (starts.may_repeat,)
#: What a job forgets that has failed for good: somebody may retry it, and it starts over.
FORGOTTEN: dict[str, Any] = {**chosen.FORGOTTEN, **crashes.FORGOTTEN}


def meaning_of(error: BaseException, job: EndedJob) -> Meaning:
    """Return what it means for a job that an error leaves its task."""
    error = usable(error)
    answers = (means(error, job) for means in MEANINGS)
    return next((each for each in answers if each is not None), Meaning(error))


def meaning_of_loss(error: BaseException, process: str, job: EndedJob) -> Meaning | None:
    """Return what it means for a job that an attempt was lost with a process; ``None``: it has
    failed with the error."""
    answers = (loss(error, process, job) for loss in LOSSES)
    return next((each for each in answers if each is not None), None)


def may_repeat(metadata: Any) -> bool:
    """Whether a job with this ``JobMetadata`` that has started, or may have, is given back to the
    queue if its worker ends."""
    return all(each(metadata) for each in REPEATS)
