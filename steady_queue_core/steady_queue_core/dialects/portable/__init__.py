"""Building blocks that need nothing but Django's ORM.

A dialect uses them for every hook that its database cannot do better. They are correct on any
database that Django supports and that has row locks, or transactions that lock the whole database.
They rely on nothing else, so expect several statements where a tuned hook needs one.
"""

from __future__ import annotations

from .claim import claim, claimed_job
from .clock import aware, check_zone, current_time, keeps_zones, now, storable
from .dispatch import dispatch
from .enqueue import due_at, enqueue
from .errors import is_contention, is_lost_connection
from .followers import claim_followers
from .listing import count_ready, excluded_ranges, list_queues, paused_queues, prefix_end
from .observers import is_watched
from .own import end_discarded, members_of
from .permits import FEW_PERMITS, admit, end_permits, recount
from .scan_position import MANY_PAUSED, Bookmarks, Span
from .settle import settle
from .tokens import FIRST_TOKEN, next_token
from .transactions import lock_rows, transaction
from .upserts import insert_if_absent, upsert

__all__ = [
    "FEW_PERMITS",
    "FIRST_TOKEN",
    "MANY_PAUSED",
    "Bookmarks",
    "Span",
    "admit",
    "aware",
    "check_zone",
    "claim",
    "claim_followers",
    "claimed_job",
    "count_ready",
    "current_time",
    "dispatch",
    "due_at",
    "end_discarded",
    "end_permits",
    "enqueue",
    "excluded_ranges",
    "insert_if_absent",
    "is_contention",
    "is_lost_connection",
    "is_watched",
    "keeps_zones",
    "list_queues",
    "lock_rows",
    "members_of",
    "next_token",
    "now",
    "paused_queues",
    "prefix_end",
    "recount",
    "settle",
    "storable",
    "transaction",
    "upsert",
]
