"""What has become of jobs, and how many there were, by the tables of statistics."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from operator import attrgetter
from typing import Any, NamedTuple, TypeVar

from ..statistics.tally import HOUR, MINUTE, QUARTER, QUARTER_SUM, RECENT_HOUR, number
from .history_rows import (
    BEFORE,
    COLUMNS,
    COUNTED_HOUR,
    COUNTED_RECENT_HOUR,
    LAST_FAILED,
    NAMES,
    SAMPLE,
    history_rows,
    is_cut,
)
from .scope import DAY, LATELY, RECENT, Scope
from .total import Total

Key = TypeVar("Key")


class Length(NamedTuple):
    """How many jobs were ready in a minute, and how long the oldest had waited (milliseconds)."""

    ready: int
    oldest_wait_ms: int


class Cell(NamedTuple):
    """What was counted of one queue and task, in one minute, hour, or six hours."""

    minute: int
    queue: str
    task: str
    total: Total


@dataclass
class History:
    """Rows of statistics and samples, up to now."""

    #: Minutes since 1970.
    minute: int
    scope: Scope
    minutes: list[Cell] = field(default_factory=list)
    #: Those of the window; and its hours that are in none of them.
    quarters: list[Cell] = field(default_factory=list)
    hours: list[Cell] = field(default_factory=list)
    #: Outcomes by hour: of a day, whatever the scope; and of a week.
    before: dict[int, Total] = field(default_factory=dict)
    counted: dict[int, Total] = field(default_factory=dict)
    #: The last hours of a week in which tasks have failed, since six hours do not tell when.
    last_failed: dict[str, int] = field(default_factory=dict)
    #: By minute, of all queues together.
    samples: dict[int, Length] = field(default_factory=dict)
    #: About ten minutes ago, by queue.
    earlier: dict[str, tuple[int, Length]] = field(default_factory=dict)
    #: Whether there were more rows than are read.
    is_cut: bool = False

    @classmethod
    def of(cls, scope: Scope, minute: int) -> History:
        """Read what a page needs, by one query."""
        found = cls(minute, scope)
        rows = history_rows(scope, minute)
        by_kind = defaultdict(list)
        for row in _sound(rows):
            by_kind[row[0]].append(row)
        cells = {
            what: [*_cells(each, is_dated=what != QUARTER_SUM)]
            for what, each in by_kind.items()
            if what != SAMPLE
        }
        for _, at, queue, _, *counts in by_kind[SAMPLE]:
            found._add_sample(at, queue, Length(*map(number, counts[:2])))
        found.minutes, found.quarters = cells.get(MINUTE, []), cells.get(QUARTER_SUM, [])
        for minute, _, task, _ in cells.get(LAST_FAILED, ()):
            found.last_failed[task] = max(minute, found.last_failed.get(task, 0))
        found.before = _by_minute(cells.get(BEFORE, ()))
        # Hours may still be there by their minutes' sums, too.
        found.hours = cells.get(RECENT_HOUR, [])
        summed = {cell.minute for cell in found.hours}
        found.hours += [cell for cell in cells.get(HOUR, ()) if cell.minute not in summed]
        for what in (COUNTED_HOUR, COUNTED_RECENT_HOUR):
            found.counted |= _by_minute(cells.get(what, ()))
        found.is_cut = is_cut(rows)
        return found

    def _add_sample(self, minute: int, queue: str, length: Length) -> None:
        if not queue:
            self.samples[minute] = length
        distance = abs(self.minute - LATELY - minute)
        known = self.earlier.get(queue)
        # Those of queues are read of three minutes only.
        if distance <= 1 and (known is None or distance < abs(self.minute - LATELY - known[0])):
            self.earlier[queue] = minute, length

    # --- what is shown ---

    @cached_property
    def cells(self) -> list[Cell]:
        """The cells of the window and the scope."""
        return self._shown(self._in_window)

    @cached_property
    def _in_window(self) -> list[Cell]:
        """Quarters of days, hours that are not among them, and the minutes of other hours."""
        first = self.scope.window.steps(self.minute)[0]
        if self.scope.window.step == MINUTE:
            found = self.minutes
        else:
            summed = {cell.minute for cell in self.hours}
            for quarter in {cell.minute for cell in self.quarters}:
                summed.update(range(quarter, quarter + QUARTER, HOUR))
            minutes = (each for each in self.minutes if _hour(each) not in summed)
            found = [*self.quarters, *self.hours, *minutes]
        return [each for each in found if each.minute >= first]

    @cached_property
    def steps(self) -> dict[int, Total]:
        """What has become of jobs in each step of the window."""
        window = self.scope.window
        if window.step == window.timed_step:
            return self.timed_steps
        minutes = (each for each in self._recent if _hour(each) not in self.counted)
        found = {**self.counted, **_joined((_hour(each), each.total) for each in minutes)}
        return {each: found.get(each, Total()) for each in window.steps(self.minute)}

    @cached_property
    def timed_steps(self) -> dict[int, Total]:
        """The totals of each step of what is timed."""
        window, by_minute = self.scope.window, _grouped(self.cells, attrgetter("minute"))
        step = window.timed_step
        found = _joined((minute // step * step, each) for minute, each in by_minute.items())
        return {each: found.get(each, Total()) for each in window.timed_steps(self.minute)}

    @cached_property
    def by_task(self) -> dict[str, Total]:
        """The totals of the window by task."""
        found = _joined((task, total) for (_, task), total in self._by_pair.items())
        for task, hour in self.last_failed.items():
            if task in found:
                total = found[task]
                found[task] = total._replace(last_failure=max(hour, total.last_failure))
        return found

    @cached_property
    def by_queue(self) -> dict[str, Total]:
        """The totals of the window by queue."""
        return _joined((queue, total) for (queue, _), total in self._by_pair.items())

    @cached_property
    def _by_pair(self) -> dict[tuple[str, str], Total]:
        return _grouped(self.cells, attrgetter("queue", "task"))

    @cached_property
    def lately(self) -> dict[str, Total]:
        """The totals of the last ten minutes by queue. The present minute is not over."""
        return _grouped([cell for cell in self._recent if self._is_late(cell)], attrgetter("queue"))

    @cached_property
    def sparks(self) -> dict[str, list[int]]:
        """How many jobs have ended in each minute of the last hour, by queue."""
        found: dict[str, list[int]] = {}
        first = self.minute - RECENT
        for cell in self._recent:
            if 0 <= (position := cell.minute - first) < RECENT:
                counts = found.setdefault(cell.queue, [0] * RECENT)
                counts[position] += cell.total.ended
        return found

    @property
    def known_tasks(self) -> set[str]:
        """The tasks of the window, and others that are read, whatever the scope."""
        return {cell.task for cell in (*self.minutes, *self.hours, *self.quarters)} - {""}

    def ready_before(self, queue: str) -> tuple[int, int] | None:
        """Return how many minutes ago it was known how many jobs of a queue were ready, and how
        many; ``None`` if it was not, or the scope is one task."""
        # A queue without ready jobs has no sample of its own.
        known = self.earlier.get(queue) or self.earlier.get("")
        if known is None or self.scope.task:
            return None
        return self.minute - known[0], known[1].ready if queue in self.earlier else 0

    @cached_property
    def total(self) -> Total:
        """The total of the window."""
        return Total.sum_of(self.by_task.values())

    # --- what problems and numbers are of, whatever the scope ---

    @cached_property
    def usual(self) -> dict[str, Total]:
        """The totals of the window by task."""
        if not self.scope.is_narrow:
            return self.by_task
        return _grouped(self._in_window, attrgetter("task"))

    @cached_property
    def latest(self) -> Total:
        """The total of the last ten minutes. The present minute is not over."""
        return _sum(cell for cell in self.minutes if self._is_late(cell))

    @cached_property
    def up_to_now(self) -> Total:
        """The total of the last ten minutes and the present one."""
        return _sum(cell for cell in self.minutes if self.minute - LATELY <= cell.minute)

    @cached_property
    def last_hour(self) -> Total:
        """What has become of jobs in the last hour, without how long that took."""
        return _counts(cell for cell in self.minutes if self.minute - RECENT <= cell.minute)

    @cached_property
    def day_before(self) -> Total:
        """What had become of jobs in the day up to ten minutes ago, without how long that took."""
        until = self.minute - LATELY
        since = until - DAY.length
        hours = {hour: each for hour, each in self.before.items() if since <= hour <= until - HOUR}
        minutes = (
            each for each in self.minutes if each.minute < until and _hour(each) not in hours
        )
        return Total.counts_of([*hours.values(), *(each.total for each in minutes)])

    @cached_property
    def _recent(self) -> list[Cell]:
        return self._shown(self.minutes)

    def _is_late(self, cell: Cell) -> bool:
        return self.minute - LATELY <= cell.minute < self.minute

    def _shown(self, cells: list[Cell]) -> list[Cell]:
        scope = self.scope
        return (
            [each for each in cells if scope.has(each.queue, each.task)]
            if scope.is_narrow
            else cells
        )


def _sound(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Leave out those without a minute and names: a row may hold anything."""
    kinds = [{*map(type, column)} for column in [*zip(*rows, strict=True)][1 : 1 + len(NAMES)]]
    if kinds == [{int}, {str}, {str}]:
        return rows
    return [row for row in rows if type(row[1]) is int and type(row[2]) is type(row[3]) is str]


def _cells(rows: Sequence[tuple[Any, ...]], *, is_dated: bool) -> Iterable[Cell]:
    if not rows:
        return ()
    # By columns: there are ten thousand rows.
    columns = [*zip(*rows, strict=True)][1:]
    names, minutes = columns[: len(NAMES)], columns[COLUMNS.index("minute")]
    dates = minutes if is_dated else [0] * len(rows)
    totals = Total.of_each(dates, columns[len(NAMES) :])
    return map(partial(tuple.__new__, Cell), zip(*names, totals, strict=True))


def _by_minute(cells: Iterable[Cell]) -> dict[int, Total]:
    return {cell.minute: cell.total for cell in cells}


def _hour(cell: Cell) -> int:
    """Return the beginning of its hour."""
    return cell.minute - cell.minute % HOUR


def _grouped(cells: Sequence[Cell], key: Callable[[Cell], Key]) -> dict[Key, Total]:
    return _joined(zip(map(key, cells), map(attrgetter("total"), cells), strict=True))


def _joined(pairs: Iterable[tuple[Key, Total]]) -> dict[Key, Total]:
    found: dict[Key, list[Total]] = defaultdict(list)
    for key, total in pairs:
        found[key].append(total)
    return {key: Total.sum_of(totals) for key, totals in found.items()}


def _sum(cells: Iterable[Cell]) -> Total:
    return Total.sum_of(cell.total for cell in cells)


def _counts(cells: Iterable[Cell]) -> Total:
    return Total.counts_of(cell.total for cell in cells)
