"""Keeping what an integration does from failing a job, or the call that enqueues it."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from ..logging import about, get_logger
from ..project_code import contained

P = ParamSpec("P")
R = TypeVar("R")

logger = get_logger("steady_queue")

#: Most places that are remembered as logged.
MOST_LOGGED = 100
_logged: set[tuple[str, str]] = set()


def harmless(function: Callable[P, R]) -> Callable[P, R | None]:
    """Return ``function`` with exceptions logged, each kind once, and ``None`` in place of its
    value then."""

    @wraps(function)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> R | None:
        try:
            return contained(function, *args, **kwargs)
        except Exception as error:
            _log(function.__qualname__, error)
            return None

    return guarded


def _log(where: str, error: Exception) -> None:
    key = (where, type(error).__name__)
    if key in _logged or len(_logged) >= MOST_LOGGED:
        return
    _logged.add(key)
    logger.warning(
        "An integration has failed in %s, and what it had to tell is lost: %s",
        where,
        error,
        exc_info=error,
        extra=about("integration.failed", error_type=type(error).__name__),
    )
