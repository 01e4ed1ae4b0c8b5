"""How long a process waits for an answer of the database before it takes it for gone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from ...configuration import ResolvedOptions
from ...dialects import dialect_for

#: Seconds, at the least and at the most: outages are to be noticed within ten.
SHORTEST, LONGEST = 3.0, 7.0
#: The part of a lease, less the time between two heartbeats, that may pass without an answer.
SHARE = 0.25
#: Seconds that an operation is given at most, after others were not enough.
MOST = 60.0


Operation = Callable[..., object]


class Limits:
    """Has a dialect set limits on the connections of one thread, which looks after others.

    Nobody can tell a server that has frozen from one that is busy with a long statement. So an
    operation whose connection was given up gets twice the time at its next try.
    """

    def __init__(self, options: ResolvedOptions) -> None:
        threshold, interval = options.process_alive_threshold, options.process_heartbeat_interval
        spare = (threshold - interval).total_seconds() * SHARE
        self.seconds = max(SHORTEST, min(LONGEST, spare))
        self._most = max(self.seconds, min(MOST, spare))
        #: What was set on the present connection.
        self._set = self.seconds
        self._wanted: dict[str, float] = {}

    @property
    def present(self) -> float:
        """Seconds that the present connection waits for an answer."""
        return self._set

    @property
    def longest(self) -> float:
        """Seconds for which a process may be expected to wait at most, connecting included."""
        return 2 * self._most + 10.0

    def apply(self, connection: BaseDatabaseWrapper, operation: Operation) -> None:
        """Have ``connection`` wait as long as ``operation`` may take."""
        wanted = self._wanted.get(name_of(operation), self.seconds)
        if wanted != self._set:
            connection.close()
        if connection.connection is None:
            self._set = wanted
            _limit(connection, wanted)

    def is_exceeded_by(self, operation: Operation, seconds: float) -> bool:
        """Say whether ``operation`` was given up after ``seconds``; then it gets more next time."""
        if seconds < self._set:
            return False
        self._wanted[name_of(operation)] = min(self._most, 2 * self._set)
        return True

    def kept(self, operation: Operation) -> None:
        """Note that ``operation`` had time enough."""
        if self._wanted:
            self._wanted.pop(name_of(operation), None)


def _limit(connection: BaseDatabaseWrapper, seconds: float) -> None:
    """Set a limit on a connection that is not open; on no other thread's."""
    wrapper: Any = connection
    known = wrapper.__dict__.setdefault("steady_queue_settings", wrapper.settings_dict)
    wrapper.settings_dict = {**known, "OPTIONS": dict(known.get("OPTIONS") or {})}
    dialect_for(connection.alias).limit_silence(connection, seconds)


def name_of(operation: Operation) -> str:
    """Return what tells an operation from others: where it is written down."""
    return getattr(operation, "__qualname__", type(operation).__qualname__)
