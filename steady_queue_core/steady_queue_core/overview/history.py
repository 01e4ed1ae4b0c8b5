"""What has become of jobs, and how many there were, by the tables of statistics."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from ..listings.damage import ERRORS, is_damage
from ..models import Sample, Statistic
from ..statistics.spans import HOUR, MINUTE, RECENT_HOUR
from .scope import Scope
from .statement import Part, rows_of
from .total import Row, Total
from .window import DAY

#: Most rows of statistics of minutes, and of hours, that are read: the latest ones.
MOST = 50_000
#: Minutes that count as lately, for rates.
LATELY = 10
#: Minutes with a rate of their own beside the rows of queues.
RECENT = 60
#: Marks samples among the rows of one statement; no span is like it.
SAMPLE = -1
COLUMNS = (
    "span", "minute", "queue_name", "task_path", "enqueued", "finished", "failed", "retried",
    "lost", "wait_ms", "run_ms", "wait_max", "run_max", "wait_histogram", "run_histogram",
)  # fmt: skip
SAMPLED = ("minute", "queue_name", "ready", "oldest_wait_ms")


class Length(NamedTuple):
    """How many jobs were ready in a minute, and how long the oldest had waited (milliseconds)."""

    ready: int
    oldest_wait_ms: int


@dataclass
class History:
    """Rows of statistics and samples, up to now."""

    #: Minutes since 1970.
    minute: int
    scope: Scope
    minutes: list[Row] = field(default_factory=list)
    hours: list[Row] = field(default_factory=list)
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
        for row in _rows(scope, minute):
            found._add(row)
        found.is_cut = MOST in (len(found.minutes), len(found.hours))
        found.hours = list(_without_copies(found.hours))
        return found

    def _add(self, row: tuple[Any, ...]) -> None:
        span, minute, queue, *rest = row
        if type(minute) is not int or not isinstance(queue, str):
            return
        if span == SAMPLE:
            self._add_sample(minute, queue, Length(*map(_number, rest[1:3])))
        elif isinstance(rest[0], str):
            (self.minutes if span == MINUTE else self.hours).append(Row(*row))

    def _add_sample(self, minute: int, queue: str, length: Length) -> None:
        if not queue:
            self.samples[minute] = length
        known = self.earlier.get(queue)
        distance = abs(self.minute - LATELY - minute)
        if known is None or distance < abs(self.minute - LATELY - known[0]):
            self.earlier[queue] = minute, length

    # --- what is shown ---

    @cached_property
    def rows(self) -> list[Row]:
        """The rows of the window and the scope: hours, and the minutes of those that are not summed
        up."""
        window = self.scope.window
        first = window.steps(self.minute)[0]
        if window.step == MINUTE:
            found = self.minutes
        else:
            summed = {row.minute for row in self.hours}
            minutes = (each for each in self.minutes if each.minute // HOUR * HOUR not in summed)
            found = [*self.hours, *minutes]
        return [each for each in found if each.minute >= first and self._is_shown(each)]

    @cached_property
    def steps(self) -> dict[int, Total]:
        """The totals of each step of the window."""
        step = self.scope.window.step
        found = {each: Total() for each in self.scope.window.steps(self.minute)}
        for row in self.rows:
            if (total := found.get(row.minute // step * step)) is not None:
                total.add(row)
        return found

    @cached_property
    def by_task(self) -> dict[str, Total]:
        """The totals of the window by task."""
        return _grouped(self.rows, lambda row: str(row.task))

    @cached_property
    def by_queue(self) -> dict[str, Total]:
        """The totals of the window by queue."""
        return _grouped(self.rows, lambda row: str(row.queue))

    @cached_property
    def lately(self) -> dict[str, Total]:
        """The totals of the last ten minutes by queue. The present minute is not over."""
        return _grouped(
            [row for row in self._recent if self._is_late(row)], lambda row: str(row.queue)
        )

    @cached_property
    def sparks(self) -> dict[str, list[int]]:
        """How many jobs have ended in each minute of the last hour, by queue."""
        found: dict[str, list[int]] = {}
        first = self.minute - RECENT
        for row in self._recent:
            if 0 <= (position := row.minute - first) < RECENT:
                counts = found.setdefault(str(row.queue), [0] * RECENT)
                counts[position] += _number(row.finished) + _number(row.failed)
        return found

    @property
    def known_tasks(self) -> set[str]:
        """All tasks that something is known of, whatever the scope."""
        return {str(row.task) for row in (*self.minutes, *self.hours)} - {""}

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
        return _sum(self.rows)

    @cached_property
    def latest(self) -> Total:
        """The total of the last ten minutes, of the scope."""
        return _sum(row for row in self._recent if self._is_late(row))

    # --- what problems are judged by, whatever the scope ---

    @cached_property
    def latest_of_all(self) -> Total:
        """The total of the last ten minutes."""
        return _sum(row for row in self.minutes if self.minute - LATELY <= row.minute)

    @cached_property
    def last_hour(self) -> Total:
        """The total of the last hour."""
        return _sum(row for row in self.minutes if self.minute - RECENT <= row.minute)

    @cached_property
    def day_before(self) -> Total:
        """The total of the day up to ten minutes ago."""
        until = self.minute - LATELY
        hours = [row for row in self.hours if until - DAY.length <= row.minute <= until - HOUR]
        summed = {row.minute for row in hours}
        minutes = (
            row
            for row in self.minutes
            if row.minute < until and row.minute // HOUR * HOUR not in summed
        )
        return _sum([*hours, *minutes])

    @cached_property
    def _recent(self) -> list[Row]:
        return [row for row in self.minutes if self._is_shown(row)]

    def _is_late(self, row: Row) -> bool:
        return bool(self.minute - LATELY <= row.minute < self.minute)

    def _is_shown(self, row: Row) -> bool:
        return self.scope.has(row.queue, row.task)


def _rows(scope: Scope, minute: int) -> list[tuple[Any, ...]]:
    statistics = Statistic.objects.using(scope.using).order_by("-minute").values(*COLUMNS)
    samples = Sample.objects.using(scope.using).order_by().values(*SAMPLED)
    window, hour = scope.window, minute - minute % HOUR
    recent = minute - RECENT
    since = min(hour - window.length, hour - DAY.length)
    if window.step == HOUR:
        # The last hour may not have been summed up yet.
        recent = min(recent, hour - HOUR)
    selected = f"SELECT {', '.join(COLUMNS)} FROM {{rows}}"
    filling = ", ".join(["''", "{0}", "{1}", *"0000000", "''", "''"])
    sampled = "SELECT {span}, minute, queue_name, {filling} FROM {{rows}}".format(
        span=SAMPLE, filling=filling.format("ready", "oldest_wait_ms")
    )
    parts: list[Part] = [
        (selected, statistics.filter(span=MINUTE, minute__gte=recent, minute__lte=minute)),
        (selected, statistics.filter(span=RECENT_HOUR, minute__gte=since)),
        (sampled, samples.filter(queue_name="", minute__in=list(window.samples(minute)))),
        (sampled, samples.filter(minute__in=[minute - LATELY + each for each in (-1, 0, 1)])),
    ]
    if window.length > DAY.length:
        parts.append((selected, statistics.filter(span=HOUR, minute__gte=since)))
    try:
        return rows_of(scope.using, [(text, rows[:MOST]) for text, rows in parts])
    except ERRORS as error:
        if not is_damage(error):
            raise
        return []


def _without_copies(rows: list[Row]) -> Iterable[Row]:
    """Leave out the hours that are still there by their minutes' sums, too."""
    summed = {row.minute for row in rows if row.span == RECENT_HOUR}
    return (row for row in rows if row.span == RECENT_HOUR or row.minute not in summed)


def _grouped(rows: Iterable[Row], key: Callable[[Row], str]) -> dict[str, Total]:
    found: dict[str, Total] = {}
    for row in rows:
        found.setdefault(key(row), Total()).add(row)
    return found


def _sum(rows: Iterable[Row]) -> Total:
    total = Total()
    for row in rows:
        total.add(row)
    return total


def _number(value: Any) -> int:
    return value if type(value) is int and value > 0 else 0
