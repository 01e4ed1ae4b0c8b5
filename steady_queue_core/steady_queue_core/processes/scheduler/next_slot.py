"""The next slot of a recurring task, as one scheduler knows it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from ...schedules.span import Span

#: The first pause, doubled with each try up to the longest one.
FIRST_PAUSE, LONGEST_PAUSE = timedelta(seconds=1), timedelta(seconds=60)
#: How often a slot is tried.
TRIES = 10


@dataclass
class NextSlot:
    """The next slot of a recurring task, and what has become of it so far."""

    #: The slots that it is one of; ``None``: it has not been looked for.
    span: Span | None = None
    #: ``None``: there is no further slot.
    at: datetime | None = None
    #: Since when the slots count, as the row of the task said when they were looked at.
    since: datetime | None = None
    #: Whether it waits for the end of the previous run.
    is_waiting: bool = False
    #: Whether the task has run as often as it repeats.
    is_complete: bool = False
    #: How often it could not be enqueued, and until when it is left alone after that.
    tries: int = 0
    pause_until: datetime | None = None

    @property
    def due(self) -> datetime | None:
        """When it may be enqueued: at its time, or after a pause."""
        if self.at is None or self.pause_until is None:
            return self.at
        return max(self.at, self.pause_until)

    def become(self, span: Span, at: datetime | None) -> None:
        """Go on to another slot of ``span``, or to the end."""
        self.span, self.at = span, at
        self.tries, self.pause_until = 0, None
        if at is not None:
            self.is_complete = False

    def pause(self, present: datetime) -> datetime | None:
        """Return when to try again what has failed; ``None``: that was often enough."""
        self.tries += 1
        if self.tries >= TRIES:
            return None
        self.pause_until = present + min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** (self.tries - 1))
        return self.pause_until
