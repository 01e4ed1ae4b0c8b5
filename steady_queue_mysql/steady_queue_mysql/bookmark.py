"""From which job on a worker looks for new ones.

InnoDB keeps the entries of claimed jobs as long as any transaction may still want to see them, and
every claim steps over them: behind a backup of an hour that adds up to a second. So, while that
takes long, a claim looks at the newest jobs alone, by their ids; a backlog, or the time that has
passed, lets it read the queue from the beginning, also for jobs that came to lie behind the
bookmark: released, retried, dispatched or committed late.

By ids, because the other indexes begin with the rank or the queue: beyond the last live entry of a
range, InnoDB steps on over the dead entries of the next one.
"""

from __future__ import annotations

import time

from django.db.backends.base.base import BaseDatabaseWrapper

#: Seconds until the first row, from which on the way to it counts as long.
LONG = 0.003
#: So many long ways in a row, and the bookmark is used: one may be the processor's fault.
SEVERAL = 3
#: Reads from the beginning take no more than this share of the time, and come at least so often.
SHARE, LONGEST_PAUSE = 0.05, 5.0
#: How many ids the bookmark lies before the oldest job: one that is enqueued at the same time may
#: get the smaller id and be committed later.
SLACK = 100


class Bookmark:
    """What a connection knows of the ready jobs. To lose it harms nothing."""

    def __init__(self) -> None:
        #: No job before this id is looked for.
        self.start: int | None = None
        self._long_ways = 0
        self._next_read = 0.0

    @classmethod
    def of(cls, connection: BaseDatabaseWrapper) -> Bookmark:
        """Return the bookmark of ``connection``."""
        found: Bookmark = connection.__dict__.setdefault("steady_queue_bookmark", cls())
        return found

    @property
    def is_wanted(self) -> bool:
        """Whether the way from the beginning is long."""
        return self._long_ways >= SEVERAL

    @property
    def serves(self) -> bool:
        """Whether the next claim may begin at the bookmark."""
        return self.is_wanted and self.start is not None and time.monotonic() < self._next_read

    def note_way(self, seconds: float) -> None:
        """Note how long a read from the beginning took to find a row, or none."""
        self._long_ways = self._long_ways + 1 if seconds >= LONG else 0
        self._next_read = time.monotonic() + min(LONGEST_PAUSE, seconds / SHARE)

    def move(self, oldest: int | None) -> None:
        """Put the bookmark before the oldest of the ready jobs, if there is one."""
        if oldest is not None:
            self.start = max(0, oldest - SLACK)
