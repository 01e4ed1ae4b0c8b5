"""Which databases of the queue a subcommand reads or changes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.db import connections

from ..backend import SteadyQueueBackend
from ..configuration import ConfigurationError
from ..configured_backends import backends_on, own_backends, queue_databases
from ..dialects import dialect_for
from ..models.readiness import require_tables
from ..processes.supervisor.launch import choose_database
from ..sharding.shards import shards_of
from .exit_codes import WRONG_USAGE, Refusal


@dataclass(frozen=True)
class DatabaseChoice:
    """The databases that ``--backend`` chooses."""

    #: An alias in ``TASKS``, or ``None``.
    backend: str | None

    def to_read(self) -> list[str]:
        """Return the aliases of the databases to show: without ``--backend`` all of them, that of
        the default backend first.

        Raises ``MigrationsMissing``, ``DialectError`` or ``ConfigurationError``.
        """
        shards = [each.database for each in self._shards()]
        found = (queue_databases() if self.backend is None else shards) or [self._chosen()]
        for using in found:
            require_usable(using)
        return found

    def to_change(self) -> str:
        """Return the alias of the one database to change; the errors are those of ``to_read()``,
        and a ``Refusal`` if there are several to choose from."""
        several = queue_databases()
        if self.backend is None and len(several) > 1:
            raise Refusal(
                f"The backends in TASKS use several databases ({', '.join(several)}). Choose one "
                f"with --backend {'|'.join(sorted(own_backends()))}.",
                WRONG_USAGE,
            )
        if len(shards := self._shards()) > 1:
            raise Refusal(
                f"--backend {self.backend!r} has its jobs in several databases "
                f"({', '.join(each.database for each in shards)}). Choose a shard with --backend "
                f"{'|'.join(each.alias for each in shards)}.",
                WRONG_USAGE,
            )
        using = self._chosen()
        require_usable(using)
        return using

    def _shards(self) -> list[SteadyQueueBackend]:
        return [] if self.backend is None else shards_of(self.backend)

    def _chosen(self) -> str:
        try:
            return choose_database(self.backend)
        except ConfigurationError as error:
            if self.backend is None:
                raise
            raise Refusal(str(error), WRONG_USAGE) from error


def require_usable(using: str) -> None:
    """Raise ``DialectError`` or ``MigrationsMissing`` unless the queue can be in a database."""
    dialect_for(using)
    require_tables(connections[using])


def described(using: str) -> dict[str, Any]:
    """Return what JSON says of a database: its alias, the backends that use it, its dialect."""
    return {
        "database": using,
        "backends": list(backends_on(using)),
        "dialect": dialect_for(using).info.name,
    }


def headings(databases: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield each database with the lines above its part of a text: none if there is only one."""
    for position, using in enumerate(databases):
        names = ", ".join(backends_on(using))
        lines = [*([""] if position else []), f"Database {using} (backend {names})"]
        yield using, lines if len(databases) > 1 else []
