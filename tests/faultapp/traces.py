"""Tasks that show what others have left in their process, and some that leave much."""

from __future__ import annotations

import threading
from typing import Any

from django.db import connection

from steady_queue_core import task

#: What a task finds of its session, by the kind of the database.
SETTINGS = {
    "sqlite": "SELECT * FROM pragma_foreign_keys, pragma_busy_timeout",
    "postgresql": "SELECT name, setting FROM pg_settings WHERE source = 'session' ORDER BY name",
    "mysql": "SHOW SESSION VARIABLES WHERE Variable_name IN ('sql_mode', 'time_zone', 'autocommit',"
    " 'transaction_isolation', 'tx_isolation', 'innodb_lock_wait_timeout')",
}
#: What changes one of these.
CHANGES = {
    "sqlite": "PRAGMA foreign_keys = OFF",
    "postgresql": "SET lock_timeout = 7",
    "mysql": "SET SESSION innodb_lock_wait_timeout = 7",
}


@task
def look() -> list[Any]:
    """Return what a task finds: wrappers, settings, whether a transaction is open."""
    with connection.cursor() as cursor:
        cursor.execute(SETTINGS[connection.vendor])
        rows = [list(map(str, row)) for row in cursor.fetchall()]
    return [len(connection.execute_wrappers), rows, connection.get_autocommit()]


@task
def change_session() -> None:
    with connection.cursor() as cursor:
        cursor.execute(CHANGES[connection.vendor])


@task
def wrap_statements() -> None:
    connection.execute_wrappers.append(
        lambda execute, sql, params, many, context: execute(sql, params, many, context)
    )


@task
def leave_transaction() -> None:
    connection.set_autocommit(False)
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")


@task
def start_thread() -> None:
    threading.Thread(target=lambda: None).start()


@task
def raise_exit() -> None:
    raise SystemExit(3)


@task
def fail_with_much(number: int) -> None:
    held = bytearray(1 << 20)
    raise RuntimeError(f"failure {number} with {len(held)} bytes")


@task
async def afail_with_much(number: int) -> None:
    held = bytearray(1 << 20)
    raise RuntimeError(f"failure {number} with {len(held)} bytes")
