"""Where a server listens, and who may log in there."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote, urlsplit

PORTS = {"postgresql": 5432, "mysql": 3306}
#: Which driver: MySQL's own, ``connector``, or ``mysqlclient``.
DRIVER = "STEADY_QUEUE_TEST_MYSQL_DRIVER"
MYSQL_DRIVERS = {
    "connector": "mysql.connector.django",
    "mysqlclient": "django.db.backends.mysql",
}


class BadAddress(ValueError):
    """An address that cannot be one."""


def mysql_driver() -> str:
    """Return which of the drivers of MySQL and MariaDB the tests use."""
    driver = os.environ.get(DRIVER) or "connector"
    if driver not in MYSQL_DRIVERS:
        raise BadAddress(f"{DRIVER}: {driver!r} is none of {', '.join(MYSQL_DRIVERS)}")
    return driver


@dataclass(frozen=True)
class Address:
    """A database, as in ``postgresql://user:password@host:port/name`` or ``mysql://...``."""

    scheme: str
    user: str
    password: str
    host: str
    port: int
    name: str

    @classmethod
    def parse(cls, text: str, scheme: str) -> Address:
        """Read an address of a server that speaks ``scheme``."""
        parts = urlsplit(text)
        try:
            port = parts.port or PORTS[scheme]
        except ValueError as error:
            raise BadAddress(f"{text!r}: {error}") from None
        name = unquote(parts.path.strip("/"))
        if parts.scheme != scheme or not parts.hostname or not name:
            raise BadAddress(f"{text!r}: expected {scheme}://user:password@host:port/name")
        user, password = (unquote(part or "") for part in (parts.username, parts.password))
        return cls(scheme, user, password, parts.hostname, port, name)

    def __str__(self) -> str:
        user, password, name = (
            quote(part, safe="") for part in (self.user, self.password, self.name)
        )
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{user}:{password}@{host}:{self.port}/{name}"

    def settings(self) -> dict[str, Any]:
        """Return the entry of ``DATABASES``."""
        found: dict[str, Any] = {"NAME": self.name, "USER": self.user, "PASSWORD": self.password}
        found |= {"HOST": self.host, "PORT": self.port}
        # Made without the test database of the default alias, and beside those of other sessions.
        test: dict[str, Any] = {"DEPENDENCIES": [], "NAME": f"test_{self.name}_{os.getpid()}"}
        if self.scheme == "postgresql":
            return {"ENGINE": "django.db.backends.postgresql", **found, "TEST": test}
        # A database takes the server's character set, which on MariaDB may be latin1.
        found["TEST"] = {**test, "CHARSET": "utf8mb4"}
        return found | self._mysql_driver()

    def _mysql_driver(self) -> dict[str, Any]:
        driver = mysql_driver()
        # A private server has nothing to hide, and this driver takes 60 ms to agree on a cipher.
        plain = driver == "connector" and not self.password
        options = {"ssl_disabled": True} if plain else {}
        return {"ENGINE": MYSQL_DRIVERS[driver], "OPTIONS": options}
