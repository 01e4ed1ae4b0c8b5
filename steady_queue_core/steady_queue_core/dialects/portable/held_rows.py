"""Storing rows while a claim is held, in plain ORM."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from ..held_rows import CheckpointChange, HeldRow, StepRecord
from .clock import storable
from .models import model, rows_of
from .own import lock_rows, present_time, transaction, upsert


def save_checkpoint(connection: BaseDatabaseWrapper, change: CheckpointChange) -> bool:
    """Store what an attempt says; return whether its claim was held."""
    return upsert_while_held(connection, change.row)


def save_step(connection: BaseDatabaseWrapper, step: StepRecord) -> bool:
    """Store a step that an attempt has taken; return whether its claim was held."""
    return upsert_while_held(connection, step.row)


def upsert_while_held(connection: BaseDatabaseWrapper, row: HeldRow) -> bool:
    """Insert or update a row of a job, in one transaction with the look at its claim."""
    with transaction(connection):
        if not is_held(connection, row.job_id, row.token):
            return False
        upsert_held(connection, [row])
    return True


def is_held(connection: BaseDatabaseWrapper, job_id: int, token: int) -> bool:
    """Return whether a claim is held. In a transaction, it stays so until the end of that."""
    claims = rows_of(connection, "ClaimedExecution")
    rows = claims.filter(job_id=job_id, token=token)
    if not connection.in_atomic_block and connection.get_autocommit():
        return bool(rows.exists())
    with transaction(connection):
        # Locked, so that the present row is read, not that of the transaction's snapshot.
        return bool(lock_rows(connection, rows, wait=True))


def upsert_held(connection: BaseDatabaseWrapper, rows: Sequence[HeldRow]) -> None:
    """Insert or update rows of jobs whose claims are held, in this order."""
    if not rows:
        return
    present = storable(present_time(connection))
    for (table, changed), some in groupby(rows, lambda row: (row.table, row.changed)):
        made = [model_of(row, present) for row in some]
        upsert(connection, made, table.fields, changed)


def model_of(row: HeldRow, present: Any) -> Any:
    """Return the unsaved row of a job that has none."""
    table = row.table
    values = dict(zip(table.columns, row.values, strict=True))
    return model(table.model)(job_id=row.job_id, token=row.token, **values, **{table.time: present})
