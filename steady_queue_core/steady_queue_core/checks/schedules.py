"""Checks of recurring tasks."""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from django.apps import AppConfig
from django.core.checks import CheckMessage, Error, Info, Warning, register
from django.core.exceptions import ImproperlyConfigured
from django.utils import timezone

from .known_backends import TAG, known_backends

if TYPE_CHECKING:
    from ..schedules.cron import Schedule
    from ..schedules.values import RecurringDefinition

SUNDAY_ALONE = re.compile(r"(0|SUN)-(0|SUN)", re.IGNORECASE)


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
    try:
        from ..schedules.definition import registered
    except ImproperlyConfigured:
        return problems  # check_framework reports it.
    recurring = registered()
    return [
        *problems,
        *_unscheduled_tasks(recurring),
        *_schedules_of_other_meaning(recurring),
        *_schedules_that_are_over(recurring),
    ]


def _unscheduled_tasks(recurring: Sequence[RecurringDefinition]) -> list[CheckMessage]:
    try:
        from ..sharding.schedules import placed

        ours = known_backends()
        recurring = list(map(placed, recurring))
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


def _schedules_of_other_meaning(recurring: Sequence[RecurringDefinition]) -> list[CheckMessage]:
    from ..schedules.cron import Schedule

    return [
        Info(
            f"The recurring task {each.key!r}, schedule {each.schedule.expression!r}: {meaning}.",
            hint="If that is what you mean, add 'steady_queue.I001' to SILENCED_SYSTEM_CHECKS. For "
            "days that match both, schedule one of them and look for the other in the task.",
            id="steady_queue.I001",
        )
        for each in recurring
        if isinstance(each.schedule, Schedule) and (meaning := _difference(each.schedule))
    ]


def _difference(schedule: Schedule) -> str:
    """Return how the package ``steady_queue`` reads ``schedule`` differently; empty if it does not.

    That package reads expressions with the ``crontab`` library. Those that only ``crontab`` accepts
    are errors here.
    """
    _, _, of_month, _, of_week = schedule.fields
    if schedule.takes_either_day:
        return (
            f"a day that matches {of_month!r} or {of_week!r} is enough, as in cron; in Steady "
            "Queue it had to match both"
        )
    if any(SUNDAY_ALONE.fullmatch(term.partition("/")[0]) for term in of_week.split(",")):
        return f"in {of_week!r} a range from Sunday to Sunday is one day; in Steady Queue, the week"
    return ""


def _schedules_that_are_over(recurring: Sequence[RecurringDefinition]) -> list[CheckMessage]:
    from ..timezones import to_utc

    present = to_utc(timezone.now())
    return [
        Info(
            f"The recurring task {each.key!r}, schedule {each.schedule.expression!r}, has no run "
            "from now on.",
            hint="Remove its @recurring, or give it a later time.",
            id="steady_queue.I002",
        )
        for each in recurring
        if each.span.next_after(present) is None
    ]
