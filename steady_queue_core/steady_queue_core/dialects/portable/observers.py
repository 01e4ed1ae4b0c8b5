"""Whether anybody looks at the statements that pass through Django's cursor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper


def is_watched(connection: BaseDatabaseWrapper, *own: Callable[..., Any]) -> bool:
    """Return whether statements are logged, pass through an ``execute_wrapper`` that is not among
    ``own``, or are refused, as in a ``SimpleTestCase``. Otherwise a dialect may use the cursor of
    the driver, which takes less time."""
    if connection.queries_logged or "cursor" in vars(connection):  # Something stands in for it.
        return True
    return any(wrapper not in own for wrapper in connection.execute_wrappers)
