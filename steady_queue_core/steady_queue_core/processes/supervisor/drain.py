"""Drain mode: stop when nothing is left to run."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from django.db.backends.base.base import BaseDatabaseWrapper

from ...configuration import ResolvedOptions
from ...dialects import Dialect, QueueSelector, portable
from ...models import BlockedExecution, ClaimedExecution, ScheduledExecution
from ..base.database import QueueDatabase


@dataclass(frozen=True)
class Drain:
    """The queue is drained when no job is running or blocked, none in the queues of our workers is
    ready, and none is due within ``horizon``."""

    horizon: timedelta = timedelta(seconds=60)

    def is_done(self, database: QueueDatabase, options: ResolvedOptions) -> bool:
        """Whether the queue is drained. Raises ``Unavailable``."""
        selectors = [QueueSelector.of(worker.queues) for worker in options.workers]

        def operation(connection: BaseDatabaseWrapper, dialect: Dialect) -> bool:
            # In the order in which jobs move, so that none slips through between two queries.
            return not (
                self._any_scheduled(connection, dialect)
                or BlockedExecution.objects.using(connection.alias).exists()
                or _any_ready(connection, dialect, selectors)
                or ClaimedExecution.objects.using(connection.alias).exists()
                or _any_ready(connection, dialect, selectors)
                or self._any_scheduled(connection, dialect)
            )

        return database.run(operation)

    def _any_scheduled(self, connection: BaseDatabaseWrapper, dialect: Dialect) -> bool:
        limit = portable.storable(dialect.current_time(connection) + self.horizon)
        scheduled = ScheduledExecution.objects.using(connection.alias)
        return scheduled.filter(due_at__lte=limit).exists()


def _any_ready(
    connection: BaseDatabaseWrapper, dialect: Dialect, selectors: list[QueueSelector]
) -> bool:
    paused = portable.paused_queues(connection)
    existing = set(dialect.list_queues(connection))
    return any(
        existing.intersection(
            selector.matching(lambda prefix: dialect.list_queues(connection, prefix), paused)
        )
        for selector in selectors
    )
