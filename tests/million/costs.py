"""What the statements of an operation cost at the server: counted, not timed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from django.db import connections
from django.db.transaction import atomic

from steady_queue_core.dialects import tables
from steady_queue_postgres import prepared
from steady_queue_postgres.transactions import planned_transaction

OF_STATES = (tables.READY, tables.SCHEDULED, tables.FAILED, tables.BLOCKED, tables.CLAIMED)
#: Instructions of SQLite's machine that read a row, with its conditions, in the queue's statements.
STEPS_OF_ROW = 20
#: As often as this SQLite tells how far it is.
STEPS = 100


class Cost(NamedTuple):
    """One statement, and how many rows the server read for it, whether it returned them or not."""

    rows: int
    statement: str


class Meter:
    """Counts what goes on in one database."""

    def __init__(self, using: str, *, counts_all: bool = False) -> None:
        #: Whether short tables that are read from end to end count as well.
        self.counts_all = counts_all
        self.connection = connections[using]
        self.costs: list[Cost] = []
        self._steps = self._before = 0
        self._statement = ""

    @property
    def rows(self) -> int:
        """How many rows were read for all statements together."""
        return sum(cost.rows for cost in self.costs)

    @contextmanager
    def undone(self, *, planned: bool = False) -> Iterator[Meter]:
        """Count what is done here, and take it back. ``planned``: in a transaction of the
        statements that PostgreSQL plans once."""
        wrapper = self._explained if self.connection.vendor == "postgresql" else self._counted
        with self._transaction(planned):
            try:
                with self._counting(), self.connection.execute_wrapper(wrapper):
                    yield self
            finally:
                self.connection.set_rollback(True)

    def _transaction(self, planned: bool) -> Any:
        if planned and self.connection.vendor == "postgresql":
            return planned_transaction(self.connection)
        return atomic(using=self.connection.alias)

    def _counted(self, execute: Any, sql: Any, params: Any, many: bool, context: Any) -> Any:
        # Rows are read as they are fetched: what follows until the next statement counts as well.
        self._statement_ended()
        self._statement = str(sql)
        return execute(sql, params, many, context)

    def _statement_ended(self) -> None:
        count = self._handler_reads() if self.connection.vendor == "mysql" else self._steps
        if self._statement:
            rows = count - self._before
            rows = rows // STEPS_OF_ROW if self.connection.vendor == "sqlite" else rows
            self.costs.append(Cost(rows, self._statement))
        self._before, self._statement = count, ""

    @contextmanager
    def _counting(self) -> Iterator[None]:
        session: Any = self.connection.connection
        if self.connection.vendor == "sqlite":
            session.set_progress_handler(self._go_on, STEPS)
        try:
            yield
        finally:
            if self.connection.vendor == "sqlite":
                session.set_progress_handler(None, 0)
            self._statement_ended()

    def _go_on(self) -> int:
        self._steps += STEPS
        return 0

    def _handler_reads(self) -> int:
        session: Any = self.connection.connection
        cursor = session.cursor()
        cursor.execute("SHOW SESSION STATUS LIKE 'Handler_read%'")
        read = sum(int(value) for _, value in cursor.fetchall())
        cursor.close()
        return read

    def _explained(self, execute: Any, sql: Any, params: Any, many: bool, context: Any) -> Any:
        statement = str(context["cursor"].mogrify(sql, params))
        prefix = prepared.SET if statement.startswith(prepared.SET) else ""
        statement = statement.removeprefix(prefix)
        if statement.split(None, 1)[0] in (
            "SELECT",
            "INSERT",
            "UPDATE",
            "DELETE",
            "WITH",
            "EXECUTE",
        ):
            cursor = self.connection.connection.cursor()
            cursor.execute("SAVEPOINT before_it")
            if prefix:
                cursor.execute(prefix)
            cursor.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {statement}")
            found = cursor.fetchone()[0]
            cursor.execute("ROLLBACK TO SAVEPOINT before_it")
            plan = found if isinstance(found, list) else json.loads(found)
            self.costs.append(Cost(_rows_of(plan[0]["Plan"], self.counts_all), statement))
        return execute(sql, params, many, context)


def _rows_of(node: dict[str, Any], counts_all: bool) -> int:
    """Return how many rows the scans of a plan have read.

    The tables of the states may be read from end to end where the planner finds that cheaper than
    to look up as many rows as it takes: they have no history.
    """
    own = 0
    short = node["Node Type"] == "Seq Scan" and node["Relation Name"] in OF_STATES
    if "Relation Name" in node and "Scan" in node["Node Type"] and (counts_all or not short):
        passed = ("Actual Rows", "Rows Removed by Filter", "Rows Removed by Index Recheck")
        own = node["Actual Loops"] * sum(node.get(name, 0) for name in passed)
    return int(own) + sum(_rows_of(each, counts_all) for each in node.get("Plans", ()))
