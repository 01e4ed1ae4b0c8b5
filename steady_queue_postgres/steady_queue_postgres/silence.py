"""Giving up on a server that does not answer.

The system notices a peer that acknowledges nothing. One whose processes are frozen acknowledges
all, and is noticed by who waits for an answer.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Generator
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from .plans import LOCK_TIMEOUT

#: Seconds to wait for a connection at most. The driver waits two at the least.
CONNECT = 5
#: Seconds of silence before the system asks whether the peer is there, and between two questions.
IDLE, INTERVAL = 5, 2
#: How many questions without an answer end the connection.
QUESTIONS = 3


def limit_silence(connection: BaseDatabaseWrapper, seconds: float) -> None:
    """Have the sessions of ``connection`` end when the server has been silent for ``seconds``."""
    wrapper: Any = connection
    options = wrapper.settings_dict["OPTIONS"]
    # Another thread must not get it from a pool with our limits; we keep ours anyway.
    options.pop("pool", None)
    if "PGCONNECT_TIMEOUT" not in os.environ:
        options.setdefault("connect_timeout", min(CONNECT, math.ceil(seconds)))
    options.setdefault("keepalives_idle", IDLE)
    options.setdefault("keepalives_interval", INTERVAL)
    options.setdefault("keepalives_count", QUESTIONS)
    options.setdefault("tcp_user_timeout", round(max(seconds, LOCK_TIMEOUT / 1000 + 1) * 1000))
    patience = int(options["tcp_user_timeout"]) / 1000
    if patience:
        wrapper.get_new_connection = _Opener(wrapper, patience)


class _Opener:
    """Opens sessions that wait for no answer longer than they may."""

    def __init__(self, wrapper: Any, patience: float) -> None:
        self._open = type(wrapper).get_new_connection.__get__(wrapper)
        self._patience = patience

    def __call__(self, parameters: dict[str, Any]) -> Any:
        session = self._open(parameters)
        session.wait = _Waiting(session, self._patience)
        return session


class _Waiting:
    """In place of a session's ``wait``: gives up when nothing comes for too long."""

    def __init__(self, session: Any, patience: float) -> None:
        self._session, self._patience = session, patience
        self._wait: Callable[..., Any] = session.wait

    def __call__(self, generator: Any, *arguments: Any, **named: Any) -> Any:
        return self._wait(self._bounded(generator), *arguments, **named)

    def _bounded(self, generator: Any) -> Generator[Any, Any, Any]:
        """Do what ``generator`` does; the driver looks in several times a second meanwhile."""
        heard_at = time.monotonic()
        try:
            state = next(generator)
            while True:
                ready = yield state
                if ready:
                    heard_at = time.monotonic()
                elif time.monotonic() - heard_at > self._patience:
                    self._give_up()
                state = generator.send(ready)
        except StopIteration as end:
            return end.value

    def _give_up(self) -> None:
        self._session.close()  # Nothing can be said to the server on it any more.
        raise self._session.OperationalError("the connection is given up")
