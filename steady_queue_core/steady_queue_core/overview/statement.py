"""Statements made of several queries, so that a page asks few questions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db import connections
from django.db.models import QuerySet

Part = tuple[str, QuerySet[Any, Any]]


def rows_of(using: str, parts: Sequence[Part]) -> list[tuple[Any, ...]]:
    """Return the rows of several queries by one statement.

    Each part is what to select from the columns of a query, and that query, with ``{rows}`` where
    it goes: ``"SELECT 1, a FROM {rows} GROUP BY a"``. Values are those of the driver.
    """
    connection = connections[using]
    texts, parameters = [], []
    for text, rows in parts:
        sql, given = rows.query.get_compiler(using).as_sql()
        texts.append(text.format(rows=f"({sql}) part"))
        parameters += given
    with connection.cursor() as cursor:
        cursor.execute(" UNION ALL ".join(texts), parameters)
        return list(cursor.fetchall())
