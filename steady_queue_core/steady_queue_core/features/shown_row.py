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


#: They follow each other without a space; texts may be hostile.
Parts = tuple[str | datetime | To, ...]
#: Returns what there is to say of a job with these ``JobMetadata``; of most nothing.
Shown = Callable[[Any, Any], Parts]
#: Returns what happens to it at which times, as far as they are known.
Events = Callable[[Any, Any], Iterable[tuple[str, datetime | None]]]
