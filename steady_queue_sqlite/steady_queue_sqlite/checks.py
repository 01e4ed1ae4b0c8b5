"""System checks of an SQLite database that holds a queue."""

from __future__ import annotations

import os
import sqlite3

from django.core.checks import CheckMessage, Warning
from django.db.backends.base.base import BaseDatabaseWrapper

from steady_queue_core.dialects import DialectUnsupported, portable

from .lock_file import database_path

#: The first version with RETURNING.
MINIMUM_VERSION = (3, 35, 0)


def require_version() -> str:
    """Return the version of the SQLite library; raise ``DialectUnsupported`` if it is too old."""
    if sqlite3.sqlite_version_info < MINIMUM_VERSION:
        needed = ".".join(map(str, MINIMUM_VERSION))
        raise DialectUnsupported(
            f"SQLite {sqlite3.sqlite_version} is too old for Steady Queue; it needs {needed} or "
            "newer. Upgrade Python, or the SQLite library that it uses."
        )
    return sqlite3.sqlite_version


def run(connection: BaseDatabaseWrapper) -> list[CheckMessage]:
    """Tell what is wrong with a database: its zone, or that other processes cannot see it, or
    cannot write to it."""
    return [*portable.check_zone(connection, id="steady_queue.E103"), *_of_file(connection)]


def _of_file(connection: BaseDatabaseWrapper) -> list[CheckMessage]:
    path = database_path(connection)
    if path is None:
        if _made_for_tests(connection):
            return []
        return [
            Warning(
                f"Database {connection.alias!r} is in memory: worker processes cannot see it.",
                hint="Give it a file name, or run the queue in a database of its own.",
                id="steady_queue.W101",
            )
        ]
    folder = os.path.dirname(path)
    if not os.access(folder, os.W_OK):
        return [
            Warning(
                f"The folder of database {connection.alias!r}, {folder}, is not writable.",
                hint="SQLite keeps its WAL file there; workers need write access to it.",
                id="steady_queue.W102",
            )
        ]
    return []


def _made_for_tests(connection: BaseDatabaseWrapper) -> bool:
    """Whether this is the in-memory database that Django's test runner makes."""
    return str(connection.settings_dict["NAME"]).startswith("file:memorydb_")
