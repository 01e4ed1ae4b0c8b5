"""Statements made of several queries, so that a page asks few questions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db import connections
from django.db.models import Expression, QuerySet
from django.db.models.sql import Query

Part = tuple[str, QuerySet[Any, Any] | Expression]


def rows_of(using: str, parts: Sequence[Part]) -> list[tuple[Any, ...]]:
    """Return the rows of several queries by one statement.

    Each part is what to select from the columns of a query, and that query, with ``{rows}`` where
    it goes: ``"SELECT 1, a FROM {rows} GROUP BY a"``. It may also be an expression, where one row
    with its ``{value}`` is wanted. Values are those of the driver.
    """
    connection = connections[using]
    texts, parameters = [], []
    for text, rows in parts:
        if isinstance(rows, QuerySet):
            sql, given = rows.query.get_compiler(using).as_sql()
        else:
            sql, given = Query(None).get_compiler(using).compile(rows)
        texts.append(text.format(rows=f"({sql}) part", value=sql))
        parameters += given
    with connection.cursor() as cursor:
        cursor.execute(" UNION ALL ".join(texts), parameters)
        return list(cursor.fetchall())
