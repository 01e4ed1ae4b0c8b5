"""Storing the steps of jobs, in one batch."""

from __future__ import annotations

from django.db.backends.base.base import BaseDatabaseWrapper

from steady_queue_core.dialects import STEP_COLUMNS, StepRecord, tables

from .fenced_rows import save_row


def save_step(connection: BaseDatabaseWrapper, step: StepRecord) -> bool:
    """Lock the claim, and insert or update the row of a step of its job if it is held."""
    values = {
        "name": step.name,
        "position": str(step.position),
        "is_sleep": "1" if step.is_sleep else "0",
        "data": step.data,
    }
    claim = (step.job_id, step.token)
    return save_row(connection, tables.STEPS, claim, values, "stored_at", STEP_COLUMNS)
