"""The database that the contenders run on: how to configure, empty, keep and restore it."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path
from typing import Protocol


class Database(Protocol):
    """A database, made anew for each contender and put back to a kept state before each measure."""

    vendor: str
    file: str
    """What the database is called in `DATABASES["default"]["NAME"]`."""

    def settings(self, synchronous: str) -> dict[str, object]:
        """Return `DATABASES["default"]`."""

    def clear(self) -> None:
        """Make it empty: no tables."""

    def keep(self, state: str) -> None:
        """Keep the present content under a name; nobody may be connected."""

    def restore(self, state: str) -> None:
        """Put a kept content back; nobody may be connected."""


class SQLite:
    """One file. WAL and the same `synchronous` for every contender: see README.md."""

    vendor = "sqlite"

    def __init__(self, directory: Path) -> None:
        self.path = directory / "queue.sqlite3"
        self.file = str(self.path)

    def settings(self, synchronous: str) -> dict[str, object]:
        return {
            "ENGINE": "django.db.backends.sqlite3",
            "NAME": self.file,
            "OPTIONS": {
                "init_command": f"PRAGMA journal_mode=WAL;PRAGMA synchronous={synchronous};"
            },
        }

    def clear(self) -> None:
        for file in self.path.parent.glob(f"{self.path.name}*"):
            file.unlink()

    def keep(self, state: str) -> None:
        connection = sqlite3.connect(self.path)
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.close()
        shutil.copyfile(self.path, self._kept(state))

    def restore(self, state: str) -> None:
        self.clear()
        shutil.copyfile(self._kept(state), self.path)

    def _kept(self, state: str) -> Path:
        return self.path.with_name(f"kept-{state}.sqlite3")


def database(vendor: str, directory: Path) -> Database:
    """Return the database of that vendor for one contender, whose files are in ``directory``."""
    if vendor == "sqlite":
        return SQLite(directory)
    raise ValueError(f"No harness for database {vendor!r} yet; there is one for: sqlite")
