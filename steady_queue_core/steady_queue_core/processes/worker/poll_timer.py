"""When a worker looks for jobs again: soon after it has found some, then ever more rarely."""

from __future__ import annotations

import time

#: First pause after a look that found too few jobs, and the factor by which pauses grow.
FIRST_PAUSE, GROWTH = 0.001, 2
#: The factor while a wake-up listener reports new jobs. A wake-up may stand for the jobs of the
#: next 5 ms, too: the looks after 1 and 5 ms find them.
LISTENING_GROWTH = 4
#: Most polling intervals between two looks meanwhile.
RESTING = 5


class PollTimer:
    """Plans the next look; the first is due at once. ``interval``: the longest pause in seconds."""

    def __init__(self, interval: float) -> None:
        self._interval = interval
        self._pause = self._due_at = 0.0

    @property
    def until_due(self) -> float:
        """Seconds until the next look; not positive if it is due."""
        return self._due_at - time.monotonic()

    def note_look(self, found: int, limit: int, *, is_listening: bool) -> None:
        """Plan the look after one that found so many jobs, and would have taken up to ``limit``."""
        if found < limit:
            self._pause = self._longer_pause(is_listening)
        elif limit:
            self._pause = 0.0
        self.postpone(self._pause)

    def postpone(self, seconds: float) -> None:
        """Let the next look be due so many seconds from now."""
        self._due_at = time.monotonic() + seconds

    def start_over(self) -> None:
        """Let the next look be due at once, and others soon after it."""
        self._pause = self._due_at = 0.0

    def _longer_pause(self, is_listening: bool) -> float:
        growth, longest = GROWTH, self._interval
        if is_listening:
            growth, longest = LISTENING_GROWTH, RESTING * self._interval
        return min(longest, self._pause * growth or FIRST_PAUSE)
