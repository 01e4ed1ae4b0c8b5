"""The newest of the ready jobs, and which of them a worker wants."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from steady_queue_core.dialects import QueueSelector, tables

from .packets import Statement

#: So many, and they may not be all: there is a backlog.
MOST = 300

# Without locks: which of them are taken is decided when all have been seen. Of columns that are not
# in the index: if it had all that is asked for, MySQL would read it from end to end.
NEWEST = f"""
SELECT job_id, queue_name, `rank` FROM {tables.READY} FORCE INDEX (PRIMARY)
WHERE job_id >= {{}} ORDER BY job_id LIMIT {MOST}"""
ANY_NEW = f"""
SELECT queue_name FROM {tables.READY} FORCE INDEX (PRIMARY) WHERE job_id >= {{}} LIMIT 1"""
OLDEST = Statement(f"SELECT MIN(job_id) FROM {tables.READY} FORCE INDEX (PRIMARY)")


def newest(start: int) -> Statement:
    """Return the statement that reads the jobs from the id ``start`` on."""
    return Statement(NEWEST.format(int(start)))


def any_new(start: int) -> Statement:
    """Return the statement that tells whether there are any."""
    return Statement(ANY_NEW.format(int(start)))


def wanted(
    rows: Sequence[tuple[Any, ...]], selector: QueueSelector, paused: frozenset[str]
) -> list[int]:
    """Return the ids of the jobs to claim, in order."""
    jobs = [(str(name), int(rank), int(job_id)) for job_id, name, rank in rows]
    if selector.takes_all:
        by_rank = sorted(jobs, key=lambda job: job[1:])
        return [job_id for name, _, job_id in by_rank if name not in paused]
    names = sorted({name for name, _, _ in jobs})

    def existing(prefix: str) -> list[str]:
        return [name for name in names if name.startswith(prefix)]

    turns = {name: turn for turn, name in enumerate(selector.matching(existing, paused))}
    served = [(turns[name], rank, job_id) for name, rank, job_id in jobs if name in turns]
    return [job_id for _, _, job_id in sorted(served)]
