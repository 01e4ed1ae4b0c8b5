"""Actions on batches: cancel, retry."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from operator import or_

from django.db.models import Q

from ..batches import rows
from ..batches.handle import BatchStatus
from ..dialects.database import Database
from .batch_list import STATUSES


@dataclass(frozen=True)
class BatchAction:
    """An action on a batch and all that is in it."""

    name: str
    #: Label of buttons, and past participle for messages.
    label: str
    past: str
    #: Returns whether it has changed anything.
    do: Callable[[Database, int], object]
    #: How far the batches are that it applies to.
    statuses: tuple[BatchStatus, ...]
    #: What the user has to confirm.
    warning: str
    #: Why batches may have been left alone.
    left_alone: str

    def summary(self, changed: int) -> str:
        """What has come of it, for messages."""
        return f"{self.past} {changed:,} batch{'' if changed == 1 else 'es'}"

    @property
    def applies(self) -> Q:
        """The condition for the batches that it applies to."""
        return reduce(or_, (STATUSES[status] for status in self.statuses))


CANCEL = BatchAction(
    "cancel",
    "Cancel",
    "Cancelled",
    rows.cancel,
    (BatchStatus.OPEN, BatchStatus.RUNNING),
    "Waiting jobs fail, running tasks are interrupted, and no more jobs are added.",
    "had ended",
)
RETRY = BatchAction(
    "retry",
    "Retry",
    "Retried",
    rows.retry,
    (BatchStatus.OPEN, BatchStatus.RUNNING, BatchStatus.FAILED, BatchStatus.CANCELLED),
    "Jobs that have failed or were cancelled run again, and callbacks at the end.",
    "had nothing to be run again",
)
BATCH_ACTIONS = {action.name: action for action in (CANCEL, RETRY)}
