"""What a queue process sets on its connections."""

from __future__ import annotations

import time

from django.db import OperationalError
from django.db.backends.base.base import BaseDatabaseWrapper

from .locking import is_contention
from .sharing import begins_immediate
from .wal_watch import database_path

#: Milliseconds that a statement waits for other writers, where the project does not say.
BUSY_TIMEOUT = 20_000
#: Seconds to try to switch to WAL: it needs the database to itself for a moment.
WAL_PATIENCE = 5.0


def prepare(connection: BaseDatabaseWrapper) -> list[str]:
    """Switch the file to WAL, and wait longer for locks; say so."""
    done = []
    options = connection.settings_dict.get("OPTIONS") or {}
    if database_path(connection) is not None:
        done += _use_wal(connection)
    if "timeout" not in options and _wait_longer(connection):
        done.append(f"waits up to {BUSY_TIMEOUT // 1000} s for other writers")
    if database_path(connection) is not None and begins_immediate(connection):
        done.append("the project's transactions on it begin IMMEDIATE")
    return done


def _wait_longer(connection: BaseDatabaseWrapper) -> bool:
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA busy_timeout")
        if cursor.fetchone()[0] == BUSY_TIMEOUT:
            return False
        cursor.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT}")
    return True


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
