"""A check of how long permits are kept."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from django.apps import AppConfig
from django.core.checks import CheckMessage, Warning, register
from django.core.exceptions import ImproperlyConfigured

from .known_backends import TAG, backends_of, known_backends


@register(TAG)
def check_durations(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """W022: permits of concurrency limits can be kept for as short as the limits say."""
    try:
        from ..configured_backends import options_on

        limits = _durations()
        problems: list[CheckMessage] = []
        for using in sorted({using for using, _ in limits}):
            heartbeat = options_on(using).process_heartbeat_interval
            problems += _problems(using, heartbeat, limits)
        return problems
    except ImproperlyConfigured:
        return []  # check_framework or check_configuration reports it.


def _durations() -> dict[tuple[str, str], timedelta | None]:
    """Return what the limits of tasks say, by the database of the jobs and the path of the task."""
    from ..tasks.registry import registered_tasks

    backends = known_backends()
    return {
        (backend.database, task.module_path): limit.duration
        for task in registered_tasks()
        if (limit := getattr(task, "concurrency", None)) is not None
        for backend in backends_of(task, backends)
    }


def _problems(
    using: str, heartbeat: timedelta, limits: dict[tuple[str, str], timedelta | None]
) -> list[CheckMessage]:
    from ..configuration.module_settings import module_setting
    from ..models.operations.semaphore_maintenance import least_duration

    usual, least = module_setting("default_concurrency_control_period"), least_duration(heartbeat)
    short = {
        path: usual if duration is None else duration
        for (where, path), duration in limits.items()
        if where == using and (usual if duration is None else duration) < least
    }
    if not short:
        return []
    return [
        Warning(
            f"The duration of these concurrency limits is shorter than two heartbeats of a process "
            f"in the database {using!r}; permits of running jobs are kept for {least}: "
            + ", ".join(f"{path} ({duration})" for path, duration in sorted(short.items())),
            hint=f"Set the duration (or default_concurrency_control_period) to {least} or more, or "
            "STEADY_QUEUE['process_heartbeat_interval'] to "
            f"{min(short.values()) / 2} or less.",
            id="steady_queue.W022",
        )
    ]
