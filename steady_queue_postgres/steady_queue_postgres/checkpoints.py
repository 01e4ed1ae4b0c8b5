"""Storing what attempts say while they run, in one statement."""

from __future__ import annotations

from django.db.backends.base.base import BaseDatabaseWrapper

from steady_queue_core.dialects import CheckpointChange, tables

from .fenced_rows import FencedRow, statement
from .prepared import fetch

CHECKPOINT = FencedRow(
    tables.CHECKPOINTS,
    ("job_id",),
    (
        ("data", "text"),
        ("done", "double precision"),
        ("total", "double precision"),
        ("text", "text"),
    ),
    "updated_at",
)


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
    return bool(fetch(connection, statement(CHECKPOINT, change.changed_columns), values))
