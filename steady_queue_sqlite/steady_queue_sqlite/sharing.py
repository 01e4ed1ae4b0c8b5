"""The project's own writes to the queue's database, in turn with the queue's.

Left alone they lose: SQLite makes them sleep up to 100 ms between two tries, while workers that
hand the lock on in their own order leave no gap; waits of over a second were measured. And a
transaction that reads first and writes later fails at once when a worker has written between.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from .database_file import database_path
from .lock_file import lock_file

WRITES = ("INSERT", "UPDATE", "DELETE", "REPLACE")

Execute = Callable[[Any, Any, bool, dict[str, Any]], Any]


def share(connection: BaseDatabaseWrapper) -> None:
    """Have the writes of ``connection`` wait at the queue's lock file."""
    if database_path(connection) is None:
        return
    if begins_immediate(connection):
        wrapper: Any = connection
        wrapper.transaction_mode = "IMMEDIATE"
    if in_turn not in connection.execute_wrappers:
        # The project takes its own wrappers away from the end, whichever are there then.
        connection.execute_wrappers.insert(0, in_turn)


def begins_immediate(connection: BaseDatabaseWrapper) -> bool:
    """Whether the project leaves it to us how its transactions begin.

    With ATOMIC_REQUESTS every request is a transaction: as writers they would wait for each other.
    """
    settings = connection.settings_dict
    chosen = (settings.get("OPTIONS") or {}).get("transaction_mode")
    return chosen is None and not settings["ATOMIC_REQUESTS"]


def in_turn(execute: Execute, sql: Any, params: Any, many: bool, context: dict[str, Any]) -> Any:
    """Execute a statement; behind the lock file if it takes the write lock."""
    if not _takes_write_lock(context["connection"], sql):
        return execute(sql, params, many, context)
    with lock_file(context["connection"]):
        return execute(sql, params, many, context)


def _takes_write_lock(connection: BaseDatabaseWrapper, sql: Any) -> bool:
    if connection.in_atomic_block or not isinstance(sql, str):
        return False
    return sql.startswith("BEGIN IMMEDIATE") or sql.lstrip()[:7].upper().startswith(WRITES)
