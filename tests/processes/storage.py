"""The database of a project, as a test looks at it: by its driver, not through Django."""

from __future__ import annotations

import fcntl
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from ..servers import client
from ..servers.address import Address
from .checker import Snapshot, take_snapshot
from .waiting import wait_for


class SQLiteFile:
    """A file in the project's folder."""

    #: The entry of ``DATABASES``, in the language of the settings.
    setting = '{"ENGINE": "django.db.backends.sqlite3", "NAME": BASE_DIR / "db.sqlite3"}'

    def __init__(self, path: Path) -> None:
        self.path = path

    def query(self, statement: str, *parameters: Any) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(self.path, timeout=20)) as connection, connection:
            return connection.execute(statement, parameters).fetchall()

    def snapshot(self) -> Snapshot:
        connection = sqlite3.connect(self.path, timeout=20, isolation_level=None)
        with closing(connection):
            connection.execute("BEGIN")
            return take_snapshot(connection.execute)

    def close(self) -> None:
        """Leave the file to whoever removes the folder."""

    @contextmanager
    def write_lock(self, patience: float) -> Iterator[None]:
        """Hold the database like a foreign program that knows nothing of the queue."""
        connection = sqlite3.connect(self.path, timeout=patience, isolation_level=None)
        with closing(connection) as foreign:
            foreign.execute("BEGIN IMMEDIATE")
            yield
            with suppress(sqlite3.OperationalError):
                foreign.execute("ROLLBACK")

    @contextmanager
    def lock_file(self, patience: float) -> Iterator[None]:
        """Hold the file at which the queue's writers take turns."""

        def taken() -> bool:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
            return True

        with open(f"{self.path}-queue.lock", "ab") as file:
            wait_for(taken, patience, "the lock file")
            yield


class ServerDatabase:
    """A database of its own on a server, empty or copied from a template, dropped in the end."""

    def __init__(self, server: Address, template: str | None = None) -> None:
        self._cleanup = ExitStack()
        self.address = self._cleanup.enter_context(client.fresh_database(server, template))
        self.setting = repr(self.address.settings())

    def query(self, statement: str, *parameters: Any) -> list[tuple[Any, ...]]:
        with self._reader() as read:
            return list(read(statement.replace("?", "%s"), parameters))

    def snapshot(self) -> Snapshot:
        with self._reader() as read:
            if self.address.scheme == "postgresql":
                read("BEGIN ISOLATION LEVEL REPEATABLE READ")
            else:
                read("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
                read("START TRANSACTION WITH CONSISTENT SNAPSHOT")
            return take_snapshot(read)

    @contextmanager
    def locked(self, statement: str) -> Iterator[None]:
        """Hold what a statement locks, like a client whose transaction takes long."""
        with self._reader() as read:
            read("BEGIN")
            read(statement)
            yield
            read("ROLLBACK")

    def close(self) -> None:
        """Drop the database."""
        self._cleanup.close()

    @contextmanager
    def _reader(self) -> Iterator[Callable[..., list[tuple[Any, ...]]]]:
        connection = client.connect(self.address, self.address.name)
        with closing(connection), closing(connection.cursor()) as cursor:

            def read(statement: str, parameters: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
                cursor.execute(statement, parameters or None)
                return list(cursor.fetchall()) if cursor.description else []

            yield read
