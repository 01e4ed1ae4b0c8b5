"""Pause: marks a queue from which workers take no jobs."""

from __future__ import annotations

from ..dialects import tables
from .base import Record
from .fields import ExactCharField


class Pause(Record):
    """A paused queue. No worker takes jobs from it while the row exists."""

    queue_name = ExactCharField(max_length=255, primary_key=True)

    class Meta:
        db_table = tables.PAUSES
        # The admin lists queues under this model.
        verbose_name = "queue"
        default_permissions = ()
        permissions = (
            ("view_queue", "Can view queues"),
            ("pause_queue", "Can pause and resume queues"),
        )

    def __str__(self) -> str:
        return str(self.queue_name)
