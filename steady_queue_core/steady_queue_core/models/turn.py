"""Turns: how far the keys of fair queues have come."""

from __future__ import annotations

from django.db import models

from ..dialects import tables
from .fields import ExactCharField


class Turn(models.Model):
    """The next turn of a key, in one rank of a fair queue."""

    queue_name = ExactCharField(max_length=255)
    rank = models.SmallIntegerField()
    key = ExactCharField(max_length=255)
    turn = models.FloatField()

    class Meta:
        db_table = tables.TURNS
        default_permissions = ()
        constraints = (
            models.UniqueConstraint(
                fields=["queue_name", "rank", "key"], name="steady_queue_turns_key"
            ),
        )

    def __str__(self) -> str:
        return f"{self.queue_name}, {self.key}: {self.turn}"
