"""MySQL and MariaDB: a database for each competitor, with its snapshot as tables in another."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from contextlib import closing
from typing import Any

from benchmarks.databases import PERSISTENT, Counts
from tests.servers.address import Address
from tests.servers.client import connect, version

DURABILITY = ("innodb_flush_log_at_trx_commit", "sync_binlog", "log_bin", "innodb_doublewrite")
DRIVERS = {
    "mysql.connector.django": "mysql-connector-python",
    "django.db.backends.mysql": "mysqlclient",
}

TABLES = "SELECT table_name FROM information_schema.tables WHERE table_schema = %s"
COLUMNS = """
SELECT column_name FROM information_schema.columns
WHERE table_schema = %s AND table_name = %s AND COALESCE(generation_expression, '') = ''
ORDER BY ordinal_position"""

COMMITS = "SELECT count FROM information_schema.innodb_metrics WHERE name = 'trx_rw_commits'"


class MySQL:
    """The database of one competitor."""

    def __init__(self, server: MySQLServer, name: str) -> None:
        self.server = server
        self.alias = server.alias
        self.name = re.sub(r"\W", "_", f"bench_{os.getpid()}_{name}")
        self._kept: set[str] = set()

    def settings(self) -> dict[str, object]:
        return self.server.address.settings() | {"NAME": self.name, "TEST": {}} | PERSISTENT

    def clear(self) -> None:
        self._make(self.name)

    def keep(self, state: str) -> None:
        kept = self._kept_name(state)
        self._make(kept)
        self._kept.add(kept)
        for table in self._tables(self.name):
            self.server.run(f"CREATE TABLE `{kept}`.`{table}` LIKE `{self.name}`.`{table}`")
            self._copy(table, self.name, kept)

    def restore(self, state: str) -> None:
        # The tables stay: copies of them would lack their foreign keys.
        for table in self._tables(self.name):
            self.server.run(f"TRUNCATE `{self.name}`.`{table}`")
            self._copy(table, self._kept_name(state), self.name)
            self.server.run(f"ANALYZE TABLE `{self.name}`.`{table}`")

    def remove(self) -> None:
        for name in (self.name, *self._kept):
            self.server.run(f"DROP DATABASE IF EXISTS `{name}`")

    def counts(self) -> Counts:
        return self.server.counts()

    def _make(self, name: str) -> None:
        self.server.run(f"DROP DATABASE IF EXISTS `{name}`")
        self.server.run(f"CREATE DATABASE `{name}` CHARACTER SET utf8mb4")

    def _tables(self, name: str) -> list[str]:
        return [table for (table,) in self.server.run(TABLES, (name,))]

    def _copy(self, table: str, source: str, target: str) -> None:
        rows = self.server.run(COLUMNS, (self.name, table))
        columns = ", ".join(f"`{column}`" for (column,) in rows)
        self.server.run(
            f"INSERT INTO `{target}`.`{table}` ({columns})"
            f" SELECT {columns} FROM `{source}`.`{table}`"
        )

    def _kept_name(self, state: str) -> str:
        return re.sub(r"\W", "_", f"{self.name}_{state}")


class MySQLServer:
    """The server, on a connection of the harness."""

    def __init__(self, address: Address, alias: str) -> None:
        self.address = address
        self.alias = alias
        self._connection: Any = connect(address)
        self._asked = 0
        self.run("SET foreign_key_checks = 0")
        self.run("SET GLOBAL innodb_monitor_enable = 'trx_rw_commits'")
        values = [f"{name}={self.run(f'SELECT @@{name}')[0][0]}" for name in DURABILITY]
        self.driver = DRIVERS[str(address.settings()["ENGINE"])]
        self.drivers: Sequence[str] = (self.driver,)
        self.about = f"{version(address)}, {', '.join(values)}; driver: {self.driver}"

    def database(self, name: str) -> MySQL:
        return MySQL(self, name)

    def close(self) -> None:
        self._connection.close()

    def run(self, statement: str, values: tuple[object, ...] = ()) -> list[tuple[Any, ...]]:
        self._asked += 1
        with closing(self._connection.cursor()) as cursor:
            cursor.execute(statement, values)
            return list(cursor.fetchall()) if cursor.description else []

    def counts(self) -> Counts:
        """Count the server's statements, without those of the harness."""
        [(_, statements)] = self.run("SHOW GLOBAL STATUS LIKE 'Questions'")
        asked = self._asked
        [(commits,)] = self.run(COMMITS)
        return Counts(int(statements) - asked, int(commits))
