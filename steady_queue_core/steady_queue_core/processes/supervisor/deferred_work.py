"""Database work that waits until the database is available."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from ...internal_errors import log_internal_error
from ...logging import about, get_logger
from ...project_code import contained
from ..base.database import Unavailable

logger = get_logger("steady_queue.supervisor")


#: Least seconds until what the database has refused is tried again.
REFUSED_PAUSE = 5.0


class Piece(NamedTuple):
    """Something to do, and the process that it is about, if there is one."""

    run: Callable[[], object]
    process: str = ""


class DeferredWork:
    """A queue of callables, run in order. Any thread may add to it; one thread runs it."""

    def __init__(self) -> None:
        self._work: deque[Piece] = deque()
        #: What waits for a lock, or was refused, and when each is tried again.
        self._blocked: dict[Piece, float] = {}
        self._retry_at = 0.0

    def __bool__(self) -> bool:
        return bool(self._work or self._blocked)

    @property
    def is_blocked(self) -> bool:
        """Whether nothing is left but what waits for a lock, though the database is there."""
        return bool(self._blocked) and not self._work

    @property
    def processes(self) -> set[str]:
        """The processes that it is about."""
        return {piece.process for piece in (*list(self._work), *list(self._blocked))}

    def add(self, work: Callable[[], object], process: str = "") -> None:
        """Run ``work`` after all that was added before it, unless that waits for a lock."""
        self._work.append(Piece(work, process))

    def run(self, *, now: bool = False) -> None:
        """Run the work, unless a pause after an outage has not passed; ``now`` ignores that."""
        present = time.monotonic()
        if not now and present < self._retry_at:
            return
        again = deque(piece for piece, due in self._blocked.items() if now or due <= present)
        # What is new comes first: each of the others may wait for its lock.
        while self._work or again:
            if not self._try(self._work[0] if self._work else again.popleft()):
                return

    def _try(self, piece: Piece) -> bool:
        """Do a piece of work, and forget it unless it is held up; return whether there is a
        database."""
        try:
            contained(piece.run)
        except Unavailable as unavailable:
            due = time.monotonic() + unavailable.pause
            if unavailable.lost and not unavailable.refused:
                self._retry_at = due
                return False
            if unavailable.refused:
                due = max(due, time.monotonic() + REFUSED_PAUSE)
            self._blocked[piece] = due
        except Exception:
            log_internal_error(
                logger,
                "Deferred work on the queue's database failed; dropping it",
                extra=about("supervisor.work_given_up"),
            )
            self._blocked.pop(piece, None)
        else:
            self._blocked.pop(piece, None)
        if self._work and self._work[0] is piece:
            self._work.popleft()
        return True
