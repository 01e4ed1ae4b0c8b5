"""Reads the state of a session from its driver, mostly without a query to the server."""

from __future__ import annotations

from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

#: Parameters whose changes PostgreSQL reports unasked; every task should find the initial values.
REPORTED = (
    "client_encoding",
    "DateStyle",
    "default_transaction_read_only",
    "IntervalStyle",
    "is_superuser",
    "search_path",
    "session_authorization",
    "standard_conforming_strings",
    "TimeZone",
)
#: Attributes of a psycopg connection that its users may set.
ATTRIBUTES = (
    "autocommit",
    "cursor_factory",
    "deferrable",
    "isolation_level",
    "prepare_threshold",
    "read_only",
    "row_factory",
    "server_cursor_factory",
)
#: The same of sqlite3, of mysqlclient, and of MySQL's own driver.
SQLITE_ATTRIBUTES = ("isolation_level", "row_factory", "text_factory")
MYSQLCLIENT_ATTRIBUTES = ("cursorclass",)
CONNECTOR_ATTRIBUTES = ("converter_class", "get_warnings", "raise_on_warnings", "use_unicode")
#: Settings that SQLite is queried for: that costs no round trip.
PRAGMAS = ("query_only", "foreign_keys")
#: MySQL and MariaDB refuse this inside a transaction; outside it changes nothing.
PROBE = "SET @@transaction_read_only = @@SESSION.transaction_read_only"
REFUSED_WITHIN_TRANSACTION = 1568
#: The bit of a MySQL server's status for an open transaction.
IN_TRANSACTION = 1


def is_closed(connection: BaseDatabaseWrapper) -> bool:
    """Whether the driver's connection was closed, by its own ``close()`` or by an error."""
    wrapper: Any = connection
    driver = wrapper.connection
    if hasattr(driver, "closed"):  # psycopg, and most others
        return bool(driver.closed)
    if hasattr(driver, "open"):  # mysqlclient, PyMySQL
        return not driver.open
    if hasattr(driver, "is_closed"):  # MySQL's own, in C
        return bool(driver.is_closed())
    if hasattr(driver, "_socket"):  # MySQL's own, in Python, which offers nothing but a ping
        return getattr(driver._socket, "sock", None) is None or driver._socket.sock.fileno() < 0
    try:
        driver.in_transaction  # noqa: B018 - sqlite3 raises if the connection is closed
    except AttributeError:
        return False
    except wrapper.Database.Error:
        return True
    return False


def is_in_transaction(connection: BaseDatabaseWrapper) -> bool:
    """Whether the session is in a transaction, however that was opened."""
    driver: Any = connection.connection
    status = getattr(getattr(driver, "info", None), "transaction_status", None)
    if status is not None:  # psycopg; 0 is "idle"
        return bool(status)
    for name in ("in_transaction", "transaction_in_progress"):
        if hasattr(driver, name):  # sqlite3, MySQL's own; python-oracledb
            return bool(getattr(driver, name))
    flags = getattr(driver, "server_status", None)
    if flags is not None:  # PyMySQL
        return bool(flags & IN_TRANSACTION)
    return _ask_server(connection)


def settings_of(connection: BaseDatabaseWrapper) -> dict[str, object]:
    """Return the session settings that the driver knows."""
    driver: Any = connection.connection
    status_of = getattr(getattr(driver, "info", None), "parameter_status", None)
    if status_of is not None:  # psycopg
        reported = {name: status_of(name) for name in REPORTED}
        return reported | _attributes(driver, ATTRIBUTES)
    if hasattr(driver, "set_progress_handler"):  # sqlite3
        pragmas = {name: driver.execute(f"PRAGMA {name}").fetchone()[0] for name in PRAGMAS}
        return pragmas | _attributes(driver, SQLITE_ATTRIBUTES)
    if hasattr(driver, "get_autocommit"):  # mysqlclient
        return {"autocommit": driver.get_autocommit()} | _attributes(driver, MYSQLCLIENT_ATTRIBUTES)
    return _attributes(driver, CONNECTOR_ATTRIBUTES)


def _attributes(driver: Any, names: tuple[str, ...]) -> dict[str, object]:
    return {name: getattr(driver, name, None) for name in names}


def _ask_server(connection: BaseDatabaseWrapper) -> bool:
    """Ask the server whether the session is in a transaction: mysqlclient does not expose it."""
    wrapper: Any = connection
    driver = wrapper.connection
    is_mariadb = getattr(wrapper, "mysql_is_mariadb", None)
    if is_mariadb is None:
        driver.rollback()  # All that an unknown driver offers, and without an answer.
        return False
    cursor = driver.cursor()
    try:
        if is_mariadb:
            cursor.execute("SELECT @@in_transaction")
            return bool(cursor.fetchone()[0])
        cursor.execute(PROBE)
    except wrapper.Database.Error as error:
        if error.args and error.args[0] == REFUSED_WITHIN_TRANSACTION:
            return True
        raise
    finally:
        cursor.close()
    return False
