"""Moving jobs that wait to another queue or priority, in the state that they are in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.db.models import F, QuerySet

from ...configuration.queues import name_objection
from ...dialects.database import Database
from ..execution import (
    BlockedExecution,
    Execution,
    ReadyExecution,
    ScheduledExecution,
    WaitingExecution,
)
from ..semaphore import lock_semaphores
from .keys import keys_of
from .own_values import write_own_values
from .resealing import Resealed, resealed

#: The states of jobs that wait. In the order in which jobs pass through them: a job that moves on
#: while its row is awaited is found in the next.
STATES: tuple[type[Execution], ...] = (
    WaitingExecution,
    ScheduledExecution,
    BlockedExecution,
    ReadyExecution,
)
LOWEST, HIGHEST = -100, 100


def changes_of(queue_name: str | None, priority: int | None) -> dict[str, Any]:
    """Return the new values of columns. Raises ``ValueError`` for what no job can have."""
    changes: dict[str, Any] = {}
    if queue_name is not None:
        if (objection := name_objection(queue_name)) is not None:
            raise ValueError(f"The name of the queue, {queue_name!r}, {objection}.")
        changes["queue_name"] = queue_name
    if priority is not None:
        if type(priority) is not int or not LOWEST <= priority <= HIGHEST:
            raise ValueError(
                f"The priority must be a whole number from {LOWEST} to {HIGHEST}, not {priority!r}."
            )
        changes["rank"] = -priority
    if not changes:
        raise ValueError("Give a queue_name, a priority, or both.")
    return changes


def move(jobs: QuerySet[Any], job_ids: Sequence[int], changes: Mapping[str, Any]) -> list[int]:
    """Give those of these of all ``jobs`` that wait another queue or rank, in one transaction;
    return their ids.

    A job that is claimed meanwhile is left alone, and so is one with a payload that is signed
    wrongly.
    """
    database = Database.of(jobs.db)
    moved, queues = database.in_transaction(lambda: _move(database, jobs, job_ids, changes))
    if queues:
        database.ring_after_commit(sorted({changes.get("queue_name", each) for each in queues}))
    return moved


def _move(
    database: Database, jobs: QuerySet[Any], job_ids: Sequence[int], changes: Mapping[str, Any]
) -> tuple[list[int], set[str]]:
    """Return the ids of the jobs that were moved, and the queues in which ready ones were."""
    held = _lock(database, job_ids, keys_of(jobs, job_ids).concurrency)
    waiting = {pk: row for rows in held.values() for pk, row in rows.items()}
    sealed = resealed(jobs, waiting, changes)
    for state, rows in held.items():
        found = [pk for pk in rows if pk not in sealed.refused]
        executions = state._default_manager.using(jobs.db).filter(pk__in=found)
        executions.update(**changes)
        if state is ReadyExecution:
            _give_turns(database, executions, found)
    moved = [pk for pk in waiting if pk not in sealed.refused]
    jobs.filter(pk__in=moved).update(**changes)
    _store(jobs, sealed)
    return sorted(moved), {row.queue_name for row in held[ReadyExecution].values()}


def _lock(
    database: Database, job_ids: Sequence[int], keys: Sequence[str]
) -> dict[type[Execution], dict[int, Any]]:
    """Lock the executions of jobs that wait: whoever locks one first has the job."""
    held: dict[type[Execution], dict[int, Any]] = {}
    for state in STATES:
        if state is BlockedExecution:
            # Lock order: scheduled rows first (like the dispatcher), then semaphores, then
            # everything that a permit moves.
            lock_semaphores(database, keys)
        rows = state._default_manager.using(database.alias).filter(pk__in=job_ids).order_by("pk")
        held[state] = {row.pk: row for row in database.lock_rows(rows, wait=True)}
    return held


def _give_turns(database: Database, rows: QuerySet[Any], job_ids: Sequence[int]) -> None:
    """Give ready jobs the turns of their new queue and rank: in a plain one, their ids."""
    rows.exclude(turn=F("job_id")).update(turn=F("job_id"))
    database.give_turns(job_ids)


def _store(jobs: QuerySet[Any], sealed: Resealed) -> None:
    write_own_values(jobs, "arguments", sealed.arguments)
    # A claim may read the execution as of now, and its job as of a moment before: by another token
    # it knows, and reads the job again.
    write_own_values(jobs, "token", sealed.tokens)
    write_own_values(ReadyExecution.objects.using(jobs.db), "token", sealed.tokens)
    sealed.store_notes(jobs.db)
