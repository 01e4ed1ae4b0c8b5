"""The PostgreSQL dialect: its hooks, in the order of the specification.

Modules are imported, not functions: pluggy would also find a marked function under its own name.
"""

from __future__ import annotations

from django.db.backends.base.base import BaseDatabaseWrapper

from steady_queue_core.dialects import DialectInfo, hookimpl, portable

from . import (
    answer_limits,
    checks,
    claim,
    dispatch,
    enqueue,
    errors,
    examination,
    followers,
    held_rows,
    listing,
    permits,
    session,
    settle,
    table_options,
    transactions,
    turns,
    upserts,
    wakeup,
)


@hookimpl
def steady_queue_dialect(connection: BaseDatabaseWrapper) -> DialectInfo | None:
    if connection.vendor != "postgresql":
        return None
    return DialectInfo(
        name="postgres",
        display_name="PostgreSQL",
        api_version=3,
        has_wakeup=wakeup.can_listen(connection),
        excludes_queues=True,
    )


steady_queue_limit_silence = hookimpl(answer_limits.limit_silence)
steady_queue_prepare = hookimpl(session.prepare)
steady_queue_share = hookimpl(session.share)
steady_queue_transaction = hookimpl(transactions.transaction)
steady_queue_lock_rows = hookimpl(portable.lock_rows)
steady_queue_is_contention = hookimpl(errors.is_contention)
steady_queue_is_lost_connection = hookimpl(errors.is_lost_connection)
steady_queue_enqueue = hookimpl(enqueue.enqueue)
steady_queue_claim = hookimpl(claim.claim)
steady_queue_settle = hookimpl(settle.settle)
steady_queue_settle_and_claim = hookimpl(settle.settle_and_claim)
steady_queue_settle_members = hookimpl(settle.settle_members)
steady_queue_claim_followers = hookimpl(followers.claim_followers)
steady_queue_save_checkpoint = hookimpl(held_rows.save_checkpoint)
steady_queue_save_step = hookimpl(held_rows.save_step)
steady_queue_take_turn = hookimpl(turns.take_turn)
steady_queue_dispatch = hookimpl(dispatch.dispatch)
steady_queue_admit = hookimpl(permits.admit)
steady_queue_list_queues = hookimpl(listing.list_queues)
steady_queue_count_ready = hookimpl(listing.count_ready)
steady_queue_insert_if_absent = hookimpl(upserts.insert_if_absent)
steady_queue_upsert = hookimpl(portable.upsert)
steady_queue_now = hookimpl(portable.now)
steady_queue_exact_collation = hookimpl(table_options.exact_collation)
steady_queue_tune_tables = hookimpl(table_options.tune_tables)
steady_queue_wakeup = hookimpl(wakeup.listen)
steady_queue_ring = hookimpl(wakeup.notify)
steady_queue_checks = hookimpl(checks.run)
steady_queue_examine = hookimpl(examination.examine)
