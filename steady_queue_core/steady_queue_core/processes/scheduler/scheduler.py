"""Scheduler: enqueues recurring tasks when they are due."""

from __future__ import annotations

import math
import time

from ...configuration import Configuration
from ..base.context import ProcessContext
from ..base.database import DatabaseClock
from .due_times import DueTimes
from .recurring_schedule import RecurringSchedule

#: Longest sleep in seconds; after it, the database's clock is read again.
LONGEST_SLEEP = 60.0
#: Most keys that the metadata of the process lists.
MOST_KEYS = 100


class Scheduler:
    """Enqueues each slot of each recurring task once, however many schedulers run.

    The record of a slot is inserted in the same transaction as its job; a scheduler that finds the
    record already there enqueues nothing.
    """

    kind = "scheduler"

    def __init__(self, context: ProcessContext, settings: Configuration.Scheduler) -> None:
        self.context = context
        self.schedule = RecurringSchedule(context.using, dynamic=settings.dynamic_tasks_enabled)
        self.due_times = DueTimes(context.database, self.schedule)
        self.clock = DatabaseClock()
        #: Seconds between two reads of the tasks that were added at run time.
        self.interval = settings.polling_interval.total_seconds()
        self._next_refresh = 0.0

    def run(self) -> None:
        """Schedule until asked to stop."""
        self.context.run_until_stopped(self._metadata(), self._round)

    def _round(self) -> float:
        """Enqueue the tasks that are due; return the seconds until the next one is."""
        database = self.context.database
        present = database.run(lambda connection, dialect: dialect.current_time(connection))
        self.clock.set(present)
        if time.monotonic() >= self._next_refresh:
            self.due_times.refresh(present)
            self.context.save_metadata(self._metadata())
            self._next_refresh = (
                time.monotonic() + self.interval if self.schedule.dynamic else math.inf
            )
        nearest = self.due_times.enqueue_due(present)
        if self.due_times.outdated:
            self._next_refresh = 0.0
        pause = min(LONGEST_SLEEP, self._next_refresh - time.monotonic())
        if nearest is not None:
            pause = min(pause, (nearest - self.clock.now()).total_seconds())
        return max(0.0, pause)

    def _metadata(self) -> dict[str, object]:
        keys = sorted(self.schedule.entries)
        return {"recurring_tasks": len(keys), "keys": keys[:MOST_KEYS]}
