"""Storing the steps of jobs, in one statement."""

from __future__ import annotations

from django.db.backends.base.base import BaseDatabaseWrapper

from steady_queue_core.dialects import STEP_COLUMNS, StepRecord, tables

from .fenced_rows import FencedRow, statement
from .prepared import fetch

STEP = FencedRow(
    tables.STEPS,
    ("job_id", "name"),
    (("name", "text"), ("position", "integer"), ("is_sleep", "boolean"), ("data", "text")),
    "stored_at",
)


def save_step(connection: BaseDatabaseWrapper, step: StepRecord) -> bool:
    """Insert or update the row of a step of a job whose claim is held."""
    return bool(fetch(connection, statement(STEP, STEP_COLUMNS), step._asdict()))
