"""From a command line to what a supervisor is to run."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from ..backend import SteadyQueueBackend
from ..compat import task_backends
from ..configuration import Configuration, ConfigurationError, ResolvedOptions, load


def choose_database(backend_alias: str | None) -> str:
    """Return the alias of the database to serve. Raises ``ConfigurationError``."""
    ours = {
        alias: backend
        for alias in task_backends
        if isinstance(backend := task_backends[alias], SteadyQueueBackend)
    }
    if not ours:
        raise ConfigurationError(
            "TASKS has no backend of Steady Queue. Add one: TASKS = {'default': {'BACKEND': "
            "'steady_queue_core.backend.SteadyQueueBackend', 'QUEUES': []}}"
        )
    if backend_alias is not None:
        if backend_alias not in ours:
            raise ConfigurationError(
                f"--backend {backend_alias!r} is no Steady Queue backend in TASKS. "
                f"There are: {', '.join(sorted(ours))}."
            )
        return ours[backend_alias].database
    databases = sorted({backend.database for backend in ours.values()})
    if len(databases) > 1:
        raise ConfigurationError(
            f"The backends in TASKS use several databases ({', '.join(databases)}), and one "
            f"supervisor serves one. Choose with --backend {'|'.join(sorted(ours))}, and start "
            "a supervisor for each."
        )
    return databases[0]


def with_changes(
    options: ResolvedOptions,
    *,
    queues: str | None,
    threads: int | None,
    processes: int | None,
    pidfile: str | None,
) -> ResolvedOptions:
    """Return ``options`` with what the command line says. Raises ``ConfigurationError``."""
    workers = [
        {f.name: getattr(worker, f.name) for f in fields(worker)} for worker in options.workers
    ]
    if queues is not None:
        workers = [{**(workers or [{}])[0], "queues": queues}]
    changed = {"threads": threads, "processes": processes}
    for worker in workers:
        worker.update({name: value for name, value in changed.items() if value is not None})
    values: dict[str, Any] = {f.name: getattr(options, f.name) for f in fields(options)}
    values["workers"] = [Configuration.Worker(**worker) for worker in workers]
    if pidfile is not None:
        values["supervisor_pidfile"] = pidfile
    return load(values)
