"""Checks of the project's tasks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from django.apps import AppConfig, apps
from django.core.checks import CheckMessage, Error, Warning, register
from django.core.exceptions import ImproperlyConfigured
from django.db import connections, router

from .known_backends import TAG, backends_of, known_backends, present_databases, workers_on


@register(TAG)
def check_task_modules(
    app_configs: Sequence[AppConfig] | None, **kwargs: Any
) -> list[CheckMessage]:
    """W011: workers import all modules with tasks. W012: each worker has tasks to run."""
    from ..configuration import Configuration, ConfigurationError

    try:
        from ..configured_backends import own_backends
        from ..schedules.definition import registered
        from ..tasks.modules import modules_left_out, queues_without_tasks

        options = Configuration.load()
        backends = own_backends().values()
        if not backends:
            return []
    except (ConfigurationError, ImproperlyConfigured):
        return []  # Other checks report it.
    declared = {each.queue_name for each in registered() if each.queue_name is not None}
    declared = declared.union(*(backend.queues for backend in backends))
    workers = [each.queues for using in present_databases() for each in workers_on(using)]
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
            f"No task uses the queues {', '.join(map(repr, queues))} of a worker in STEADY_QUEUE.",
            hint="Check the spelling. Queues that only using(queue_name=...) refers to can be "
            "listed in the QUEUES of the backend.",
            id="steady_queue.W012",
        )
        for queues in queues_without_tasks(list(dict.fromkeys(workers)), declared)
    ]


def _shared_limits(name: str, told: Callable[[Any], Any]) -> dict[tuple[str, str], Any]:
    """Return the tasks of each group and key of the limits of this ``name``, by what these say."""
    from ..tasks.registry import registered_tasks

    limits: dict[tuple[str, str], dict[Any, list[str]]] = {}
    for task in registered_tasks():
        limit = getattr(task, name, None)
        if limit is not None:
            # The results of callables are unknown: any two in a group may be the same.
            shared = limit.key if isinstance(limit.key, str) else ""
            of_group = limits.setdefault((limit.group_of(task), shared), {})
            of_group.setdefault(told(limit), []).append(task.module_path)
    return {where: of_group for where, of_group in sorted(limits.items()) if len(of_group) > 1}


@register(TAG)
def check_limits(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """W009: tasks that share a concurrency limit agree on it."""
    try:
        limits = _shared_limits("concurrency", lambda limit: limit.to)
    except ImproperlyConfigured:
        return []  # check_framework reports it.
    return [
        Warning(
            f"The tasks of the concurrency group {group!r} have different limits: "
            + "; ".join(f"to={to}: {', '.join(sorted(of_group[to]))}" for to in sorted(of_group)),
            hint="Give them the same limit; otherwise it changes with each enqueued job.",
            id="steady_queue.W009",
        )
        for (group, _), of_group in limits.items()
    ]


@register(TAG)
def check_rates(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """W017: tasks that share a rate limit agree on it."""
    try:
        limits = _shared_limits("rate", lambda limit: (limit.to, limit.per, limit.burst))
    except ImproperlyConfigured:
        return []  # check_framework reports it.
    return [
        Warning(
            f"The tasks of the rate group {group!r} have different limits: "
            + "; ".join(
                f"to={to}, per={per}, burst={burst}: {', '.join(sorted(paths))}"
                for (to, per, burst), paths in sorted(of_group.items())
            ),
            hint="Give them the same limit; otherwise none of them is kept.",
            id="steady_queue.W017",
        )
        for (group, _), of_group in limits.items()
    ]


@register(TAG)
def check_fair_keys(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """W018: the queues of tasks with fair keys are fair."""
    try:
        from ..features.fair.calls import is_fair
        from ..tasks.registry import registered_tasks

        backends = known_backends()
        plain: dict[tuple[str, str], list[str]] = {}
        for task in registered_tasks():
            if getattr(task, "fair_key", None) is None:
                continue
            for backend in backends_of(task, backends):
                if not is_fair(backend, task.queue_name):
                    where = plain.setdefault((backend.alias, task.queue_name), [])
                    where.append(task.module_path)
    except ImproperlyConfigured:
        return []  # check_framework or check_configuration reports it.
    return [
        Warning(
            f"The fair keys of these tasks have no effect, because their queue {queue!r} is not "
            f"fair: {', '.join(sorted(paths))}.",
            hint=f"Add {queue!r} to TASKS[{alias!r}]['OPTIONS']['fair_queues'], or leave out "
            "fair_key. If the tasks are enqueued into other queues only, add 'steady_queue.W018' "
            "to SILENCED_SYSTEM_CHECKS.",
            id="steady_queue.W018",
        )
        for (alias, queue), paths in sorted(plain.items())
    ]


@register(TAG)
def check_callbacks(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """E011: callbacks of tasks are tasks, accept what they are called with, use the database of
    their task, and do not follow each other without end."""
    from ..configuration import ConfigurationError

    try:
        from ..tasks.callbacks import problems_of_callbacks

        return [Error(problem, id="steady_queue.E011") for problem in problems_of_callbacks()]
    except (ImproperlyConfigured, ConfigurationError):
        return []  # check_framework, or check_configuration, reports it.


@register(TAG)
def check_transactional_tasks(
    app_configs: Sequence[AppConfig] | None, **kwargs: Any
) -> list[CheckMessage]:
    """W015: no transactional task keeps everybody from writing. W016: what such a task writes can
    be part of its transaction."""
    try:
        from ..features.delivery.options import TRANSACTIONAL, delivery_of
        from ..tasks.registry import registered_tasks

        backends = known_backends()
        found: dict[str, list[str]] = {}
        for task in registered_tasks():
            for backend in backends_of(task, backends):
                if delivery_of(task, backend) == TRANSACTIONAL:
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
