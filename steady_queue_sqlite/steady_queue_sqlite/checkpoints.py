"""Storing what attempts say while they run, in one statement."""

from __future__ import annotations

from django.db.backends.base.base import BaseDatabaseWrapper

from steady_queue_core.dialects import CheckpointChange, tables

from .direct import direct_transaction
from .fenced_rows import FencedRow, statement

CHECKPOINT = FencedRow(
    tables.CHECKPOINTS, ("job_id",), ("data", "done", "total", "text"), "updated_at"
)


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
        return bool(run(statement(CHECKPOINT, change.changed_columns), values))
