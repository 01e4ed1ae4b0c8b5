"""From which job on a worker looks for new ones.

InnoDB keeps the index entries of claimed jobs as long as any transaction may still need them, and
every claim steps over them: during a backup of an hour that adds up to a second. So while scans are
slow, claims read only the newest jobs, by their ids. A backlog, or enough time since the last full
scan, makes a claim read the queue from the beginning, which also finds jobs behind the position:
released, retried, dispatched or committed late.

By ids, because the other indexes begin with the rank or the queue: beyond the last live entry of a
range, InnoDB goes on to step over the dead entries of the next one.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from steady_queue_core.dialects import QueueSelector, tables

from .batches import Statement

#: A scan is slow if it takes so many seconds to its first row.
SLOW_SCAN = 0.003
#: The position is used after so many slow scans in a row: a single one may be due to the CPU.
SLOW_SCANS = 3
#: Full scans take no more than this share of the time, but are never further apart than this.
TIME_SHARE, MAX_INTERVAL = 0.05, 5.0
#: How many ids the position lies before the oldest job: a job that is enqueued at the same time may
#: get the smaller id and be committed later.
SLACK = 100
#: How many of the newest jobs are read. If there are as many, there may be more: a backlog.
MAX_NEWEST = 300

# Without locks: which of them are claimed is decided when all have been seen. With columns that are
# not in the index: if it had all that is selected, MySQL would read it from end to end.
NEWEST = f"""
SELECT job_id, queue_name, `rank`, turn FROM {tables.READY} FORCE INDEX (PRIMARY)
WHERE job_id >= {{}} ORDER BY job_id LIMIT {MAX_NEWEST}"""
ANY_NEW = f"""
SELECT queue_name FROM {tables.READY} FORCE INDEX (PRIMARY) WHERE job_id >= {{}} LIMIT 1"""
OLDEST = Statement(f"SELECT MIN(job_id) FROM {tables.READY} FORCE INDEX (PRIMARY)")


class ScanPosition:
    """The position of a connection. Losing it is harmless."""

    def __init__(self) -> None:
        #: Jobs with smaller ids are not looked for.
        self.start: int | None = None
        self._slow_scans = 0
        self._next_full_scan = 0.0

    @classmethod
    def of(cls, connection: BaseDatabaseWrapper) -> ScanPosition:
        """Return the position of ``connection``."""
        found: ScanPosition = connection.__dict__.setdefault("steady_queue_scan_position", cls())
        return found

    @property
    def is_needed(self) -> bool:
        """Whether full scans are slow."""
        return self._slow_scans >= SLOW_SCANS

    @property
    def is_usable(self) -> bool:
        """Whether the next claim may begin at the position."""
        return self.is_needed and self.start is not None and time.monotonic() < self._next_full_scan

    def note_scan(self, seconds: float) -> None:
        """Record how long a full scan took to find its first row, or none."""
        self._slow_scans = self._slow_scans + 1 if seconds >= SLOW_SCAN else 0
        self._next_full_scan = time.monotonic() + min(MAX_INTERVAL, seconds / TIME_SHARE)

    def move(self, oldest: int | None) -> None:
        """Move to the oldest ready job, if there is one."""
        if oldest is not None:
            self.start = max(0, oldest - SLACK)


def newest(start: int) -> Statement:
    """Return a statement that reads the jobs from the id ``start`` on."""
    return Statement(NEWEST.format(int(start)))


def any_new(start: int) -> Statement:
    """Return a statement that has a row if there are such jobs."""
    return Statement(ANY_NEW.format(int(start)))


def in_order(
    rows: Sequence[tuple[Any, ...]], selector: QueueSelector, paused: frozenset[str]
) -> list[int]:
    """Return the ids of those of the newest jobs that the worker claims, in order."""
    jobs = [(str(name), int(rank), turn, int(job_id)) for job_id, name, rank, turn in rows]
    if selector.takes_all:
        by_rank = sorted(jobs, key=lambda job: job[1:])
        closed = paused.union(name for name, *_ in jobs if selector.excludes(name))
        return [job_id for name, *_, job_id in by_rank if name not in closed]
    names = sorted({name for name, *_ in jobs})

    def existing(prefix: str) -> list[str]:
        return [name for name in names if name.startswith(prefix)]

    matching = selector.matching(existing, paused)
    positions = {name: position for position, name in enumerate(matching)}
    served = [(positions[name], *order) for name, *order in jobs if name in positions]
    return [job_id for *_, job_id in sorted(served)]
