"""What a server suffers from is found where it is: planted on real servers."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import connections, transaction

from steady_queue_core.dialects import Observation, observed
from steady_queue_core.doctor import examine
from steady_queue_core.models import Pause, ReadyExecution
from steady_queue_mysql import examination as of_mysql
from steady_queue_postgres import examination as of_postgres
from steady_queue_sqlite import examination as of_sqlite

from ..models.everywhere import _on, on_every_database, on_every_server
from ..models.recurrence import tasks
from ..processes.waiting import wait_for
from .ward import Ward

EXAMINATIONS = {"postgres": of_postgres, "mysql": of_mysql, "mariadb": of_mysql}
SESSION = {"postgresql": "pg_backend_pid", "mysql": "connection_id"}
on_postgres = _on("postgres")
on_mysql = _on("mysql", "mariadb")
on_sqlite = _on("default")


@pytest.fixture
def ward(using: str, settings: Any) -> Ward:
    settings.TASKS = tasks(using)
    return Ward(using)


def execute(using: str, *statements: str) -> None:
    with connections[using].cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def first(using: str) -> tuple[str, str]:
    """Return the code and the text of what the doctor says first."""
    found = examine(using)
    assert found, "nothing was found"
    assert "not-examined" not in [each.code for each in found], found
    return found[0].code, f"{found[0].text} {found[0].remedy}"


@contextmanager
def other_session(using: str) -> Iterator[Any]:
    """Another connection to the database, in a transaction."""
    other = connections[using].copy()
    try:
        other.ensure_connection()
        other.set_autocommit(False)
        yield other
        other.rollback()
    finally:
        other.close()


@on_every_server
def test_an_old_transaction(using: str, ward: Ward, monkeypatch: pytest.MonkeyPatch) -> None:
    with other_session(using) as other:
        with other.cursor() as cursor:
            cursor.execute(f"DELETE FROM {Pause._meta.db_table}")
            cursor.execute("INSERT INTO steady_queue_semaphores VALUES ('a', 1, 1)")
            cursor.execute(f"SELECT {SESSION[connections[using].vendor]}()")
            [(session,)] = cursor.fetchall()
        assert examine(using) == []
        # InnoDB has those of all databases, and tests of others may be at work.
        monkeypatch.setattr(EXAMINATIONS[using], "OLD", 0)
        monkeypatch.setattr(EXAMINATIONS[using], "MOST", 1000)
        wait_for(lambda: old_transactions(using, session), 10, "word of it")
        [text] = old_transactions(using, session)
    # Not hours, as it would be with a mistake in the zones of their clocks.
    assert re.search(r"has been open for \d{1,2} s", text), text
    wait_for(lambda: not old_transactions(using, session), 10, "no word of it")


def old_transactions(using: str, session: int) -> list[str]:
    """Return what the doctor says of the transaction of a session."""
    said = [each.text for each in examine(using) if each.code == "transaction-old"]
    return [text for text in said if re.search(rf"\((.*, backend|connection) {session},", text)]


@on_every_server
def test_connections_that_run_out(using: str, ward: Ward, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(EXAMINATIONS[using], "USED", 0)
    code, text = first(using)
    assert code == "connections-few"
    assert "connections of the server are in use" in text


@on_every_database
def test_an_index_that_was_dropped(using: str, ward: Ward) -> None:
    [index] = [each for each in ReadyExecution._meta.indexes if each.name.endswith("_poll")]
    with connections[using].schema_editor() as editor:
        editor.remove_index(ReadyExecution, index)
    try:
        code, text = first(using)
    finally:
        with connections[using].schema_editor() as editor:
            editor.add_index(ReadyExecution, index)
    assert code == "index-missing"
    assert "CREATE INDEX steady_queue_ready_poll ON steady_queue_ready_executions (rank, t" in text
    assert examine(using) == []


@on_postgres
def test_an_index_that_is_invalid(using: str, ward: Ward) -> None:
    mark = (
        "UPDATE pg_index SET indisvalid = {} WHERE indexrelid = 'steady_queue_ready_poll'::regclass"
    )
    execute(using, mark.format("false"))
    try:
        code, text = first(using)
    finally:
        execute(using, mark.format("true"))
    assert code == "index-invalid"
    assert "REINDEX INDEX CONCURRENTLY steady_queue_ready_poll" in text


@on_mysql
def test_an_index_that_is_switched_off(using: str, ward: Ward) -> None:
    off, on = ("IGNORED", "NOT IGNORED") if using == "mariadb" else ("INVISIBLE", "VISIBLE")
    alter = "ALTER TABLE steady_queue_ready_executions ALTER INDEX steady_queue_ready_poll "
    execute(using, alter + off)
    try:
        code, text = first(using)
    finally:
        execute(using, alter + on)
    assert code == "index-invalid"
    assert f"Run: {alter}{on}" in text


@on_mysql
def test_a_long_history(using: str, ward: Ward, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(of_mysql, "HISTORY", -1)
    code, text = first(using)
    assert code == "history-long"
    assert "old versions of rows (history list length)" in text


@on_postgres
def test_a_table_without_autovacuum(using: str, ward: Ward) -> None:
    alter = "ALTER TABLE steady_queue_ready_executions "
    execute(using, f"{alter} SET (autovacuum_enabled = false)")
    try:
        code, text = first(using)
    finally:
        execute(using, f"{alter} RESET (autovacuum_enabled)")
    assert code == "autovacuum-off"
    assert "RESET (autovacuum_enabled)" in text


@on_postgres
def test_a_bloated_table(using: str, ward: Ward, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(of_postgres, "DEAD", 50)
    ward.ready(100)
    ward.rows(ReadyExecution).all()._raw_delete(using)
    execute(using, "DELETE FROM steady_queue_jobs")
    deadline = time.monotonic() + 20
    while (found := [each.code for each in examine(using)]) == []:
        assert time.monotonic() < deadline, "the statistics have not come"
        execute(using, "SELECT 1")
    assert found == ["table-bloat"]


@on_postgres
def test_a_replication_slot_that_nobody_uses(
    using: str, ward: Ward, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(of_postgres, "KEPT", -1)
    execute(using, "SELECT pg_create_physical_replication_slot('doctor_test', true)")
    try:
        code, text = first(using)
    finally:
        execute(using, "SELECT pg_drop_replication_slot('doctor_test')")
    assert code == "replication-slot"
    assert "pg_drop_replication_slot('doctor_test')" in text


@on_sqlite
def test_a_database_that_does_not_write_ahead(using: str, ward: Ward) -> None:
    execute(using, "PRAGMA journal_mode = DELETE")
    try:
        code, text = first(using)
    finally:
        execute(using, "PRAGMA journal_mode = WAL")
    assert code == "journal-not-wal"
    assert "is delete" in text


@on_sqlite
def test_a_large_write_ahead_log(using: str, ward: Ward, monkeypatch: pytest.MonkeyPatch) -> None:
    execute(using, "PRAGMA journal_mode = WAL")
    monkeypatch.setattr(of_sqlite, "LARGE", -1)
    ward.finished()
    code, text = first(using)
    assert code == "wal-large"
    assert "wal_checkpoint" in text


@on_every_database
@pytest.mark.parametrize("inside", [False, True], ids=["alone", "in a transaction"])
def test_what_is_refused_hides_nothing_else(using: str, inside: bool, settings: Any) -> None:
    def refused(connection: Any) -> Iterator[Observation]:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1 FROM not_a_table")
        yield Observation("never", "", "")

    def well(connection: Any) -> Iterator[Observation]:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
        yield Observation("after", "", "")

    looks = observed(connections[using], [refused, well])
    if inside:
        with transaction.atomic(using=using):
            found = list(looks)
    else:
        found = list(looks)
    assert [each.code for each in found] == ["not-examined", "after"]
    assert "not_a_table" in found[0].text
