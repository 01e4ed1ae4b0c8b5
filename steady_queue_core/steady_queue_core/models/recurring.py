"""Recurring tasks and the record of their runs."""

from __future__ import annotations

from django.db import models

from ..dialects import tables
from .base import Record
from .fields import ExactCharField, ExactTextField, InstantField


class RecurringTask(Record):
    """A task with a schedule. Static ones mirror the code, dynamic ones live here alone."""

    key = ExactCharField(max_length=255, primary_key=True)
    task_path = ExactCharField(max_length=255)
    schedule = models.CharField(max_length=255)
    timezone = models.CharField(max_length=64)
    arguments = ExactTextField()
    backend_name = ExactCharField(max_length=255)
    queue_name = ExactCharField(max_length=255)
    priority = models.SmallIntegerField(default=0)
    description = ExactTextField(default="")
    static = models.BooleanField(default=True)
    updated_at = InstantField()

    class Meta:
        db_table = tables.RECURRING_TASKS

    def __str__(self) -> str:
        return f"{self.key}: {self.schedule}"


class RecurringExecution(Record):
    """One slot of a schedule that was enqueued: the reason why it is enqueued only once."""

    task_key = ExactCharField(max_length=255)
    run_at = InstantField()
    job_id = models.BigIntegerField(null=True)

    class Meta:
        db_table = tables.RECURRING_EXECUTIONS
        constraints = (
            models.UniqueConstraint(
                fields=["task_key", "run_at"], name="steady_queue_recurring_slot"
            ),
        )

    def __str__(self) -> str:
        return f"{self.task_key} at {self.run_at:%Y-%m-%d %H:%M:%S}"
