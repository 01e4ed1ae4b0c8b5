"""The errors of a job's attempts as its row has them: ``[path, traceback]``, and what is known of
the attempt as a third item, which earlier versions did not store."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any, NamedTuple


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
    return [error for each in items_of(text) if (error := _read(each)) is not None]


def items_of(text: str | None) -> list[Any]:
    """Return the items of a stored list; none if it is damaged."""
    try:
        items = json.loads(text) if text else []
    except (ValueError, RecursionError):
        return []
    return items if isinstance(items, list) else []


def _read(item: Any) -> StoredError | None:
    if not isinstance(item, list) or len(item) not in (2, 3):
        return None
    path, traceback, *rest = item
    if not (isinstance(path, str) and isinstance(traceback, str)):
        return None
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
