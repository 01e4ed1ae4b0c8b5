"""What the numbers of MySQL's and MariaDB's errors mean, whichever driver raised them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import DatabaseError, DataError, IntegrityError, InterfaceError
from django.db.backends.base.base import BaseDatabaseWrapper

from steady_queue_core.dialects import portable

DUPLICATE = 1062
#: Ended by KILL QUERY.
INTERRUPTED = 1317
#: Deadlock; MariaDB: the record has changed since this snapshot; rolled back by a cluster's vote.
DEADLOCKS = frozenset({1213, 1020, 3101})
#: Besides those: lock wait time-out, NOWAIT, and the administrator's limits on a statement's time.
CONTENTION = DEADLOCKS | {1205, 3572, 3024, 1969}
#: In the middle of a statement.
CONNECTION_LOST = 2013
#: The server is gone, going or full. Not 1290, 1792 and 1836, a read-only server: it answers.
LOST = frozenset(
    {2002, 2003, 2006, 2013, 2014, 2027, 2048, 2055}  # the driver could not talk to it
    | {1053, 1152, 1158, 1159, 1160, 1161, 1184, 1927, 4031}  # it ended the connection
    | {1040, 1129, 1203, 1226}  # it takes no more connections
    | {1047}  # it is no part of its cluster
)
#: A packet beyond ``max_allowed_packet``, told by the server and by the driver.
TOO_LARGE = frozenset({1153, 2020})
#: Values that no column takes. Some drivers call these errors of operation, as if worth a retry.
BAD_VALUES = frozenset({1264, 1265, 1292, 1366, 1406, 3140, 3988})
#: A missing value, and checks that fail; likewise.
BROKEN_RULES = frozenset({1048, 1062, 1364, 1690, 3819, 4025})


def number_of(error: BaseException) -> int | None:
    """Return the number of an error of the database, if it has one."""
    cause = error.__cause__
    for found in (getattr(error, "errno", None), getattr(cause, "errno", None), *error.args[:1]):
        if isinstance(found, int) and found > 0:
            return found
    return None


def is_told_by_server(error: BaseException) -> bool:
    """Say whether ``error`` is what the server answered, and not what befell us while we read."""
    number = number_of(error)
    return number is not None and number >= 1000 and not 2000 <= number < 3000


def is_deadlock(error: BaseException) -> bool:
    """Say whether the server has rolled back the transaction for the sake of another."""
    return isinstance(error, DatabaseError) and number_of(error) in DEADLOCKS


def is_contention(error: BaseException) -> bool:
    """Say whether ``error`` is worth another try on the same connection."""
    return isinstance(error, DatabaseError) and number_of(error) in CONTENTION


def is_lost_connection(connection: BaseDatabaseWrapper, error: BaseException) -> bool:
    """Say whether the connection is gone, or leads to a server that can do nothing for us."""
    if not isinstance(error, DatabaseError | InterfaceError):
        return False
    number = number_of(error)
    if number in LOST:
        return True
    if is_told_by_server(error):
        return False  # It answers: it is there.
    return portable.is_lost_connection(connection, error)


@contextmanager
def told_alike(connection: BaseDatabaseWrapper) -> Iterator[None]:
    """Raise the errors of statements as Django's, in the classes that they deserve."""
    try:
        yield
    except Exception as error:
        number = number_of(error)
        if number in TOO_LARGE:
            connection.close()  # The server has, or will.
            raise DataError(number, f"too large for the server: {error}") from error
        if number in BAD_VALUES:
            raise DataError(number, str(error)) from error
        if number in BROKEN_RULES:
            raise IntegrityError(number, str(error)) from error
        if number is None or isinstance(error, DatabaseError | InterfaceError):
            raise
        # The C extension of MySQL's driver lets errors of later statements through as they are.
        wrapper: Any = connection
        raw: Any = error
        with wrapper.wrap_database_errors:
            raise wrapper.Database.errors.get_mysql_exception(
                number, msg=raw.msg, sqlstate=raw.sqlstate
            ) from error
