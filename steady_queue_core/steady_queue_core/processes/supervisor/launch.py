"""Turns the settings and the command line into the options of a supervisor."""

from __future__ import annotations

import os
import threading
from dataclasses import fields
from importlib import import_module
from typing import Any

from django.db import connections

from ...backend import SteadyQueueBackend
from ...configuration import Configuration, ConfigurationError, ResolvedOptions, load
from ...configured_backends import (
    backends_on,
    options_on,
    own_backends,
    queue_databases,
    require_known,
)
from ...errors import SupervisorContextError
from ...sharding.shards import shards_of
from ..base.system import processors, tells_memory

#: Environment variable that overrides ``supervisor_mode``.
MODE_VARIABLE = "STEADY_QUEUE_SUPERVISOR_MODE"
#: Environment variable that has the effect of ``--skip-recurring``.
SKIP_VARIABLE = "STEADY_QUEUE_SKIP_RECURRING"


def require_supervisor_context(*, standalone: bool = True) -> None:
    """Raise ``SupervisorContextError`` if a supervisor cannot run here."""
    if standalone and threading.current_thread() is not threading.main_thread():
        raise SupervisorContextError(
            "The supervisor handles signals, which only the main thread of a process receives: "
            "run it there, as a process of its own, or embedded: see EmbeddedQueue."
        )
    for connection in connections.all(initialized_only=True):
        if connection.in_atomic_block:
            raise SupervisorContextError(
                f"A transaction is open on the database {connection.alias!r}: worker processes "
                "could not see its changes. Run the supervisor outside of transactions; in a "
                "test, use TransactionTestCase instead of TestCase, and a test database in a file."
            )


def choose_databases(backends: str | None) -> list[str]:
    """Return the aliases of the databases of some backends, given by their aliases with commas
    between; ``None``: of all. A sharded one stands for its shards. Raises
    ``ConfigurationError``."""
    ours = own_backends()
    if not ours:
        raise ConfigurationError(
            "TASKS has no backend of Steady Queue. Add one: TASKS = {'default': {'BACKEND': "
            "'steady_queue_core.backend.SteadyQueueBackend', 'QUEUES': []}}"
        )
    if backends is None:
        return queue_databases()
    chosen: list[SteadyQueueBackend] = []
    for alias in [each.strip() for each in backends.split(",")]:
        found = [ours[alias]] if alias in ours else shards_of(alias)
        if not found:
            raise ConfigurationError(
                f"--backend {alias!r} is no Steady Queue backend in TASKS. "
                f"There are: {', '.join(sorted(ours))}."
            )
        chosen += found
    return list(dict.fromkeys(each.database for each in chosen))


def choose_database(backend_alias: str | None) -> str:
    """Return the alias of the one database of a backend, or of all. Raises
    ``ConfigurationError``."""
    databases = choose_databases(backend_alias)
    if len(databases) > 1:
        raise ConfigurationError(
            f"The backends in TASKS use several databases ({', '.join(databases)}). Choose one "
            f"with --backend {'|'.join(sorted(own_backends()))}."
        )
    return databases[0]


def served_databases(options: ResolvedOptions, backends: str | None) -> dict[str, ResolvedOptions]:
    """Return the databases of some backends, or of all, that have workers or dispatchers, and
    their options. Raises ``ConfigurationError``."""
    require_known(options)
    found = {using: options_on(using, options) for using in choose_databases(backends)}
    return {using: each for using, each in found.items() if each.serves}


def with_changes(
    options: ResolvedOptions,
    *,
    queues: str | None,
    exclude_queues: str | None = None,
    executor: str | None = None,
    threads: int | None,
    processes: int | None,
    pidfile: str | None,
    probe_port: int | None = None,
    probe_address: str | None = None,
    heartbeat_file: str | None = None,
    mode: str | None = None,
) -> ResolvedOptions:
    """Return ``options`` with the overrides of the command line. Raises
    ``ConfigurationError``."""
    workers = [
        {f.name: getattr(worker, f.name) for f in fields(worker)} for worker in options.workers
    ]
    if queues is not None:
        workers = [{**(workers or [{}])[0], "queues": queues}]
    if exclude_queues is not None:
        excluding = [f"!{entry.strip()}" for entry in exclude_queues.split(",")]
        for worker in workers:
            given = worker["queues"]
            entries = given.split(",") if isinstance(given, str) else given
            worker["queues"] = [*entries, *excluding]
    changed = {"executor": executor, "threads": threads, "processes": processes}
    for worker in workers:
        worker.update({name: value for name, value in changed.items() if value is not None})
    values: dict[str, Any] = {f.name: getattr(options, f.name) for f in fields(options)}
    values["workers"] = [Configuration.Worker(**worker) for worker in workers]
    given = {
        "supervisor_pidfile": pidfile,
        "probe_port": probe_port,
        "probe_address": probe_address,
        "heartbeat_file": heartbeat_file,
    }
    values.update({name: value for name, value in given.items() if value is not None})
    if mode or (mode := os.environ.get(MODE_VARIABLE)):
        values["supervisor_mode"] = mode
    return load(values)


def skips_recurring() -> bool:
    """Whether the environment says that no scheduler is wanted. Raises ``ConfigurationError``."""
    given = os.environ.get(SKIP_VARIABLE, "").strip().lower()
    if given in ("", "0", "false", "no", "off"):
        return False
    if given in ("1", "true", "yes", "on"):
        return True
    raise ConfigurationError(
        f"The environment variable {SKIP_VARIABLE} is {os.environ[SKIP_VARIABLE]!r}: set it to "
        "true or false, or leave it out."
    )


def runs_threads(options: ResolvedOptions) -> bool:
    """Whether workers, dispatchers and the scheduler run as threads. Raises
    ``ConfigurationError``."""
    can_fork = hasattr(os, "fork")
    if options.supervisor_mode == "fork" and not can_fork:
        raise ConfigurationError(
            "STEADY_QUEUE['supervisor_mode']: this system cannot fork processes; leave it out, or "
            "set it to 'async'"
        )
    return options.supervisor_mode == "async" or not can_fork


def require_means(options: ResolvedOptions, using: str, *, threads: bool) -> None:
    """Raise ``ConfigurationError`` if the workers of a database cannot do what its ``options`` say:
    because they are ``threads``, or because of this system."""
    place = _place_of_workers(options, using)
    for index, worker in enumerate(options.workers):
        where = f"{place}[{index}]"
        wanted = {"executor": worker.executor} if worker.runs_processes else {}
        for name in ("recycle_after", "recycle_rss", "cpu_affinity"):
            if getattr(worker, name) is not None:
                wanted[name] = getattr(worker, name)
        if threads and wanted:
            [(name, value), *_] = wanted.items()
            raise ConfigurationError(
                f"{where}[{name!r}] is {value!r}, which needs a worker that is a process of its "
                "own: not with --mode async or --reload, not in an EmbeddedQueue, and not where "
                "the system cannot fork. Leave it out there"
                + (" (--executor threads does so)." if name == "executor" else ".")
            )
        if worker.recycle_rss is not None and not tells_memory():
            raise ConfigurationError(
                f"{where}['recycle_rss']: this system does not tell how much memory a process "
                "takes; use recycle_after"
            )
        if worker.cpu_affinity is not None:
            _require_processors(f"{where}['cpu_affinity']", worker.cpu_affinity)


def _place_of_workers(options: ResolvedOptions, using: str) -> str:
    for alias in backends_on(using):
        own = options.backends.get(alias)
        if own is not None and own.workers is not None:
            return f"STEADY_QUEUE['backends'][{alias!r}]['workers']"
    return "STEADY_QUEUE['workers']"


def _require_processors(where: str, wanted: tuple[int, ...]) -> None:
    available = processors()
    if available is None:
        raise ConfigurationError(
            f"{where}: this system cannot restrict a process to some processors; leave it out"
        )
    if missing := sorted(set(wanted) - available):
        raise ConfigurationError(
            f"{where}: this process may not use {_listed(missing)}; "
            f"it may use {_listed(sorted(available))}"
        )


def _listed(numbers: list[int]) -> str:
    return f"processor{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))}"


def import_tasks(options: ResolvedOptions) -> None:
    """Import the task modules that the settings name. Raises ``ConfigurationError``."""
    for module in options.task_modules:
        try:
            import_module(module)
        except ImportError as error:
            raise ConfigurationError(
                f"STEADY_QUEUE['task_modules'] cannot be imported: {error}"
            ) from error
