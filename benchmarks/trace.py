"""Counts the statements and commits of a process on request.

`install` replaces `sqlite3.connect`, so that every connection of the process counts, whoever opens
it. The throw-away project's `sitecustomize` calls it when `BENCHMARK_TRACE` is set: the competitors
know nothing of it, and no run that measures time has it.
"""

from __future__ import annotations

import re
import sqlite3
import threading
from collections.abc import Callable
from typing import Any

WRITES = ("INSERT", "UPDATE", "DELETE", "REPLACE", "CREATE", "DROP", "ALTER")


_WRITES = re.compile(r"\b(INSERT|UPDATE|DELETE)\b", re.IGNORECASE).search


class Counts:
    """Statements and commits of this process so far."""

    def __init__(self) -> None:
        self.statements = 0
        self.commits = 0
        self.lock = threading.Lock()

    def statement(self, *, commit: bool) -> None:
        with self.lock:
            self.statements += 1
            self.commits += commit


counts = Counts()


def install() -> None:
    """Count the statements of every SQLite connection that is opened from now on."""
    original = sqlite3.connect

    def connect(*args: Any, **kwargs: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = original(*args, **kwargs)
        connection.set_trace_callback(_counter(connection))
        return connection

    sqlite3.connect = sqlite3.dbapi2.connect = connect  # type: ignore[assignment]


def _counter(connection: sqlite3.Connection) -> Callable[[str], None]:
    wrote = False

    def count(statement: str) -> None:
        nonlocal wrote
        if statement.startswith("--"):  # a trigger's statement
            return
        verb = statement.lstrip()[:8].upper()
        if verb.startswith(WRITES) or (verb.startswith("WITH") and _WRITES(statement)):
            inside = connection.in_transaction
            wrote = inside
            counts.statement(commit=not inside)
        elif verb.startswith(("COMMIT", "END")):
            counts.statement(commit=wrote)
            wrote = False
        else:
            if verb.startswith("ROLLBACK") and " TO " not in statement.upper():
                wrote = False
            counts.statement(commit=False)

    return count
