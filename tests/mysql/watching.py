"""Warnings of the server, which no statement of the queue is to give."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from django.db import connections


class WatchedCursor:
    """A driver's cursor that notes which of its statements gave warnings.

    Both drivers count them, for each statement of a packet, once its rows have been read.
    """

    def __init__(self, cursor: Any, found: list[str]) -> None:
        self._cursor, self._found = cursor, found
        self._statement, self._number = "", 0

    def execute(self, sql: str, values: Any = None) -> Any:
        self._statement, self._number = sql, 1
        result = self._cursor.execute(sql, values)
        self._look()
        return result

    def fetchall(self) -> Any:
        rows = self._cursor.fetchall()
        self._look()
        return rows

    def nextset(self) -> Any:
        more = self._cursor.nextset()
        self._number += 1
        if more:
            self._look()
        return more

    def _look(self) -> None:
        # That of a plan comes with a note that has the statement as the server reads it.
        if self._cursor.warning_count and not self._statement.startswith("EXPLAIN"):
            self._found.append(f"statement {self._number} of {self._statement}")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cursor, name)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._cursor)


@contextmanager
def watched(alias: str) -> Iterator[list[str]]:
    """Give the statements that any connection to a server is warned of meanwhile."""
    wrapper: Any = type(connections[alias])
    found: list[str] = []
    create = wrapper.create_cursor

    def create_watched(self: Any, name: Any = None) -> WatchedCursor:
        return WatchedCursor(create(self, name), found)

    with mock.patch.object(wrapper, "create_cursor", create_watched):
        yield found
