"""Giving up on a server that does not answer, by the time-outs of the drivers."""

from __future__ import annotations

import math
from contextlib import suppress
from types import TracebackType
from typing import Any

from django.db import OperationalError
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.utils import DatabaseErrorWrapper

from .errors import CONNECTION_LOST
from .session import LOCK_WAIT

#: Seconds to wait for a connection at most.
CONNECT = 5
#: Seconds to give a statement at the least, besides those for which it may wait.
MARGIN = 2
#: What MySQL's own driver calls a time-out. It says that the session is closed then; it is not.
TIME_OUTS = frozenset({"ConnectionTimeoutError", "ReadTimeoutError", "WriteTimeoutError"})
#: What it says after it has asked the server in vain for a sign of life.
NOT_AVAILABLE = -1


def limit_silence(connection: BaseDatabaseWrapper, seconds: float) -> None:
    """Have the sessions of ``connection`` end when the server has been silent for ``seconds``."""
    wrapper: Any = connection
    options = wrapper.settings_dict["OPTIONS"]
    patience = math.ceil(max(seconds, LOCK_WAIT + MARGIN))
    # Both drivers know these names.
    if "connection_timeout" not in options:
        options.setdefault("connect_timeout", min(CONNECT, patience))
    options.setdefault("read_timeout", patience)
    options.setdefault("write_timeout", patience)
    wrapper.wrap_database_errors = _Ending(wrapper)


class _Ending(DatabaseErrorWrapper):
    """Ends a session that has timed out, for whatever is asked of it next would as well."""

    def __init__(self, wrapper: Any) -> None:
        super().__init__(wrapper)
        self._wrapper = wrapper

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        timed_out = kind is not None and kind.__name__ in TIME_OUTS
        if timed_out or getattr(error, "errno", None) == NOT_AVAILABLE:
            if self._wrapper.connection is not None:
                _end(self._wrapper.connection)
            # The number of its cause would count: it is that of statements which are too slow.
            raise OperationalError(CONNECTION_LOST, "The connection is given up")
        super().__exit__(kind, error, traceback)


def _end(session: Any) -> None:
    with suppress(Exception):
        try:
            session.shutdown()
        except NotImplementedError:  # In C; its close() waits for no answer.
            session.close()
