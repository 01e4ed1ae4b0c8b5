"""JobBatch: jobs that belong together, as members. Dependencies: which members a job awaits."""

from __future__ import annotations

from django.db import models

from ..dialects import tables
from ..dialects.membership import MemberState
from .fields import ExactCharField, ExactTextField, InstantField


class JobBatch(models.Model):
    """Jobs and batches that end together: once none of them is pending, the batch has ended, and
    its callbacks are enqueued."""

    #: What it was made as; see ``dialects.membership.KINDS``.
    kind = ExactCharField(max_length=16)
    description = ExactCharField(max_length=255, default="")
    #: Alias in ``TASKS`` of the backend that enqueues its callbacks.
    backend_name = ExactCharField(max_length=255)
    #: What the caller has passed as ``metadata=``, encoded; ``None``: nothing.
    metadata = ExactTextField(null=True)
    #: The jobs to insert at its end, encoded; see ``dialects.callbacks``. ``None``: none.
    callbacks = ExactTextField(null=True)
    #: The member of another batch that this one is.
    member = models.OneToOneField(
        "steady_queue.BatchMember",
        null=True,
        on_delete=models.SET_NULL,
        db_constraint=False,
        related_name="nested",
    )
    created_at = InstantField()
    #: From when it may end: its first members are complete. ``None``: they are still added.
    started_at = InstantField(null=True)
    cancelled_at = InstantField(null=True)
    finished_at = InstantField(null=True)
    #: The numbers of its members, and of those that did not succeed; stored at its end.
    total = models.IntegerField(null=True)
    failed = models.IntegerField(null=True)

    class Meta:
        db_table = tables.BATCHES
        verbose_name = "batch"
        verbose_name_plural = "batches"
        default_permissions = ("view",)
        permissions = (
            ("cancel_batch", "Can cancel batches"),
            ("retry_batch", "Can retry batches"),
        )
        indexes = (models.Index(fields=["finished_at"], name="steady_queue_batches_finished"),)

    def __str__(self) -> str:
        return str(self.description or f"{self.kind} #{self.pk}")


class BatchMember(models.Model):
    """A job or a batch that belongs to a batch, which waits for its end."""

    batch = models.ForeignKey(
        JobBatch,
        on_delete=models.CASCADE,
        db_constraint=False,
        db_index=False,
        related_name="members",
    )
    #: ``None`` for a batch, whose ``member`` this row is.
    job = models.OneToOneField(
        "steady_queue.Job",
        null=True,
        on_delete=models.SET_NULL,
        db_constraint=False,
        related_name="membership",
    )
    #: The name of the node in a workflow; empty for most.
    name = ExactCharField(max_length=255, default="")
    state = models.SmallIntegerField(default=int(MemberState.PENDING))

    class Meta:
        db_table = tables.MEMBERS
        default_permissions = ()
        indexes = (
            # The pending ones of a batch, from the last one on.
            models.Index(fields=["batch", "state", "id"], name="steady_queue_members_state"),
        )

    def __str__(self) -> str:
        return f"member {self.pk} of batch {self.batch_id}"


class Dependency(models.Model):
    """A job that starts only after a member of its batch has ended."""

    job = models.ForeignKey(
        "steady_queue.Job",
        on_delete=models.CASCADE,
        db_constraint=False,
        db_index=False,
        related_name="dependencies",
    )
    parent = models.ForeignKey(
        BatchMember, on_delete=models.CASCADE, db_constraint=False, related_name="dependents"
    )
    #: How the parent has to end, and whether it did; see ``dialects.membership``.
    run_when = models.SmallIntegerField()
    state = models.SmallIntegerField()
    #: Under which number the arguments of the job refer to the result of the parent.
    number = models.IntegerField()

    class Meta:
        db_table = tables.DEPENDENCIES
        default_permissions = ()
        indexes = (
            models.Index(fields=["job", "state", "id"], name="steady_queue_dependency_open"),
        )

    def __str__(self) -> str:
        return f"job {self.job_id} after member {self.parent_id}"
