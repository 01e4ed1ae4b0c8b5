"""Emptying the databases after a test: only the tables that have rows, or had some.

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
#: What dialects remember of jobs on a connection: their ids begin anew.
REMEMBERED = ("scan_position", "bookmarks", "claimers", "locked_jobs", "held_up")


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
        if tables := used_tables(connection):
            statements = connection.ops.sql_flush(no_style(), tables, allow_cascade=True)
            connection.ops.execute_sql_flush(statements)
        for name in REMEMBERED:
            vars(connection).pop(f"steady_queue_{name}", None)


def used_tables(connection: BaseDatabaseWrapper) -> list[str]:
    names = connection.introspection.django_table_names(only_existing=True, include_views=False)
    tables = [name for name in names if name not in KEPT]
    if not tables:
        return []
    # Rows that are deleted stay in PostgreSQL's files for a while, and workers count them.
    question = "EXISTS (SELECT 1 FROM {name})"
    if connection.vendor == "postgresql":
        question = "pg_relation_size('{name}') > 0"
    quoted = map(connection.ops.quote_name, tables)
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {', '.join(question.format(name=name) for name in quoted)}")
        answers = cursor.fetchone()
    return [table for table, is_used in zip(tables, answers, strict=True) if is_used]
