"""Giving jobs that wait another due time."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db.models import QuerySet
from django.utils import timezone

from ...dialects import portable
from ...dialects.database import Database
from ...dialects.portable.models import moved
from ...timezones import to_due_time
from ..execution import (
    BlockedExecution,
    Execution,
    ReadyExecution,
    ScheduledExecution,
    WaitingExecution,
)
from . import move
from .keys import free_unique_keys, lock_keys
from .removal import remove_executions

STATES = move.STATES


def due_at(database: Database, run_after: object) -> datetime:
    """Return the time that ``run_after`` means: a timedelta counts from now, by the database's
    clock. Raises ``TypeError`` and ``ValueError``."""
    if not isinstance(run_after, datetime | timedelta):
        raise TypeError(f"run_after must be a datetime or a timedelta, not {run_after!r}.")
    try:
        if isinstance(run_after, timedelta):
            return to_due_time(database.current_time() + run_after)
        if settings.USE_TZ and timezone.is_naive(run_after):
            raise ValueError(
                f"run_after is a naive datetime, {run_after.isoformat()}: give it a time zone, as "
                "timezone.now() has one."
            )
        return to_due_time(run_after)
    except OverflowError:
        raise ValueError(
            f"run_after lies outside the years 1 to 9999 in some time zone: {run_after}."
        ) from None


def reschedule(jobs: QuerySet[Any], job_ids: Sequence[int], due: datetime) -> list[int]:
    """Let those of these of all ``jobs`` that wait be due at another time, in one transaction;
    return their ids.

    Ready and blocked ones become scheduled, and the permits of the former pass to the next jobs. A
    job that is claimed meanwhile is left alone.
    """
    database = Database.of(jobs.db)
    found, admitted = database.in_transaction(lambda: _reschedule(database, jobs, job_ids, due))
    if admitted:
        database.ring_after_commit([])
    return found


def _reschedule(
    database: Database, jobs: QuerySet[Any], job_ids: Sequence[int], due: datetime
) -> tuple[list[int], int]:
    """Return the ids of the jobs, and how many others were admitted by it."""
    (keys, *_), unique = lock_keys(database, jobs, job_ids)
    later = [
        *_move(database, WaitingExecution, job_ids, due_at=portable.storable(due), delay=None),
        *_move(database, ScheduledExecution, job_ids, due_at=portable.storable(due)),
    ]
    left = sorted(set(job_ids).difference(later))
    removed = remove_executions(database, (BlockedExecution, ReadyExecution), left, keys)
    _insert(jobs, removed, due)
    found = sorted([*later, *(row.pk for row in removed)])
    free_unique_keys(database, unique, ())  # They stay, unless their job has just ended.
    jobs.filter(pk__in=found).update(scheduled_at=portable.storable(due))
    return found, database.admit(keys) if removed else 0


def _move(
    database: Database, state: type[Execution], job_ids: Sequence[int], **changes: Any
) -> list[int]:
    """Change the executions of those of these jobs that are in a state; return their ids."""
    rows = state._default_manager.using(database.alias).filter(pk__in=job_ids).order_by("pk")
    held = [row.pk for row in database.lock_rows(rows, wait=True)]
    rows.filter(pk__in=held).order_by().update(**changes)
    return held


def _insert(jobs: QuerySet[Any], removed: Sequence[Any], due: datetime) -> None:
    """Insert what says that jobs are due later."""
    ids = [row.pk for row in removed]
    keys = dict(jobs.filter(pk__in=ids).values_list("pk", "concurrency_key"))
    present = Database.of(jobs.db).current_time()
    ScheduledExecution.objects.using(jobs.db).bulk_create(
        moved(
            "ScheduledExecution",
            row,
            row.token,
            present,
            due_at=portable.storable(due),
            concurrency_key=keys.get(row.pk),
        )
        for row in removed
    )
