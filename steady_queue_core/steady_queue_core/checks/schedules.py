"""Checks of recurring tasks."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

from django.apps import AppConfig
from django.core.checks import CheckMessage, Error, Info, Warning, register
from django.core.exceptions import ImproperlyConfigured
from django.utils import timezone

from .known_backends import TAG, known_backends


@register(TAG)
def check_recurring_tasks(
    app_configs: Sequence[AppConfig] | None, **kwargs: Any
) -> list[CheckMessage]:
    """E005: the task modules can be imported, and so their schedules are valid. W010: each
    recurring task uses a backend of Steady Queue. I001: a schedule has another meaning in the
    package ``steady_queue``. I002: a schedule has no further run."""
    from ..configuration import Configuration, ConfigurationError

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
    return [
        *problems,
        *_unscheduled_tasks(),
        *_schedules_of_other_meaning(),
        *_schedules_that_are_over(),
    ]


def _unscheduled_tasks() -> list[CheckMessage]:
    try:
        from ..schedules.definition import registered
        from ..sharding.schedules import placed

        ours = known_backends()
        recurring = list(map(placed, registered()))
    except ImproperlyConfigured:
        return []  # check_framework, or check_configuration, reports it.
    return [
        Warning(
            f"The recurring task {each.key!r} is never scheduled: its backend "
            f"{each.task.backend!r} is not one of Steady Queue.",
            id="steady_queue.W010",
        )
        for each in recurring
        if ours and each.task.backend not in ours
    ]


def _schedules_of_other_meaning() -> list[CheckMessage]:
    try:
        from ..schedules.cron import Schedule
        from ..schedules.definition import registered
        from ..schedules.original_cron import difference
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


def _schedules_that_are_over() -> list[CheckMessage]:
    try:
        from ..schedules.definition import registered
        from ..timezones import to_utc
    except ImproperlyConfigured:
        return []  # check_framework reports it.
    present = to_utc(timezone.now())
    return [
        Info(
            f"The recurring task {each.key!r}, schedule {each.schedule.expression!r}, has no run "
            "from now on.",
            hint="Remove its @recurring, or give it a later time.",
            id="steady_queue.I002",
        )
        for each in registered()
        if each.span.next_after(present) is None
    ]
