"""Executions: rows that say which state a job is in."""

from __future__ import annotations

from functools import cached_property

from django.db import models

from ..dialects import tables
from ..dialects.portable.models import model
from .base import Record
from .fields import ExactCharField, ExactTextField, InstantField, TurnField


class Execution(Record):
    """The row of a job in one state. Its primary key is the job's id, without a foreign key
    constraint: on MySQL that alone costs 70 % of the throughput."""

    job = models.OneToOneField(
        "steady_queue.Job",
        primary_key=True,
        on_delete=models.CASCADE,
        db_constraint=False,
        related_name="%(class)s",
    )

    class Meta:
        abstract = True


class QueuedExecution(Execution):
    """An execution that waits in a queue, or has been taken from one."""

    queue_name = ExactCharField(max_length=255)
    rank = models.SmallIntegerField(default=0)
    #: Token of the last claim, 0 before the first; the next claim has a greater one.
    token = models.BigIntegerField(default=0)

    class Meta:
        abstract = True


class ReadyExecution(QueuedExecution):
    """The job may run now."""

    #: Its place among the jobs of its rank: the id of the job, unless its queue is fair.
    turn = TurnField(db_default=0.0)

    class Meta:
        db_table = tables.READY
        default_permissions = ()
        indexes = (
            models.Index(fields=["rank", "turn"], name="steady_queue_ready_poll"),
            models.Index(fields=["queue_name", "rank", "turn"], name="steady_queue_ready_queue"),
        )


class ScheduledExecution(QueuedExecution):
    """The job becomes ready when it is due."""

    due_at = InstantField()
    concurrency_key = ExactCharField(max_length=255, null=True)

    class Meta:
        db_table = tables.SCHEDULED
        default_permissions = ()
        indexes = (
            models.Index(fields=["due_at", "rank", "job"], name="steady_queue_scheduled_due"),
        )


class BlockedExecution(QueuedExecution):
    """The job waits for a permit of its concurrency key."""

    concurrency_key = ExactCharField(max_length=255)

    class Meta:
        db_table = tables.BLOCKED
        default_permissions = ()
        indexes = (
            models.Index(
                fields=["concurrency_key", "rank", "job"], name="steady_queue_blocked_release"
            ),
        )


class WaitingExecution(QueuedExecution):
    """The job waits for the end of other members of its batch."""

    #: How many members it waits for, or has waited for.
    width = models.IntegerField()
    #: When the job is due, if it is to be later than the end of these: a time, or how long after.
    due_at = InstantField(null=True)
    delay = models.DurationField(null=True)
    concurrency_key = ExactCharField(max_length=255, null=True)

    class Meta:
        db_table = tables.WAITING
        default_permissions = ()


class ClaimedExecution(QueuedExecution):
    """The job has been claimed by a process. ``created_at`` is the time of the claim."""

    process_id = models.BigIntegerField()

    class Meta:
        db_table = tables.CLAIMED
        default_permissions = ()
        indexes = (models.Index(fields=["process_id"], name="steady_queue_claimed_process"),)

    @cached_property
    def worker_name(self) -> str:
        """The name of the process that has claimed the job; queries the database."""
        processes = model("Process").objects.using(self._state.db)
        holder = processes.filter(pk=self.process_id).first()
        return holder.name if holder else f"process-{self.process_id}"


class FailedExecution(Execution):
    """The job has failed for good and stays so until it is retried or discarded."""

    exception_class = ExactCharField(max_length=255)
    message = ExactTextField()
    #: What it has in common with others of the same cause; ``None`` if its writer knew none.
    fingerprint = ExactCharField(max_length=16, null=True)

    class Meta:
        db_table = tables.FAILED
        default_permissions = ()
        indexes = (
            models.Index(fields=["created_at"], name="steady_queue_failed_created"),
            models.Index(fields=["fingerprint", "created_at"], name="steady_queue_failed_group"),
        )


#: The states of jobs that wait. In the order in which jobs pass through them: one that moves on
#: while its row is awaited is found in the next.
WAITING: tuple[type[Execution], ...] = (
    WaitingExecution,
    ScheduledExecution,
    BlockedExecution,
    ReadyExecution,
)
