"""Having jobs run now that wait for their time or for others."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import QuerySet

from ...dialects import Dialect, portable
from ..base import queue_database
from ..execution import BlockedExecution, ReadyExecution, ScheduledExecution
from ..semaphore import Permit, lock_semaphores

#: The states of jobs that wait until others have ended, or until they are due. In this order: one
#: that is dispatched and finds its limit reached is not let in as well.
STATES = (BlockedExecution, ScheduledExecution)
#: Before all that was ever scheduled: what is due then comes first.
LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)


def run_now(jobs: QuerySet[Any], job_ids: Sequence[int]) -> int:
    """Dispatch scheduled jobs as if they were due, and make blocked ones ready beyond their limit,
    in one transaction; return how many: others may have moved on meanwhile."""
    using = jobs.db
    connection, dialect = queue_database(using)
    with dialect.transaction(connection):
        # Locked before the semaphores, as who dispatches does. Dispatched after those that are
        # blocked now: one that finds its limit reached becomes blocked as well.
        scheduled = ScheduledExecution.objects.using(using).filter(pk__in=job_ids).order_by("pk")
        due = [row.pk for row in dialect.lock_rows(connection, scheduled, wait=True)]
        found = _let_in(connection, dialect, job_ids) + _dispatch(connection, dialect, due)
    if found:
        dialect.ring_after_commit(connection, [])
    return found


def _dispatch(connection: BaseDatabaseWrapper, dialect: Dialect, job_ids: Sequence[int]) -> int:
    rows = ScheduledExecution.objects.using(connection.alias).filter(pk__in=job_ids)
    found = rows.update(due_at=portable.storable(LONG_AGO))
    if found:
        # Due before all others, and locked by us: these are the ones that it takes.
        dialect.dispatch(connection, found)
    return found


def _let_in(connection: BaseDatabaseWrapper, dialect: Dialect, job_ids: Sequence[int]) -> int:
    using = connection.alias
    blocked = BlockedExecution.objects.using(using).filter(pk__in=job_ids).order_by("pk")
    keys = sorted(set(blocked.values_list("concurrency_key", flat=True)))
    if not keys:
        return 0
    lock_semaphores(connection, dialect, keys)
    rows = list(dialect.lock_rows(connection, blocked, wait=True))
    present = portable.storable(dialect.current_time(connection))
    Permit.objects.using(using).bulk_create(
        [Permit(job_id=row.pk, key=row.concurrency_key) for row in rows]
    )
    ReadyExecution.objects.using(using).bulk_create(
        [
            ReadyExecution(
                job_id=row.pk,
                queue_name=row.queue_name,
                rank=row.rank,
                token=row.token,
                created_at=present,
            )
            for row in rows
        ]
    )
    BlockedExecution.objects.using(using).filter(pk__in=[row.pk for row in rows])._raw_delete(using)
    dialect.admit(connection, keys)  # It counts the permits anew.
    return len(rows)
