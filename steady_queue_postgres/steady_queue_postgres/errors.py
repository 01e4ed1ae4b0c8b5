"""Classifies errors by their SQLSTATE: texts depend on the server's language."""

from __future__ import annotations

from django.db import DatabaseError, InterfaceError, OperationalError

#: Worth another attempt on the same connection: serialization failure, deadlock, lock timeout, and
#: statement timeout, as set by an administrator.
CONFLICTS = frozenset({"40001", "40P01"})
CONTENTION = CONFLICTS | {"55P03", "57014"}
#: A limit of the server, such as that of the notifications that wait for their listeners.
LIMIT = "54000"

#: The server ends or refuses a session: shutdown, crash, start, timeouts of idle sessions and of
#: transactions, and too many connections. Not 25006, a read-only server: it answers.
LOST = frozenset({"57P01", "57P02", "57P03", "57P05", "25P03", "25P04", "53300"})
#: Connection exceptions. Poolers report everything in this class.
LOST_CLASS = "08"


def is_contention(error: BaseException) -> bool:
    """Return whether another attempt may succeed once other transactions have ended."""
    return isinstance(error, DatabaseError) and _sqlstate(error) in CONTENTION


def is_limit(error: BaseException) -> bool:
    """Return whether a limit of the server is exceeded."""
    return isinstance(error, DatabaseError) and _sqlstate(error) == LIMIT


def is_conflict(error: BaseException) -> bool:
    """Return whether the server has undone this transaction in favour of others."""
    return isinstance(error, DatabaseError) and _sqlstate(error) in CONFLICTS


def is_lost_connection(error: BaseException) -> bool:
    """Return whether only a new connection can help."""
    if isinstance(error, InterfaceError):
        return True  # Raised by the driver, which knows that the connection is closed.
    sqlstate = _sqlstate(error)
    if sqlstate is None:
        # The server has not answered: no connection, a full pool, a broken socket.
        return isinstance(error, OperationalError)
    return sqlstate in LOST or sqlstate.startswith(LOST_CLASS)


def _sqlstate(error: BaseException) -> str | None:
    cause = error.__cause__ or error
    found: str | None = getattr(cause, "sqlstate", None)
    return found
