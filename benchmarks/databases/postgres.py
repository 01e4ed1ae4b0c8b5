"""PostgreSQL: a database for each competitor, saved and restored as a template."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from contextlib import closing
from typing import Any

from benchmarks.databases import PERSISTENT, Counts
from tests.servers.address import Address
from tests.servers.client import connect, version

DURABILITY = ("fsync", "synchronous_commit", "full_page_writes", "wal_sync_method")

# The next transaction id: one is given to each transaction, and savepoint, that writes.
COUNT = """
SELECT coalesce(sum(calls), 0), pg_snapshot_xmax(pg_current_snapshot())::text::bigint,
       coalesce(sum(total_plan_time + total_exec_time), 0) * 1000
FROM pg_stat_statements WHERE dbid = (SELECT oid FROM pg_database WHERE datname = %s)"""
COUNT_COMMITS = "SELECT NULL, pg_snapshot_xmax(pg_current_snapshot())::text::bigint"


class Postgres:
    """The database of one competitor."""

    alias = "postgres"

    def __init__(self, server: PostgresServer, name: str) -> None:
        self.server = server
        self.name = re.sub(r"\W", "_", f"bench_{os.getpid()}_{name}")
        self._kept: set[str] = set()

    def settings(self) -> dict[str, object]:
        return self.server.address.settings() | {"NAME": self.name, "TEST": {}} | PERSISTENT

    def clear(self) -> None:
        self._copy("template1", self.name)

    def keep(self, state: str) -> None:
        # As in tables that autovacuum has seen: it would come by in the middle of some measures.
        with closing(connect(self.server.address, self.name)) as connection:
            connection.execute("VACUUM ANALYZE")
        kept = self._kept_name(state)
        self._copy(self.name, kept)
        self._kept.add(kept)

    def restore(self, state: str) -> None:
        self._copy(self._kept_name(state), self.name)
        self.server.run("CHECKPOINT")

    def remove(self) -> None:
        for name in (self.name, *self._kept):
            self.server.run(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')

    def counts(self) -> Counts:
        return self.server.counts(self.name)

    def _copy(self, source: str, target: str) -> None:
        self.server.run(f'DROP DATABASE IF EXISTS "{target}" WITH (FORCE)')
        self.server.run(f'CREATE DATABASE "{target}" TEMPLATE "{source}"')

    def _kept_name(self, state: str) -> str:
        return re.sub(r"\W", "_", f"{self.name}_{state}")


class PostgresServer:
    """The server, on a connection of the harness to none of the competitors' databases."""

    drivers: Sequence[str] = ("psycopg[binary]",)

    def __init__(self, address: Address) -> None:
        self.address = address
        self._connection: Any = connect(address)
        self._counts_statements = self._can_count()
        values = [f"{name}={self.run(f'SHOW {name}')[0][0]}" for name in DURABILITY]
        self.about = f"{version(address)}, {', '.join(values)}"

    def database(self, name: str) -> Postgres:
        return Postgres(self, name)

    def close(self) -> None:
        self._connection.close()

    def run(self, statement: str, values: tuple[object, ...] = ()) -> list[tuple[Any, ...]]:
        cursor = self._connection.execute(statement, values or None)
        return list(cursor.fetchall()) if cursor.description else []

    def counts(self, name: str) -> Counts:
        if self._counts_statements:
            [(statements, commits, microseconds)] = self.run(COUNT, (name,))
            return Counts(int(statements), commits, float(microseconds))
        [(_, commits)] = self.run(COUNT_COMMITS)
        return Counts(None, commits)

    def _can_count(self) -> bool:
        preloaded = self.run("SHOW shared_preload_libraries")[0][0]
        if "pg_stat_statements" not in preloaded:
            return False
        self.run("CREATE EXTENSION IF NOT EXISTS pg_stat_statements")
        return True
