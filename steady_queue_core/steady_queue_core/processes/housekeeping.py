"""Clearing what is kept no longer, little by little and beside other work."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import datetime, timedelta

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Q

from ..backend import own_backends
from ..dialects import Dialect
from ..logging import about, get_logger
from ..models.retention import FinishedJobs, PastSlots

logger = get_logger("steady_queue.dispatcher")

#: Rows that one statement deletes.
BATCH = 500
#: Seconds between two passes.
INTERVAL = 60.0
#: A slot is kept at least this long: as long as schedulers may differ in what they know.
SHORTEST_SLOTS = timedelta(days=1)


class Housekeeping:
    """Goes through what may be cleared once a minute, a batch for each call."""

    def __init__(self, using: str) -> None:
        self.using = using
        self._next_pass = 0.0
        self._left: list[FinishedJobs | PastSlots] = []

    def do(self, connection: BaseDatabaseWrapper, dialect: Dialect) -> float:
        """Clear one batch if it is time; return the seconds until the next one is worth while."""
        if not self._left:
            wait = self._next_pass - time.monotonic()
            if wait > 0:
                return wait
            self._next_pass = time.monotonic() + INTERVAL
            self._left = list(expired(self.using, dialect.current_time(connection)))
        if self._left:
            cleared = self._left[0].clear(BATCH)
            if cleared:
                logger.debug(
                    "Cleared %d rows", cleared, extra=about("dispatcher.cleared", rows=cleared)
                )
            if cleared < BATCH:
                self._left.pop(0)
        return 0.0 if self._left else INTERVAL


def expired(using: str, present: datetime) -> Iterator[FinishedJobs | PastSlots]:
    """Yield what the backends that store their jobs in ``using`` keep no longer."""
    kept = {
        alias: backend.settings.clear_finished_jobs_after
        for alias, backend in own_backends().items()
        if backend.database == using
    }
    for alias, period in kept.items():
        if period is not None:
            yield FinishedJobs(using, present - period, Q(backend_name=alias))
    periods = [period for period in kept.values() if period is not None]
    if kept and len(periods) == len(kept):
        # Jobs of backends that are not in TASKS any more go with those that are kept longest.
        yield FinishedJobs(using, present - max(periods), ~Q(backend_name__in=list(kept)))
        yield PastSlots(using, present - max(*periods, SHORTEST_SLOTS))
