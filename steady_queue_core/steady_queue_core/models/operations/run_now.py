"""Running scheduled and blocked jobs at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from django.db.models import QuerySet

from ...dialects import portable
from ...dialects.apart import LONG_AGO
from ...dialects.database import Database
from ...dialects.portable.permits import change_values, unblock
from ...features.rates.stored import slot_in, with_slot
from ..execution import BlockedExecution, ScheduledExecution
from ..semaphore import lock_semaphores
from .transition import Transition, ids_of

#: The states of jobs that wait for a permit, or until they are due. In this order: a scheduled job
#: that is dispatched and then blocked by its limit is not also unblocked.
STATES = (BlockedExecution, ScheduledExecution)


def run_now(jobs: QuerySet[Any], job_ids: Sequence[int]) -> int:
    """Dispatch scheduled jobs as if they were due, and unblock blocked ones beyond their limit, in
    one transaction; return the count, which is lower if some have moved on meanwhile."""
    return Transition.perform(jobs, job_ids, _run_now)


def _run_now(act: Transition) -> int:
    database, job_ids = act.database, act.job_ids
    # Locked before the semaphores, as the dispatcher does. Dispatched after the jobs that are
    # blocked now: one that exceeds its limit then becomes blocked as well.
    scheduled = act.rows(ScheduledExecution, job_ids).order_by("pk")
    due = list(database.lock_rows(scheduled, wait=True))
    _ask_for_starts(act.jobs, ids_of(due))
    found = _unblock(act, due) + _dispatch(database, ids_of(due))
    if found:
        database.ring_after_commit([])
    return found


def _ask_for_starts(jobs: QuerySet[Any], job_ids: Sequence[int]) -> None:
    """Let jobs that wait for a slot of their rate start before it, if the rate is free."""
    known = jobs.filter(pk__in=job_ids).exclude(metadata=None)
    for pk, metadata in list(known.values_list("pk", "metadata")):
        slot = slot_in(metadata)
        if slot is not None and slot > 0:
            jobs.filter(pk=pk).update(metadata=with_slot(metadata, -slot))


def _dispatch(database: Database, job_ids: Sequence[int]) -> int:
    rows = ScheduledExecution.objects.using(database.alias).filter(pk__in=job_ids)
    found = rows.update(due_at=portable.storable(LONG_AGO))
    if found:
        # They are due before all others, and locked by this transaction: exactly they are moved.
        database.dialect.dispatch(database.connection, found)
    return found


def _unblock(act: Transition, due: Sequence[ScheduledExecution]) -> int:
    database = act.database
    blocked = act.rows(BlockedExecution, act.job_ids).order_by("pk")
    keys = sorted(set(blocked.values_list("concurrency_key", flat=True)))
    if not keys:
        return 0
    # Also those of the jobs that are dispatched next: their turns are locked after all semaphores.
    later = {row.concurrency_key for row in due if row.concurrency_key is not None}
    lock_semaphores(database, sorted(later.union(keys)))
    # One that was replaced meanwhile may wait for another permit.
    rows = list(database.lock_rows(blocked.filter(concurrency_key__in=keys), wait=True))
    unblock(database.connection, rows)
    taken = Counter(row.concurrency_key for row in rows)
    change_values(database.connection, {key: -count for key, count in taken.items()})
    database.admit(keys)
    return len(rows)
