"""Recurring tasks of a database: those in code and those that were added at run time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db import DataError
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Q, QuerySet

from ...configured_backends import recurring_tasks_on
from ...dialects import Dialect
from ...errors import UnusableRecurringTaskError
from ...logging import about, get_logger
from ...models import RecurringTask
from ...schedules.stored import ENQUEUING, definition_of
from ...schedules.values import RecurringDefinition

logger = get_logger("steady_queue.scheduler")

#: Columns that define how and when a task that was added at run time is enqueued.
FIELDS = ("key", *ENQUEUING)
#: Columns of instants that define a task.
BOUNDS = ("starts_at", "ends_at")
#: What drivers and fields raise for an instant that is none: SQLite stores any text as one, and
#: PostgreSQL knows ``infinity``.
UNREADABLE = (ValueError, TypeError, AttributeError, OverflowError, DataError)


@dataclass(frozen=True)
class Entry:
    """A recurring task with the row that defines it, or ``None`` if it is defined in code."""

    definition: RecurringDefinition
    row: tuple[Any, ...] | None = None


class RecurringSchedule:
    """Recurring tasks whose jobs are stored in one database.

    Every reload compares whole rows, so that any change is noticed, even one made by hand.
    """

    def __init__(self, using: str, *, dynamic: bool) -> None:
        self.using, self.dynamic = using, dynamic
        self._static = {each.key: Entry(each) for each in recurring_tasks_on(using)}
        self.entries: dict[str, Entry] = dict(self._static)
        #: Rows that cannot be run, by key, as they were when this was logged.
        self._unusable: dict[Any, tuple[Any, ...]] = {}
        #: How often tasks that were added at run time have run, by key.
        self._runs: dict[Any, Any] = {}

    def reload(self, connection: BaseDatabaseWrapper, dialect: Dialect) -> None:
        """Read the tasks that have been added, changed or removed at run time."""
        if not self.dynamic:
            return
        rows = {}
        for row in self._rows(connection):
            # The number of runs changes with each of them: it defines nothing.
            rows[row[0]], self._runs[row[0]] = row[: len(FIELDS)], row[-1]
        entries = dict(self._static)
        for key, row in rows.items():
            known = self.entries.get(key)
            if known is not None and known.row == row:
                entries[key] = known
            elif self._unusable.get(key) != row and (entry := self._read(key, row)):
                entries[key] = entry
        self._unusable = {key: row for key, row in self._unusable.items() if key in rows}
        self._runs = {key: runs for key, runs in self._runs.items() if key in rows}
        self.entries = entries

    def has_runs_left(self, key: str) -> bool:
        """Whether the last reload has found that a task which was added at run time is to run
        again."""
        entry, runs = self.entries[key], self._runs.get(key)
        repeats = entry.definition.repeats
        return entry.row is not None and (
            repeats is None or (isinstance(runs, int) and runs < repeats)
        )

    def _rows(self, connection: BaseDatabaseWrapper) -> list[tuple[Any, ...]]:
        stored = RecurringTask.objects.using(connection.alias).filter(static=False)
        # Of text that is no instant, SQLite makes NULL: that would be no limit at all.
        given = {f"has_{name}": Q(**{f"{name}__isnull": False}) for name in BOUNDS}
        rows = read_rows(stored.annotate(**given), (*FIELDS, *given, "runs"))
        return [_without_lost_bounds(row) for row in rows]

    def _read(self, key: Any, row: tuple[Any, ...]) -> Entry | None:
        """Return the entry of a new or changed row, or log the reason why it cannot be run."""
        try:
            if key in self._static:
                raise UnusableRecurringTaskError(
                    f"The recurring task {key!r} is also defined in code, which takes precedence"
                )
            if len(row) < len(FIELDS):
                raise UnusableRecurringTaskError(
                    f"The recurring task {key!r} cannot be run: {row[-1]}"
                )
            definition = definition_of(RecurringTask(**dict(zip(FIELDS, row, strict=True))))
            backend: Any = definition.configured_task().get_backend()
            if backend.database != self.using:
                raise UnusableRecurringTaskError(
                    f"The recurring task {key!r} cannot be run: the backend {backend.alias!r} "
                    f"stores its jobs in the database {backend.database!r}, not in {self.using!r}"
                )
        except UnusableRecurringTaskError as error:
            self._unusable[key] = row
            logger.warning(
                "%s", str(error)[:1000], extra=about("recurring.unusable", recurring_key=key)
            )
            return None
        self._unusable.pop(key, None)
        return Entry(definition, row)


def _without_lost_bounds(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return a row, or why it cannot be read if a bound in it was lost on the way."""
    for name, is_given in zip(BOUNDS, row[len(FIELDS) :], strict=False):
        if is_given and row[FIELDS.index(name)] is None:
            return row[0], f"its row cannot be read: {name} is no instant"
    return row


def read_rows(rows: QuerySet[RecurringTask], columns: Sequence[str]) -> list[tuple[Any, ...]]:
    """Return the ``columns`` of these rows, the key first; of a row that cannot be read, only the
    key and the reason."""
    try:
        return list(rows.values_list(*columns))
    except UNREADABLE:
        keys = list(rows.values_list("key", flat=True))
        return [row for key in keys for row in _read_one(rows, key, columns)]


def _read_one(
    rows: QuerySet[RecurringTask], key: Any, columns: Sequence[str]
) -> list[tuple[Any, ...]]:
    try:
        return list(rows.filter(pk=key).values_list(*columns))
    except UNREADABLE as error:
        return [(key, f"its row cannot be read: {error}")]
