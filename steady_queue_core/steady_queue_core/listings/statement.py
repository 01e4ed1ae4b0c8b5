"""Statements made of several queries, so that a page asks few questions, and what they return."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from django.db import connections
from django.db.models import DateTimeField, Expression, QuerySet, Value
from django.db.models.sql import Query

Part = tuple[str, QuerySet[Any, Any] | Expression]


class Statement(NamedTuple):
    """A compiled query."""

    text: str
    parameters: Sequence[Any]

    @classmethod
    def of(cls, rows: QuerySet[Any, Any] | Expression, using: str) -> Statement:
        """Return the statement of a query, or the text of an expression in one."""
        if isinstance(rows, QuerySet):
            return cls(*rows.query.get_compiler(using).as_sql())
        return cls(*Query(None).get_compiler(using).compile(rows))


def rows_of(using: str, parts: Iterable[Part]) -> list[tuple[Any, ...]]:
    """Return the rows of several queries by one statement.

    Each part is what to select from the columns of a query, and that query, with ``{rows}`` where
    it goes: ``"SELECT 1, a FROM {rows} GROUP BY a"``. It may also be an expression, where one row
    with its ``{value}`` is wanted. Values are those of the driver.
    """
    return together(using, [(text, Statement.of(rows, using)) for text, rows in parts])


def together(using: str, parts: Sequence[tuple[str, Statement]]) -> list[tuple[Any, ...]]:
    """Return the rows of several compiled queries by one statement, as ``rows_of()`` does."""
    texts = [text.format(rows=f"({each.text}) part", value=each.text) for text, each in parts]
    with connections[using].cursor() as cursor:
        given = [value for _, each in parts for value in each.parameters]
        cursor.execute(" UNION ALL ".join(texts), given)
        return list(cursor.fetchall())


def stored_instants(connection: Any) -> Callable[[Any], datetime | None]:
    """Return how values of columns of times are read from a statement of one's own: as the ORM
    would."""
    expression = Value(None, DateTimeField())
    converters = connection.ops.get_db_converters(expression)

    def read(value: Any) -> datetime | None:
        for converter in converters:
            value = converter(value, expression, connection)
        found: datetime | None = value
        return found

    return read


def stored_instant(connection: Any, value: Any) -> datetime | None:
    """Return one such value."""
    return stored_instants(connection)(value)
