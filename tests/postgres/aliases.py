"""Aliases of ``DATABASES`` for the PostgreSQL server of the tests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from typing import Any

from django.db import connections

from ..aliases import added_alias

ALIAS = "postgres"


@contextmanager
def another_alias(
    name: str, options: dict[str, Any] | None = None, **changes: Any
) -> Iterator[str]:
    """Add an alias for the test database, with other ``OPTIONS`` or other settings."""
    settings = deepcopy(connections[ALIAS].settings_dict) | changes
    settings["OPTIONS"] = {**settings["OPTIONS"], **(options or {})}
    with added_alias(name, settings):
        yield name
