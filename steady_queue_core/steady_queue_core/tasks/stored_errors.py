"""The errors of a job's attempts as its row has them: ``[path, traceback]``, and what is known of
the attempt as a third item, which earlier versions did not store."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any, NamedTuple

#: The queue stores no longer text; people are not shown what is in it.
MOST_READ = 2**22


class StoredError(NamedTuple):
    """An error of a job; what is not known is ``None`` or empty."""

    path: str
    traceback: str
    #: The attempt, from 1 on; ``None`` if none was counted.
    attempt: int | None = None
    started_at: datetime | None = None
    seconds: float | None = None
    worker: str = ""

    @property
    def stored(self) -> list[Any]:
        """The form in which it is stored."""
        known = {
            "attempt": self.attempt,
            "started_at": self.started_at and self.started_at.isoformat(),
            "seconds": None if self.seconds is None else round(self.seconds, 3),
            "worker": self.worker or None,
        }
        known = {name: value for name, value in known.items() if value is not None}
        return [self.path, self.traceback, *([known] if known else [])]


def stored_errors(text: str | None) -> list[StoredError]:
    """Return the errors in a stored list. Skips damaged ones, which must not prevent a job from
    ending."""
    return [_read(each) for each in items_of(text) if _is_error(each)]


class LatestErrors(NamedTuple):
    """The most recent errors of a job, and how many there are."""

    #: Each with its number, from 1 on.
    errors: list[tuple[int, StoredError]]
    total: int
    #: Whether the stored text is so long that it was not read.
    is_too_long: bool = False


def latest_errors(text: str | None, most: int) -> LatestErrors:
    """Return the last ``most`` errors in a stored list, without reading all of the others."""
    if text and len(text) > MOST_READ:
        return LatestErrors([], 0, is_too_long=True)
    items = [each for each in items_of(text) if _is_error(each)]
    first = max(0, len(items) - most)
    found = [(number, _read(each)) for number, each in enumerate(items[first:], first + 1)]
    return LatestErrors(found, len(items))


def items_of(text: str | None) -> list[Any]:
    """Return the items of a stored list; none if it is damaged."""
    try:
        items = json.loads(text) if text else []
    except (ValueError, RecursionError):
        return []
    return items if isinstance(items, list) else []


def _is_error(item: Any) -> bool:
    if not isinstance(item, list) or len(item) not in (2, 3):
        return False
    return isinstance(item[0], str) and isinstance(item[1], str)


def _read(item: Any) -> StoredError:
    path, traceback, *rest = item
    known = rest[0] if rest and isinstance(rest[0], dict) else {}
    attempt, seconds = _number(known.get("attempt")), _number(known.get("seconds"))
    worker = known.get("worker")
    return StoredError(
        path,
        traceback,
        int(attempt) if attempt else None,
        _instant(known.get("started_at")),
        seconds,
        worker if isinstance(worker, str) else "",
    )


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if 0 <= value < 2**31 else None


def _instant(value: Any) -> datetime | None:
    try:
        found = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return None
    return found if found.tzinfo else None
