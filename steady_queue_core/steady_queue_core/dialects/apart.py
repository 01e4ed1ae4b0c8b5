"""Dispatching due jobs apart from each other while somebody keeps locked what some of them need,
or the database refuses one of them.

A semaphore or a turn that is locked is left alone. One that a transaction has just created, and not
committed, cannot be seen, only waited for: its jobs are tried again after a multiple of that time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any, NamedTuple

from django.db import DatabaseError
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import QuerySet

from ..internal_errors import log_internal_error
from ..logging import about, get_logger
from .operations import Operations
from .portable import aware, storable
from .portable.models import rows_of
from .ready import Ready
from .records import Dispatched, TurnKey
from .rejected_rows import in_halves, rejects_rows

logger = get_logger("steady_queue.dispatcher")

#: How many due jobs are looked at at once.
PAGE = 500
#: For how many times as long as was waited in vain nobody waits for the same again.
RESPITE = 5
#: Seconds until a job is tried again that the database has refused.
REFUSED_PAUSE = 5.0
#: Earlier than any due time, so that rows with it are dispatched first.
LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)

Together = Callable[[BaseDatabaseWrapper, Operations, int], Dispatched]


class Need(NamedTuple):
    """What jobs need to become ready, beside themselves."""

    #: The key of a semaphore.
    permit: str | None = None
    #: The key in a fair queue.
    turn: TurnKey | None = None


@dataclass
class HeldUp:
    """What was tried in vain on a connection, and until when it is not tried again."""

    #: Until when jobs are not dispatched together.
    until: float = 0.0
    needs: dict[Need, float] = field(default_factory=dict)
    #: Jobs that the database has refused.
    refused: dict[int, float] = field(default_factory=dict)

    @classmethod
    def of(cls, connection: BaseDatabaseWrapper) -> HeldUp:
        found: HeldUp = vars(connection).setdefault("steady_queue_held_up", cls())
        return found

    def note(self, began: float, need: Need | None = None) -> None:
        """Note a wait in vain, for what jobs ``need`` or for any of it."""
        now = time.monotonic()
        self.until = now + RESPITE * (now - began)
        self.needs = {each: end for each, end in self.needs.items() if end > now}
        if need is not None:
            self.needs[need] = self.until

    def refuse(self, refused: Mapping[int, Exception]) -> None:
        """Note jobs that the database has refused, each by itself."""
        present = time.monotonic()
        for job_id, error in refused.items():
            if job_id not in self.refused:
                log_internal_error(
                    logger,
                    "Job %d is due, and the database does not let it become ready",
                    job_id,
                    error=error,
                    extra=about("dispatcher.not_dispatched", task_id=str(job_id)),
                )
            self.refused[job_id] = present + REFUSED_PAUSE
        if refused:
            self.until = max(self.until, present + REFUSED_PAUSE)

    def left_alone(self) -> list[int]:
        """Return the jobs that are not tried now; forget those that have not been for long."""
        present = time.monotonic()
        self.refused = {
            job_id: end for job_id, end in self.refused.items() if end + REFUSED_PAUSE > present
        }
        return [job_id for job_id, end in self.refused.items() if end > present]


def dispatch(
    connection: BaseDatabaseWrapper, dialect: Operations, limit: int, together: Together
) -> Dispatched:
    """Dispatch jobs ``together``, or apart if somebody holds that up, or the database refuses
    one."""
    held_up, began = HeldUp.of(connection), time.monotonic()
    if began >= held_up.until:
        try:
            return together(connection, dialect, limit)
        except Exception as error:
            if dialect.is_contention(connection, error):
                if not dialect.info.skips_locked:  # Then it is all of the database that is locked.
                    raise
            elif not rejects_rows(connection, dialect, error):
                raise
        held_up.note(began)
    return Apart(connection, dialect, held_up, together).dispatch(limit)


class Apart:
    """Dispatches due jobs in a transaction for each need that they have."""

    def __init__(
        self,
        connection: BaseDatabaseWrapper,
        dialect: Operations,
        held_up: HeldUp,
        together: Together,
    ) -> None:
        self._connection, self._dialect = connection, dialect
        self._held_up, self._together = held_up, together
        self._ready = Ready(connection, dialect)
        self._scheduled = rows_of(self._connection, "ScheduledExecution")

    def dispatch(self, limit: int) -> Dispatched:
        moved, passed, busy = 0, 0, set[str]()
        while moved < limit and (page := self._page(passed, busy)):
            for need, job_ids in page.items():
                done, refused = self._move(need, job_ids[: limit - moved])
                moved += done
                left = len(job_ids) - done - refused
                if left and need.permit is not None:
                    busy.add(need.permit)
                else:
                    passed += left
        following = self._scheduled.order_by("due_at").values_list("due_at", flat=True).first()
        if following is None:
            return Dispatched(moved, None)
        present = self._dialect.current_time(self._connection)
        return Dispatched(moved, max(0.0, (aware(following) - present).total_seconds()))

    def _page(self, passed: int, busy: set[str]) -> dict[Need, list[int]]:
        """Return some due jobs by their needs, first those that have none."""
        due = self._scheduled.filter(due_at__lte=self._dialect.now(self._connection))
        if left_alone := self._held_up.left_alone():
            due = due.exclude(pk__in=left_alone)
        if busy:
            due = due.exclude(concurrency_key__in=sorted(busy))
        rows = due.order_by("due_at", "rank", "job_id").values_list(
            "pk", "concurrency_key", "queue_name", "rank", "job__metadata"
        )
        needs: dict[Need, list[int]] = {Need(): []}
        for pk, permit, *of_turn in rows[passed : passed + PAGE]:
            needs.setdefault(Need(permit, self._ready.key_of(*of_turn)), []).append(pk)
        return needs if len(needs) > 1 or needs[Need()] else {}

    def _move(self, need: Need, job_ids: Sequence[int]) -> tuple[int, int]:
        """Move jobs to ready, unless somebody has locked what they need; return how many, and how
        many were refused."""
        try_some = partial(self._try, need)
        moved, refused = in_halves(self._connection, self._dialect, job_ids, try_some)
        self._held_up.refuse(refused)
        return moved, len(refused)

    def _try(self, need: Need, job_ids: Sequence[int]) -> int:
        began = time.monotonic()
        try:
            with self._dialect.transaction(self._connection):
                found = self._scheduled.filter(pk__in=job_ids)
                rows = list(self._dialect.lock_rows(self._connection, found, wait=False))
                if not rows or not all(self._is_free(need, each) for each in self._needed(need)):
                    return 0
                locked = self._scheduled.filter(pk__in=[row.pk for row in rows])
                # Due before all others, and locked by this transaction: exactly they are moved.
                locked.update(due_at=storable(LONG_AGO))
                return self._together(self._connection, self._dialect, len(rows)).moved
        except DatabaseError as error:
            locks_rows = self._dialect.info.skips_locked
            if not locks_rows or not self._dialect.is_contention(self._connection, error):
                raise
            self._held_up.note(began, need)
            return 0

    def _needed(self, need: Need) -> Iterator[QuerySet[Any]]:
        """Return the rows that have to be locked."""
        if need.permit is not None:
            yield rows_of(self._connection, "Semaphore").filter(pk=need.permit)
        if need.turn is not None:
            (queue_name, rank), text = need.turn
            yield rows_of(self._connection, "Turn").filter(
                queue_name=queue_name, rank=rank, key=text
            )

    def _is_free(self, need: Need, rows: QuerySet[Any]) -> bool:
        """Lock a row, unless somebody else has done so; return whether that was possible."""
        if rows.exists():
            return bool(list(self._dialect.lock_rows(self._connection, rows, wait=False)))
        return self._held_up.needs.get(need, 0.0) <= time.monotonic()
