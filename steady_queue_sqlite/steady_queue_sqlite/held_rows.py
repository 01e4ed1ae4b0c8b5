"""Storing what attempts say while they run, and their steps, in one statement."""

from __future__ import annotations

from functools import cache

from django.db.backends.base.base import BaseDatabaseWrapper

from steady_queue_core.dialects import (
    CheckpointChange,
    HeldRow,
    HeldTable,
    StepRecord,
    tables,
)

from .clock import NOW_SQL
from .direct import direct_transaction

SAVE = f"""
INSERT INTO {{table}} (job_id, token, {{columns}})
SELECT job_id, token, {{values}} FROM {tables.CLAIMED}
WHERE job_id = %s AND token = %s
ON CONFLICT ({{key}}) DO UPDATE SET {{changes}}
RETURNING job_id"""


def save_checkpoint(connection: BaseDatabaseWrapper, change: CheckpointChange) -> bool:
    """Insert or update the row of a job whose claim is held."""
    return upsert_while_held(connection, change.row)


def save_step(connection: BaseDatabaseWrapper, step: StepRecord) -> bool:
    """Insert or update the row of a step of a job whose claim is held."""
    return upsert_while_held(connection, step.row)


def upsert_while_held(connection: BaseDatabaseWrapper, row: HeldRow) -> bool:
    """Insert or update a row; return whether the claim of its job was held. An immediate
    transaction sees what others have committed."""
    with direct_transaction(connection) as run:
        values = (*row.values, row.job_id, row.token)
        return bool(run(_statement(row.table, row.changed), values))


@cache
def _statement(table: HeldTable, changed: tuple[str, ...]) -> str:
    """Return the statement that stores a row; of one that exists, it sets the ``changed`` columns.
    Its parameters are the values, the job and the token."""
    return SAVE.format(
        table=table.name,
        columns=", ".join([*table.columns, table.time]),
        values=", ".join(["%s"] * len(table.columns) + [NOW_SQL.replace("%", "%%")]),
        key=", ".join(table.key),
        changes=", ".join(f"{name} = excluded.{name}" for name in changed),
    )
