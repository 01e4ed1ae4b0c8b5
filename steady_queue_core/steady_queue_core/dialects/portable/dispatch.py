"""Moving due jobs to ready, in plain ORM."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from ..records import Dispatched
from .clock import aware, storable
from .models import model, moved
from .own import end_discarded, lock_rows, present_time, transaction
from .permits import admit, discard_refused


def dispatch(connection: BaseDatabaseWrapper, limit: int) -> Dispatched:
    """Lock due rows in order and move them to ready."""
    using = connection.alias
    scheduled = model("ScheduledExecution").objects.using(using)
    with transaction(connection):
        present = present_time(connection)
        due = scheduled.filter(due_at__lte=storable(present)).order_by("due_at", "rank", "job_id")
        rows = list(lock_rows(connection, due[:limit], wait=False))
        scheduled.filter(pk__in=[row.pk for row in rows])._raw_delete(using)
        unlimited = [row for row in rows if row.concurrency_key is None]
        model("ReadyExecution").objects.using(using).bulk_create(
            [moved("ReadyExecution", row, row.token, present) for row in unlimited]
        )
        limited = [row for row in rows if row.concurrency_key is not None]
        _block_and_admit(connection, limited, present)
        following = scheduled.order_by("due_at").values_list("due_at", flat=True).first()
    if following is None:
        return Dispatched(len(rows), None)
    return Dispatched(len(rows), max(0.0, (aware(following) - present).total_seconds()))


def _block_and_admit(
    connection: BaseDatabaseWrapper, rows: Sequence[Any], present: datetime
) -> None:
    """Block jobs with a limit, then admit those that find a permit."""
    using = connection.alias
    model("BlockedExecution").objects.using(using).bulk_create(
        [
            moved("BlockedExecution", row, row.token, present, concurrency_key=row.concurrency_key)
            for row in rows
        ]
    )
    admit(connection, sorted({row.concurrency_key for row in rows}))
    end_discarded(connection, discard_refused(connection, [row.pk for row in rows]))
