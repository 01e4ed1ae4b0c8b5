"""Semaphores and their permits: how many jobs of a concurrency key may run."""

from __future__ import annotations

from collections.abc import Collection

from django.db import models

from ..dialects import tables
from ..dialects.database import Database
from .fields import ExactCharField


class Semaphore(models.Model):
    """The permits of a concurrency key. A key without a row has all of its permits."""

    key = ExactCharField(max_length=255, primary_key=True)
    #: The limit less the permits that are held: below 0 while more are held than it allows.
    value = models.IntegerField()
    #: Number of permits, as set by the job that was enqueued last.
    limit = models.IntegerField()

    class Meta:
        db_table = tables.SEMAPHORES
        default_permissions = ("view",)

    def __str__(self) -> str:
        return f"{self.key}: {self.value} of {self.limit}"


class Permit(models.Model):
    """The permit of a ready or running job. Its primary key is the job's id."""

    job = models.OneToOneField(
        "steady_queue.Job",
        primary_key=True,
        on_delete=models.CASCADE,
        db_constraint=False,
        related_name="permit",
    )
    key = ExactCharField(max_length=255)

    class Meta:
        db_table = tables.PERMITS
        default_permissions = ()
        indexes = (models.Index(fields=["key"], name="steady_queue_permits_key"),)

    def __str__(self) -> str:
        return f"{self.key}: job {self.job_id}"


def lock_semaphores(database: Database, keys: Collection[str]) -> None:
    """Wait for transactions that take or end permits of ``keys``, and lock their semaphores.

    Lock order: before the rows of their jobs, but after scheduled rows.
    """
    if keys:
        rows = Semaphore.objects.using(database.alias).filter(pk__in=keys).order_by("pk")
        list(database.lock_rows(rows, wait=True))
