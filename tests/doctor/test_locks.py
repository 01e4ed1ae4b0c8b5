"""Locks, isolation and files that keep the queue from its tables, made for real."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from django.db import connections

from steady_queue_core.doctor import examine
from steady_queue_core.models import ReadyExecution
from steady_queue_sqlite import examination as of_sqlite

from .test_servers import execute, first, on_mysql, on_postgres, on_sqlite, other_session, ward
from .ward import Ward

__all__ = ["ward"]
READY = ReadyExecution._meta.db_table


@on_postgres
@pytest.mark.parametrize("mode", ["ACCESS EXCLUSIVE", "SHARE"])
def test_a_table_that_is_locked_does_not_keep_the_doctor_waiting(
    using: str, ward: Ward, mode: str
) -> None:
    ward.ready(1)
    with other_session(using) as other:
        with other.cursor() as cursor:
            cursor.execute(f"LOCK TABLE {READY} IN {mode} MODE")
        execute(using, "SET statement_timeout = 10000")
        code, text = first(using)
        execute(using, "RESET statement_timeout")
        pid = other.connection.info.backend_pid
    assert code == "table-locked"
    assert READY in text
    assert f"pg_terminate_backend({pid})" in text
    assert examine(using) == []


@on_sqlite
def test_a_write_lock_that_is_kept(using: str, ward: Ward, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(of_sqlite, "PATIENCE", 0.1)
    path = str(connections[using].settings_dict["NAME"])
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        code, text = first(using)
    assert code == "table-locked"
    assert f"fuser {path}" in text
    assert "table-locked" not in [each.code for each in examine(using)]


@on_sqlite
def test_a_file_on_another_host(
    using: str, ward: Ward, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder = Path(str(connections[using].settings_dict["NAME"])).resolve().parent
    mounts = tmp_path / "mounts"
    monkeypatch.setattr(of_sqlite, "MOUNTS", str(mounts))
    mounts.write_text(f"/dev/a / ext4 rw 0 0\nb:/c {folder} nfs4 rw 0 0\n/d {folder}x ext4 rw\n")
    assert first(using)[0] == "file-remote"
    mounts.write_text(f"b:/c / nfs4 rw 0 0\n/dev/a {folder} ext4 rw 0 0\n")
    assert "file-remote" not in [each.code for each in examine(using)]


@on_mysql
def test_transactions_that_lock_what_they_read(using: str, ward: Ward, settings: Any) -> None:
    execute(using, "SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE")
    try:
        code, text = first(using)
    finally:
        connections[using].close()
    assert (code, "read committed" in text) == ("isolation-serializable", True)
