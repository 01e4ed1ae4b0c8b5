"""The backends in ``TASKS`` that store jobs, and the databases that they use."""

from __future__ import annotations

from contextlib import suppress

from django.core.exceptions import ImproperlyConfigured

from .backend import SteadyQueueBackend
from .compat import (
    DEFAULT_TASK_BACKEND_ALIAS,
    BaseTaskBackend,
    InvalidTaskBackend,
    task_backends,
)
from .configuration import Configuration, ConfigurationError, ResolvedOptions
from .configuration.errors import suggest
from .configuration.options import SETTING
from .features.fair.queues import FairQueues
from .schedules.definition import registered
from .schedules.values import RecurringDefinition
from .sharding.schedules import placed


def own_backends() -> dict[str, SteadyQueueBackend]:
    """Return the backends in ``TASKS`` that store jobs, by alias, the default backend first.

    Raises ``ConfigurationError``.
    """
    found = {alias: _backend(alias) for alias in _aliases()}
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


def options_on(using: str, options: ResolvedOptions | None = None) -> ResolvedOptions:
    """Return the options of the processes that serve the database ``using``: by default those of
    the settings. Raises ``ConfigurationError``."""
    return (options or Configuration.load()).of_backends(backends_on(using))


def require_known(options: ResolvedOptions) -> None:
    """Raise ``ConfigurationError`` if there are options for a backend that stores no jobs."""
    ours = own_backends()
    # In a project's tests there may be none at all.
    unknown = [alias for alias in options.backends if alias not in ours] if ours else []
    if unknown:
        raise ConfigurationError(
            [
                f"{SETTING}['backends']: {alias!r} is no backend of Steady Queue in TASKS that "
                f"stores jobs; {suggest(alias, ours)}"
                for alias in unknown
            ]
        )


def recurring_tasks_on(using: str) -> list[RecurringDefinition]:
    """Return the recurring tasks in the code whose jobs are stored in the database ``using``."""
    backends = backends_on(using)
    found = map(placed, registered())
    return [each for each in found if each.task.backend in backends]


def fair_queues_on(using: str) -> FairQueues | None:
    """Return the fair queues of the database ``using``, as its backends declare them together;
    ``None``: they declare none.

    What cannot be used in ``TASKS`` declares none: the system checks report it, and the jobs of
    other backends go on.
    """
    declared = (_fair_queues(alias, using) for alias in _aliases())
    return FairQueues.merged(each for each in declared if each is not None)


def _fair_queues(alias: str, using: str) -> FairQueues | None:
    with suppress(ImproperlyConfigured):
        own = _backend(alias)
        if isinstance(own, SteadyQueueBackend) and own.stores_jobs and own.database == using:
            return own.settings.fair_queues
    return None


def _aliases() -> list[str]:
    """Return the aliases in ``TASKS``, that of the default backend first."""
    return sorted(task_backends, key=lambda alias: alias != DEFAULT_TASK_BACKEND_ALIAS)


def _backend(alias: str) -> BaseTaskBackend:
    try:
        return task_backends[alias]
    except KeyError as error:
        raise ConfigurationError(f"TASKS[{alias!r}] has no {error}.") from error
    except InvalidTaskBackend as error:
        raise ConfigurationError(f"TASKS[{alias!r}]['BACKEND'] cannot be used: {error}") from error
