"""ON CONFLICT clauses for execution rows: a new row replaces a stray one of the same job.

No statement of the queue leaves a stray row behind: it comes from a manual edit or another client.
"""

from __future__ import annotations

_REPLACE = """
ON CONFLICT (job_id) DO UPDATE SET queue_name = excluded.queue_name, "rank" = excluded."rank",
                                   token = excluded.token, created_at = excluded.created_at"""
REPLACE_READY = f"{_REPLACE}, turn = excluded.turn"
REPLACE_SCHEDULED = (
    f"{_REPLACE}, due_at = excluded.due_at, concurrency_key = excluded.concurrency_key"
)
REPLACE_BLOCKED = f"{_REPLACE}, concurrency_key = excluded.concurrency_key"
