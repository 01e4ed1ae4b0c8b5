"""Database files that were removed or replaced while connections to them are open."""

from __future__ import annotations

import os
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from .lock_file import database_path, forget_lock_file


def note_file(connection: BaseDatabaseWrapper) -> None:
    """Note to which file a connection that was just opened leads."""
    path = database_path(connection)
    found = None if path is None else _identity(path)
    wrapper: Any = connection
    if path is not None and getattr(wrapper, "steady_queue_file", found) != found:
        forget_lock_file(path)  # It may have gone with the former database.
    wrapper.steady_queue_file = found


def was_replaced(connection: BaseDatabaseWrapper) -> str | None:
    """Tell what has become of the file of a connection, if that is not at its path any more.

    SQLite itself goes on with a file that nobody else can find, and makes an empty one of it when
    it connects anew.
    """
    path, noted = database_path(connection), getattr(connection, "steady_queue_file", None)
    if path is None or noted is None:
        return None
    found = _identity(path)
    if found is None:
        return f"its file {path} is gone"
    if found != noted and connection.connection is not None:
        return f"its file {path} was replaced by another one"
    return None


def _identity(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino
