"""Inserting or updating a row while a claim is held, in one batch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from django.db.backends.base.base import BaseDatabaseWrapper

from steady_queue_core.dialects import tables

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


def save_row(
    connection: BaseDatabaseWrapper,
    table: str,
    claim: tuple[int, int],
    values: Mapping[str, str | None],
    time: str,
    changed: Iterable[str],
) -> bool:
    """Lock a claim, and store the ``values`` of a row of its job if it is held; ``time`` is the
    column with the present time. In a row that exists, these columns are ``changed``."""
    job_id, token = map(int, claim)
    statement = SAVE.format(
        table=table,
        columns=", ".join(values),
        time=time,
        values=", ".join(f"%s AS new_{name}" for name in values),
        job_id=job_id,
        token=token,
        changes=", ".join(f"{name} = new_{name}" for name in changed),
    )
    statements = [
        Statement(LOCK_CLAIM.format(job_id, token)),
        Statement(statement, tuple(values.values())),
    ]

    def work(transaction: Transaction) -> bool:
        return bool(transaction.execute(statements, last=True)[0].rows)

    return run_in_transaction(connection, work)
