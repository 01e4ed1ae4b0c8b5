"""The time in which jobs were enqueued or have ended."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property

from django.db.models import Q
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from ..dialects import portable
from ..durations import parse
from .states import FAILED, FINISHED, State

#: The states whose rows are in the order of a time, with its column: of their end.
ENDED = {FAILED.name: "created_at", FINISHED.name: "finished_at"}
#: A point in time, or how long ago it is.
Moment = datetime | timedelta


@dataclass(frozen=True)
class Period:
    """Jobs from ``since`` on and before ``until``: those that have ended in it, in a state that is
    in the order of that; in other states those that were enqueued in it."""

    since: Moment | None = None
    until: Moment | None = None
    #: Returns the database's present time, which is asked only if it is needed.
    now: Callable[[], datetime] = lambda: datetime.now(UTC)

    def __bool__(self) -> bool:
        return self.since is not None or self.until is not None

    @property
    def instants(self) -> tuple[datetime | None, datetime | None]:
        """Its beginning and end as points in time."""
        return self._instant(self.since), self._instant(self.until)

    def within(self, state: State) -> Q:
        """Return the condition on the rows of a state that its order serves."""
        column = ENDED.get(state.name)
        return Q() if column is None else self._on(column)

    def also(self, state: State) -> Q:
        """Return the condition on jobs that no index serves."""
        return Q() if state.name in ENDED else self._on("enqueued_at")

    def _on(self, column: str) -> Q:
        found = Q()
        for instant, comparison in zip(self.instants, ("gte", "lt"), strict=True):
            if instant is not None:
                found &= Q(**{f"{column}__{comparison}": portable.storable(instant)})
        return found

    def _instant(self, given: Moment | None) -> datetime | None:
        return self._present - given if isinstance(given, timedelta) else given

    @cached_property
    def _present(self) -> datetime:
        return self.now()


ALWAYS = Period()


def read_moment(text: str) -> Moment:
    """Read a point in time, or how long ago it is. Without a zone, it is in the current one.

    Raises ``ValueError``, with a message for the user.
    """
    try:
        return parse(text)
    except ValueError:
        pass
    try:
        found = parse_datetime(text)
        if found is not None and found.tzinfo is None:
            found = timezone.make_aware(found, timezone.get_current_timezone())
        if found is not None:
            return found.astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    raise ValueError(
        f"{text!r} is neither a duration such as 90s, 10m, 24h or 7d nor a point in time such "
        "as 2026-01-31T12:00"
    )
