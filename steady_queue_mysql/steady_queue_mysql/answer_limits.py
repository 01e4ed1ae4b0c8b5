"""Limits on how long to wait for an answer, by the time-outs of the drivers."""

from __future__ import annotations

import math
from contextlib import suppress
from types import TracebackType
from typing import Any

from django.db import OperationalError
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.utils import DatabaseErrorWrapper

from .errors import CONNECTION_LOST, is_not_available
from .session import LOCK_WAIT

#: The longest time to wait for a connection, in seconds.
CONNECT_TIMEOUT = 5
#: The shortest time for a statement, in seconds, in addition to that for which it may wait.
MARGIN = 2
#: Time-outs of MySQL's own driver. It says that the session is closed then, but it is not.
TIMEOUTS = frozenset({"ConnectionTimeoutError", "ReadTimeoutError", "WriteTimeoutError"})


def limit_silence(connection: BaseDatabaseWrapper, seconds: float) -> None:
    """Make statements on ``connection`` fail if the server does not answer for ``seconds``."""
    wrapper: Any = connection
    options = wrapper.settings_dict["OPTIONS"]
    timeout = math.ceil(max(seconds, LOCK_WAIT + MARGIN))
    # Both drivers know these names.
    if "connection_timeout" not in options:
        options.setdefault("connect_timeout", min(CONNECT_TIMEOUT, timeout))
    options.setdefault("read_timeout", timeout)
    options.setdefault("write_timeout", timeout)
    wrapper.wrap_database_errors = _SessionCloser(wrapper)


class _SessionCloser(DatabaseErrorWrapper):
    """Closes a session that has timed out: every further statement on it would time out too."""

    def __init__(self, wrapper: Any) -> None:
        super().__init__(wrapper)
        self._wrapper = wrapper

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        timed_out = kind is not None and kind.__name__ in TIMEOUTS
        if timed_out or is_not_available(error):
            if self._wrapper.connection is not None:
                _close(self._wrapper.connection)
            # A number of its own: that of the cause stands for statements that are too slow.
            raise OperationalError(CONNECTION_LOST, "The server did not answer in time")
        super().__exit__(kind, error, traceback)


def _close(session: Any) -> None:
    with suppress(Exception):
        try:
            session.shutdown()
        except NotImplementedError:  # The C extension; its close() waits for no answer.
            session.close()
