"""What else happens in the transaction of an outcome, for the few jobs that ask for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from ..features.retention.period import Period
from ..progress import Progress
from .held_rows import StepRecord
from .records import EnqueuedJob, NewJob


@dataclass(slots=True)
class FollowUp:
    """A job that is stored together with the outcome of another one."""

    job: NewJob
    #: The call that it was made from, for those who tell of it.
    call: Any = None
    #: Set once it is inserted; it counts only if the outcome was stored.
    stored: EnqueuedJob | None = None


class Sequel(NamedTuple):
    """What an outcome entails, in its transaction. Nothing of it happens if the claim is lost."""

    follow_ups: tuple[FollowUp, ...] = ()
    #: The job's new metadata; ``None``: they stay as they are.
    metadata: str | None = None
    #: How long the job is kept, which ends with the outcome; ``None``: as its backend says.
    retention: Period | None = None
    #: The last progress that the task has told, unless that is stored already.
    progress: Progress | None = None
    #: Whether the job needs no checkpoint any more: the data go, and with the job the whole row.
    ends_checkpoint: bool = False
    #: The sleeps that the attempt has begun: a job that runs again goes on with them.
    sleeps: tuple[StepRecord, ...] = ()
    #: Whether steps go with the job, if that is deleted.
    ends_steps: bool = False
    #: Whether it follows from the row of the job alone, so that another process can repeat it; the
    #: last progress is not worth another attempt.
    is_implied: bool = False
