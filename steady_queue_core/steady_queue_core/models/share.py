"""Share: the weight of one key of a fair queue."""

from __future__ import annotations

from django.db import models

from ..dialects import tables
from ..printable import printable
from .fields import ExactCharField


class Share(models.Model):
    """The weight that a key has in a fair queue, in place of the queue's default weight."""

    queue_name = ExactCharField("queue", max_length=255)
    #: ``""``: the jobs without a key.
    key = ExactCharField(max_length=255, blank=True)
    weight = models.FloatField()

    class Meta:
        db_table = tables.SHARES
        constraints = (
            models.UniqueConstraint(fields=["queue_name", "key"], name="steady_queue_shares_key"),
        )

    def __str__(self) -> str:
        # The names of a row may be anything.
        return printable(f"{self.queue_name}, {self.key}: {self.weight}")
