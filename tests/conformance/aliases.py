"""A second alias for the same database, while the tests run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from typing import Any

from django.db import connections

from ..aliases import added_alias


@contextmanager
def second_alias(using: str, alias: str, **options: Any) -> Iterator[None]:
    """Add ``alias`` to ``DATABASES``: the database of ``using``, with other ``OPTIONS``."""
    settings = deepcopy(connections[using].settings_dict)
    settings["OPTIONS"] = {**settings.get("OPTIONS", {}), **options}
    with added_alias(alias, settings):
        yield
