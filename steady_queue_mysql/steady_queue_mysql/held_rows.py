"""Storing what attempts say while they run, and their steps, in one batch."""

from __future__ import annotations

from django.db.backends.base.base import BaseDatabaseWrapper

from steady_queue_core.dialects import CheckpointChange, HeldRow, StepRecord, tables

from .batches import Statement
from .clock import NOW_SQL
from .transactions import Transaction, run_in_transaction

# In a caller's transaction this reads the row as it is now, not as it was in the snapshot; nobody
# ends the claim until the transaction has ended.
LOCK_CLAIM = f"SELECT 1 FROM {tables.CLAIMED} WHERE job_id = {{}} AND token = {{}} FOR UPDATE"

# The columns of a derived table may be named in both parts; VALUES() is going out of use in MySQL,
# and MariaDB does not know what has come instead.
SAVE = f"""
INSERT INTO {{table}} (job_id, token, {{columns}}, {{time}})
SELECT * FROM (
  SELECT job_id AS new_job_id, token AS new_token, {{values}}, {NOW_SQL} AS new_{{time}}
  FROM {tables.CLAIMED} WHERE job_id = {{job_id}} AND token = {{token}}) AS new
ON DUPLICATE KEY UPDATE {{changes}}"""


def save_checkpoint(connection: BaseDatabaseWrapper, change: CheckpointChange) -> bool:
    """Insert or update the row of a job whose claim is held."""
    return upsert_while_held(connection, change.row)


def save_step(connection: BaseDatabaseWrapper, step: StepRecord) -> bool:
    """Insert or update the row of a step of a job whose claim is held."""
    return upsert_while_held(connection, step.row)


def upsert_while_held(connection: BaseDatabaseWrapper, row: HeldRow) -> bool:
    """Lock a claim, and insert or update a row of its job if it is held; return whether it is."""
    table, job_id, token = row.table, int(row.job_id), int(row.token)
    statement = SAVE.format(
        table=table.name,
        columns=", ".join(table.columns),
        time=table.time,
        values=", ".join(f"%s AS new_{name}" for name in table.columns),
        job_id=job_id,
        token=token,
        changes=", ".join(f"{name} = new_{name}" for name in row.changed),
    )
    statements = [
        Statement(LOCK_CLAIM.format(job_id, token)),
        Statement(statement, tuple(map(_text, row.values))),
    ]

    def work(transaction: Transaction) -> bool:
        return bool(transaction.execute(statements, last=True)[0].rows)

    return run_in_transaction(connection, work)


def _text(value: object) -> str | None:
    """Return a value as the text that batches send."""
    if value is None or isinstance(value, str):
        return value
    return repr(int(value) if isinstance(value, bool) else value)
