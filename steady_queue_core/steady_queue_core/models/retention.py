"""Retention: until when a job is kept that has a period of its own."""

from __future__ import annotations

from django.db import models

from ..dialects import tables
from .fields import InstantField


class Retention(models.Model):
    """The end of the time for which an ended job is kept, where its task or call says so. Jobs
    without a row are kept as long as their backend says."""

    job = models.OneToOneField(
        "steady_queue.Job",
        primary_key=True,
        on_delete=models.CASCADE,
        db_constraint=False,
        related_name="retention",
    )
    #: ``None``: the job is kept for ever.
    expires_at = InstantField(null=True)

    class Meta:
        db_table = tables.RETENTIONS
        default_permissions = ()
        indexes = (models.Index(fields=["expires_at"], name="steady_queue_retention_expires"),)

    def __str__(self) -> str:
        return (
            f"#{self.pk}: until {self.expires_at}" if self.expires_at else f"#{self.pk}: for ever"
        )
