"""What has become of jobs, and how many there were, by the tables of statistics."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from operator import attrgetter
from typing import Any, NamedTuple, TypeVar

from django.db.models import BigIntegerField, Exists, QuerySet, Sum, Value
from django.db.models.functions import Cast, Least

from ..listings.damage import ERRORS, is_damage
from ..models import Sample, Statistic
from ..statistics.spans import HOUR, MINUTE, RECENT_HOUR
from ..statistics.tally import number
from .scope import Scope
from .statement import rows_of
from .total import COUNTED, HISTOGRAMS, OUTCOMES, Total
from .window import DAY

#: Most rows of statistics of minutes, and of hours, that are read: the latest ones.
MOST = 50_000
#: What a row counts at most where the database adds: more would not fit.
MOST_COUNTED = 10**12
#: Minutes that count as lately, for rates.
LATELY = 10
#: Minutes with a rate of their own beside the rows of queues.
RECENT = 60
#: Marks samples among the rows of one statement; no span is like it.
SAMPLE = -1
COLUMNS = ("span", "minute", "queue_name", "task_path", *COUNTED)
NAMES = len(COLUMNS) - len(COUNTED)
Key = TypeVar("Key")
SAMPLED = ("minute", "queue_name", "ready", "oldest_wait_ms")


class Length(NamedTuple):
    """How many jobs were ready in a minute, and how long the oldest had waited (milliseconds)."""

    ready: int
    oldest_wait_ms: int


class Cell(NamedTuple):
    """What a process has counted of one queue and task, in one minute or hour."""

    span: int
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
    hours: list[Cell] = field(default_factory=list)
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
        rows = _rows(scope, minute)
        by_span = defaultdict(list)
        for row in _sound(rows):
            by_span[row[0]].append(row)
        for _, at, queue, _, *counts in by_span.pop(SAMPLE, ()):
            found._add_sample(at, queue, Length(*map(number, counts[:2])))
        found.minutes = [*_cells(by_span.pop(MINUTE, []))]
        # Hours may still be there by their minutes' sums, too.
        found.hours = [*_cells(by_span.pop(RECENT_HOUR, []))]
        summed = {cell.minute for cell in found.hours}
        for others in by_span.values():
            found.hours += [cell for cell in _cells(others) if cell.minute not in summed]
        found.is_cut = MOST in Counter(row[0] for row in rows).values()
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
        """Hours, and the minutes of hours that are not summed up."""
        window = self.scope.window
        first = window.steps(self.minute)[0]
        if window.step == MINUTE:
            found = self.minutes
        else:
            summed = {cell.minute for cell in self.hours}
            minutes = (each for each in self.minutes if each.minute // HOUR * HOUR not in summed)
            found = [*self.hours, *minutes]
        return [each for each in found if each.minute >= first]

    @cached_property
    def steps(self) -> dict[int, Total]:
        """The totals of each step of the window."""
        step, by_minute = self.scope.window.step, _grouped(self.cells, attrgetter("minute"))
        found = _joined((minute // step * step, each) for minute, each in by_minute.items())
        return {each: found.get(each, Total()) for each in self.scope.window.steps(self.minute)}

    @cached_property
    def by_task(self) -> dict[str, Total]:
        """The totals of the window by task."""
        return _joined((task, total) for (_, task), total in self._by_pair.items())

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
        return {cell.task for cell in (*self.minutes, *self.hours)} - {""}

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
        hours = [cell for cell in self.hours if until - DAY.length <= cell.minute <= until - HOUR]
        summed = {cell.minute for cell in hours}
        minutes = (
            cell
            for cell in self.minutes
            if cell.minute < until and cell.minute // HOUR * HOUR not in summed
        )
        return _counts([*hours, *minutes])

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


def _rows(scope: Scope, minute: int) -> list[tuple[Any, ...]]:
    known = Statistic.objects.using(scope.using).filter(minute__lte=minute)
    statistics = known.order_by("-minute")
    samples = Sample.objects.using(scope.using).order_by().values(*SAMPLED)
    window, hour = scope.window, minute - minute % HOUR
    recent = minute - RECENT
    since = min(hour - window.length, hour - DAY.length)
    filling = ", ".join(["''", "{0}", "{1}", *"0" * (len(COUNTED) - 4), "''", "''"])
    sampled = "SELECT {span}, minute, queue_name, {filling} FROM {{rows}}".format(
        span=SAMPLE, filling=filling.format("ready", "oldest_wait_ms")
    )
    hours_of = _each if window.step == HOUR else _together
    parts: list[tuple[str, QuerySet[Any, Any]]] = [
        _each(statistics.filter(span=MINUTE, minute__gte=recent)),
        hours_of(statistics.filter(span=RECENT_HOUR, minute__gte=since)),
        (sampled, samples.filter(queue_name="", minute__in=list(window.samples(minute)))),
        (sampled, samples.filter(minute__in=[minute - LATELY + each for each in (-1, 0, 1)])),
    ]
    if window.step == HOUR:
        # The last hour may not have been summed up yet.
        summed = known.filter(span=RECENT_HOUR, minute=hour - HOUR)
        unsummed = statistics.filter(span=MINUTE, minute__gte=hour - HOUR, minute__lt=recent)
        parts.append(_each(unsummed.exclude(Exists(summed))))
    if window.length > DAY.length:
        parts.append(_each(statistics.filter(span=HOUR, minute__gte=since)))
    try:
        return rows_of(scope.using, [(text, rows[:MOST]) for text, rows in parts])
    except ERRORS as error:
        if not is_damage(error):
            raise
        return []


def _each(rows: QuerySet[Any, Any]) -> tuple[str, QuerySet[Any, Any]]:
    """Return what selects rows."""
    return f"SELECT {', '.join(COLUMNS)} FROM {{rows}}", rows.values(*COLUMNS)


def _together(rows: QuerySet[Any, Any]) -> tuple[str, QuerySet[Any, Any]]:
    """Return what selects the outcomes of each hour, of all queues and tasks."""
    sums = {
        f"sum_of_{name}": Cast(Sum(Least(name, Value(MOST_COUNTED))), BigIntegerField())
        for name in OUTCOMES
    }
    counted = [f"sum_of_{each}" if each in OUTCOMES else "''" if each in HISTOGRAMS else "0"
               for each in COUNTED]  # fmt: skip
    text = f"SELECT span, minute, '', '', {', '.join(counted)} FROM {{rows}}"
    return text, rows.order_by().values("span", "minute").annotate(**sums)


def _sound(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Leave out those without a minute and names: a row may hold anything."""
    kinds = [{*map(type, column)} for column in [*zip(*rows, strict=True)][1:NAMES]]
    if kinds == [{int}, {str}, {str}]:
        return rows
    return [row for row in rows if type(row[1]) is int and type(row[2]) is type(row[3]) is str]


def _cells(rows: Sequence[tuple[Any, ...]]) -> Iterable[Cell]:
    if not rows:
        return ()
    # By columns: there are ten thousand rows.
    columns = [*zip(*rows, strict=True)]
    names, minutes = columns[:NAMES], columns[COLUMNS.index("minute")]
    totals = Total.of_each(minutes, columns[NAMES:])
    return map(partial(tuple.__new__, Cell), zip(*names, totals, strict=True))


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
