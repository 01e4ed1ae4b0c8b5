"""The steps of jobs whose attempts end, in plain ORM."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from django.db.backends.base.base import BaseDatabaseWrapper

from ..held_rows import StepRecord
from ..outcome import Ending, Outcome
from .models import rows_of


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
        rows = rows_of(connection, "Step")
        rows.filter(job_id__in=gone)._raw_delete(connection.alias)
