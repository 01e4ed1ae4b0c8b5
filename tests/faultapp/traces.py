"""Tasks that show what others have left in their process, and some that leave much."""

from __future__ import annotations

import gc
import threading
import time
from typing import Any

from django.db import connection

from steady_queue_core import task
from steady_queue_core.compat import task_finished

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


class Held:
    """What a job has in hand; counts how many are there."""

    there = most = 0

    def __init__(self) -> None:
        Held.there += 1
        Held.most = max(Held.most, Held.there)

    def __del__(self) -> None:
        Held.there -= 1


@task
def fail_and_hold() -> None:
    held = Held()
    raise RuntimeError(f"failure with {held}")


@task
async def afail_and_hold() -> None:
    held = Held()
    raise RuntimeError(f"failure with {held}")


@task
def listen_slowly() -> None:
    """Have each signal take its time from now on, and nothing collected."""
    gc.disable()
    task_finished.connect(_listen)


def _listen(**_: Any) -> None:
    time.sleep(0.02)


@task
def most_held() -> int:
    """Return how much failed jobs have held at once."""
    return Held.most
