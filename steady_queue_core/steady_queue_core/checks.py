"""System checks. Their ids are documented and stable."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.metadata import packages_distributions
from typing import TYPE_CHECKING, Any

from django.apps import AppConfig, apps
from django.core.checks import CheckMessage, Error, Info, Warning, register
from django.core.checks import Tags as DjangoTags
from django.core.exceptions import ImproperlyConfigured
from django.db import DatabaseError, InterfaceError, connections, router

from .errors import DialectConflict, DialectError

if TYPE_CHECKING:
    from .backend import SteadyQueueBackend

TAG = "steady_queue"
#: The connections of Django's pool for a database, unless its options say otherwise.
DEFAULT_POOL_SIZE = 4


@register(TAG)
def check_framework(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """E003: a task framework is installed. E007: no other distribution uses the same names."""
    problems: list[CheckMessage] = []
    try:
        from . import compat  # noqa: F401  (its import is the check)
    except ImproperlyConfigured as error:
        problems.append(Error(str(error), id="steady_queue.E003"))
    if "steady_queue" in packages_distributions():
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
    from .configuration import Configuration, ConfigurationError

    problems: list[str] = []
    for load in (Configuration.load, _own_backends):
        try:
            load()
        except ConfigurationError as error:
            problems += error.problems
    return [Error(problem, id="steady_queue.E004") for problem in problems]


@register(TAG)
def check_recurring_tasks(
    app_configs: Sequence[AppConfig] | None, **kwargs: Any
) -> list[CheckMessage]:
    """E005: the task modules can be imported, and so their schedules are valid. W010: each
    recurring task uses a backend of Steady Queue. I001: a schedule has another meaning in the
    package ``steady_queue``."""
    from .configuration import Configuration, ConfigurationError

    try:
        modules = Configuration.load().task_modules
    except ConfigurationError:
        return []  # check_configuration reports it.
    problems: list[CheckMessage] = []
    for name in modules:
        try:
            import_module(name)
        except Exception as error:
            problems.append(
                Error(
                    f"STEADY_QUEUE['task_modules']: {name!r} cannot be imported: "
                    f"{type(error).__name__}: {error}",
                    id="steady_queue.E005",
                )
            )
    return problems + _unscheduled_tasks() + _schedules_of_other_meaning()


@register(TAG)
def check_signatures(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """W013: where one backend refuses unsigned payloads, all others do."""
    from .configuration import ConfigurationError

    try:
        backends = _own_backends()
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


@register(TAG)
def check_callbacks(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """E011: callbacks of tasks are tasks, accept what they are called with, use the database of
    their task, and do not follow each other without end."""
    from .configuration import ConfigurationError

    try:
        from .tasks.callbacks import problems_of_callbacks

        return [Error(problem, id="steady_queue.E011") for problem in problems_of_callbacks()]
    except (ImproperlyConfigured, ConfigurationError):
        return []  # check_framework, or check_configuration, reports it.


@register(TAG)
def check_limits(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """W009: tasks that share a concurrency limit agree on it."""
    try:
        from .tasks.definition import registered_tasks
    except ImproperlyConfigured:
        return []  # check_framework reports it.
    limits: dict[tuple[str, str], dict[int, list[str]]] = {}
    for task in registered_tasks():
        concurrency = getattr(task, "concurrency", None)
        if concurrency is not None:
            # The results of callables are unknown: any two in a group may be the same.
            shared = concurrency.key if isinstance(concurrency.key, str) else ""
            of_group = limits.setdefault((concurrency.group_of(task), shared), {})
            of_group.setdefault(concurrency.to, []).append(task.module_path)
    return [
        Warning(
            f"The tasks of the concurrency group {group!r} have different limits: "
            + "; ".join(f"to={to}: {', '.join(sorted(of_group[to]))}" for to in sorted(of_group)),
            hint="Give them the same limit; otherwise it changes with each enqueued job.",
            id="steady_queue.W009",
        )
        for (group, _), of_group in sorted(limits.items())
        if len(of_group) > 1
    ]


@register(TAG)
def check_task_modules(
    app_configs: Sequence[AppConfig] | None, **kwargs: Any
) -> list[CheckMessage]:
    """W011: workers import all modules with tasks. W012: each worker has tasks to run."""
    from .configuration import Configuration, ConfigurationError

    try:
        from .configured_backends import own_backends
        from .schedules.definition import registered
        from .tasks.modules import modules_left_out, queues_without_tasks

        options = Configuration.load()
        backends = own_backends().values()
        if not backends:
            return []
    except (ConfigurationError, ImproperlyConfigured):
        return []  # Other checks report it.
    declared = {each.queue_name for each in registered() if each.queue_name is not None}
    declared = declared.union(*(backend.queues for backend in backends))
    workers = [worker.queues for worker in options.workers]
    problems: list[CheckMessage] = [
        Warning(
            f"The module {module!r} has tasks, but workers do not import it: its app is not in "
            "INSTALLED_APPS.",
            hint=f"Add {module.rpartition('.')[0] or module!r} to INSTALLED_APPS, or {module!r} to "
            "STEADY_QUEUE['task_modules'].",
            id="steady_queue.W011",
        )
        for module in modules_left_out(options.task_modules)
    ]
    return problems + [
        Warning(
            f"No task uses the queues {', '.join(map(repr, queues))} of a worker in "
            "STEADY_QUEUE['workers'].",
            hint="Check the spelling. Queues that only using(queue_name=...) refers to can be "
            "listed in the QUEUES of the backend.",
            id="steady_queue.W012",
        )
        for queues in queues_without_tasks(workers, declared)
    ]


@register(TAG)
def check_dialects(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """E001, E002: each database that holds a queue has exactly one dialect, which serves the queue
    lists of all workers."""
    from .configuration import Configuration, ConfigurationError
    from .dialects import QueueSelector, dialect_for

    problems: list[CheckMessage] = []
    for using in _databases():
        try:
            dialect = dialect_for(using)
            for worker in Configuration.load().workers:
                dialect.require_exclusion(QueueSelector.of(worker.queues))
        except ConfigurationError:
            continue  # check_configuration reports it.
        except DialectConflict as error:
            problems.append(Error(str(error), id="steady_queue.E002"))
        except DialectError as error:
            problems.append(Error(str(error), id="steady_queue.E001"))
    return problems


@register(TAG)
def check_routers(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """E009: the database routers allow all tables of a queue in its database."""
    problems: list[CheckMessage] = []
    models = list(apps.get_app_config("steady_queue").get_models())
    for using in _databases():
        kept_out = [
            model._meta.db_table for model in models if not router.allow_migrate_model(using, model)
        ]
        if kept_out:
            problems.append(
                Error(
                    f"The routers in DATABASE_ROUTERS keep tables of the queue out of the database "
                    f"{using!r}, where its jobs are: {', '.join(sorted(kept_out))}.",
                    hint="Put 'steady_queue_core.routers.SteadyQueueRouter' first in "
                    "DATABASE_ROUTERS, or let yours allow the app 'steady_queue' there.",
                    id="steady_queue.E009",
                )
            )
    return problems


@register(TAG)
def check_pools(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """W014: connection pools have a connection for each task that a process runs at once."""
    from .configuration import Configuration, ConfigurationError

    try:
        options = Configuration.load()
    except (ConfigurationError, ImproperlyConfigured):
        return []  # check_configuration reports it.
    if not _databases():
        return []
    # A task process has one task at a time, and a pool of its own.
    threads = [worker.threads for worker in options.workers if not worker.runs_processes]
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


def _pool_size(settings: Mapping[str, Any]) -> int | None:
    """Return the most connections of Django's pool for a database, or ``None`` without a pool."""
    pool = settings.get("OPTIONS", {}).get("pool")
    if not pool:
        return None
    given = pool if isinstance(pool, Mapping) else {}
    size = given.get("max_size") or given.get("min_size", DEFAULT_POOL_SIZE)
    return size if isinstance(size, int) else None


@register(TAG)
def check_transactional_tasks(
    app_configs: Sequence[AppConfig] | None, **kwargs: Any
) -> list[CheckMessage]:
    """W015: no transactional task keeps everybody from writing. W016: what such a task writes can
    be part of its transaction."""
    try:
        from .delivery import TRANSACTIONAL
        from .tasks.definition import registered_tasks

        backends = _own_backends()
        found: dict[str, list[str]] = {}
        for task in registered_tasks():
            backend = backends.get(task.backend)
            if backend is not None and backend.delivery_of(task) == TRANSACTIONAL:
                found.setdefault(backend.database, []).append(task.module_path)
    except ImproperlyConfigured:
        return []  # check_framework or check_configuration reports it.
    problems: list[CheckMessage] = []
    for using, paths in sorted(found.items()):
        if using not in connections:
            continue  # The backend's own check reports it.
        names = ", ".join(sorted(paths))
        if not connections[using].features.has_select_for_update:
            problems.append(
                Warning(
                    f"Nobody else can write to the database {using!r} while one of these tasks "
                    f"runs, because it is delivered transactionally: {names}.",
                    hint="Keep such tasks to milliseconds, or use a database with row locks. If "
                    "they are short, add 'steady_queue.W015' to SILENCED_SYSTEM_CHECKS.",
                    id="steady_queue.W015",
                )
            )
        models = [m for m in apps.get_models() if m._meta.app_label != "steady_queue"]
        if models and all(router.db_for_write(model) != using for model in models):
            problems.append(
                Warning(
                    f"The jobs of these tasks, which are delivered transactionally, are in the "
                    f"database {using!r}, where no model of the project is written: {names}.",
                    hint="Give them a backend whose OPTIONS['database'] is that of the models that "
                    "they write, or another delivery.",
                    id="steady_queue.W016",
                )
            )
    return problems


@register(TAG)
def check_mode(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """W008: no worker asks for several processes in the mode that has only one."""
    from .configuration import Configuration, ConfigurationError

    try:
        options = Configuration.load()
    except ConfigurationError:
        return []  # check_configuration reports it.
    several = [worker for worker in options.workers if worker.processes > 1]
    if options.supervisor_mode != "async" or not several:
        return []
    return [
        Warning(
            "STEADY_QUEUE['supervisor_mode'] is 'async': each kind of worker is one thread, "
            "plus its task threads, and ignores 'processes'.",
            hint="Omit 'processes', raise 'threads', or use the mode 'fork'.",
            id="steady_queue.W008",
        )
    ]


@register(TAG, DjangoTags.database)
def check_databases(
    app_configs: Sequence[AppConfig] | None,
    databases: Sequence[str] | None = None,
    **kwargs: Any,
) -> list[CheckMessage]:
    """The dialects' own checks of the servers, for ``check --database``. E008: a server does not
    answer."""
    from .dialects import dialect_for

    problems: list[CheckMessage] = []
    for using in _databases():
        if using in (databases or ()):
            try:
                problems += dialect_for(using).checks(connections[using])
            except ImproperlyConfigured:
                continue  # check_dialects or check_configuration reports it.
            except (DatabaseError, InterfaceError) as error:
                problems.append(
                    Error(
                        f"Database {using!r} could not be examined: {str(error).strip()}",
                        hint="The queue's processes wait until the server is back.",
                        id="steady_queue.E008",
                    )
                )
    return problems


def _unscheduled_tasks() -> list[CheckMessage]:
    try:
        from .schedules.definition import registered

        ours = _own_backends()
    except ImproperlyConfigured:
        return []  # check_framework, or check_configuration, reports it.
    return [
        Warning(
            f"The recurring task {each.key!r} is never scheduled: its backend "
            f"{each.task.backend!r} is not one of Steady Queue.",
            id="steady_queue.W010",
        )
        for each in registered()
        if ours and each.task.backend not in ours
    ]


def _schedules_of_other_meaning() -> list[CheckMessage]:
    try:
        from .schedules.cron import Schedule
        from .schedules.definition import registered
        from .schedules.original_cron import difference
    except ImproperlyConfigured:
        return []  # check_framework reports it.
    return [
        Info(
            f"The recurring task {each.key!r}, schedule {each.schedule.expression!r}: {meaning}.",
            hint="If that is what you mean, add 'steady_queue.I001' to SILENCED_SYSTEM_CHECKS. For "
            "days that match both, schedule one of them and look for the other in the task.",
            id="steady_queue.I001",
        )
        for each in registered()
        if isinstance(each.schedule, Schedule) and (meaning := difference(each.schedule))
    ]


def _databases() -> list[str]:
    try:
        from .configured_backends import queue_databases

        return [using for using in queue_databases() if using in connections]
    except ImproperlyConfigured:
        return []  # Another check reports it.


def _own_backends() -> dict[str, SteadyQueueBackend]:
    """Return the backends that store jobs; none without a task framework, which E003 reports."""
    try:
        from .configured_backends import own_backends
    except ImproperlyConfigured:
        return {}
    return own_backends()
