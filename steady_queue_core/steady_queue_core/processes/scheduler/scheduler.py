"""Scheduler: enqueues recurring tasks when they are due, each slot once."""

from __future__ import annotations

import math
import time

from ...configuration import Configuration
from ..base.context import ProcessContext
from ..base.database import DatabaseClock
from .task_list import RecurringSchedule
from .timetable import Timetable

#: Longest sleep, in seconds: the database's clock is looked at again by then.
LONGEST_SLEEP = 60.0
#: How many keys the row of the process names.
MOST_KEYS = 100


class Scheduler:
    """Any number of schedulers may run: the record of a slot is inserted in the transaction of
    its job, and whoever finds it there already enqueues nothing."""

    kind = "scheduler"

    def __init__(self, context: ProcessContext, settings: Configuration.Scheduler) -> None:
        self.context = context
        self.schedule = RecurringSchedule(context.using, dynamic=settings.dynamic_tasks_enabled)
        self.timetable = Timetable(context.database, self.schedule)
        self.clock = DatabaseClock()
        #: Seconds between two looks at what was added at run time.
        self.interval = settings.polling_interval.total_seconds()
        self._next_look = 0.0

    def run(self) -> None:
        """Schedule until asked to stop."""
        self.context.run_until_stopped(self._metadata(), self._round)

    def _round(self) -> float:
        """Enqueue what is due; return the seconds until something will be."""
        database = self.context.database
        present = database.run(lambda connection, dialect: dialect.current_time(connection))
        self.clock.set(present)
        if time.monotonic() >= self._next_look:
            self.timetable.look(present)
            self.context.save_metadata(self._metadata())
            self._next_look = (
                time.monotonic() + self.interval if self.schedule.dynamic else math.inf
            )
        nearest = self.timetable.enqueue_due(present)
        if self.timetable.outdated:
            self._next_look = 0.0
        pause = min(LONGEST_SLEEP, self._next_look - time.monotonic())
        if nearest is not None:
            pause = min(pause, (nearest - self.clock.now()).total_seconds())
        return max(0.0, pause)

    def _metadata(self) -> dict[str, object]:
        keys = sorted(self.schedule.entries)
        return {"recurring_tasks": len(keys), "keys": keys[:MOST_KEYS]}
