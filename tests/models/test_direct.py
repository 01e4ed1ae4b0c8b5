"""Enqueueing past Django's cursor keeps what the cursor promises."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace
from typing import Any

import pytest
from django.core.exceptions import SynchronousOnlyOperation
from django.db import DatabaseError, OperationalError, connections, transaction
from django.test import SimpleTestCase
from django.test.utils import CaptureQueriesContext

from steady_queue_core.dialects import NewJob, dialect_for, tables
from steady_queue_sqlite import enqueue as sqlite_enqueue

from .everywhere import on_every_database

JOB = NewJob(
    queue_name="default", rank=0, task_path="x.y", backend_name="default", arguments="{}"
)  # fmt: skip


def enqueue(using: str) -> None:
    dialect_for(using).enqueue(connections[using], [JOB])


def stored(using: str) -> int:
    with connections[using].cursor() as cursor:
        cursor.execute(f"SELECT count(*) FROM {tables.JOBS}")
        return int(cursor.fetchone()[0])


@pytest.mark.django_db(transaction=True, databases=["default"])
def test_a_statement_that_fails_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    wrapper: Any = connections["default"]
    monkeypatch.setattr(sqlite_enqueue, "INSERT_ONE_READY", "INSERT INTO nowhere VALUES (%s)")
    with pytest.raises(OperationalError, match="nowhere"):
        enqueue("default")
    assert not wrapper.connection.in_transaction
    assert stored("default") == 0


@pytest.mark.django_db(transaction=True, databases=["default"])
def test_it_waits_for_a_writer() -> None:
    other = connections["default"].copy()
    other.ensure_connection()
    driver: Any = other.connection
    driver.execute("BEGIN IMMEDIATE")
    ending = threading.Timer(0.3, driver.commit)
    ending.start()
    enqueue("default")
    ending.join()
    other.close()
    assert stored("default") == 1


@on_every_database
def test_who_is_not_to_use_the_database_enqueues_nothing(using: str) -> None:
    class Guarded(SimpleTestCase):
        pass

    connections[using].ensure_connection()
    Guarded.setUpClass()
    try:
        with pytest.raises(AssertionError, match="are not allowed in SimpleTestCase"):
            enqueue(using)
    finally:
        Guarded.doClassCleanups()
        Guarded.tearDownClass()
    assert stored(using) == 0


@on_every_database
def test_whoever_watches_sees_the_statements(using: str) -> None:
    with CaptureQueriesContext(connections[using]) as queries:
        enqueue(using)
    assert any(tables.JOBS in query["sql"] for query in queries)


@on_every_database
def test_a_wrapper_sees_the_statements(using: str) -> None:
    seen: list[str] = []

    def note(execute: Any, sql: Any, params: Any, many: bool, context: Any) -> Any:
        seen.append(str(sql))
        return execute(sql, params, many, context)

    with connections[using].execute_wrapper(note):
        enqueue(using)
    assert any(tables.JOBS in sql for sql in seen)


@on_every_database
def test_a_coroutine_may_not_use_the_connection(using: str) -> None:
    async def in_a_loop() -> None:
        enqueue(using)

    with pytest.raises(SynchronousOnlyOperation):
        asyncio.run(in_a_loop())


@on_every_database
def test_another_thread_may_not_use_the_connection(using: str) -> None:
    connection, errors = connections[using], list[BaseException]()
    connection.ensure_connection()  # The other thread must not do that.

    def elsewhere() -> None:
        try:
            dialect_for(using).enqueue(connection, [JOB])
        except DatabaseError as error:
            errors.append(error)

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert "thread" in str(errors[0])


@pytest.mark.django_db(transaction=True, databases=["default"])
def test_a_full_disk_lets_nothing_of_the_callers_transaction_be_committed() -> None:
    """SQLite has undone all of it by itself; what comes later would be stored alone."""
    wrapper: Any = connections["default"]
    enqueue("default")
    large = replace(JOB, arguments=f'"{"x" * 500_000}"')
    with wrapper.cursor() as cursor:
        cursor.execute("VACUUM")  # Pages that other tests have left would be used again.
        pages = cursor.execute("PRAGMA page_count").fetchone()[0]
        cursor.execute(f"PRAGMA max_page_count = {pages + 200}")
    try:
        with transaction.atomic():
            enqueue("default")
            with pytest.raises(DatabaseError, match="full"):
                dialect_for("default").enqueue(wrapper, [large] * 20)
            with pytest.raises(transaction.TransactionManagementError):
                enqueue("default")
    finally:
        with wrapper.cursor() as cursor:
            cursor.execute("PRAGMA max_page_count = 1073741823")
    assert stored("default") == 1
