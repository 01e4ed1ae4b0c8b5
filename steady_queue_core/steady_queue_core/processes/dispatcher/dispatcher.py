"""Dispatcher: moves scheduled jobs to ready when they are due."""

from __future__ import annotations

import time

from django.db.backends.base.base import BaseDatabaseWrapper

from ...configuration import Configuration
from ...dialects import Dialect, Dispatched
from ...logging import about, get_logger
from ...models.operations.semaphore_maintenance import SemaphoreMaintenance
from ..base.context import ProcessContext
from .retention import Cleaner

logger = get_logger("steady_queue.dispatcher")

#: Seconds until the next look while somebody holds all that is due; each the double.
FIRST_PAUSE = 0.01


class Dispatcher:
    """Looks for due jobs at every polling interval, and when the next one is due; in between it
    clears what has finished long ago, and keeps the concurrency limits in order."""

    kind = "dispatcher"

    def __init__(self, context: ProcessContext, settings: Configuration.Dispatcher) -> None:
        self.context, self.settings = context, settings
        self.housekeeping = Cleaner(context.using)
        self._next_upkeep = time.monotonic()
        self._pause = 0.0

    def run(self) -> None:
        """Dispatch until asked to stop."""
        self.context.run_until_stopped({"batch_size": self.settings.batch_size}, self._round)

    def _round(self) -> float:
        waits = [self._dispatch(), self.context.database.run(self.housekeeping.do)]
        if self.settings.concurrency_maintenance:
            waits.append(self._keep_up())
        return min(waits)

    def _keep_up(self) -> float:
        """Keep the concurrency limits in order if it is time; return the seconds until it is."""
        if time.monotonic() >= self._next_upkeep:
            admitted = self.context.database.run(
                lambda *_: SemaphoreMaintenance(self.context.using).do()
            )
            if admitted:
                logger.info(
                    "Let in %d jobs that had waited for others under their limit",
                    admitted,
                    extra=about("dispatcher.admitted", jobs=admitted),
                )
            interval = self.settings.concurrency_maintenance_interval.total_seconds()
            self._next_upkeep = time.monotonic() + interval
        return max(0.0, self._next_upkeep - time.monotonic())

    def _dispatch(self) -> float:
        """Move what is due; return the seconds until it is worth another look."""
        batch_size = self.settings.batch_size

        def dispatch(connection: BaseDatabaseWrapper, dialect: Dialect) -> Dispatched:
            dispatched = dialect.dispatch(connection, batch_size)
            if dispatched.moved:
                dialect.ring(connection, [])
            return dispatched

        moved, next_due_in = self.context.database.run(dispatch)
        if moved:
            logger.debug(
                "Dispatched %d jobs", moved, extra=about("dispatcher.dispatched", jobs=moved)
            )
        interval = self.settings.polling_interval.total_seconds()
        if not moved and next_due_in is not None and next_due_in <= 0.0:
            self._pause = min(interval, self._pause * 2 or FIRST_PAUSE)
            return self._pause
        self._pause = 0.0
        if moved >= batch_size:
            return 0.0
        return interval if next_due_in is None else min(interval, next_due_in)
