"""What the database says of the queue afterwards, by plain SQL."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Query = Callable[[str], list[tuple[Any, ...]]]
EXECUTIONS = ("ready", "scheduled", "blocked", "waiting", "claimed", "failed")


@dataclass(frozen=True)
class Tables:
    """Jobs by what is wrong with them, and the runs of the recurring task."""

    unfinished: int = 0
    failed: int = 0
    stateless: int = 0
    runs: int = 0
    #: Seconds from the first run to the last one.
    span: int = 0


def look(query: Query) -> Tables:
    """Ask through the proxy, once nobody works."""
    without = " AND ".join(
        f"NOT EXISTS (SELECT 1 FROM steady_queue_{each}_executions e WHERE e.job_id = j.id)"
        for each in EXECUTIONS
    )
    unfinished = "SELECT COUNT(*) FROM steady_queue_jobs j WHERE j.finished_at IS NULL"
    [(runs, first, last)] = query(
        "SELECT COUNT(*), MIN(run_at), MAX(run_at) FROM steady_queue_recurring_executions"
    )
    return Tables(
        unfinished=_number(query(f"{unfinished} AND j.task_path NOT LIKE '%slot'")),
        failed=_number(query("SELECT COUNT(*) FROM steady_queue_failed_executions")),
        stateless=_number(query(f"{unfinished} AND {without}")),
        runs=int(runs),
        span=round((last - first).total_seconds()) if runs else 0,
    )


def _number(rows: list[tuple[Any, ...]]) -> int:
    return int(rows[0][0])
