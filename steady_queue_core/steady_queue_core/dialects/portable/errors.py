"""What the errors of databases mean."""

from __future__ import annotations

from typing import Any

from django.db import DatabaseError, InterfaceError, OperationalError, ProgrammingError
from django.db.backends.base.base import BaseDatabaseWrapper

#: Serialisation failure, deadlock, lock not available (SQL standard and PostgreSQL).
CONTENTION_SQLSTATES = frozenset({"40001", "40P01", "55P03"})
#: Lock wait time-out and deadlock of MySQL and MariaDB.
CONTENTION_ERRNOS = frozenset({1205, 1213})
#: SQLITE_BUSY and SQLITE_LOCKED; their extended codes have these in the low byte.
CONTENTION_SQLITE_CODES = frozenset({5, 6})


def is_contention(connection: BaseDatabaseWrapper, error: BaseException) -> bool:
    """Recognise deadlocks and lock time-outs by SQLSTATE, MySQL's numbers and SQLite's codes."""
    # Drivers differ in the class: MySQL's own calls a deadlock an InternalError.
    if not isinstance(error, DatabaseError):
        return False
    cause = error.__cause__
    if getattr(cause, "sqlstate", None) in CONTENTION_SQLSTATES:
        return True
    if getattr(cause, "sqlite_errorcode", 0) & 0xFF in CONTENTION_SQLITE_CODES:
        return True
    number = getattr(cause, "errno", None) or next(iter(error.args), None)
    return number in CONTENTION_ERRNOS


def is_lost_connection(connection: BaseDatabaseWrapper, error: BaseException) -> bool:
    """Recognise a dead connection by trying it."""
    if isinstance(error, InterfaceError):
        return True
    if not isinstance(error, OperationalError | ProgrammingError):
        return False
    wrapper: Any = connection
    if wrapper.connection is None:  # Django drops it when a rollback fails.
        return isinstance(error, OperationalError)
    try:
        wrapper.connection.cursor().close()
    except wrapper.Database.Error:
        return True
    return isinstance(error, OperationalError) and not connection.is_usable()
