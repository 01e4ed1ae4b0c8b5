"""Which recurring tasks there are: those of the code, and those that were added at run time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from ...configured_backends import recurring_tasks_on
from ...dialects import Dialect
from ...errors import UnusableRecurringTaskError
from ...logging import about, get_logger
from ...models import RecurringTask
from ...schedules.definition import RecurringDefinition
from ...schedules.stored import ENQUEUING, definition_of

logger = get_logger("steady_queue.scheduler")

#: The columns that are compared at each poll.
FIELDS = ("key", *ENQUEUING)


@dataclass(frozen=True)
class Entry:
    """A recurring task, and the row that defines it; ``None``: the code does."""

    definition: RecurringDefinition
    row: tuple[Any, ...] | None = None


class RecurringSchedule:
    """The recurring tasks whose jobs are stored in a database.

    Rows are compared as a whole at each look, so that a change is noticed whoever has made it.
    """

    def __init__(self, using: str, *, dynamic: bool) -> None:
        self.using, self.dynamic = using, dynamic
        self._static = {each.key: Entry(each) for each in recurring_tasks_on(using)}
        self.entries: dict[str, Entry] = dict(self._static)
        #: Rows that cannot be run, as they were when that was logged.
        self._unusable: dict[Any, tuple[Any, ...]] = {}

    def look(self, connection: BaseDatabaseWrapper, dialect: Dialect) -> None:
        """Take over what has been added, changed and removed."""
        if not self.dynamic:
            return
        rows = {row[0]: row for row in self._rows(connection)}
        entries = dict(self._static)
        for key, row in rows.items():
            known = self.entries.get(key)
            if known is not None and known.row == row:
                entries[key] = known
            elif self._unusable.get(key) != row and (entry := self._read(key, row)):
                entries[key] = entry
        self._unusable = {key: row for key, row in self._unusable.items() if key in rows}
        self.entries = entries

    def _rows(self, connection: BaseDatabaseWrapper) -> list[tuple[Any, ...]]:
        stored = RecurringTask.objects.using(connection.alias).filter(static=False)
        return list(stored.values_list(*FIELDS))

    def _read(self, key: Any, row: tuple[Any, ...]) -> Entry | None:
        """Return the entry of a row that is new or has changed; one that cannot be run is logged,
        once until it changes again."""
        try:
            if key in self._static:
                raise UnusableRecurringTaskError(
                    f"The recurring task {key!r} is in the code as well, and that one counts"
                )
            definition = definition_of(RecurringTask(**dict(zip(FIELDS, row, strict=True))))
            backend: Any = definition.configured_task().get_backend()
            if backend.database != self.using:
                raise UnusableRecurringTaskError(
                    f"The recurring task {key!r} cannot be run: the backend {backend.alias!r} "
                    f"keeps its jobs in the database {backend.database!r}, not here"
                )
        except UnusableRecurringTaskError as error:
            self._unusable[key] = row
            logger.warning(
                "%s", str(error)[:1000], extra=about("recurring.unusable", recurring_key=key)
            )
            return None
        self._unusable.pop(key, None)
        return Entry(definition, row)
