"""Storing what attempts say while they run, in one batch."""

from __future__ import annotations

from django.db.backends.base.base import BaseDatabaseWrapper

from steady_queue_core.dialects import CheckpointChange, tables

from .batches import Statement
from .clock import NOW_SQL
from .transactions import Transaction, run_in_transaction

# In a caller's transaction this reads the row as it is now, not as it was in the snapshot; nobody
# ends the claim until the transaction has ended.
LOCK_CLAIM = f"SELECT 1 FROM {tables.CLAIMED} WHERE job_id = {{}} AND token = {{}} FOR UPDATE"

# The columns of a derived table may be named in both parts; VALUES() is going out of use in MySQL,
# and MariaDB does not know what has come instead.
SAVE = f"""
INSERT INTO {tables.CHECKPOINTS} (job_id, token, data, done, total, text, updated_at)
SELECT * FROM (
  SELECT job_id AS new_job_id, token AS new_token, %s AS new_data, %s AS new_done, %s AS new_total,
    %s AS new_text, {NOW_SQL} AS new_updated_at
  FROM {tables.CLAIMED} WHERE job_id = {{}} AND token = {{}}) AS new
ON DUPLICATE KEY UPDATE {{}}"""


def save_checkpoint(connection: BaseDatabaseWrapper, change: CheckpointChange) -> bool:
    """Lock the claim, and insert or update the row of its job if it is held."""
    key, progress = (int(change.job_id), int(change.token)), change.progress
    sets = ", ".join(f"{name} = new_{name}" for name in change.changed_columns)
    values = (
        change.data,
        None if progress is None else repr(progress.done),
        None if progress is None or progress.total is None else repr(progress.total),
        progress.text if progress else "",
    )
    statements = [
        Statement(LOCK_CLAIM.format(*key)),
        Statement(SAVE.format(*key, sets), values),
    ]

    def work(transaction: Transaction) -> bool:
        return bool(transaction.execute(statements, last=True)[0].rows)

    return run_in_transaction(connection, work)
