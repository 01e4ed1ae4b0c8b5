"""Storage parameters and the collation of the queue's tables."""

from __future__ import annotations

from steady_queue_core.dialects import tables

#: Rows come and go by the thousand while only a few exist at a time: vacuumed by number, not by
#: share of the table, without delay, and with room in the pages for their successors.
BUSY = (
    "fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, "
    "autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_scale_factor = 0, "
    "autovacuum_analyze_threshold = 10000"
)
BUSY_TABLES = (
    tables.READY,
    tables.SCHEDULED,
    tables.BLOCKED,
    tables.CLAIMED,
    tables.SEMAPHORES,
    tables.PERMITS,
    tables.PROCESSES,
)

#: Every job is updated once or twice in its life: vacuumed before a fifth of the history is dead.
JOBS = "autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_insert_scale_factor = 0.05"


def tune_tables() -> list[str]:
    """Return the statements that set the storage parameters."""
    tuned = [f"ALTER TABLE {name} SET ({BUSY})" for name in BUSY_TABLES]
    return [*tuned, f"ALTER TABLE {tables.JOBS} SET ({JOBS})"]


def exact_collation() -> str:
    """Return the collation that compares by code point."""
    return "C"
