"""The gate before the starts of jobs with a rate limit, in one database."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from django.db.backends.base.base import BaseDatabaseWrapper

from ...dialects import Dialect
from ...models import Rate
from ...models.rate import number
from ...timezones import MICROSECOND, to_microseconds
from .pace import RESOLUTION, Pace
from .stored import JobRate
from .turnstile import Turn, Turnstile

#: Transactions that may find a row missing that has just been inserted: idle rows are deleted.
TRIES = 5
#: What a permission changes in a row.
CHANGED = ("gate", "line", "shift", "limit", "period", "burst")


class Ask(NamedTuple):
    """A job that is about to start."""

    job_id: int
    rate: JobRate
    #: The slot that it has been given before; ``None``: none.
    slot: int | None = None
    #: Whether it has asked before, and was then given back by its worker.
    was_released: bool = False


class Permission(NamedTuple):
    """What lets a job start, by the clock that was given: since when, and until when."""

    rate: JobRate
    since: float
    until: float


@dataclass(frozen=True, slots=True)
class Answer:
    """What becomes of a job."""

    #: ``None``: it comes back.
    permission: Permission | None
    #: In how many seconds it comes back, and the slot that it has then.
    delay: float = 0.0
    slot: int = 0


#: The answer to a job for which there is no room: nothing has changed for it.
UNASKED = Answer(None)


class Gate:
    """Decides which jobs start now, in one short transaction of its own. ``clock`` tells seconds,
    also while this process is suspended.

    Lock order: the keys, in their order; nothing else is locked with them.
    """

    def __init__(
        self, connection: BaseDatabaseWrapper, dialect: Dialect, clock: Callable[[], float]
    ) -> None:
        self.connection, self.dialect, self.clock = connection, dialect, clock

    def ask(self, asks: Sequence[Ask], room: int | None = None) -> dict[int, Answer]:
        """Return the answers to jobs by their ids; none to those that have to ask again. Once
        ``room`` jobs may start, those that are left are ``UNASKED``; ``None``: there is room for
        all."""
        keys = sorted({each.rate.key for each in asks})
        for _ in range(TRIES):
            with self.dialect.transaction(self.connection):
                rows = self._lock(keys)
                if len(rows) == len(keys):
                    return self._answer(rows, asks, len(asks) if room is None else room)
            self._insert(key for key in keys if key not in rows)
        return {}

    def give_back(self, unused: Sequence[Permission]) -> None:
        """Let others start in place of jobs that have certainly not started."""
        keys = sorted({each.rate.key for each in unused})
        with self.dialect.transaction(self.connection):
            rows = self._lock(keys)
            present = self.clock()
            for key, row in rows.items():
                gate = number(row.gate)
                for each in unused:
                    if each.rate.key == key:
                        waited = int((present - each.since) * 1e6) + RESOLUTION
                        gate -= Pace.of(each.rate).left_after(waited)
                self._rows.filter(pk=key).update(gate=gate)

    def _lock(self, keys: Sequence[str]) -> dict[str, Any]:
        rows = self._rows.filter(pk__in=keys).order_by("pk")
        return {row.pk: row for row in self.dialect.lock_rows(self.connection, rows, wait=True)}

    def _insert(self, keys: Iterable[str]) -> None:
        present = self._present()
        for key in keys:
            row = Rate(key=key, gate=present, line=0, shift=0, limit=0, period=0, burst=0)
            self.dialect.insert_if_absent(self.connection, row, ["key"])

    def _answer(self, rows: Mapping[str, Any], asks: Sequence[Ask], room: int) -> dict[int, Answer]:
        # Both clocks are read once the keys are locked, in this order: starts are permitted in the
        # order of their times, and begin no later after them than this process thinks.
        asked_at, present = self.clock(), self._present()
        turnstiles = {
            key: Turnstile(present, *map(number, (row.gate, row.line, row.shift)))
            for key, row in rows.items()
        }
        answers: dict[int, Answer] = {}
        slots = {each.job_id: _slot_of(each, turnstiles[each.rate.key]) for each in asks}
        # Those with a slot come first, in the order of their slots; then the others, as claimed.
        for each in sorted(asks, key=lambda ask: _order_of(slots[ask.job_id])):
            if not room:
                answers[each.job_id] = UNASKED
                continue
            pace = Pace.of(each.rate)
            turn = turnstiles[each.rate.key].take_turn(pace, slots[each.job_id])
            permission = Permission(each.rate, asked_at, asked_at + pace.patience / 1e6)
            answers[each.job_id] = _answer_of(turn, present, permission)
            room -= turn.starts
        self._store(turnstiles, {each.rate.key: each.rate for each in asks})
        return answers

    def _store(self, turnstiles: Mapping[str, Turnstile], rates: Mapping[str, JobRate]) -> None:
        rows = [
            Rate(
                key=key, gate=each.gate, line=each.line, shift=each.shift, limit=rates[key].to,
                period=rates[key].per // MICROSECOND, burst=rates[key].burst,
            )
            for key, each in sorted(turnstiles.items())
        ]  # fmt: skip
        self.dialect.upsert(self.connection, rows, ["key"], CHANGED)

    def _present(self) -> int:
        return to_microseconds(self.dialect.current_time(self.connection))

    @property
    def _rows(self) -> Any:
        return Rate.objects.using(self.connection.alias)


def _slot_of(ask: Ask, turnstile: Turnstile) -> int | None:
    """Return the slot of a job. One that might have started without one is the first in the line,
    and not the last, although it has to ask again."""
    if ask.slot is None and ask.was_released:
        return min(turnstile.present - turnstile.shift, turnstile.line - 1)
    return ask.slot


def _order_of(slot: int | None) -> tuple[bool, int]:
    return slot is None, abs(slot or 0)


def _answer_of(turn: Turn, present: int, permission: Permission) -> Answer:
    if turn.starts:
        return Answer(permission)
    return Answer(None, (turn.due - present) / 1e6, turn.slot)
