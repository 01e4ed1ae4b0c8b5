"""Storing what attempts say while they run, in one statement."""

from __future__ import annotations

from functools import cache

from django.db.backends.base.base import BaseDatabaseWrapper

from steady_queue_core.dialects import CheckpointChange, tables

from .clock import NOW_SQL
from .prepared import fetch

# The claim is locked until the end of the transaction: it cannot be ended meanwhile.
SAVE = f"""
WITH held AS MATERIALIZED (
  SELECT job_id, token FROM {tables.CLAIMED}
  WHERE job_id = %(job_id)s AND token = %(token)s FOR UPDATE)
INSERT INTO {tables.CHECKPOINTS} (job_id, token, data, done, total, text, updated_at)
SELECT job_id, token, %(data)s::text, %(done)s::double precision, %(total)s::double precision,
  %(text)s::text, {NOW_SQL} FROM held
ON CONFLICT (job_id) DO UPDATE SET {{}}
RETURNING job_id"""


def save_checkpoint(connection: BaseDatabaseWrapper, change: CheckpointChange) -> bool:
    """Insert or update the row of a job whose claim is held."""
    progress = change.progress
    values = {
        "job_id": change.job_id,
        "token": change.token,
        "data": change.data,
        "done": progress and progress.done,
        "total": progress and progress.total,
        "text": progress.text if progress else "",
    }
    return bool(fetch(connection, _statement(change.changed_columns), values))


@cache
def _statement(columns: tuple[str, ...]) -> str:
    return SAVE.format(", ".join(f"{name} = excluded.{name}" for name in columns))
