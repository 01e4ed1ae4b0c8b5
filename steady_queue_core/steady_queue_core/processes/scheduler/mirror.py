"""Recurring tasks defined in code, and the rows that mirror them in the database."""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Iterator
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import QuerySet

from ...configured_backends import recurring_tasks_on
from ...dialects import Dialect, portable
from ...listings.processes import metadata_of
from ...logging import about, get_logger
from ...models import RecurringTask
from ...models.process import NEVER_AGAIN, Process
from ...schedules.stored import TIMING, row_of
from ..base.database import QueueDatabase
from .recurring_schedule import read_rows
from .run_track import COLUMNS

logger = get_logger("steady_queue.scheduler")

#: Columns that an update leaves alone, since the code does not know them: when the row was created,
#: since when its slots count, whether the task is disabled, and what its runs have changed.
UNMIRRORED = ("key", "created_at", "active_since", "enabled", *COLUMNS)
#: Seconds until rows that were left to schedulers with other code are looked at again.
PAUSE = 60.0


class Mirroring:
    """Mirrors the recurring tasks of the code once, and removes what others still need later."""

    def __init__(self, database: QueueDatabase) -> None:
        self.database = database
        self._next = math.inf

    def begin(self) -> None:
        """Copy the recurring tasks to their table. Raises ``Unavailable``."""
        self._note(self.database.run(mirror))

    def step(self) -> None:
        """Look whether rows that were left are needed still. Raises ``Unavailable``."""
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + PAUSE
            self._note(self.database.run(tidy))

    def _note(self, has_left: bool) -> None:
        self._next = time.monotonic() + PAUSE if has_left else math.inf


def mirror(connection: BaseDatabaseWrapper, dialect: Dialect) -> bool:
    """Replace the rows of the recurring tasks that were in code with those that are now; return
    whether some are left to ``tidy`` later.

    A disabled task stays disabled, and one whose runs are counted stays as it is. Their rows stay
    even if the code does not define the task: this may be the older code during a rolling release.
    So do those of tasks that a living scheduler has in its code.
    """
    present = portable.storable(dialect.current_time(connection))
    rows = [
        row_of(definition, present, static=True)
        for definition in recurring_tasks_on(connection.alias)
    ]
    keys = [row.key for row in rows]
    fields = [field.attname for field in RecurringTask._meta.concrete_fields]
    mirrored = [name for name in fields if name not in UNMIRRORED]
    stored = RecurringTask.objects.using(connection.alias)
    with dialect.transaction(connection):
        has_left = _remove_obsolete(connection.alias, keys)
        known = dialect.lock_rows(
            connection, stored.filter(key__in=keys).order_by("key"), wait=True
        )
        before = {row[0]: row for row in read_rows(known, ("key", "static", *TIMING, "overlap"))}
        dialect.upsert(connection, rows, ["key"], mirrored)
        # A new schedule has missed no slot so far.
        rescheduled = [row.key for row in rows if before.get(row.key, ())[:-1] != _unchanged(row)]
        stored.filter(key__in=rescheduled).update(active_since=present)
        replaced = [key for key, static, *_ in before.values() if static is False]
        if replaced:
            stored.filter(key__in=replaced).update(runs=0)
        others = [row.key for row in rows if row.overlap != before.get(row.key, (row.overlap,))[-1]]
        if others:
            # Under another policy, the last run may not have been noted.
            stored.filter(key__in=others).update(last_job_id=None, waiting_at=None)
    for key in replaced:
        logger.warning(
            "Recurring task %r in code replaces the one that was added at run time",
            key,
            extra=about("recurring.replaced", recurring_key=key),
        )
    return has_left


def tidy(connection: BaseDatabaseWrapper, dialect: Dialect) -> bool:
    """Remove the rows that were left to other schedulers, which may have ended since; return
    whether some are left still."""
    keys = [definition.key for definition in recurring_tasks_on(connection.alias)]
    with dialect.transaction(connection):
        return _remove_obsolete(connection.alias, keys)


def warn_of_unscheduled(connection: BaseDatabaseWrapper, dialect: Dialect) -> None:
    """Warn of tasks that were added at run time if no scheduler enqueues them."""
    count = RecurringTask.objects.using(connection.alias).filter(static=False).count()
    if count:
        logger.warning(
            "Recurring tasks that were added at run time (%d) are not scheduled: "
            "STEADY_QUEUE['scheduler']['dynamic_tasks_enabled'] is not set",
            count,
            extra=about("recurring.not_scheduled", rows=count),
        )


def _unchanged(row: RecurringTask) -> tuple[object, ...]:
    return row.key, True, *(getattr(row, name) for name in TIMING)


def _remove_obsolete(using: str, keys: Collection[str]) -> bool:
    """Remove the rows of the tasks in code that are not among ``keys``; return whether some are
    left for a scheduler that lives and has them in its code.

    During a rolling release that is another one: its rows know when they are enabled, and since
    when their slots count.
    """
    stored = RecurringTask.objects.using(using).filter(static=True, enabled=True, runs=0)
    obsolete = set(stored.exclude(key__in=keys).values_list("key", flat=True))
    kept = {key for each in _schedules(using) for key in each.having(obsolete)} if obsolete else ()
    stored.filter(key__in=obsolete.difference(kept)).delete()
    return bool(kept)


class _Schedule:
    """The tasks of a scheduler, as its row names them: the first ones if there are very many."""

    def __init__(self, metadata: dict[str, Any]) -> None:
        named, count = metadata.get("keys"), metadata.get("recurring_tasks")
        named = named if isinstance(named, list) else []
        self._named = [each for each in named if isinstance(each, str)]
        self._is_whole = not isinstance(count, int) or count <= len(self._named)

    def having(self, keys: Collection[str]) -> Iterator[str]:
        """Yield those of the ``keys`` that the scheduler has, or may have."""
        last = max(self._named, default="")
        for key in keys:
            if key in self._named or (key > last and not self._is_whole):
                yield key


def _schedules(using: str) -> list[_Schedule]:
    schedulers: QuerySet[Process] = Process.objects.using(using).filter(kind="scheduler")
    # Without its instants: a damaged one would hide all others.
    dead = schedulers.filter(last_heartbeat_at__lte=portable.storable(NEVER_AGAIN))
    living = schedulers.exclude(pk__in=dead.values("pk")).only("metadata")
    return [_Schedule(metadata_of(row)) for row in living]
