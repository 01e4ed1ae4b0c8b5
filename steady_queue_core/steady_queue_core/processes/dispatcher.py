"""Dispatcher: moves scheduled jobs to ready when they are due."""

from __future__ import annotations

import logging

from django.db import DataError, IntegrityError

from ..configuration import Configuration
from .database import Unavailable
from .runtime import Runtime

logger = logging.getLogger("steady_queue.dispatcher")


class Dispatcher:
    """Looks for due jobs at every polling interval, and when the next one is due."""

    kind = "dispatcher"

    def __init__(self, runtime: Runtime, settings: Configuration.Dispatcher) -> None:
        self.runtime, self.settings = runtime, settings

    def run(self) -> None:
        """Dispatch until asked to stop."""
        membership = self.runtime.join(self.kind, {"batch_size": self.settings.batch_size})
        if membership is None:
            return
        while not self.runtime.stopping:
            try:
                if not membership.beat_if_due():
                    logger.warning("%s was declared dead; it ends", self.runtime.name)
                    break
                pause = min(self._dispatch(), membership.until_beat)
            except Unavailable as unavailable:
                pause = unavailable.pause
            except (DataError, IntegrityError):
                logger.exception("Due jobs could not be moved")
                pause = self.settings.polling_interval.total_seconds()
            self.runtime.sleep(pause)
        self.runtime.marks.leave_cleanly()
        self.runtime.leave(membership)

    def _dispatch(self) -> float:
        """Move what is due; return the seconds until it is worth another look."""
        batch_size = self.settings.batch_size
        moved, next_due_in = self.runtime.database.run(
            lambda connection, dialect: dialect.dispatch(connection, batch_size)
        )
        if moved:
            logger.debug("Dispatched %d jobs", moved)
        if moved >= batch_size:
            return 0.0
        interval = self.settings.polling_interval.total_seconds()
        return interval if next_due_in is None else min(interval, next_due_in)
