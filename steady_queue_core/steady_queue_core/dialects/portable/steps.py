"""The steps of jobs, in plain ORM."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from ..outcome import Ending, Outcome
from ..records import STEP_COLUMNS, StepRecord
from .checkpoints import is_held
from .clock import storable
from .models import model
from .own import present_time, transaction, upsert


def step_row(step: StepRecord, present: datetime) -> Any:
    """Return the unsaved row of a step that is stored now."""
    return model("Step")(**step._asdict(), stored_at=storable(present))


def save_step(connection: BaseDatabaseWrapper, step: StepRecord) -> bool:
    """Store a step that an attempt has taken; return whether its claim was held."""
    with transaction(connection):
        if not is_held(connection, step.job_id, step.token):
            return False
        store_steps(connection, [step])
    return True


def store_steps(connection: BaseDatabaseWrapper, steps: Sequence[StepRecord]) -> None:
    """Insert or replace the steps of jobs whose claims are held."""
    if steps:
        present = present_time(connection)
        rows = [step_row(step, present) for step in steps]
        upsert(connection, rows, ["job", "name"], STEP_COLUMNS)


def begun_sleeps(held: Iterable[Outcome]) -> list[StepRecord]:
    """Return the sleeps that attempts have begun whose jobs have not succeeded."""
    return [
        step._replace(job_id=outcome.job_id, token=outcome.token)
        for outcome in sorted(held, key=lambda outcome: outcome.job_id)
        if outcome.sequel is not None and outcome.ending is not Ending.FINISHED
        for step in outcome.sequel.sleeps
    ]


def end_steps(connection: BaseDatabaseWrapper, held: Sequence[Outcome]) -> None:
    """Delete the steps of jobs that are deleted."""
    gone = [
        outcome.job_id for outcome in held
        if outcome.deletes_job
        if outcome.sequel is not None and outcome.sequel.ends_steps
    ]  # fmt: skip
    if gone:
        rows = model("Step").objects.using(connection.alias)
        rows.filter(job_id__in=gone)._raw_delete(connection.alias)
