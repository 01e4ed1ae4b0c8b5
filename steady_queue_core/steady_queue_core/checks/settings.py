"""Checks of the settings: the framework, ``STEADY_QUEUE`` and the backends in ``TASKS``."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import packages_distributions
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from django.apps import AppConfig
from django.core.checks import CheckMessage, Error, Warning, register
from django.core.exceptions import ImproperlyConfigured
from django.db import connections

from .known_backends import TAG, known_backends, present_databases, workers_on

if TYPE_CHECKING:
    from ..configuration.processes import Worker

#: The connections of Django's pool for a database, unless its options say otherwise.
DEFAULT_POOL_SIZE = 4


@register(TAG)
def check_framework(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """E003: a task framework is installed. E007: no other distribution uses the same names."""
    problems: list[CheckMessage] = []
    try:
        from .. import compat  # noqa: F401  (its import is the check)
    except ImproperlyConfigured as error:
        problems.append(Error(str(error), id="steady_queue.E003"))
    # The metadata of all distributions take long to read: for the few that have such a module.
    has_module = "steady_queue" in sys.modules or find_spec("steady_queue")
    if has_module and "steady_queue" in packages_distributions():
        problems.append(
            Error(
                "The distribution steady-queue is installed beside steady-queue-core; both have "
                "an app with the label 'steady_queue' and a command of that name.",
                hint="Run: pip uninstall steady-queue",
                id="steady_queue.E007",
            )
        )
    return problems


@register(TAG)
def check_configuration(
    app_configs: Sequence[AppConfig] | None, **kwargs: Any
) -> list[CheckMessage]:
    """E004: ``STEADY_QUEUE`` is valid, and the backends in ``TASKS`` can be loaded."""
    from ..configuration import Configuration, ConfigurationError

    problems: list[str] = []
    for load in (Configuration.load, known_backends, _check_backends):
        try:
            load()
        except ConfigurationError as error:
            problems += error.problems
    return [Error(problem, id="steady_queue.E004") for problem in problems]


def _check_backends() -> None:
    from ..configuration import Configuration, ConfigurationError

    try:
        options, databases = Configuration.load(), present_databases()
    except ConfigurationError:
        return  # Told of already.
    if databases:
        from ..configured_backends import options_on, require_known

        require_known(options)
        for using in databases:
            options_on(using, options)


@register(TAG)
def check_mode(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """W008: no worker asks for several processes in the mode that has only one."""
    from ..configuration import Configuration, ConfigurationError

    try:
        options, workers = Configuration.load(), _all_workers()
    except (ConfigurationError, ImproperlyConfigured):
        return []  # check_configuration reports it.
    if options.supervisor_mode != "async" or all(worker.processes == 1 for worker in workers):
        return []
    return [
        Warning(
            "STEADY_QUEUE['supervisor_mode'] is 'async': each kind of worker is one thread, "
            "plus its task threads, and ignores 'processes'.",
            hint="Omit 'processes', raise 'threads', or use the mode 'fork'.",
            id="steady_queue.W008",
        )
    ]


@register(TAG)
def check_pools(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """W014: connection pools have a connection for each task that a process runs at once."""
    from ..configuration import Configuration, ConfigurationError

    try:
        options, workers = Configuration.load(), _all_workers()
    except (ConfigurationError, ImproperlyConfigured):
        return []  # check_configuration reports it.
    if not present_databases():
        return []
    # A task process has one task at a time, and a pool of its own.
    threads = [worker.threads for worker in workers if not worker.runs_processes]
    in_one_process = options.supervisor_mode == "async"
    most = (sum if in_one_process else max)(threads or [0])
    return [
        Warning(
            f"The connection pool of the database {alias!r} has at most {size} connections, but "
            f"{'all workers together have' if in_one_process else 'a worker has'} {most} threads "
            "for tasks, and coroutines need a connection as well: tasks wait for each other, and "
            "fail if that takes too long.",
            hint=f"Set DATABASES[{alias!r}]['OPTIONS']['pool']['max_size'] to {most + 1} or more, "
            "or give the workers in STEADY_QUEUE fewer threads.",
            id="steady_queue.W014",
        )
        for alias in connections
        if (size := _pool_size(connections.settings[alias])) is not None and size <= most
    ]


def _all_workers() -> list[Worker]:
    return [worker for using in present_databases() for worker in workers_on(using)]


def _pool_size(settings: Mapping[str, Any]) -> int | None:
    """Return the most connections of Django's pool for a database, or ``None`` without a pool."""
    pool = settings.get("OPTIONS", {}).get("pool")
    if not pool:
        return None
    given = pool if isinstance(pool, Mapping) else {}
    size = given.get("max_size") or given.get("min_size", DEFAULT_POOL_SIZE)
    return size if isinstance(size, int) else None


@register(TAG)
def check_signatures(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """W013: where one backend refuses unsigned payloads, all others do."""
    from ..configuration import ConfigurationError

    try:
        backends = known_backends()
        options = {alias: backend.settings.payload for alias, backend in backends.items()}
    except ConfigurationError:
        return []  # check_configuration, or the backend's own check, reports it.
    signs = {alias: payload is not None and payload.sign for alias, payload in options.items()}
    if not any(signs.values()):
        return []
    return [
        Warning(
            f"TASKS[{alias!r}] accepts unsigned payloads, while another backend refuses them: a "
            "row that names this one runs without a signature.",
            hint=f"Set TASKS[{alias!r}]['OPTIONS']['payload'] to {{'sign': True}} as well.",
            id="steady_queue.W013",
        )
        for alias in signs
        if not signs[alias]
    ]
