"""The kinds of servers, and which of them can be had here."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass

from . import mariadb, mysql, postgres
from .address import Address
from .recipe import Recipe


@dataclass(frozen=True)
class Kind:
    """A database that the project supports."""

    #: Its alias in ``DATABASES``.
    alias: str
    title: str
    scheme: str
    #: Returns how to start a private one, or raises ``NotFound``.
    find: Callable[[], Recipe]

    @property
    def variable(self) -> str:
        """The variable that may hold an address."""
        return f"STEADY_QUEUE_TEST_{self.alias.upper()}"

    def given(self) -> Address | None:
        """Return the address that the environment names."""
        text = os.environ.get(self.variable)
        return Address.parse(text, self.scheme) if text else None


KINDS = {
    kind.alias: kind
    for kind in (
        Kind("postgres", "PostgreSQL", "postgresql", postgres.find),
        Kind("mysql", "MySQL", "mysql", mysql.find),
        Kind("mariadb", "MariaDB", "mysql", mariadb.find),
    )
}


def given_databases() -> dict[str, dict[str, object]]:
    """Return entries of ``DATABASES`` for the servers whose addresses the environment names."""
    addresses = {alias: kind.given() for alias, kind in KINDS.items()}
    return {alias: address.settings() for alias, address in addresses.items() if address}
