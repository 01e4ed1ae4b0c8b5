"""Moving jobs that wait to another queue or priority, in the state that they are in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.db.models import F, QuerySet

from ...configuration.queues import name_objection
from ..execution import WAITING, ReadyExecution
from .resealing import Resealed, resealed
from .rows import write_own_values
from .transition import Transition

STATES = WAITING
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
    return Transition.perform(jobs, job_ids, lambda act: _move(act, changes))


def _move(act: Transition, changes: Mapping[str, Any]) -> list[int]:
    held = {state: {row.pk: row for row in rows} for state, rows in act.hold(STATES)}
    waiting = {pk: row for rows in held.values() for pk, row in rows.items()}
    sealed = resealed(act.jobs, waiting, changes)
    for state, rows in held.items():
        found = [pk for pk in rows if pk not in sealed.refused]
        executions = act.rows(state, found)
        executions.update(**changes)
        if state is ReadyExecution:
            # The turns of their new queue and rank: in a plain one, their ids.
            executions.exclude(turn=F("job_id")).update(turn=F("job_id"))
            act.database.give_turns(found)
    moved = [pk for pk in waiting if pk not in sealed.refused]
    act.jobs.filter(pk__in=moved).update(**changes)
    _store(act.jobs, sealed)
    if ready := held[ReadyExecution]:
        queues = {changes.get("queue_name", row.queue_name) for row in ready.values()}
        act.database.ring_after_commit(sorted(queues))
    return sorted(moved)


def _store(jobs: QuerySet[Any], sealed: Resealed) -> None:
    write_own_values(jobs, "arguments", sealed.arguments)
    # A claim may read the execution as of now, and its job as of a moment before: by another token
    # it knows, and reads the job again.
    write_own_values(jobs, "token", sealed.tokens)
    write_own_values(ReadyExecution.objects.using(jobs.db), "token", sealed.tokens)
    sealed.store_notes(jobs.db)
