"""What attempts store for their jobs, in plain ORM."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import QuerySet

from ..outcome import Ending, Outcome
from ..records import CheckpointChange
from .clock import storable
from .models import model
from .own import lock_rows, present_time, transaction, upsert


def claim_rows(connection: BaseDatabaseWrapper, job_id: int, token: int) -> QuerySet[Any]:
    """Return the claim of a job under this token, if it is held."""
    rows: QuerySet[Any] = model("ClaimedExecution").objects.using(connection.alias)
    return rows.filter(job_id=job_id, token=token)


def checkpoint_row(change: CheckpointChange, present: datetime) -> Any:
    """Return the unsaved row of a job that has none."""
    progress = change.progress
    return model("Checkpoint")(
        job_id=change.job_id,
        token=change.token,
        data=change.data,
        done=progress and progress.done,
        total=progress and progress.total,
        text=progress.text if progress else "",
        updated_at=storable(present),
    )


def save_checkpoint(connection: BaseDatabaseWrapper, change: CheckpointChange) -> bool:
    """Store what an attempt says while it runs; return whether its claim was held."""
    with transaction(connection):
        if not is_held(connection, change.job_id, change.token):
            return False
        store_checkpoints(connection, [change])
    return True


def is_held(connection: BaseDatabaseWrapper, job_id: int, token: int) -> bool:
    """Return whether a claim is held. In a transaction, it stays so until the end of that."""
    rows = claim_rows(connection, job_id, token)
    if not connection.in_atomic_block and connection.get_autocommit():
        return rows.exists()
    with transaction(connection):
        # Locked, so that the present row is read, not that of the transaction's snapshot.
        return bool(lock_rows(connection, rows, wait=True))


def store_checkpoints(connection: BaseDatabaseWrapper, changes: Sequence[CheckpointChange]) -> None:
    """Insert or update the rows of jobs whose claims are held."""
    if changes:
        present = present_time(connection)
        for change in changes:
            row = checkpoint_row(change, present)
            upsert(connection, [row], ["job"], change.changed_columns)


def last_progress(held: Iterable[Outcome]) -> list[CheckpointChange]:
    """Return what is to be stored of the progress of jobs that go on existing."""
    return [
        CheckpointChange(outcome.job_id, outcome.token, progress=outcome.sequel.progress)
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
    rows = model("Checkpoint").objects.using(connection.alias)
    if gone:
        rows.filter(pk__in=gone)._raw_delete(connection.alias)
    if kept:
        rows.filter(pk__in=kept, done=None)._raw_delete(connection.alias)
        rows.filter(pk__in=kept).update(data=None)
