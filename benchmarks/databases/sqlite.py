"""SQLite: a file for each competitor, kept and restored by copying it."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Sequence
from pathlib import Path

from benchmarks.databases import Counts
from benchmarks.options import Options


class SQLite:
    """One file. WAL and the same `synchronous` for every competitor: see README.md."""

    alias = "sqlite"

    def __init__(self, directory: Path, synchronous: str) -> None:
        self.path = directory / "queue.sqlite3"
        self.synchronous = synchronous

    def settings(self) -> dict[str, object]:
        pragmas = f"PRAGMA journal_mode=WAL;PRAGMA synchronous={self.synchronous};"
        return {
            "ENGINE": "django.db.backends.sqlite3",
            "NAME": str(self.path),
            "OPTIONS": {"init_command": pragmas},
        }

    def clear(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
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

    def remove(self) -> None:
        """Do nothing: the directory is removed with all that is in it, unless it is to be kept."""

    def counts(self) -> Counts | None:
        return None

    def _kept(self, state: str) -> Path:
        return self.path.with_name(f"kept-{state}.sqlite3")


class Files:
    """Where SQLite's databases are."""

    drivers: Sequence[str] = ()

    def __init__(self, options: Options, version: str) -> None:
        self.options = options
        self.about = f"SQLite {version}, synchronous={options.synchronous}"

    def database(self, name: str) -> SQLite:
        return SQLite(self.options.directory / "sqlite" / name, self.options.synchronous)
