"""The marks of hooks: what declares one, and what implements it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import pluggy

F = TypeVar("F", bound=Callable[..., Any])

PROJECT_NAME = "steady_queue"

hookspec = pluggy.HookspecMarker(PROJECT_NAME)
hookimpl = pluggy.HookimplMarker(PROJECT_NAME)

#: Declares a hook that every dialect implements.
required = hookspec(firstresult=True)

#: The names of the hooks that a dialect may leave out.
OPTIONAL: set[str] = set()


def optional(specification: F) -> F:
    """Declare a hook that a dialect may leave out."""
    OPTIONAL.add(specification.__name__)
    return required(specification)
