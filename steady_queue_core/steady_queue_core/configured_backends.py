"""The backends in ``TASKS`` that store jobs, and the databases that they use."""

from __future__ import annotations

from .backend import SteadyQueueBackend
from .compat import (
    DEFAULT_TASK_BACKEND_ALIAS,
    BaseTaskBackend,
    InvalidTaskBackend,
    task_backends,
)
from .configuration import ConfigurationError
from .schedules.definition import RecurringDefinition, registered


def own_backends() -> dict[str, SteadyQueueBackend]:
    """Return the backends in ``TASKS`` that store jobs, by alias, the default backend first.

    Raises ``ConfigurationError``.
    """
    aliases = sorted(task_backends, key=lambda alias: alias != DEFAULT_TASK_BACKEND_ALIAS)
    found = {alias: _backend(alias) for alias in aliases}
    return {
        alias: own
        for alias, own in found.items()
        if isinstance(own, SteadyQueueBackend) and own.stores_jobs
    }


def own_backend(alias: str) -> SteadyQueueBackend:
    """Return the backend of a stored job, or another one if its alias is no longer in ``TASKS``."""
    backends = own_backends()
    return backends.get(alias) or next(iter(backends.values()))


def backends_on(using: str) -> dict[str, SteadyQueueBackend]:
    """Return the backends that store their jobs in the database ``using``, by alias."""
    return {alias: each for alias, each in own_backends().items() if each.database == using}


def queue_databases() -> list[str]:
    """Return the aliases of the databases that hold a queue, that of the default backend first.

    Raises ``ImproperlyConfigured`` if ``TASKS`` is wrong.
    """
    return list(dict.fromkeys(backend.database for backend in own_backends().values()))


def recurring_tasks_on(using: str) -> list[RecurringDefinition]:
    """Return the recurring tasks in the code whose jobs are stored in the database ``using``."""
    backends = backends_on(using)
    return [each for each in registered() if each.task.backend in backends]


def _backend(alias: str) -> BaseTaskBackend:
    try:
        return task_backends[alias]
    except KeyError as error:
        raise ConfigurationError(f"TASKS[{alias!r}] has no {error}.") from error
    except InvalidTaskBackend as error:
        raise ConfigurationError(f"TASKS[{alias!r}]['BACKEND'] cannot be used: {error}") from error
