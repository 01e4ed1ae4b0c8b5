"""Columns of the list of recurring tasks, and fields of the page of one."""

from __future__ import annotations

from typing import Any

from ..listings.run_outcomes import RunOutcome
from . import texts
from .columns import column
from .detail import Fields, Section


def told(outcome: RunOutcome | None) -> tuple[str, str]:
    """Return what has become of a run, and how long it took."""
    if outcome is None:
        return "", ""
    took = outcome.duration
    return outcome.words, "" if took is None else texts.duration(took)


def task_fields(row: Any) -> Section:
    """Return the fields of the page of a recurring task."""
    fields = [
        ("Key", texts.clean(row.key)),
        ("Task", texts.clean(row.task_path)),
        ("Description", texts.clean(row.description)),
        ("State", state(row)),
        ("Defined", "in code" if row.static else "at run time"),
        ("Schedule", texts.clean(row.schedule)),
        ("Time zone", texts.clean(row.timezone)),
        *_limits(row),
        ("Next runs", ", ".join(map(texts.moment, row.listed.outlook.next_runs))),
        ("Missed runs", texts.clean(row.catch_up)),
        ("Overlapping runs", texts.clean(row.overlap)),
        ("Queue", texts.clean(row.queue_name)),
        ("Priority", row.priority),
        ("Backend", texts.clean(row.backend_name)),
    ]
    return Fields("Recurring task", fields)


def _limits(row: Any) -> list[tuple[str, Any]]:
    """Return what limits the runs of a task, if anything does."""
    limits = [
        ("Starts", texts.moment(row.starts_at)),
        ("Ends", texts.moment(row.ends_at)),
        ("Runs", f"{left(row)} left" if row.repeats is not None else ""),
        ("Waiting", texts.moment(row.waiting_at)),
    ]
    return [(label, value) for label, value in limits if value]


@column("key")
def key(row: Any) -> str:
    return texts.named(row.key)


@column("task")
def task(row: Any) -> str:
    return texts.short_path(row.task_path)


@column("schedule")
def schedule(row: Any) -> str:
    return texts.named(row.schedule)


@column("time zone")
def zone(row: Any) -> str:
    return texts.named(row.timezone)


@column("state")
def state(row: Any) -> str:
    return str(row.listed.state)


@column("next run")
def next_run(row: Any) -> str:
    return ", ".join(map(texts.moment, row.listed.outlook.next_runs[:1]))


@column("last run")
def last_run(row: Any) -> str:
    return texts.moment(row.listed.last_run)


@column("outcome")
def last_outcome(row: Any) -> str:
    words, took = told(row.last_outcome)
    return f"{words} ({took})" if took else words


@column("left")
def left(row: Any) -> str:
    """Return how many runs are left of those that are counted."""
    if row.repeats is None:
        return ""
    try:
        return f"{row.runs_left} of {row.repeats}"
    except TypeError:  # SQLite stores anything as a number.
        return texts.name(f"{row.runs} of {row.repeats}")


COLUMNS = (key, task, schedule, zone, state, next_run, last_run, last_outcome, left)
