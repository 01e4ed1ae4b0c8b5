"""How long a control thread waits for the database's answer before it gives the connection up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from ...configuration import ResolvedOptions
from ...dialects import dialect_for

#: Bounds of the timeout in seconds: outages are to be noticed within ten.
MIN_TIMEOUT, MAX_TIMEOUT = 3.0, 7.0
#: The share of a lease, minus the heartbeat interval, that may pass without an answer.
LEASE_SHARE = 0.25
#: Upper bound, in seconds, for an operation that has timed out before.
MAX_EXTENDED = 60.0


Operation = Callable[..., object]


class ResponseTimeouts:
    """Limits, through the dialect, how long the connections of a control thread stay silent.

    A frozen server cannot be told from one that is busy with a long statement. So an operation
    that timed out gets twice the time at its next try.
    """

    def __init__(self, options: ResolvedOptions) -> None:
        threshold, interval = options.process_alive_threshold, options.process_heartbeat_interval
        spare = (threshold - interval).total_seconds() * LEASE_SHARE
        self.seconds = max(MIN_TIMEOUT, min(MAX_TIMEOUT, spare))
        self._max = max(self.seconds, min(MAX_EXTENDED, spare))
        #: The timeout of the present connection.
        self._set = self.seconds
        self._extended: dict[str, float] = {}

    @property
    def present(self) -> float:
        """The timeout of the present connection, in seconds."""
        return self._set

    @property
    def longest(self) -> float:
        """The longest time that an operation can legitimately take, connecting included."""
        return 2 * self._max + 10.0

    def apply(self, connection: BaseDatabaseWrapper, operation: Operation) -> None:
        """Give ``connection`` the timeout of ``operation``; reconnect if it has another one."""
        wanted = self._extended.get(name_of(operation), self.seconds)
        if wanted != self._set:
            connection.close()
        if connection.connection is None:
            self._set = wanted
            _limit(connection, wanted)

    def extend_after(self, operation: Operation, seconds: float) -> bool:
        """Return whether ``operation`` timed out after ``seconds``; extend its timeout if so."""
        if seconds < self._set:
            return False
        self._extended[name_of(operation)] = min(self._max, 2 * self._set)
        return True

    def reset(self, operation: Operation) -> None:
        """Return to the ordinary timeout of an operation that has succeeded."""
        if self._extended:
            self._extended.pop(name_of(operation), None)


def _limit(connection: BaseDatabaseWrapper, seconds: float) -> None:
    """Set the timeout on a connection that is not open, without affecting other threads'."""
    wrapper: Any = connection
    known = wrapper.__dict__.setdefault("steady_queue_settings", wrapper.settings_dict)
    wrapper.settings_dict = {**known, "OPTIONS": dict(known.get("OPTIONS") or {})}
    dialect_for(connection.alias).limit_silence(connection, seconds)


def name_of(operation: Operation) -> str:
    """Return the name that identifies an operation: the place of its definition."""
    return getattr(operation, "__qualname__", type(operation).__qualname__)
