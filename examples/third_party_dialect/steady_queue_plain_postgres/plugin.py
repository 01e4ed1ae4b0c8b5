"""The hooks that every dialect must have, in the order of the specification."""

from __future__ import annotations

from django.db.backends.base.base import BaseDatabaseWrapper

from steady_queue_core.dialects import DialectInfo, hookimpl, portable

# Modules, not functions: pluggy would take a marked function for a hook under its own name too.
from . import listing


@hookimpl
def steady_queue_dialect(connection: BaseDatabaseWrapper) -> DialectInfo | None:
    if connection.vendor != "postgresql":
        return None
    return DialectInfo(
        name="plain_postgres",
        display_name="PostgreSQL, untuned",
        api_version=3,
        excludes_queues=True,
    )


steady_queue_transaction = hookimpl(portable.transaction)
steady_queue_lock_rows = hookimpl(portable.lock_rows)
steady_queue_is_contention = hookimpl(portable.is_contention)
steady_queue_is_lost_connection = hookimpl(portable.is_lost_connection)
steady_queue_enqueue = hookimpl(portable.enqueue)
steady_queue_claim = hookimpl(portable.claim)
steady_queue_settle = hookimpl(portable.settle)
steady_queue_claim_followers = hookimpl(portable.claim_followers)
steady_queue_dispatch = hookimpl(portable.dispatch)
steady_queue_admit = hookimpl(portable.admit)
steady_queue_list_queues = hookimpl(listing.list_queues)  # The one hook that is tuned.
steady_queue_insert_if_absent = hookimpl(portable.insert_if_absent)
steady_queue_upsert = hookimpl(portable.upsert)
steady_queue_now = hookimpl(portable.now)


@hookimpl
def steady_queue_exact_collation(connection: BaseDatabaseWrapper) -> str | None:
    # The default of a PostgreSQL database may compare names by the rules of a language.
    return "C"
