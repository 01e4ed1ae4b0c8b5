"""What the errors of SQLite mean."""

from __future__ import annotations

from django.db import OperationalError
from django.db.backends.base.base import BaseDatabaseWrapper

from steady_queue_core.dialects import portable

#: SQLITE_BUSY and SQLITE_LOCKED; their extended codes have these in the low byte.
CONTENTION = frozenset({5, 6})


def is_contention(connection: BaseDatabaseWrapper, error: BaseException) -> bool:
    """Recognise SQLITE_BUSY and SQLITE_LOCKED, whatever the message says."""
    if not isinstance(error, OperationalError):
        return False
    code = getattr(error.__cause__, "sqlite_errorcode", None)
    if code is None:
        return "database is locked" in str(error) or "table is locked" in str(error)
    return (code & 0xFF) in CONTENTION


def is_lost_connection(connection: BaseDatabaseWrapper, error: BaseException) -> bool:
    return portable.is_lost_connection(connection, error)
