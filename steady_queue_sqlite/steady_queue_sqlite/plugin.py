"""The SQLite dialect: its hooks, in the order of the specification."""

from __future__ import annotations

from django.db.backends.base.base import BaseDatabaseWrapper

from steady_queue_core.dialects import DialectInfo, hookimpl, portable

# Modules, not functions: pluggy would take a marked function for a hook under its own name too.
from . import (
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
    replaced_file,
    session,
    settle,
    transactions,
    turns,
    upserts,
    wakeup,
    write_turns,
)


@hookimpl
def steady_queue_dialect(connection: BaseDatabaseWrapper) -> DialectInfo | None:
    if connection.vendor != "sqlite":
        return None
    return DialectInfo(
        name="sqlite",
        display_name=f"SQLite {checks.require_version()}",
        api_version=3,
        skips_locked=False,
        has_wakeup=wakeup.can_listen(connection),
        excludes_queues=True,
        hears_commits=wakeup.can_listen(connection),
    )


steady_queue_prepare = hookimpl(session.prepare)
steady_queue_share = hookimpl(write_turns.share)
steady_queue_transaction = hookimpl(transactions.transaction)
steady_queue_lock_rows = hookimpl(transactions.lock_rows)
steady_queue_is_contention = hookimpl(errors.is_contention)
steady_queue_is_lost_connection = hookimpl(errors.is_lost_connection)
steady_queue_was_replaced = hookimpl(replaced_file.was_replaced)
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
steady_queue_upsert = hookimpl(upserts.upsert)
steady_queue_now = hookimpl(portable.now)
steady_queue_wakeup = hookimpl(wakeup.wakeup)
steady_queue_checks = hookimpl(checks.run)
steady_queue_examine = hookimpl(examination.examine)
