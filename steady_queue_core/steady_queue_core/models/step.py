"""Step: what a job has done already, and need not do again."""

from __future__ import annotations

from django.db import models

from ..dialects import tables
from .fields import ExactCharField, ExactTextField, InstantField


class Step(models.Model):
    """A step of a task that has been taken, or a sleep that has begun; it goes with its job."""

    job = models.ForeignKey(
        "steady_queue.Job",
        on_delete=models.CASCADE,
        db_constraint=False,
        db_index=False,
        related_name="steps",
    )
    name = ExactCharField(max_length=255)
    #: How many steps and sleeps come before it.
    position = models.IntegerField()
    #: The token of the claim under which it was stored.
    token = models.BigIntegerField()
    is_sleep = models.BooleanField()
    #: The encoded value of the step, or when the sleep is over.
    data = ExactTextField()
    stored_at = InstantField()

    class Meta:
        db_table = tables.STEPS
        default_permissions = ()
        constraints = (
            models.UniqueConstraint(fields=["job", "name"], name="steady_queue_steps_name"),
        )

    def __str__(self) -> str:
        return f"#{self.job_id}: {self.name}"
