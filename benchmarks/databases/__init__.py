"""The database that the contenders run on: how to configure, empty, keep and restore it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

NAMES = ("sqlite", "postgres", "mysql", "mariadb")
"""What `--database` calls them."""

PERSISTENT = {"CONN_MAX_AGE": None}
"""Of servers: some contenders would otherwise connect anew for each job."""


@dataclass(frozen=True)
class Counts:
    """What a server has done so far, for whomever."""

    statements: int | None
    """Statements that clients sent, those of one packet one by one; None: it does not say."""
    commits: int
    """Transactions that ended with something written."""


class Database(Protocol):
    """A database, made anew for each contender and put back to a kept state before each measure."""

    alias: str
    """One of `NAMES`."""

    def settings(self) -> dict[str, object]:
        """Return `DATABASES["default"]`."""

    def clear(self) -> None:
        """Make it empty: no tables."""

    def keep(self, state: str) -> None:
        """Keep the present content under a name; nobody may be connected."""

    def restore(self, state: str) -> None:
        """Put a kept content back; nobody may be connected."""

    def remove(self) -> None:
        """Leave nothing behind."""

    def counts(self) -> Counts | None:
        """Ask the server what it has done; None: there is no server, processes count themselves."""


class Home(Protocol):
    """Where databases are made: files in a directory, or a server."""

    about: str
    """Its version and how durable its commits are: the same for every contender."""
    drivers: Sequence[str]
    """What pip installs beside each contender."""

    def database(self, name: str) -> Database:
        """Return the database of one contender; it has yet to be cleared."""
