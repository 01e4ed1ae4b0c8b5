"""The statistics of a process: counted in its memory, and stored when it is time."""

from __future__ import annotations

from django.db import DataError, IntegrityError

from ...internal_errors import log_internal_error
from ...logging import about, get_logger
from ...statistics.collector import Collector
from ...statistics.storage import store
from .database import QueueDatabase, Unavailable

logger = get_logger("steady_queue.process")


def store_statistics(
    collector: Collector | None, database: QueueDatabase, *, at_once: bool = False
) -> None:
    """Store what was counted, if it is time or ``at_once``. An outage only puts it off."""
    if collector is None or not collector.has_changed:
        return
    if collector.until_due > 0 and not at_once:
        return
    rows = collector.rows()
    collector.postpone()
    try:
        database.run(lambda connection, dialect: store(connection, dialect, rows))
    except Unavailable:
        return
    except (DataError, IntegrityError):
        log_internal_error(
            logger,
            "Statistics were refused; they are not kept",
            extra=about("process.statistics_refused", rows=len(rows)),
        )
    collector.note_stored()
