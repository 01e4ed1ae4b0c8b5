"""Semaphore and permits: who may run under a concurrency key."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper

from ..dialects import Dialect, tables
from .fields import ExactCharField


class Semaphore(models.Model):
    """The permits of a concurrency key. No row: all of them are there."""

    key = ExactCharField(max_length=255, primary_key=True)
    #: Permits left.
    value = models.IntegerField()
    #: Permits in all, as the job that was enqueued last had it.
    limit = models.IntegerField()

    class Meta:
        db_table = tables.SEMAPHORES
        default_permissions = ("view",)

    def __str__(self) -> str:
        return f"{self.key}: {self.value} of {self.limit}"


class Permit(models.Model):
    """A job that is ready or runs under a concurrency key. It has the job's id as its own."""

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


def concurrency_keys(jobs: models.QuerySet[Any]) -> list[str]:
    """Return the distinct concurrency keys of ``jobs``, sorted."""
    limited = jobs.exclude(concurrency_key=None)
    return sorted(set(limited.values_list("concurrency_key", flat=True)))


def lock_semaphores(
    connection: BaseDatabaseWrapper, dialect: Dialect, keys: Collection[str]
) -> None:
    """Wait for whoever takes or ends permits of ``keys``; before the rows of their jobs,
    but for those that are scheduled."""
    if keys:
        rows = Semaphore.objects.using(connection.alias).filter(pk__in=keys).order_by("pk")
        list(dialect.lock_rows(connection, rows, wait=True))
