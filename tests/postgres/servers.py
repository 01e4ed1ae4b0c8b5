"""The PostgreSQL server of the tests, and aliases of ``DATABASES`` for it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from typing import Any
from urllib.parse import unquote, urlsplit

from django.db import connections

ALIAS = "postgres"
#: Holds a URL, ``postgresql://user:password@host:port/name``, of a role that may make databases.
VARIABLE = "STEADY_QUEUE_TEST_POSTGRES"


def url() -> str | None:
    """Return the server's address, if one is configured."""
    return os.environ.get(VARIABLE)


def configured(address: str) -> dict[str, Any]:
    """Return an entry of ``DATABASES``, complete with its defaults."""
    parts = urlsplit(address)
    entry = {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": parts.path.lstrip("/"),
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": unquote(parts.hostname or ""),
        "PORT": str(parts.port or ""),
        "TEST": {"DEPENDENCIES": []},
    }
    return dict(connections.configure_settings({"default": {}, ALIAS: entry})[ALIAS])


@contextmanager
def another_alias(
    name: str, options: dict[str, Any] | None = None, **changes: Any
) -> Iterator[str]:
    """Add an alias for the test database, with other ``OPTIONS`` or other settings."""
    settings = deepcopy(connections[ALIAS].settings_dict) | changes
    settings["OPTIONS"] = {**settings["OPTIONS"], **(options or {})}
    connections.settings[name] = settings
    try:
        yield name
    finally:
        connections[name].close()
        connections[name].close_pool()
        del connections[name]
        del connections.settings[name]
