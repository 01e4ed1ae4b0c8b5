"""What pages and commands show of a feature of a job."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any, NamedTuple


class To(NamedTuple):
    """A text that leads to something, where there are pages."""

    #: ``"job"`` by its id, or ``"rate"`` by its key.
    kind: str
    key: Any
    text: str


class Row(NamedTuple):
    """A line about a job. Its parts follow each other without a space; texts may be hostile."""

    label: str
    parts: tuple[str | datetime | To, ...]


#: Return the rows of a job with these ``JobMetadata``; most have none.
Rows = Callable[[Any, Any], Iterable[Row]]
#: Return what happens to it at which times, as far as they are known.
Events = Callable[[Any, Any], Iterable[tuple[str, datetime | None]]]
