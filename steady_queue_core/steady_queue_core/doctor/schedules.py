"""Recurring tasks whose runs are not enqueued."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from ..dialects import portable
from ..listings.recurring import expected_after
from ..listings.wording import duration, moment, name
from ..models import RecurringTask
from .finding import Finding, many, problem, warning
from .patient import Patient, few

#: A run that is not enqueued by then is late.
LATE = timedelta(minutes=1)
#: Runs that were due before are not looked for.
WINDOW = timedelta(hours=12)


def due(patient: Patient) -> Iterator[Finding]:
    if not patient.is_alive:
        return
    schedulers = patient.live("scheduler")
    started = [portable.aware(each.row.created_at) for each in schedulers]
    since = min(started, default=patient.present - WINDOW)
    late = _late(patient, max(since, patient.present - WINDOW))
    if not late:
        return
    key, slot = min(late, key=lambda each: each[1])
    text = (
        f"{many(len(late), 'recurring task')} with a run that was not enqueued: {name(key)!r} was "
        f"due {duration(patient.present - slot)} ago, at {moment(slot)}"
    )
    if schedulers:
        yield warning(
            "scheduler-late",
            f"{text}, although a scheduler is alive.",
            "See in its log what it fails at.",
        )
    else:
        yield problem(
            "scheduler-missing",
            f"{text}, and no scheduler is alive.",
            "Start one: a supervisor without --skip-recurring has one, if the project has "
            "recurring tasks; or run: python manage.py steady_queue --only schedule",
        )


def _late(patient: Patient, since: datetime) -> list[tuple[str, datetime]]:
    found = []
    for each in patient.schedules:
        # Runs that are left out or wait because of the previous one leave no trace.
        if each.row.overlap == "allow" and _is_read(patient, each.row):
            slot = expected_after(each.row, each.last_run, since)
            if slot is not None and slot < patient.present - LATE:
                found.append((each.key, slot))
    return found


def tasks_gone(patient: Patient) -> Iterator[Finding]:
    rows = (each.row for each in patient.schedules)
    yield from few(
        problem(
            "schedule-task-missing",
            f"The recurring task {name(row.key)!r} names the task {name(row.task_path)}, which "
            "this project does not have.",
            "Restore the task under that name, or switch the schedule off: "
            f"{patient.command('schedules', 'disable', row.key)}",
        )
        for row in rows
        if not patient.knows(row.task_path)
    )


def not_read(patient: Patient) -> Iterator[Finding]:
    found = [each.key for each in patient.schedules if not _is_read(patient, each.row)]
    if found:
        yield problem(
            "schedule-not-read",
            f"{many(len(found), 'recurring task')} added at run time will never be due, such as "
            f"{name(found[0])!r}: the scheduler reads only those in the code.",
            "Set STEADY_QUEUE = {'scheduler': {'dynamic_tasks_enabled': True}}, and restart it.",
        )


def _is_read(patient: Patient, row: RecurringTask) -> bool:
    scheduler = patient.options.scheduler
    return bool(row.static or scheduler is None or scheduler.dynamic_tasks_enabled)


EXAMINATIONS = (due, tasks_gone, not_read)
