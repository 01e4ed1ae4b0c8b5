"""A server for one run: the one in the environment, as for the tests, or a private one.

The private servers of the tests lose everything in a power failure. Here they keep the default
durability of their programs, on the disk that is measured.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from tests.servers.address import Address
from tests.servers.kinds import KINDS
from tests.servers.private import DidNotStart, PrivateServer
from tests.servers.programs import NotFound
from tests.servers.recipe import Plan, Recipe

DURABLE = {
    "postgres": (
        "--fsync=on",
        "--full_page_writes=on",
    ),
    "mysql": ("--innodb-flush-log-at-trx-commit=1", "--sync-binlog=1"),
    "mariadb": ("--innodb-flush-log-at-trx-commit=1", "--innodb-doublewrite=1"),
}
"""Options that restore durability: the later of two options on a command line counts."""

COUNTING = {
    # It costs each statement a few microseconds, whoever sends it.
    "postgres": (
        "--shared_preload_libraries=pg_stat_statements",
        "--pg_stat_statements.max=10000",
    ),
}
"""Options by which a server counts statements, if it does not anyway."""


class NoServer(RuntimeError):
    """There is no server to measure on, for the reason in the message."""


@dataclass(frozen=True)
class Adapted:
    """A server of the tests with more options."""

    recipe: Recipe
    options: tuple[str, ...]

    @property
    def account(self) -> str | None:
        return self.recipe.account

    @property
    def origin(self) -> str:
        return self.recipe.origin

    def plan(self, folder: Path, port: int) -> Plan:
        plan = self.recipe.plan(folder, port)
        if plan.stop:  # A starter: it has options of its own.
            return plan
        return replace(plan, serve=[*plan.serve, *self.options])

    def address(self, port: int) -> Address:
        return self.recipe.address(port)


@contextmanager
def server(alias: str, directory: Path, *, durable: bool) -> Iterator[Address]:
    """Yield the address of a server of that kind, and stop it afterwards if it is private."""
    kind = KINDS[alias]
    if given := kind.given():
        yield given
        return
    options = (*COUNTING.get(alias, ()), *(DURABLE[alias] if durable else ()))
    try:
        private = PrivateServer(Adapted(kind.find(), options), directory)
    except (NotFound, DidNotStart) as error:
        raise NoServer(f"{kind.title}: {error}") from None
    try:
        yield private.address
    finally:
        private.close()
