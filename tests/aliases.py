"""Aliases of ``DATABASES`` that are there for a while."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connections


@contextmanager
def added_alias(alias: str, settings: dict[str, Any]) -> Iterator[None]:
    """Add ``alias`` for the database of ``settings``; close its connection in the end."""
    connections.settings[alias] = settings
    # Django has completed the entries that it has read already.
    connections.configure_settings(connections.settings)
    try:
        yield
    finally:
        connection = connections[alias]
        connection.close()
        if hasattr(connection, "close_pool"):
            connection.close_pool()
        del connections[alias]
        del connections.settings[alias]
