"""When a worker asks the database whether jobs that it runs were cancelled."""

from __future__ import annotations

import math
import time

#: Seconds that a job has been held before its worker asks, and seconds between two questions. Short
#: jobs end without a question.
LEAST_AGE = INTERVAL = 0.25
#: Questions for each wake-up: the request may become visible after the first one, and a wake-up may
#: stand for several requests.
QUESTIONS = 2
#: Seconds between two questions of a worker that has no time to listen.
BUSY_INTERVAL = 0.5


class CancellationWatch:
    """Plans the questions: after each wake-up, and while no listener would report one."""

    def __init__(self) -> None:
        #: Number of questions that are to be asked.
        self.open = 0
        self._asked_at = self._noted_at = -math.inf

    def note_wakeup(self) -> None:
        """Record that there may be a request."""
        self.open = QUESTIONS
        self._noted_at = time.monotonic()

    def note_busy(self) -> None:
        """Record that the worker is at work without listening."""
        if time.monotonic() - self._noted_at > BUSY_INTERVAL:
            self.note_wakeup()

    def note_question(self) -> None:
        """Record that a question was asked."""
        self.open -= 1
        self._asked_at = time.monotonic()

    def until_due(self, age: float) -> float:
        """Return the seconds until the next question, if the oldest job is held for ``age``
        seconds; infinite if none is to be asked."""
        if not self.open:
            return math.inf
        return max(LEAST_AGE - age, self._asked_at + INTERVAL - time.monotonic())
