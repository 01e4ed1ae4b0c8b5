"""Jobs that wait for slots of a rate close up to those before them that are gone."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, NamedTuple

from django.db.models import Q

from ...dialects import portable
from ...dialects.database import Database
from ...models import Job, Rate, ReadyExecution, ScheduledExecution
from ...models.rate import number
from ...timezones import from_microseconds, to_microseconds
from .pace import Pace
from .stored import JobRate, slot_in, with_slot
from .turnstile import GRACE, LONGEST_LINE, Turnstile, rounded

#: Seconds between two looks at a line of which a slot has passed unused; doubled for the others.
SOON, SELDOM = 2.0, 64.0
#: The same while there is no line: before one counts as empty whose jobs have gone since.
IDLE = 4.0
#: How long after the end of the last start a slot has passed unused.
UNUSED = 1_000_000
#: Most lines that are looked at in one go, and most jobs of the queue among which their jobs are.
MOST_LINES, MOST_JOBS = 50, 1_000
#: Rows that one statement changes.
ROWS = 200


class Place(NamedTuple):
    """A job that waits for its slot."""

    job_id: int
    slot: int
    metadata: str
    rate: JobRate


class ClosingUp:
    """Gives the jobs of the lines of one database earlier slots, where some have none any more.

    The order stays, and the gate alone decides about starts. Lock order: the key, the scheduled
    jobs, their rows; nobody is waited for.
    """

    def __init__(self, using: str) -> None:
        self.using, self.database = using, Database.of(using)
        #: When a line is looked at again, on the monotonic clock, and the pause before that.
        self._next: dict[str, tuple[float, float]] = {}
        self._next_look = 0.0
        #: The ends of lines at their last look.
        self._ends: dict[str, int] = {}

    def do(self) -> tuple[int, float]:
        """Look at the lines that it is time for; return the number of jobs that have another slot
        now, and the seconds until the next look."""
        began = time.monotonic()
        if began < self._next_look:
            return 0, self._next_look - began
        moved, due = 0, self._due(began)
        wait = SOON if self._next else IDLE
        self._next_look = began + wait
        for key in due:
            pause = min(SELDOM, 2 * self._next[key][1])
            self._next[key] = began + pause, pause
            if closed_up := self._close_up(key):
                self._next[key] = began + SOON, SOON
                moved += closed_up
        return moved, 0.0 if moved else wait

    def _due(self, began: float) -> list[str]:
        """Return the keys of lines that it is time to look at."""
        present = to_microseconds(self.database.current_time())
        rows = Rate.objects.using(self.using).filter(Q(line__gt=present) | Q(shift__gt=0))
        lines = {
            row.pk: row.gate
            for row in rows.order_by("pk")
            if _is_line(present, number(row.line), number(row.shift))
        }
        self._ends = {key: end for key, end in self._ends.items() if key in lines}
        self._next = {key: self._next.get(key, (began + SOON, SOON)) for key in lines}
        due = [
            key
            for key, (at, _) in self._next.items()
            if at <= began or present - number(lines[key]) > UNUSED
        ]
        return sorted(due, key=lambda key: self._next[key])[:MOST_LINES]

    def _close_up(self, key: str) -> int:
        with self.database.transaction():
            rows = Rate.objects.using(self.using).filter(pk=key)
            for row in self.database.lock_rows(rows, wait=False):
                return self._move(row)
        return 0

    def _move(self, row: Any) -> int:
        at = Turnstile(
            to_microseconds(self.database.current_time()),
            *map(number, (row.gate, row.line, row.shift)),
        )
        if not _is_line(at.present, at.line, at.shift):
            return 0
        places, all_seen = self._places(row.pk, at)
        moves, end = self._moves(at, places)
        if moves and not self._store(at, moves):
            return 0
        # Not while somebody has just got a slot there, and may not be scheduled yet.
        if all_seen and end is not None and end < at.line == self._ends.get(row.pk):
            Rate.objects.using(self.using).filter(pk=row.pk).update(line=end)
        self._ends[row.pk] = at.line
        return len(moves)

    def _places(self, key: str, at: Turnstile) -> tuple[list[Place], bool]:
        """Return the jobs of a key that wait for slots to come, by their slots, and whether these
        are all."""
        since, until = _storable(at.present), _storable(rounded(at.line + at.shift))
        scheduled = ScheduledExecution.objects.using(self.using)
        scheduled = scheduled.filter(due_at__gt=since, due_at__lte=until).order_by("due_at")
        rows = list(scheduled.values_list("pk", "job__metadata", "due_at")[:MOST_JOBS])
        due = {job_id: to_microseconds(portable.aware(instant)) for job_id, _, instant in rows}
        # One that is due later does not wait for its slot: it was put off.
        found = [
            place
            for place in _places_of(key, (row[:2] for row in rows))
            if place.slot < at.line and due[place.job_id] <= place.slot + at.shift + GRACE
        ]
        return sorted(found, key=lambda place: place.slot), len(rows) < MOST_JOBS

    def _moves(
        self, at: Turnstile, places: list[Place]
    ) -> tuple[list[tuple[Place, int]], int | None]:
        """Return which jobs get which earlier slots, and the next free slot after them."""
        moves: list[tuple[Place, int]] = []
        if not places:
            return moves, None
        pace = Pace.of(places[0].rate)
        free = places[0].slot
        if not self._are_late(places[0].rate.key):
            free = at.opens_at(pace) - at.shift
        for place in places:
            slot = min(place.slot, max(free, at.present - at.shift))
            if slot < place.slot:
                moves.append((place, slot))
            free = slot + pace.time_of(1)
        last, slot = moves[-1] if moves else (places[-1], places[-1].slot)
        if last.slot - slot < pace.time_of(1) // 2:
            # Nobody is gone: they are a little early or late, as usual.
            return [], places[-1].slot + pace.time_of(1)
        return moves, free

    def _are_late(self, key: str) -> bool:
        """Whether jobs of a key are ready and have not started: their slots are not unused."""
        ready = ReadyExecution.objects.using(self.using).exclude(job__metadata=None)
        rows = list(ready.order_by("rank", "turn").values_list("pk", "job__metadata")[:MOST_JOBS])
        return len(rows) == MOST_JOBS or any(_places_of(key, rows))

    def _store(self, at: Turnstile, moves: list[tuple[Place, int]]) -> bool:
        """Store the slots, unless somebody else has locked one of the jobs."""
        by_id = {place.job_id: (place, slot) for place, slot in moves}
        scheduled = ScheduledExecution.objects.using(self.using).filter(pk__in=by_id)
        jobs = Job.objects.using(self.using).filter(pk__in=by_id).only("pk", "metadata")
        locked = list(self.database.lock_rows(scheduled.order_by("pk"), wait=False))
        locked_jobs = list(self.database.lock_rows(jobs.order_by("pk"), wait=False))
        if min(len(locked), len(locked_jobs)) < len(by_id):
            return False
        for row in locked:
            _, slot = by_id[row.pk]
            row.due_at = min(row.due_at, _storable(rounded(slot + at.shift)))
        for job in locked_jobs:
            place, slot = by_id[job.pk]
            if job.metadata != place.metadata:
                return False
            job.metadata = with_slot(place.metadata, slot)
        ScheduledExecution.objects.using(self.using).bulk_update(locked, ["due_at"], ROWS)
        Job.objects.using(self.using).bulk_update(locked_jobs, ["metadata"], ROWS)
        return True


def _is_line(present: int, line: int, shift: int) -> bool:
    """Whether there are slots to come, by numbers that can be."""
    return 0 <= shift <= LONGEST_LINE and present < line + shift <= present + LONGEST_LINE


def _storable(microseconds: int) -> datetime:
    instant = from_microseconds(microseconds)
    assert instant is not None
    return portable.storable(instant)


def _places_of(key: str, rows: Iterable[tuple[int, Any]]) -> Iterator[Place]:
    for job_id, metadata in rows:
        slot = slot_in(metadata)
        if slot is not None and (rate := JobRate.read(metadata)) is not None and rate.key == key:
            yield Place(job_id, abs(slot), metadata, rate)
