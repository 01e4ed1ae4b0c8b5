"""Limits on the time that a server may leave a connection without an answer.

The operating system notices a peer that acknowledges nothing. A peer whose processes are frozen
still acknowledges everything, so that only the wait for its answer can end.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Generator
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from .prepared import LOCK_TIMEOUT

#: Seconds to wait for a connection at most. The driver waits two at the least.
CONNECT = 5
#: Seconds without traffic before the first keepalive probe, and between two probes.
IDLE, INTERVAL = 5, 2
#: Unanswered probes that end the connection.
PROBES = 3


def limit_silence(connection: BaseDatabaseWrapper, seconds: float) -> None:
    """End sessions of ``connection`` once the server has been silent for ``seconds``."""
    wrapper: Any = connection
    options = wrapper.settings_dict["OPTIONS"]
    # A pool would give the session with these limits to another thread; this one keeps it anyway.
    options.pop("pool", None)
    if "PGCONNECT_TIMEOUT" not in os.environ:
        options.setdefault("connect_timeout", min(CONNECT, math.ceil(seconds)))
    options.setdefault("keepalives_idle", IDLE)
    options.setdefault("keepalives_interval", INTERVAL)
    options.setdefault("keepalives_count", PROBES)
    options.setdefault("tcp_user_timeout", round(max(seconds, LOCK_TIMEOUT / 1000 + 1) * 1000))
    timeout = int(options["tcp_user_timeout"]) / 1000
    if timeout:
        wrapper.get_new_connection = _Opener(wrapper, timeout)


class _Opener:
    """Opens sessions with a limit on the wait for each answer."""

    def __init__(self, wrapper: Any, timeout: float) -> None:
        self._open = type(wrapper).get_new_connection.__get__(wrapper)
        self._timeout = timeout

    def __call__(self, parameters: dict[str, Any]) -> Any:
        session = self._open(parameters)
        session.wait = _BoundedWait(session, self._timeout)
        return session


class _BoundedWait:
    """Replaces a session's ``wait``: gives up when nothing arrives for too long."""

    def __init__(self, session: Any, timeout: float) -> None:
        self._session, self._timeout = session, timeout
        self._wait: Callable[..., Any] = session.wait

    def __call__(self, generator: Any, *arguments: Any, **named: Any) -> Any:
        return self._wait(self._bounded(generator), *arguments, **named)

    def _bounded(self, generator: Any) -> Generator[Any, Any, Any]:
        """Run ``generator``, which the driver resumes several times a second while it waits."""
        heard_at = time.monotonic()
        try:
            state = next(generator)
            while True:
                ready = yield state
                if ready:
                    heard_at = time.monotonic()
                elif time.monotonic() - heard_at > self._timeout:
                    self._give_up()
                state = generator.send(ready)
        except StopIteration as end:
            return end.value

    def _give_up(self) -> None:
        self._session.close()  # The server can no longer be told anything on this session.
        raise self._session.OperationalError("the connection is given up")
