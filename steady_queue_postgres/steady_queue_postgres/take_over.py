"""What execution rows do that meet a stray one of the same job: only a stranger can have left it,
and it gives way."""

from __future__ import annotations

TAKE_OVER = """
ON CONFLICT (job_id) DO UPDATE SET queue_name = excluded.queue_name, "rank" = excluded."rank",
                                   token = excluded.token, created_at = excluded.created_at"""
TAKE_OVER_DUE = f"{TAKE_OVER}, due_at = excluded.due_at, concurrency_key = excluded.concurrency_key"
TAKE_OVER_BLOCKED = f"{TAKE_OVER}, concurrency_key = excluded.concurrency_key"
