"""Semaphore: the permits of a concurrency key."""

from __future__ import annotations

from django.db import models

from ..dialects import tables
from .fields import ExactCharField, InstantField


class Semaphore(models.Model):
    """How many permits of a concurrency key are left. No row: all of them."""

    key = ExactCharField(max_length=255, primary_key=True)
    value = models.IntegerField()
    limit = models.IntegerField()
    expires_at = InstantField()

    class Meta:
        db_table = tables.SEMAPHORES
        indexes = (models.Index(fields=["expires_at"], name="steady_queue_semaphore_expiry"),)

    def __str__(self) -> str:
        return f"{self.key}: {self.value} of {self.limit}"
