"""Makes the project's own writes to the queue's database take turns with the queue's.

Without turns they starve: SQLite makes them sleep up to 100 ms between two tries, while workers
pass the lock file among themselves without a gap; waits of over a second were measured. And a
transaction that reads first and writes later fails at once if a worker has written in between.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from .lock_file import database_path, lock_file

WRITES = ("INSERT", "UPDATE", "DELETE", "REPLACE")

Execute = Callable[[Any, Any, bool, dict[str, Any]], Any]


def share(connection: BaseDatabaseWrapper) -> None:
    """Make the writes of ``connection`` wait for the queue's lock file."""
    if database_path(connection) is None:
        return
    if begins_immediate(connection):
        wrapper: Any = connection
        wrapper.transaction_mode = "IMMEDIATE"
    if in_turn not in connection.execute_wrappers:
        # First, because Django's execute_wrapper() removes whichever wrapper is last.
        connection.execute_wrappers.insert(0, in_turn)


def begins_immediate(connection: BaseDatabaseWrapper) -> bool:
    """Whether the project's transactions may be made to begin IMMEDIATE.

    Not if it chooses a mode itself, nor with ATOMIC_REQUESTS: there every request is a transaction,
    and requests that only read would wait for each other as writers.
    """
    settings = connection.settings_dict
    chosen = (settings.get("OPTIONS") or {}).get("transaction_mode")
    return chosen is None and not settings["ATOMIC_REQUESTS"]


def in_turn(execute: Execute, sql: Any, params: Any, many: bool, context: dict[str, Any]) -> Any:
    """Execute a statement, under the lock file if it takes the write lock."""
    if not _takes_write_lock(context["connection"], sql):
        return execute(sql, params, many, context)
    with lock_file(context["connection"]):
        return execute(sql, params, many, context)


def _takes_write_lock(connection: BaseDatabaseWrapper, sql: Any) -> bool:
    if connection.in_atomic_block or not isinstance(sql, str):
        return False
    return sql.startswith("BEGIN IMMEDIATE") or sql.lstrip()[:7].upper().startswith(WRITES)
