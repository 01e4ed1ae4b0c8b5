"""The statements that claim ready jobs.

InnoDB locks what it reads: only an index that has the rows in the wanted order, read from its
start, locks no more than the limit. Without FORCE INDEX, and a condition that the index can serve,
a table that looks empty is read and locked whole, and sorted.
"""

from __future__ import annotations

from typing import Any

from steady_queue_core.dialects import (
    CLAIM_COLUMNS,
    EXECUTION_COLUMNS,
    JOB_COLUMNS,
    ProcessIdentity,
    tables,
)

from .batches import Result, Statement
from .clock import NOW_SQL

# Read without a lock and a transaction, so that an idle worker costs one small statement.
ANY_READY = Statement(f"SELECT 1 FROM {tables.READY} LIMIT 1")
PAUSED = Statement(f"SELECT queue_name FROM {tables.PAUSES}")
REGISTERED = f"SELECT 1 FROM {tables.PROCESSES} WHERE id = {{}} AND name = %s"

_JOB = ", ".join(f"j.`{name}`" for name in JOB_COLUMNS)

# ``is_current``: MySQL reads the job as of the beginning of the statement, and the ready row as of
# now. In between the job may have run, was released, or was asked to end as it became ready: its
# token shows all of that. ``scanned`` is how many microseconds the statement took to find a row:
# unlike NOW(), SYSDATE() moves on within it.
PICKED = ("turn", *CLAIM_COLUMNS, "is_current", "now", "scanned")
IS_CURRENT = "j.finished_at IS NULL AND j.token = r.token"
_PICKED = f"""
r.turn, {", ".join(f"r.`{name}`" for name in EXECUTION_COLUMNS)}, {_JOB},
{IS_CURRENT},
{NOW_SQL}, TIMESTAMPDIFF(MICROSECOND, NOW(6), SYSDATE(6))"""
_WITH_JOB = f"LEFT JOIN {tables.JOBS} j FORCE INDEX (PRIMARY) ON j.id = r.job_id"
_LOCK = "FOR UPDATE {of} SKIP LOCKED"

PICK = f"""
SELECT {_PICKED} FROM {tables.READY} r FORCE INDEX ({{index}}) {_WITH_JOB}
WHERE {{where}} ORDER BY r.`rank`, r.turn LIMIT {{limit}} {_LOCK}"""
PICK_GIVEN = f"""
SELECT {_PICKED} FROM {{given}} STRAIGHT_JOIN {tables.READY} r FORCE INDEX (PRIMARY)
ON r.job_id = given.id {_WITH_JOB}
LIMIT {{limit}} {_LOCK}"""
BY_RANK, BY_QUEUE = "steady_queue_ready_poll", "steady_queue_ready_queue"
NONE_PAUSED = f"r.`rank` >= -32768 AND NOT EXISTS (SELECT 1 FROM {tables.PAUSES})"

# With a lock, to see what is newer than the snapshot of a caller's transaction, and to wait for a
# transaction that has locked the job: SKIP LOCKED has treated it as if it were not there.
REREAD = ("job_id", *JOB_COLUMNS, "is_current")
READ_AGAIN = f"""
SELECT j.id, {_JOB}, j.finished_at IS NULL
FROM {{given}} STRAIGHT_JOIN {tables.JOBS} j FORCE INDEX (PRIMARY)
ON j.id = given.id LOCK IN SHARE MODE"""
# Referring to a job takes this lock, too.
FREE = f"""
SELECT j.id FROM {{given}} STRAIGHT_JOIN {tables.JOBS} j FORCE INDEX (PRIMARY)
ON j.id = given.id {{share}} SKIP LOCKED"""
RUNNING = f"""
SELECT c.job_id FROM {{given}} STRAIGHT_JOIN {tables.CLAIMED} c FORCE INDEX (PRIMARY)
ON c.job_id = given.id"""

INSERT_CLAIMED = f"""
INSERT INTO {tables.CLAIMED} (job_id, queue_name, `rank`, token, created_at, process_id) VALUES"""
DELETE_READY = f"""
DELETE r FROM {{given}} STRAIGHT_JOIN {tables.READY} r FORCE INDEX (PRIMARY)
ON r.job_id = given.id"""

Row = dict[str, Any]


def registered(process: ProcessIdentity) -> Statement:
    """Return a statement that has a row if the process is registered."""
    return Statement(REGISTERED.format(int(process.id)), [process.name])


def named(result: Result, columns: tuple[str, ...] = PICKED) -> list[Row]:
    """Return rows by the names of their columns."""
    return [dict(zip(columns, row, strict=True)) for row in result.rows]
