"""Cases that run on MySQL and on MariaDB."""

from __future__ import annotations

from typing import Any

from django.db import connections
from django.test import TransactionTestCase

from steady_queue_core.conformance.base import ConformanceCase
from steady_queue_core.dialects import dialect_for

from .watching import watched

TITLES = {"mysql": "MySQL", "mariadb": "MariaDB"}


class ServerCase(ConformanceCase):
    """A database on a server, with the short names of the conformance suite.

    The server has nothing to warn of, whatever a test does.
    """

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        dialect_for(cls.using).share(connections[cls.using])

    def setUp(self) -> None:
        super().setUp()
        self.warned = self.enterContext(watched(self.using))
        self.addCleanup(lambda: self.assertEqual(self.warned, [], "the server warns"))

    def sql(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """Execute a statement; return its rows."""
        with self.connection.cursor() as cursor:
            cursor.execute(statement, values or None)
            return list(cursor.fetchall()) if cursor.description else []

    @property
    def on_mariadb(self) -> bool:
        return "mariadb" in str(self.sql("SELECT VERSION()")[0][0]).lower()


def on_each_server(namespace: dict[str, Any], case: type[ServerCase]) -> None:
    """Add a test class for each server to the module whose names are in ``namespace``."""
    for alias in TITLES:
        name = f"Test{TITLES[alias]}{case.__name__}"
        members = {"using": alias, "databases": {alias}, "__module__": namespace["__name__"]}
        namespace[name] = type(name, (case, TransactionTestCase), members)
