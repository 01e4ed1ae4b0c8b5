"""The statistics of a process: counted in its memory, and stored when it is time."""

from __future__ import annotations

from django.db import DataError, IntegrityError

from ...internal_errors import log_internal_error
from ...logging import about, get_logger
from ...statistics.collector import Collector
from ...statistics.storage import store
from .database import QueueDatabase, Unavailable, first_line

logger = get_logger("steady_queue.process")

#: Seconds until the next try where a table or a right is missing.
REFUSED_PAUSE = 300.0


def store_statistics(
    collector: Collector | None, database: QueueDatabase, *, at_once: bool = False
) -> None:
    """Store what was counted, if it is time or ``at_once``. An outage only puts it off, and so does
    a table or a right that is missing: the process goes on without."""
    if collector is None or not collector.has_changed:
        return
    if collector.until_due > 0 and not at_once:
        return
    rows = collector.rows()
    collector.postpone()
    try:
        database.run(lambda connection, dialect: store(connection, dialect, rows), optional=True)
    except Unavailable as unavailable:
        if unavailable.refused:
            if not collector.is_refused:
                tell_refusal(unavailable)
            collector.is_refused = True
            collector.postpone(REFUSED_PAUSE)
        return
    except (DataError, IntegrityError):
        log_internal_error(
            logger,
            "Statistics were refused; they are not kept",
            extra=about("process.statistics_refused", rows=len(rows)),
        )
    collector.note_stored()


def tell_refusal(refused: Unavailable) -> None:
    """Say that the database, although it answers, does not take statistics."""
    logger.warning(
        "Statistics cannot be stored; this process goes on without them, and tries again every "
        "%.0f minutes: %s",
        REFUSED_PAUSE / 60,
        first_line(refused.__cause__),
        extra=about("process.statistics_unstored"),
    )
