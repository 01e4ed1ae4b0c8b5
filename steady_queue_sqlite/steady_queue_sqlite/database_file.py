"""The path of a connection's database file."""

from __future__ import annotations

import os
from functools import lru_cache
from urllib.parse import unquote, urlsplit

from django.db.backends.base.base import BaseDatabaseWrapper


def database_path(connection: BaseDatabaseWrapper) -> str | None:
    """Return the path of the database file, or ``None`` for a database in memory.

    Links are resolved, as SQLite does: the WAL is next to the file itself, and all processes that
    share the file must find the same lock file.
    """
    return _path_of(str(connection.settings_dict["NAME"]))


@lru_cache(maxsize=64)
def _path_of(name: str) -> str | None:
    if not name or ":memory:" in name or "mode=memory" in name or "vfs=memdb" in name:
        return None
    if name.startswith("file:"):
        name = unquote(urlsplit(name).path)
    return os.path.realpath(name)
