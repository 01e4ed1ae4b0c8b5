"""What a queue process sets on its connections."""

from __future__ import annotations

import time

from django.db import OperationalError
from django.db.backends.base.base import BaseDatabaseWrapper

from steady_queue_core.dialects import DialectUnsupported

from .database_file import database_path
from .locking import IMPATIENCE, is_contention, set_patience
from .sharing import begins_immediate

#: Seconds that a task's statement waits for other writers, where the project does not say.
PATIENCE = 20.0
#: Seconds to try to switch to WAL: it needs the database to itself for a moment.
WAL_PATIENCE = 5.0


def prepare(connection: BaseDatabaseWrapper, impatient: bool) -> list[str]:
    """Switch the file to WAL, and set how long to wait for locks; say so.

    Raises ``DialectUnsupported`` for a database that other processes cannot see.
    """
    if database_path(connection) is None:
        raise DialectUnsupported(
            f"Database {connection.alias!r} is in memory: worker processes cannot see it. Give it "
            "a file: DATABASES[...]['NAME'], or in tests DATABASES[...]['TEST']['NAME']."
        )
    done = []
    options = connection.settings_dict.get("OPTIONS") or {}
    if impatient:
        set_patience(connection, IMPATIENCE)
        # It reads what others have written: text that is none must not stop the whole queue.
        connection.connection.text_factory = _decode
    elif "timeout" not in options:
        set_patience(connection, PATIENCE)
    done += _use_wal(connection)
    if begins_immediate(connection):
        done.append("the project's transactions on it begin IMMEDIATE")
    if "timeout" not in options:
        done.append(f"tasks wait up to {PATIENCE:g} s for other writers")
    return done


def _decode(raw: bytes) -> str:
    return raw.decode("utf-8", "backslashreplace")


def _use_wal(connection: BaseDatabaseWrapper) -> list[str]:
    deadline = time.monotonic() + WAL_PATIENCE
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA journal_mode")
        mode = str(cursor.fetchone()[0]).lower()
        while mode != "wal":
            try:
                cursor.execute("PRAGMA journal_mode = WAL")
                changed = str(cursor.fetchone()[0]).lower()
            except OperationalError as error:
                if not is_contention(error):
                    raise
                changed = mode
            if changed == "wal":
                return [f"journal_mode is WAL now (was {mode})"]
            if time.monotonic() > deadline:
                return [f"journal_mode stays {mode}: the database is in use; WAL is tried again"]
            time.sleep(0.05)
    return []
