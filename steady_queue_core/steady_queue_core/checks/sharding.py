"""Checks of the tasks of sharded backends."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from django.apps import AppConfig
from django.core.checks import CheckMessage, Warning, register
from django.core.exceptions import ImproperlyConfigured

from .known_backends import TAG


@register(TAG)
def check_shard_keys(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """W019: some task has the parameter that decides about shards."""
    from ..configuration.errors import suggest

    problems: list[CheckMessage] = []
    for backend, tasks in _tasks_of_shards():
        name = backend.settings.key
        undeclared = [task for task in tasks if task.shard_key is None]
        if name is None or not undeclared or any(map(backend.keys.knows, undeclared)):
            continue
        known = {each for task in undeclared for each in backend.keys.parameters_of(task)}
        problems.append(
            Warning(
                f"TASKS[{backend.alias!r}]['OPTIONS']['key'] is {name!r}, but no task of this "
                f"backend has a parameter of this name; {suggest(name, known)}",
                hint="Check the spelling, give the tasks a shard_key=..., or set the key to None.",
                id="steady_queue.W019",
            )
        )
    return problems


@register(TAG)
def check_limits_of_shards(
    app_configs: Sequence[AppConfig] | None, **kwargs: Any
) -> list[CheckMessage]:
    """W020: no limit or unique key is the same for all calls of a task, while their shards differ,
    each of which counts by itself."""
    problems: list[CheckMessage] = []
    for backend, tasks in _tasks_of_shards():
        if len(backend.settings.shards) < 2:
            continue
        counted = sorted(
            task.module_path
            for task in tasks
            if _has_fixed_key(task) and not isinstance(task.shard_key, str)
        )
        if counted:
            problems.append(
                Warning(
                    "Each shard limits these tasks by itself, because the key of their limit, or "
                    "their unique key, is the same for all calls, and the shard key is not: "
                    f"{', '.join(counted)}.",
                    hint="Give them a fixed shard_key as well, or limit them by their shard key. "
                    "If a limit for each shard is what you mean, add 'steady_queue.W020' to "
                    "SILENCED_SYSTEM_CHECKS.",
                    id="steady_queue.W020",
                )
            )
    return problems


def _has_fixed_key(task: Any) -> bool:
    declared = (task.concurrency, task.rate, task.unique)
    return any(each is not None and isinstance(each.key, str) for each in declared)


def _tasks_of_shards() -> Iterator[tuple[Any, list[Any]]]:
    """Yield each sharded backend that can be used, with the tasks that are registered for it."""
    try:
        from ..compat import task_backends
        from ..sharding import ShardedBackend
        from ..tasks.registry import registered_tasks

        aliases = list(task_backends)
    except ImproperlyConfigured:
        return  # check_framework reports it.
    for alias in aliases:
        try:
            backend = task_backends[alias]
            if not isinstance(backend, ShardedBackend):
                continue
            _ = backend.keys, backend.members
        except Exception:  # check_configuration, or the backend's own check, reports it.
            continue
        own = [task for task in registered_tasks() if task.backend == alias]
        if own:
            yield backend, own
