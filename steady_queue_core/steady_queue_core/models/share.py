"""Shares."""

from __future__ import annotations

from django.db import models

from ..dialects import tables
from .fields import ExactCharField


class Share(models.Model):
    """The weight of a key of a fair queue. All other keys have the default weight of the queue."""

    queue_name = ExactCharField(max_length=255)
    key = ExactCharField(max_length=255)
    weight = models.FloatField()

    class Meta:
        db_table = tables.SHARES
        default_permissions = ()
        constraints = (
            models.UniqueConstraint(fields=["queue_name", "key"], name="steady_queue_shares_key"),
        )
