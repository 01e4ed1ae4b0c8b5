"""The backends and databases of the project, as far as its settings can be read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from django.core.exceptions import ImproperlyConfigured
from django.db import connections

if TYPE_CHECKING:
    from ..backend import SteadyQueueBackend
    from ..configuration.processes import Worker

#: The tag of the checks, for ``check --tag``.
TAG = "steady_queue"
#: That of the checks without which the queue does not start, though the project may do so.
START = "steady_queue_start"


def present_databases() -> list[str]:
    """Return the databases that hold a queue; none while another check reports why."""
    try:
        from ..configured_backends import queue_databases

        return [using for using in queue_databases() if using in connections]
    except ImproperlyConfigured:
        return []


def workers_on(using: str) -> Sequence[Worker]:
    """Return the workers that serve a database. Raises ``ConfigurationError``."""
    from ..configured_backends import options_on

    return options_on(using).workers


def backends_of(task: Any, known: dict[str, SteadyQueueBackend]) -> list[SteadyQueueBackend]:
    """Return those of the ``known`` backends that store jobs of a task: its own, or its shards."""
    from ..sharding.shards import shards_of

    own = known.get(task.backend)
    return [own] if own is not None else shards_of(task.backend)


def known_backends() -> dict[str, SteadyQueueBackend]:
    """Return the backends that store jobs; none without a task framework, which E003 reports."""
    try:
        from ..configured_backends import own_backends
    except ImproperlyConfigured:
        return {}
    return own_backends()
