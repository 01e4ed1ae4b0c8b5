"""What an SQLite database suffers from at this moment."""

from __future__ import annotations

import os
from collections.abc import Iterator

from django.db.backends.base.base import BaseDatabaseWrapper

from steady_queue_core.dialects import Observation, observed, tables

from .lock_file import database_path

#: Bytes from which on a write-ahead log is large: a checkpoint is due after 4 MB.
LARGE = 256 * 2**20


def journal(connection: BaseDatabaseWrapper) -> Iterator[Observation]:
    if database_path(connection) is None:
        return
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA journal_mode")
        [mode] = cursor.fetchone()
        # They turn on WAL when they start.
        cursor.execute(f"SELECT EXISTS (SELECT 1 FROM {tables.PROCESSES})")
        [has_started] = cursor.fetchone()
    if mode != "wal" and has_started:
        yield Observation(
            "journal-not-wal",
            f"The journal mode of database {connection.alias!r} is {mode}: readers and writers "
            "wait for each other.",
            "Restart the queue, which turns on WAL when the file is free, or run: "
            "PRAGMA journal_mode = WAL",
        )


def write_ahead_log(connection: BaseDatabaseWrapper) -> Iterator[Observation]:
    path = database_path(connection)
    try:
        size = os.path.getsize(f"{path}-wal") if path else 0
    except OSError:
        return  # It is gone while nobody has the database open.
    if size > LARGE:
        yield Observation(
            "wal-large",
            f"The write-ahead log of database {connection.alias!r} has {size / 2**20:,.0f} MiB: "
            "a reader that does not end keeps it, and reads get slower.",
            "End long transactions that read; then run: PRAGMA wal_checkpoint(TRUNCATE)",
        )


LOOKS = (journal, write_ahead_log)


def examine(connection: BaseDatabaseWrapper) -> Iterator[Observation]:
    """Yield what keeps the database from working well for the queue."""
    return observed(connection, LOOKS)
