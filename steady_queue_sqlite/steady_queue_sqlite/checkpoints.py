"""Storing what attempts say while they run, in one statement."""

from __future__ import annotations

from functools import cache

from django.db.backends.base.base import BaseDatabaseWrapper

from steady_queue_core.dialects import CheckpointChange, tables

from .clock import NOW_SQL
from .direct import direct_transaction

SAVE = f"""
INSERT INTO {tables.CHECKPOINTS} (job_id, token, data, done, total, text, updated_at)
SELECT job_id, token, %s, %s, %s, %s, {NOW_SQL.replace("%", "%%")} FROM {tables.CLAIMED}
WHERE job_id = %s AND token = %s
ON CONFLICT (job_id) DO UPDATE SET {{}}
RETURNING job_id"""


def save_checkpoint(connection: BaseDatabaseWrapper, change: CheckpointChange) -> bool:
    """Insert or update the row of a job whose claim is held; an immediate transaction sees what
    others have committed."""
    progress = change.progress
    values = (
        change.data,
        progress and progress.done,
        progress and progress.total,
        progress.text if progress else "",
        change.job_id,
        change.token,
    )
    with direct_transaction(connection) as run:
        return bool(run(_statement(change.changed_columns), values))


@cache
def _statement(columns: tuple[str, ...]) -> str:
    return SAVE.format(", ".join(f"{name} = excluded.{name}" for name in columns))
