"""The checkpoints and the progress of jobs whose attempts end, in plain ORM."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from django.db.backends.base.base import BaseDatabaseWrapper

from ..held_rows import CheckpointChange, HeldRow
from ..outcome import Ending, Outcome
from .models import rows_of


def last_progress(held: Iterable[Outcome]) -> list[HeldRow]:
    """Return what is to be stored of the progress of jobs that go on existing."""
    return [
        CheckpointChange(outcome.job_id, outcome.token, progress=outcome.sequel.progress).row
        for outcome in sorted(held, key=lambda outcome: outcome.job_id)
        if outcome.sequel is not None and outcome.sequel.progress is not None
        if not outcome.deletes_job
    ]


def end_checkpoints(connection: BaseDatabaseWrapper, held: Sequence[Outcome]) -> None:
    """Delete the checkpoints of the jobs that have succeeded, and the rows that say nothing else.
    The progress of a job that exists stays."""
    ended = [
        outcome for outcome in held
        if outcome.ending is Ending.FINISHED
        if outcome.sequel is not None and outcome.sequel.ends_checkpoint
    ]  # fmt: skip
    gone = [outcome.job_id for outcome in ended if outcome.deletes_job]
    kept = [outcome.job_id for outcome in ended if not outcome.deletes_job]
    rows = rows_of(connection, "Checkpoint")
    if gone:
        rows.filter(pk__in=gone)._raw_delete(connection.alias)
    if kept:
        rows.filter(pk__in=kept, done=None)._raw_delete(connection.alias)
        rows.filter(pk__in=kept).update(data=None)
