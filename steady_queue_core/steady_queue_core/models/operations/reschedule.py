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
from ..execution import WAITING, ScheduledExecution, WaitingExecution
from .transition import BEFORE_SEMAPHORES, Transition, ids_of

STATES = WAITING


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
    return Transition.perform(jobs, job_ids, lambda act: _reschedule(act, due))


def _reschedule(act: Transition, due: datetime) -> list[int]:
    act.lock_unique_keys()
    later = _put_off(act, due)
    left = sorted({*act.job_ids}.difference(later))
    removed = act.remove([each for each in STATES if each not in BEFORE_SEMAPHORES], left)
    _insert(act.jobs, removed, due)
    found = sorted([*later, *ids_of(removed)])
    act.free_unique_keys()  # They stay, unless their job has just ended.
    act.jobs.filter(pk__in=found).update(scheduled_at=portable.storable(due))
    if removed:
        act.pass_permits_on()
    return found


def _put_off(act: Transition, due: datetime) -> list[int]:
    """Let those of the jobs that are not due yet be due later; return their ids."""
    found: list[int] = []
    for state, held in act.hold(BEFORE_SEMAPHORES):
        changes: dict[str, Any] = {"due_at": portable.storable(due)}
        if state is WaitingExecution:
            changes["delay"] = None
        act.rows(state, ids_of(held)).update(**changes)
        found += ids_of(held)
    return found


def _insert(jobs: QuerySet[Any], removed: Sequence[Any], due: datetime) -> None:
    """Insert what says that jobs are due later."""
    keys = dict(jobs.filter(pk__in=ids_of(removed)).values_list("pk", "concurrency_key"))
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
