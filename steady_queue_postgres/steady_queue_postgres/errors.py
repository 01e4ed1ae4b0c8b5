"""What an error of the server means, by its SQLSTATE: texts depend on the server's language."""

from __future__ import annotations

from django.db import DatabaseError, InterfaceError, OperationalError

#: Worth another try on the same connection: serialization failure, deadlock, lock time-out, and
#: statement time-out, as an administrator sets them.
CONTENTION = frozenset({"40001", "40P01", "55P03", "57014"})

#: The server ends the session, or refuses one: shutdown, crash, start, time-outs of idle sessions
#: and of transactions, and too many connections. Not 25006, a read-only server: it answers.
LOST = frozenset({"57P01", "57P02", "57P03", "57P05", "25P03", "25P04", "53300"})
#: Connection exceptions; poolers use this class for all they have to say.
LOST_CLASS = "08"


def is_contention(error: BaseException) -> bool:
    """Recognise what passes when others have got on with their work."""
    return isinstance(error, DatabaseError) and _sqlstate(error) in CONTENTION


def is_lost_connection(error: BaseException) -> bool:
    """Recognise what only a new connection can mend."""
    if isinstance(error, InterfaceError):
        return True  # The driver's own: it knows that the connection is closed.
    sqlstate = _sqlstate(error)
    if sqlstate is None:
        # Nobody answered who could have said why: no connection, a full pool, a broken socket.
        return isinstance(error, OperationalError)
    return sqlstate in LOST or sqlstate.startswith(LOST_CLASS)


def _sqlstate(error: BaseException) -> str | None:
    cause = error.__cause__ or error
    found: str | None = getattr(cause, "sqlstate", None)
    return found
