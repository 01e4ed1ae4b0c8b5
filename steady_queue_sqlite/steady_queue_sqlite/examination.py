"""What an SQLite database suffers from at this moment."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing

from django.db.backends.base.base import BaseDatabaseWrapper

from steady_queue_core.dialects import PROBLEM, Observation, observed, tables

from .lock_file import database_path

#: Bytes from which on a write-ahead log is large: a checkpoint is due after 4 MB.
LARGE = 256 * 2**20
#: Seconds to wait for the write lock, which the queue holds for milliseconds.
PATIENCE = 3.0
#: The file systems of this host, and which of them are on others.
MOUNTS = "/proc/mounts"
REMOTE = ("nfs", "cifs", "smb", "9p", "afs", "ceph", "glusterfs", "fuse.sshfs", "fuse.s3fs")


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


def write_lock(connection: BaseDatabaseWrapper) -> Iterator[Observation]:
    path = database_path(connection)
    if path is None or connection.in_atomic_block:
        return  # Within a transaction the caller itself may hold it.
    with closing(sqlite3.connect(path, timeout=PATIENCE, isolation_level=None)) as other:
        try:
            other.execute("BEGIN IMMEDIATE")
            other.execute("ROLLBACK")
        except sqlite3.OperationalError as error:
            yield Observation(
                "table-locked",
                f"Nobody else can write to database {connection.alias!r}: somebody has kept its "
                f"write lock for {PATIENCE:g} s ({error}).",
                "Find the process that has it, such as a shell or a backup in a transaction: "
                f"fuser {path}",
                PROBLEM,
            )


def file_system(connection: BaseDatabaseWrapper) -> Iterator[Observation]:
    path = database_path(connection)
    kind = "" if path is None else _file_system_of(path)
    if kind.startswith(REMOTE):
        yield Observation(
            "file-remote",
            f"The file of database {connection.alias!r} is on a network file system ({kind}): "
            "locks and the write-ahead log do not work there, and data may be lost.",
            "Move it to a local disk, or use a database server.",
            PROBLEM,
        )


def _file_system_of(path: str) -> str:
    try:
        with open(MOUNTS, encoding="utf-8", errors="replace") as mounts:
            fields = [line.split() for line in mounts]
    except OSError:
        return ""  # No Linux.
    folders = [(each[1], each[2]) for each in fields if len(each) > 2]
    holding = [each for each in folders if f"{path}/".startswith(f"{each[0].rstrip('/')}/")]
    return max(holding, key=lambda each: len(each[0]), default=("", ""))[1]


LOOKS = (write_lock, journal, write_ahead_log, file_system)


def examine(connection: BaseDatabaseWrapper) -> Iterator[Observation]:
    """Yield what keeps the database from working well for the queue."""
    return observed(connection, LOOKS)
