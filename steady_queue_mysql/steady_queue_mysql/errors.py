"""What the error numbers of MySQL and MariaDB mean, whichever driver raised them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import DatabaseError, DataError, IntegrityError, InterfaceError, OperationalError
from django.db.backends.base.base import BaseDatabaseWrapper

from steady_queue_core.dialects import portable

DUPLICATE = 1062
#: The user lacks a privilege on a table.
DENIED = 1142
#: A COMMIT that failed; only the text tells why.
COMMIT_FAILED = 1180
COMMIT_DEADLOCK = re.compile(r"\b149\b|deadlock", re.IGNORECASE)
COMMIT_CUT_OFF = re.compile("not connected to primary component", re.IGNORECASE)
#: Interrupted by KILL QUERY.
INTERRUPTED = 1317
#: Deadlock, or a transaction that a cluster has aborted.
ABORTED = 1213
#: Also: record changed since the snapshot (MariaDB); rolled back by a cluster's certification.
DEADLOCKS = frozenset({ABORTED, 1020, 3101})
#: Also lock wait time-out, NOWAIT, and the administrator's limits on the duration of a statement.
CONTENTION = DEADLOCKS | {1205, 3572, 3024, 1969}
#: Lost in the middle of a statement.
CONNECTION_LOST = 2013
#: The server is gone, shutting down or full. Not 1290, 1792 and 1836: a read-only server answers.
LOST = frozenset(
    {2002, 2003, 2006, 2013, 2014, 2027, 2048, 2055}  # the driver could not talk to it
    | {1053, 1152, 1158, 1159, 1160, 1161, 1184, 1927, 4031}  # it ended the connection
    | {1040, 1129, 1203, 1226}  # it takes no more connections
    | {1047}  # it is not part of its cluster
)
#: Error number of MySQL's own driver after an unanswered ping, and the classes of that error: all
#: others that come from the driver itself, such as of text that it cannot encode, have it as well.
NOT_AVAILABLE, OF_CONNECTIONS = -1, ("OperationalError", "InterfaceError")
#: A packet larger than ``max_allowed_packet``, reported by the server or by the driver.
TOO_LARGE = frozenset({1153, 2020})
#: Values that do not fit a column. Some drivers raise OperationalError, as if worth a retry.
BAD_VALUES = frozenset({1264, 1265, 1267, 1292, 1300, 1366, 1406, 3140, 3854, 3988})
#: Missing values and failed constraints; likewise.
BROKEN_RULES = frozenset({1048, 1062, 1364, 1690, 3819, 4025})


def error_number(error: BaseException) -> int | None:
    """Return the error number of a database error, if it has one."""
    cause = error.__cause__
    for found in (getattr(error, "errno", None), getattr(cause, "errno", None), *error.args[:1]):
        if isinstance(found, int) and found > 0:
            return found
    return None


def is_server_error(error: BaseException) -> bool:
    """Return whether the server sent ``error``, as opposed to one of the client or the network."""
    number = error_number(error)
    return number is not None and number >= 1000 and not 2000 <= number < 3000


class StepChanged(OperationalError):
    """Ids of one INSERT are not known: a cluster changed their step meanwhile. Try again."""


def is_unanswered_ping(error: BaseException) -> bool:
    """Return whether MySQL's own driver has found that there is no connection, by a ping."""
    return any(map(is_not_available, (error, error.__cause__, error.__context__)))


def is_not_available(error: BaseException | None) -> bool:
    """Return whether MySQL's own driver has raised this error as there is no connection."""
    number = getattr(error, "errno", None)
    return number == NOT_AVAILABLE and type(error).__name__ in OF_CONNECTIONS


def is_deadlock(error: BaseException) -> bool:
    """Return whether the transaction was rolled back in favour of another, or has to be, and is
    worth another try at once."""
    if not isinstance(error, DatabaseError):
        return False
    number = error_number(error)
    if number == COMMIT_FAILED:
        return COMMIT_DEADLOCK.search(str(error)) is not None
    return number in DEADLOCKS or isinstance(error, StepChanged)


def is_contention(connection: BaseDatabaseWrapper, error: BaseException) -> bool:
    """Return whether ``error`` is worth another try on the same connection."""
    if is_deadlock(error):
        return True
    return isinstance(error, DatabaseError) and error_number(error) in CONTENTION


def is_lost_connection(connection: BaseDatabaseWrapper, error: BaseException) -> bool:
    """Return whether the connection is gone, or leads to a server that cannot serve it."""
    if not isinstance(error, DatabaseError | InterfaceError):
        return False
    number = error_number(error)
    if number in LOST:
        return True
    if number == COMMIT_FAILED:
        return COMMIT_CUT_OFF.search(str(error)) is not None
    if is_server_error(error):
        return False  # The server answers.
    return portable.is_lost_connection(connection, error)


@contextmanager
def translated_errors(connection: BaseDatabaseWrapper) -> Iterator[None]:
    """Raise errors of statements as those of Django, in the class that fits their number."""
    try:
        yield
    except Exception as error:
        number = error_number(error)
        if number in TOO_LARGE:
            connection.close()  # The server closes it too.
            raise DataError(number, f"too large for the server: {error}") from error
        if number in BAD_VALUES:
            raise DataError(number, str(error)) from error
        if number in BROKEN_RULES:
            raise IntegrityError(number, str(error)) from error
        if number is None or isinstance(error, DatabaseError | InterfaceError):
            raise
        # The C extension of MySQL's driver does not convert errors of statements after the first.
        wrapper: Any = connection
        raw: Any = error
        with wrapper.wrap_database_errors:
            raise wrapper.Database.errors.get_mysql_exception(
                number, msg=raw.msg, sqlstate=raw.sqlstate
            ) from error
