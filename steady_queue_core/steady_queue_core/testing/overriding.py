"""Replaces the backends in ``TASKS`` for a test."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.test import override_settings

from ..backend import SteadyQueueBackend
from ..compat import task_backends

KINDS = {
    "immediate": "steady_queue_core.testing.ImmediateBackend",
    "dummy": "steady_queue_core.testing.DummyBackend",
}


class override_backends(override_settings):
    """Put a backend for tests in the place of every ``SteadyQueueBackend`` in ``TASKS``, with the
    same ``QUEUES`` and ``OPTIONS``.

    ``kind`` is ``"immediate"`` or ``"dummy"``; ``options`` are added to the ``OPTIONS``. Decorates
    test cases and functions, and is a context manager.
    """

    def __init__(self, kind: str, **options: Any) -> None:
        if kind not in KINDS:
            known = " or ".join(map(repr, KINDS))
            raise ValueError(f"{kind!r} is no backend for tests: give {known}")
        super().__init__(TASKS=_replaced(kind, options))


def _replaced(kind: str, options: dict[str, Any]) -> dict[str, Any]:
    from .backends import RAISE_ERRORS

    replaced = {}
    for alias, given in settings.TASKS.items():
        if isinstance(task_backends[alias], SteadyQueueBackend):
            inherited = {**given.get("OPTIONS", {})}
            if kind != "immediate":  # The only one that knows it.
                inherited.pop(RAISE_ERRORS, None)
            given = {**given, "BACKEND": KINDS[kind], "OPTIONS": {**inherited, **options}}
        replaced[alias] = given
    return replaced
