"""The ``execute_wrappers`` of connections: what the queue adds, and what tasks leave behind."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

Wrapper = Callable[..., Any]

#: The names of the wrappers that each new connection gets, by its alias, once somebody asked.
_lasting: dict[str, set[str]] = {}


def add_wrapper(connection: BaseDatabaseWrapper, wrapper: Wrapper) -> None:
    """Let ``wrapper`` see each statement first."""
    # First in the list, because Django's execute_wrapper() removes whichever is last.
    if wrapper not in connection.execute_wrappers:
        connection.execute_wrappers.insert(0, wrapper)


def has_left_wrappers(connection: BaseDatabaseWrapper) -> bool:
    """Whether a task has left a wrapper on this connection of the calling thread.

    The receivers of ``connection_created`` may add some that last. Which these are shows on a new
    connection, which is opened the first time that there are any.
    """
    found = _names(connection)
    if not found:
        return False
    if connection.alias not in _lasting:
        with suppress(Exception):  # Nothing is known while there is no database.
            _lasting[connection.alias] = _names_on_new_connection(connection.alias)
    return not found <= _lasting.get(connection.alias, found)


def _names(connection: BaseDatabaseWrapper) -> set[str]:
    """Return the names of the wrappers that are not the queue's own lasting ones."""
    names = map(_name, connection.execute_wrappers)
    return {each for each in names if not each.startswith("steady_queue_") or "<locals>" in each}


def _name(wrapper: Wrapper) -> str:
    named = wrapper if hasattr(wrapper, "__qualname__") else type(wrapper)
    return f"{named.__module__}.{named.__qualname__}"


def _names_on_new_connection(alias: str) -> set[str]:
    present = connections[alias]
    del connections[alias]
    try:
        connections[alias].ensure_connection()
        return _names(connections[alias])
    finally:
        connections[alias].close()
        connections[alias] = present
