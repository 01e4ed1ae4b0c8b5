"""Emptying the databases after a test: only the tables that have rows.

Django empties all of them, and makes the permissions and content types of all models anew: after
each test, and more work than most tests are. These two tables stay as the migrations left them.
"""

from __future__ import annotations

import pytest
from django.core.management.color import no_style
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.test import TransactionTestCase

KEPT = {"django_content_type", "auth_permission"}


class Emptying:
    """A plugin of pytest."""

    def __init__(self) -> None:
        self._patch = pytest.MonkeyPatch()

    def pytest_configure(self) -> None:
        self._patch.setattr(TransactionTestCase, "_fixture_teardown", empty_databases)

    def pytest_unconfigure(self) -> None:
        self._patch.undo()


def empty_databases(case: TransactionTestCase) -> None:
    for alias in case._databases_names(include_mirrors=False):
        connection = connections[alias]
        if tables := tables_with_rows(connection):
            statements = connection.ops.sql_flush(no_style(), tables, allow_cascade=True)
            connection.ops.execute_sql_flush(statements)


def tables_with_rows(connection: BaseDatabaseWrapper) -> list[str]:
    names = connection.introspection.django_table_names(only_existing=True, include_views=False)
    tables = [name for name in names if name not in KEPT]
    quoted = map(connection.ops.quote_name, tables)
    questions = ", ".join(f"EXISTS (SELECT 1 FROM {name})" for name in quoted)
    if not tables:
        return []
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {questions}")
        return [
            table for table, has_rows in zip(tables, cursor.fetchone(), strict=True) if has_rows
        ]
