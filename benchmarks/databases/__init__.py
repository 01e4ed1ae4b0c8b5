"""The database that the competitors run on: configuring, emptying, saving and restoring it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

NAMES = ("sqlite", "postgres", "mysql", "mariadb")
"""Values of `--database`."""

PERSISTENT = {"CONN_MAX_AGE": None}
"""For servers: some competitors would otherwise open a connection for each job."""


@dataclass(frozen=True)
class Counts:
    """The counters of a server, over all its clients."""

    statements: int | None
    """Statements that clients sent, also within packets; None if the server does not count them."""
    commits: int
    """Transactions that wrote something."""
    server_us: float | None = None
    """Time in which the server planned and executed statements, if it counts that."""


class Database(Protocol):
    """One competitor's database: created once, and restored to a snapshot before each measure."""

    alias: str
    """One of `NAMES`."""

    def settings(self) -> dict[str, object]:
        """Return `DATABASES["default"]`."""

    def clear(self) -> None:
        """Drop all tables."""

    def keep(self, state: str) -> None:
        """Save the content under a name. Requires that no client is connected."""

    def restore(self, state: str) -> None:
        """Restore saved content. Requires that no client is connected."""

    def remove(self) -> None:
        """Remove the database and its snapshots."""

    def counts(self) -> Counts | None:
        """Return the server's counters; None without a server, where processes count themselves."""


class DatabaseServer(Protocol):
    """The place where databases are created: a directory of files, or a server."""

    about: str
    """Its version and durability settings, which are the same for every competitor."""
    drivers: Sequence[str]
    """Requirements that pip installs in addition to each competitor."""

    def database(self, name: str) -> Database:
        """Return the database of one competitor, which may not be empty."""
