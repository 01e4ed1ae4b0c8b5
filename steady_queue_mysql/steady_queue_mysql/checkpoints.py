"""Storing what attempts say while they run, in one batch."""

from __future__ import annotations

from django.db.backends.base.base import BaseDatabaseWrapper

from steady_queue_core.dialects import CheckpointChange, tables

from .fenced_rows import save_row


def save_checkpoint(connection: BaseDatabaseWrapper, change: CheckpointChange) -> bool:
    """Lock the claim, and insert or update the row of its job if it is held."""
    progress = change.progress
    values = {
        "data": change.data,
        "done": None if progress is None else repr(progress.done),
        "total": None if progress is None or progress.total is None else repr(progress.total),
        "text": progress.text if progress else "",
    }
    claim = (change.job_id, change.token)
    return save_row(
        connection, tables.CHECKPOINTS, claim, values, "updated_at", change.changed_columns
    )
