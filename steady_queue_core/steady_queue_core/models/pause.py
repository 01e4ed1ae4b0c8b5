"""Pause: a queue that is not polled for the time being."""

from __future__ import annotations

from ..dialects import tables
from .base import Record
from .fields import ExactCharField


class Pause(Record):
    """While the row exists, no worker takes jobs from the queue."""

    queue_name = ExactCharField(max_length=255, primary_key=True)

    class Meta:
        db_table = tables.PAUSES
        # The admin shows queues in its place.
        verbose_name = "queue"
        default_permissions = ()
        permissions = (
            ("view_queue", "Can view queues"),
            ("pause_queue", "Can pause and resume queues"),
        )

    def __str__(self) -> str:
        return str(self.queue_name)
