"""Unique keys: which job has a key that at most one has at a time."""

from __future__ import annotations

from django.db import models

from ..dialects import tables
from .fields import ExactCharField, InstantField


class UniqueKey(models.Model):
    """A unique key, and the job that has it. A key without a row, or whose job is gone, is free."""

    key = ExactCharField(max_length=255, primary_key=True)
    #: ``None`` only within the transaction that takes or frees the key.
    job = models.ForeignKey(
        "steady_queue.Job",
        null=True,
        on_delete=models.CASCADE,
        db_constraint=False,
        related_name="unique_keys",
    )
    #: Until when the key stays with a job that has ended; ``None``: the job has not.
    expires_at = InstantField(null=True)
    #: Another number each time that somebody locks the row, which is done by writing it.
    ticket = models.BigIntegerField()

    class Meta:
        db_table = tables.UNIQUE_KEYS
        default_permissions = ()
        indexes = (models.Index(fields=["expires_at"], name="steady_queue_unique_expires"),)

    def __str__(self) -> str:
        return f"{self.key}: job {self.job_id}"
