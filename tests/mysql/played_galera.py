"""Plays a node of Galera on a MariaDB server that is none."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest import mock

from django.db import OperationalError
from django.db.backends.base.base import BaseDatabaseWrapper

from steady_queue_core.conformance.faults import Fault
from steady_queue_mysql import server

ABORTED = (1213, "Deadlock found when trying to get lock; try restarting transaction")
CHANGE_STEP = "SET SESSION auto_increment_increment = @@auto_increment_increment % 4 + 1"
WRITES = ("INSERT", "UPDATE", "DELETE", "REPLACE")


@contextmanager
def played_galera(connection: BaseDatabaseWrapper) -> Iterator[None]:
    """Let the server say that it is a node of Galera."""
    ask = server._ask
    with mock.patch.object(server, "_ask", lambda each: replace(ask(each), is_galera=True)):
        connection.close()
        yield
    connection.close()


class Abort(Fault):
    """Aborts the transaction behind its statement number ``before``, as Galera does it.

    The next packet is answered with a deadlock, whatever it asks. If the statement is not the last
    of its packet, the server goes on with those that follow, without a transaction.
    """

    _is_pending = False

    @contextmanager
    def played(self) -> Iterator[None]:
        commit = self._connection._commit

        def commit_unless_aborted() -> None:
            self.strike()
            commit()

        with (
            mock.patch.object(self._connection, "_commit", commit_unless_aborted),
            super().played(),
        ):
            yield

    def strike(self) -> None:
        if self._is_pending:
            self._is_pending = False
            if self._roll_back():
                raise OperationalError(*ABORTED)

    def _execute(self, execute: Any, sql: str, values: Any, many: bool, context: Any) -> Any:
        self.strike()
        statements = sql.split("; ")
        place, self.left = self.left, self.left - len(statements)
        if self.is_done or place >= len(statements):
            return execute(sql, values, many, context)
        self.is_done = True
        if place == len(statements) - 1:
            self._is_pending = True
            return execute(sql, values, many, context)
        if statements[place].lstrip().startswith(WRITES):
            statements[place] = f"BEGIN NOT ATOMIC {statements[place]}; ROLLBACK; END"
        return execute("; ".join(statements), values, many, context)

    def _roll_back(self) -> bool:
        """Roll back; return whether there was a transaction."""
        # Not before: its last result may be unread until now.
        with self._connection.connection.cursor() as cursor:
            cursor.execute("SELECT @@in_transaction")
            [(is_open,)] = cursor.fetchall()
            cursor.execute("ROLLBACK")
        return bool(is_open)


class AbortOfPing(Abort):
    """An abort that MySQL's own driver meets in the ping before it makes a cursor."""

    @contextmanager
    def played(self) -> Iterator[None]:
        create = self._connection.create_cursor

        def create_unless_aborted(name: Any = None) -> Any:
            self._strike_ping()
            return create(name)

        with (
            mock.patch.object(self._connection, "create_cursor", create_unless_aborted),
            super().played(),
        ):
            yield

    def _strike_ping(self) -> None:
        try:
            self.strike()
        except OperationalError:
            # As that driver has it.
            cause = type("OperationalError", (Exception,), {"errno": -1})()
            raise OperationalError("MySQL Connection not available.") from cause


class NewStep(Fault):
    """Changes the step of ids, as a node that joins does."""

    def strike(self) -> None:
        with self._connection.connection.cursor() as cursor:
            cursor.execute(CHANGE_STEP)
