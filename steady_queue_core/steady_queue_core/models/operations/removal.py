"""Taking jobs that do not run out of their states, since they are to end there."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ...dialects import portable
from ...dialects.database import Database
from ..execution import BlockedExecution, Execution
from ..semaphore import lock_semaphores


def remove_executions(
    database: Database,
    states: Sequence[type[Execution]],
    job_ids: Sequence[int],
    keys: Collection[str],
) -> list[Execution]:
    """Delete the executions in ``states``, and the permits, of these jobs in the current
    transaction; return the executions.

    A job that is claimed meanwhile is left alone: whoever locks its execution first has it. So that
    a job that moves on while its row is awaited is found in its next state, ``states`` are in the
    order in which jobs pass through them. ``keys`` are the concurrency keys of all the jobs.
    """
    found: list[Execution] = []
    for state in states:
        if state is BlockedExecution:
            # Lock order: scheduled rows first (like the dispatcher), then semaphores, then
            # everything that a permit moves.
            lock_semaphores(database, keys)
        rows = state._default_manager.using(database.alias).filter(pk__in=job_ids).order_by("pk")
        held = list(database.lock_rows(rows, wait=True))
        if held:
            rows.filter(pk__in=[row.pk for row in held])._raw_delete(database.alias)
            found += held
    portable.end_permits(database.connection, [row.pk for row in found])
    return found
