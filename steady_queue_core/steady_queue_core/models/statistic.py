"""Statistic and Sample: what has become of jobs, and how long the queues were, by time."""

from __future__ import annotations

from django.db import models

from ..dialects import tables
from ..printable import printable
from .fields import ExactCharField


class Statistic(models.Model):
    """What has become of the jobs of one queue and task within a span of time.

    A row is written by one process, so those of several have to be added up. Durations are
    milliseconds.
    """

    #: Minutes: 1 or 60; 0: all time; -60: an hour whose minutes have rows, too.
    span = models.SmallIntegerField()
    #: Minutes since 1970 at its beginning, by the database's clock; 0 for all time.
    minute = models.IntegerField()
    #: The minute in which the row was last stored.
    stored_minute = models.IntegerField()
    queue_name = ExactCharField("queue", max_length=255, blank=True)
    #: ``""``: other tasks, since there were too many to be told apart.
    task_path = ExactCharField("task", max_length=255, blank=True)
    #: A random number of the process; 0: the sum of several.
    writer = models.BigIntegerField()
    #: Jobs whose first attempt has ended.
    enqueued = models.BigIntegerField(default=0)
    finished = models.BigIntegerField(default=0)
    failed = models.BigIntegerField(default=0)
    retried = models.BigIntegerField(default=0)
    released = models.BigIntegerField(default=0)
    lost = models.BigIntegerField(default=0)
    wait_ms = models.BigIntegerField(default=0)
    run_ms = models.BigIntegerField(default=0)
    wait_max = models.BigIntegerField(default=0)
    run_max = models.BigIntegerField(default=0)
    #: See ``statistics.histogram``.
    wait_histogram = models.CharField(max_length=400, default="", blank=True)
    run_histogram = models.CharField(max_length=400, default="", blank=True)

    class Meta:
        db_table = tables.STATISTICS
        default_permissions = ()
        constraints = (
            models.UniqueConstraint(
                fields=["span", "minute", "queue_name", "task_path", "writer"],
                name="steady_queue_statistics_key",
            ),
        )

    def __str__(self) -> str:
        return printable(f"{self.queue_name}, {self.task_path}, minute {self.minute}")


class Sample(models.Model):
    """How many jobs there were in a minute. Numbers are exact up to a limit."""

    minute = models.IntegerField()
    #: ``""``: all queues together.
    queue_name = ExactCharField("queue", max_length=255, blank=True)
    ready = models.BigIntegerField()
    oldest_wait_ms = models.BigIntegerField()
    #: Counted for all queues together only.
    scheduled = models.BigIntegerField(null=True)
    blocked = models.BigIntegerField(null=True)
    running = models.BigIntegerField(null=True)
    failed = models.BigIntegerField(null=True)

    class Meta:
        db_table = tables.SAMPLES
        default_permissions = ()
        constraints = (
            models.UniqueConstraint(
                fields=["minute", "queue_name"], name="steady_queue_samples_key"
            ),
        )

    def __str__(self) -> str:
        return printable(f"{self.queue_name or 'all queues'}, minute {self.minute}")
