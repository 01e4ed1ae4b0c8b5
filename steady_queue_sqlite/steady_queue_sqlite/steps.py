"""Storing the steps of jobs, in one statement."""

from __future__ import annotations

from django.db.backends.base.base import BaseDatabaseWrapper

from steady_queue_core.dialects import STEP_COLUMNS, StepRecord, tables

from .direct import direct_transaction
from .fenced_rows import FencedRow, statement

STEP = FencedRow(
    tables.STEPS, ("job_id", "name"), ("name", "position", "is_sleep", "data"), "stored_at"
)


def save_step(connection: BaseDatabaseWrapper, step: StepRecord) -> bool:
    """Insert or update the row of a step of a job whose claim is held; an immediate transaction
    sees what others have committed."""
    values = (step.name, step.position, step.is_sleep, step.data, step.job_id, step.token)
    with direct_transaction(connection) as run:
        return bool(run(statement(STEP, STEP_COLUMNS), values))
