"""A dialect that tunes nothing: every hook that it must have is the portable building block."""

from __future__ import annotations

from steady_queue_core.dialects import portable

from .plugins import selecting

HOOKS = {
    # Run on SQLite, whose transactions lock the whole database.
    "steady_queue_dialect": selecting("portable", skips_locked=False, excludes_queues=True),
    "steady_queue_transaction": portable.transaction,
    "steady_queue_lock_rows": portable.lock_rows,
    "steady_queue_is_contention": portable.is_contention,
    "steady_queue_is_lost_connection": portable.is_lost_connection,
    "steady_queue_enqueue": portable.enqueue,
    "steady_queue_claim": portable.claim,
    "steady_queue_settle": portable.settle,
    "steady_queue_claim_followers": portable.claim_followers,
    "steady_queue_dispatch": portable.dispatch,
    "steady_queue_list_queues": portable.list_queues,
    "steady_queue_insert_if_absent": portable.insert_if_absent,
    "steady_queue_upsert": portable.upsert,
    "steady_queue_admit": portable.admit,
    "steady_queue_now": portable.now,
}
