"""Sampler: once a minute, one of the dispatchers looks how many jobs there are."""

from __future__ import annotations

import time
from datetime import datetime

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models.functions import Mod

from ..dialects import Dialect, portable
from ..listings.counts import count_each
from ..listings.queues import count_ready
from ..listings.states import EXECUTIONS
from ..models import Sample
from .tally import HOUR, KEPT, MINUTE

#: The states that are counted beside the ready jobs.
STATES = ("scheduled", "blocked", "running", "failed")
#: The name of the row for all queues together.
ALL = ""
#: Most queues that are told apart.
MOST_QUEUES = 200
#: Most rows of the past that one round deletes.
BATCH = 500


class Sampler:
    """Stores samples. Of several dispatchers the first one of a minute does."""

    def __init__(self) -> None:
        self._next = time.monotonic()

    def do(self, connection: BaseDatabaseWrapper, dialect: Dialect) -> float:
        """Store the samples of this minute if nobody has; return the seconds until the next."""
        if time.monotonic() >= self._next:
            now = dialect.current_time(connection)
            self._next = time.monotonic() + 60 - now.timestamp() % 60
            minute = int(now.timestamp() // 60)
            taken = Sample.objects.using(connection.alias).filter(minute=minute, queue_name=ALL)
            if not taken.exists():
                # Counted outside of the transaction, which locks all of SQLite.
                self._store(connection, dialect, _samples(connection, dialect, now))
            self._forget(connection, minute)
        return max(0.0, self._next - time.monotonic())

    def _store(
        self, connection: BaseDatabaseWrapper, dialect: Dialect, samples: list[Sample]
    ) -> None:
        total, *others = samples
        with dialect.transaction(connection):
            if dialect.insert_if_absent(connection, total, ["minute", "queue_name"]):
                Sample.objects.using(connection.alias).bulk_create(others)

    def _forget(self, connection: BaseDatabaseWrapper, minute: int) -> None:
        """Keep one sample an hour of what is long past, and none of what is longer past."""
        samples = Sample.objects.using(connection.alias).order_by("minute")
        long_past = samples.filter(minute__lt=minute - KEPT[MINUTE]).annotate(
            of_hour=Mod("minute", HOUR)
        )
        # From the latest on: the hours before have been thinned out already.
        thinned = long_past.exclude(of_hour=0).order_by("-minute")
        for old in (thinned, samples.filter(minute__lt=minute - KEPT[HOUR])):
            gone = list(old.values_list("pk", flat=True)[:BATCH])
            samples.filter(pk__in=gone).delete()


def _samples(connection: BaseDatabaseWrapper, dialect: Dialect, now: datetime) -> list[Sample]:
    """Count the jobs; return the sample of all queues first."""
    using, minute = connection.alias, int(now.timestamp() // 60)
    states = [EXECUTIONS[name]._default_manager.using(using) for name in STATES]
    counts = count_each(using, [rows.order_by("pk") for rows in states])
    names = dialect.list_queues(connection)[:MOST_QUEUES]
    queues = count_ready(using, names)
    waits = [_milliseconds(each.first, now) for each in queues]
    total = Sample(
        minute=minute,
        queue_name=ALL,
        ready=sum(each.number for each in queues),
        oldest_wait_ms=max(waits, default=0),
        **{name: count.number for name, count in zip(STATES, counts, strict=True)},
    )
    others = [
        Sample(minute=minute, queue_name=name, ready=each.number, oldest_wait_ms=wait)
        for name, each, wait in zip(names, queues, waits, strict=True)
        if name != ALL
    ]
    return [total, *others]


def _milliseconds(since: datetime | None, now: datetime) -> int:
    if since is None:
        return 0
    return max(0, round((now - portable.aware(since)).total_seconds() * 1000))
