"""What the tests of the PostgreSQL dialect share."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from django.core.checks import CheckMessage
from django.db.transaction import atomic
from django.test import TransactionTestCase

from steady_queue_core.conformance.base import ConformanceCase
from steady_queue_core.dialects import tables
from steady_queue_postgres import prepared
from steady_queue_postgres.transactions import planned_transaction

from .aliases import ALIAS, another_alias


class PostgresTestCase(ConformanceCase, TransactionTestCase):
    """The database under test, and what the server has to say of itself."""

    using = ALIAS
    databases = {ALIAS}

    def query(self, statement: str, values: Any = None) -> list[tuple[Any, ...]]:
        with self.connection.cursor() as cursor:
            cursor.execute(statement, values)
            return list(cursor.fetchall()) if cursor.description else []

    def fill(self, count: int, queue_name: str = "default", rank: int = 0) -> None:
        """Insert many ready jobs, by the server alone."""
        self.query(
            f"""WITH job AS (
                  INSERT INTO {tables.JOBS} (queue_name, task_path, backend_name, "rank",
                      arguments, max_attempts, attempts, token, enqueued_at)
                  SELECT %(queue)s, 'a.b', 'default', %(rank)s, '{{}}', 1, 0, 0, now()
                  FROM generate_series(1, %(count)s) RETURNING id)
                INSERT INTO {tables.READY} (job_id, queue_name, "rank", token, created_at, turn)
                SELECT id, %(queue)s, %(rank)s, 0, now(), id FROM job""",
            {"queue": queue_name, "rank": rank, "count": count},
        )

    def analyze(self) -> None:
        for table in (tables.JOBS, tables.READY, tables.CLAIMED, tables.SCHEDULED):
            self.query(f"ANALYZE {table}")

    @contextmanager
    def statements(self) -> Iterator[list[str]]:
        """Collect what goes to the server; each is one round trip."""
        sent: list[str] = []

        def note(execute: Any, sql: Any, params: Any, many: bool, context: Any) -> Any:
            sent.append(str(context["cursor"].mogrify(sql, params)))
            return execute(sql, params, many, context)

        with self.connection.execute_wrapper(note):
            yield sent

    @contextmanager
    def undone(self) -> Iterator[None]:
        """Do as the queue's own transactions do, and take it back."""
        with planned_transaction(self.connection):
            yield
            self.connection.set_rollback(True)

    def plan(self, statement: str) -> Plan:
        """Return how the server would run a statement, under the settings that it brings along."""
        with atomic(using=self.using):
            if statement.startswith(prepared.SET):
                self.query(prepared.SET)
            statement = statement.removeprefix(prepared.SET)
            [(found,)] = self.query(f"EXPLAIN (FORMAT JSON) {statement}")
        return Plan(found if isinstance(found, list) else json.loads(found))


class OtherAlias(PostgresTestCase):
    """With an alias of its own for the same database."""

    @contextmanager
    def configured(self, options: dict[str, Any] | None = None, **changes: Any) -> Iterator[None]:
        """Use another alias, with other ``OPTIONS`` or other settings."""
        # Not for longer: Django empties the databases of a case, and some cannot be written to.
        allowed = mock.patch.object(type(self), "databases", {ALIAS, "other"})
        with another_alias("other", options, **changes), allowed:
            self.using = "other"
            try:
                yield
            finally:
                self.using = ALIAS

    def problems(self) -> list[CheckMessage]:
        return self.dialect.checks(self.connection)


class Plan:
    """The nodes of a plan, whatever their place."""

    def __init__(self, explained: Any) -> None:
        self.nodes = list(_nodes(explained[0]["Plan"]))

    def scans(self, table: str) -> set[tuple[str, str]]:
        """Return how a table is read: the kind of scan, and its index."""
        return {
            (node["Node Type"], node.get("Index Name", ""))
            for node in self.nodes
            if node.get("Relation Name") == table and "Scan" in node["Node Type"]
        }

    def kinds(self) -> set[str]:
        return {node["Node Type"] for node in self.nodes}


def _nodes(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield node
    for child in node.get("Plans", ()):
        yield from _nodes(child)
