"""Setting up the connections of queue processes."""

from __future__ import annotations

import time

from django.db import OperationalError
from django.db.backends.base.base import BaseDatabaseWrapper

from steady_queue_core.dialects import DialectUnsupported

from .errors import is_contention
from .lock_file import database_path
from .replaced_file import note_file
from .transactions import SHORT_TIMEOUT, set_lock_timeout
from .write_turns import begins_immediate

#: Seconds that a task's statement waits for other writers, unless the project sets a timeout.
TASK_TIMEOUT = 20.0
#: Seconds to keep trying to switch to WAL, which needs the database to itself for a moment.
WAL_TIMEOUT = 5.0


def prepare(connection: BaseDatabaseWrapper, impatient: bool) -> list[str]:
    """Switch the file to WAL and set how long to wait for locks; return what was changed.

    Raises ``DialectUnsupported`` for a database that other processes cannot see.
    """
    if database_path(connection) is None:
        raise DialectUnsupported(
            f"Database {connection.alias!r} is in memory: worker processes cannot see it. Give it "
            "a file: DATABASES[...]['NAME'], or in tests DATABASES[...]['TEST']['NAME']."
        )
    note_file(connection)
    changes = []
    options = connection.settings_dict.get("OPTIONS") or {}
    if impatient:
        set_lock_timeout(connection, SHORT_TIMEOUT)
        # Control threads read rows of all tasks: invalid UTF-8 in one must not stop the queue.
        connection.connection.text_factory = _decode
    elif "timeout" not in options:
        set_lock_timeout(connection, TASK_TIMEOUT)
    changes += _use_wal(connection)
    if begins_immediate(connection):
        changes.append("the project's transactions on it begin IMMEDIATE")
    if "timeout" not in options:
        changes.append(f"tasks wait up to {TASK_TIMEOUT:g} s for other writers")
    return changes


def _decode(raw: bytes) -> str:
    return raw.decode("utf-8", "backslashreplace")


def _use_wal(connection: BaseDatabaseWrapper) -> list[str]:
    deadline = time.monotonic() + WAL_TIMEOUT
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA journal_mode")
        mode = str(cursor.fetchone()[0]).lower()
        while mode != "wal":
            try:
                cursor.execute("PRAGMA journal_mode = WAL")
                changed = str(cursor.fetchone()[0]).lower()
            except OperationalError as error:
                if not is_contention(connection, error):
                    raise
                changed = mode
            if changed == "wal":
                return [f"journal_mode is WAL now (was {mode})"]
            if time.monotonic() > deadline:
                return [f"journal_mode stays {mode}: the database is in use; WAL is tried again"]
            time.sleep(0.05)
    return []
