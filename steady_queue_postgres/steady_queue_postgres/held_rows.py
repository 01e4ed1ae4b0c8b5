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
from .prepared import fetch

# The claim is locked until the end of the transaction: it cannot be ended meanwhile.
SAVE = f"""
WITH held AS MATERIALIZED (
  SELECT job_id, token FROM {tables.CLAIMED}
  WHERE job_id = %(job_id)s AND token = %(token)s FOR UPDATE)
INSERT INTO {{table}} (job_id, token, {{columns}})
SELECT job_id, token, {{values}} FROM held
ON CONFLICT ({{key}}) DO UPDATE SET {{changes}}
RETURNING job_id"""

#: The types of the columns that are not text.
TYPES = {
    "done": "double precision",
    "total": "double precision",
    "position": "integer",
    "is_sleep": "boolean",
}


def save_checkpoint(connection: BaseDatabaseWrapper, change: CheckpointChange) -> bool:
    """Insert or update the row of a job whose claim is held."""
    return upsert_while_held(connection, change.row)


def save_step(connection: BaseDatabaseWrapper, step: StepRecord) -> bool:
    """Insert or update the row of a step of a job whose claim is held."""
    return upsert_while_held(connection, step.row)


def upsert_while_held(connection: BaseDatabaseWrapper, row: HeldRow) -> bool:
    """Insert or update a row; return whether the claim of its job was held."""
    columns = dict(zip(row.table.columns, row.values, strict=True))
    values = {"job_id": row.job_id, "token": row.token, **columns}
    return bool(fetch(connection, _statement(row.table, row.changed), values))


@cache
def _statement(table: HeldTable, changed: tuple[str, ...]) -> str:
    """Return the statement that stores a row; of one that exists, it sets the ``changed``
    columns."""
    values = [f"%({name})s::{TYPES.get(name, 'text')}" for name in table.columns]
    return SAVE.format(
        table=table.name,
        columns=", ".join([*table.columns, table.time]),
        values=", ".join([*values, NOW_SQL]),
        key=", ".join(table.key),
        changes=", ".join(f"{name} = excluded.{name}" for name in changed),
    )
