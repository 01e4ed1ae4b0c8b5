"""Outages of the queue's database: when they begin and end, and how long to wait meanwhile."""

from __future__ import annotations

import random
import time

from ...logging import about, get_logger

logger = get_logger("steady_queue.database")

#: Seconds between tries during an outage: the first pause, and the longest.
MIN_PAUSE, MAX_PAUSE = 0.05, 5.0
#: Consecutive lock conflicts or timeouts after which they count as an outage.
MAX_CONFLICTS = 6
#: Seconds, after the pause, in which a refused operation is expected to be retried. Until then
#: the success of other operations does not end the outage.
REFUSAL_GRACE = 15.0
#: How many reasons of one outage are logged: a lost connection, and why it cannot be replaced.
MAX_REASONS = 3


class OutageTracker:
    """Counts consecutive failures, logs an outage once when it begins and once when it ends.

    Further reasons of the same outage are logged as they appear, up to ``MAX_REASONS``.
    """

    def __init__(self, using: str) -> None:
        self.using = using
        #: How many outages are over, those among them that a new connection ended at once.
        self.count = 0
        self._failures = 0
        #: When the outage was logged; 0 if there is none.
        self._logged_at = 0.0
        #: When the first operation of the present run of failures was started.
        self._failing_since = 0.0
        #: Begin and end of the last outage, or of the last slow answer.
        self._last = 0.0, 0.0
        self._reasons: set[str] = set()
        #: Refused operations, and until when only their own success ends the outage.
        self._refused: dict[str, float] = {}
        #: The operations that have not succeeded since they lost a connection that was replaced.
        self._replaced: set[str] = set()

    def was_unavailable(self, seconds_ago: float) -> bool:
        """Whether the database is known to have been unavailable ``seconds_ago``."""
        moment = time.monotonic() - seconds_ago
        began, ended = self._last
        return began <= moment <= ended or 0.0 < self._failing_since <= moment

    @property
    def has_lasting_conflicts(self) -> bool:
        """Whether there were too many failures in a row for a short lock conflict."""
        return self._failures > MAX_CONFLICTS

    def note_slow_answer(self, since: float) -> None:
        """Remember that the database took from ``since`` until now to answer."""
        self._last = since, time.monotonic()

    def note_failure(self, since: float) -> None:
        """Count the failure of an operation that was started at ``since``."""
        self._failures += 1
        self._failing_since = self._failing_since or since

    def may_be_none(self, operation: str) -> bool:
        """Whether no failure is known but that ``operation`` has just lost a connection."""
        return not self._failures and operation not in self._replaced

    def note_replaced(self, operation: str, reason: str) -> None:
        """Remember that ``operation`` has lost a connection, and that there is another one."""
        self.count += 1
        self._replaced.add(operation)
        logger.debug(
            "A connection to database %r was lost, and replaced at once: %s",
            self.using,
            reason,
            extra=about("database.reconnected", database=self.using),
        )

    def next_pause(self) -> float:
        """Return the seconds until the next try: growing exponentially, with jitter."""
        pause: float = min(MAX_PAUSE, MIN_PAUSE * 2 ** min(self._failures, 20))
        return pause * random.uniform(0.5, 1.0)

    def note_refusal(self, operation: str, pause: float) -> None:
        """Remember that the server answered, but refused ``operation``."""
        self._refused[operation] = time.monotonic() + pause + REFUSAL_GRACE

    def note_success(self, operation: str) -> None:
        """End the outage, unless another operation was refused lately."""
        self._replaced.discard(operation)
        if self._failures:
            # With a privilege missing, or on a read-only server, other operations succeed.
            self._refused.pop(operation, None)
            if time.monotonic() >= max(self._refused.values(), default=0.0):
                self._end()

    def log(self, reason: str) -> None:
        """Log that the database is unavailable: once for each of the first reasons."""
        if not self._logged_at:
            self._logged_at = time.monotonic()
            logger.warning(
                "Database %r is unavailable: %s",
                self.using,
                reason,
                extra=about("database.unavailable", database=self.using),
            )
        elif reason not in self._reasons and len(self._reasons) < MAX_REASONS:
            logger.warning(
                "Database %r is still unavailable: %s",
                self.using,
                reason,
                extra=about("database.still_unavailable", database=self.using),
            )
        self._reasons.add(reason)

    def _end(self) -> None:
        if self._logged_at:
            self.count += 1
            self._last = self._failing_since, time.monotonic()
            seconds = time.monotonic() - self._logged_at
            logger.info(
                "Database %r is available again after %.1f s",
                self.using,
                seconds,
                extra=about(
                    "database.available", database=self.using, duration_ms=round(seconds * 1000)
                ),
            )
        self._failures, self._logged_at, self._failing_since = 0, 0.0, 0.0
        self._reasons.clear()
        self._refused.clear()
