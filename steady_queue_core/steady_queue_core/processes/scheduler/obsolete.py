"""Rows of recurring tasks that were in code, and are in the code of no process any more."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from django.db.models import QuerySet

from ...dialects import portable
from ...listings.processes import metadata_of
from ...models import RecurringTask
from ...models.process import NEVER_AGAIN, Process


def remove_obsolete(using: str, keys: Collection[str]) -> bool:
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
