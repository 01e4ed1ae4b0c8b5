"""Building blocks that need nothing but Django's ORM.

A dialect delegates to them, in one line each, what its database does not do better. They are
right on every database that Django drives with row locks or with transactions that lock as a
whole, and make no use of anything else: expect several statements where a tuned hook needs one.
"""

from __future__ import annotations

from .bookmarks import MANY_PAUSED, Bookmarks, Span
from .claim import claim, claimed_job
from .clock import aware, current_time, keeps_zones, now, storable
from .dispatch import dispatch
from .enqueue import due_at, enqueue
from .listing import list_queues, paused_queues, prefix_end
from .locking import is_contention, is_lost_connection, lock_rows, transaction
from .permits import admit
from .settle import settle
from .tokens import next_token
from .upserts import insert_if_absent, upsert

__all__ = [
    "MANY_PAUSED",
    "Bookmarks",
    "Span",
    "admit",
    "aware",
    "claim",
    "claimed_job",
    "current_time",
    "dispatch",
    "due_at",
    "enqueue",
    "insert_if_absent",
    "is_contention",
    "is_lost_connection",
    "keeps_zones",
    "list_queues",
    "lock_rows",
    "next_token",
    "now",
    "paused_queues",
    "prefix_end",
    "settle",
    "storable",
    "transaction",
    "upsert",
]
