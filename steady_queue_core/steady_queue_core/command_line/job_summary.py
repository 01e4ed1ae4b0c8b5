"""A job on one line, and in JSON."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from django.core.exceptions import ObjectDoesNotExist

from ..listings.damage import DAMAGED, ERRORS
from ..listings.job_rows import state_of
from ..listings.wording import between, line, moment, name
from .formats import instant

HEADINGS = ("id", "state", "task", "queue", "attempts", "enqueued", "")


def as_row(job: Any) -> list[object]:
    """Return the line of a job in a table with the ``HEADINGS``."""
    return [
        job.pk,
        state_name(job),
        readable(lambda: name(job.task_path), DAMAGED),
        readable(lambda: name(job.queue_name), DAMAGED),
        readable(lambda: f"{job.attempts}/{abs(job.max_attempts)}", DAMAGED),
        readable(lambda: moment(job.enqueued_at), DAMAGED),
        readable(lambda: _detail(job), ""),
    ]


def as_json(job: Any) -> dict[str, Any]:
    """Return what JSON says of a job in a list."""
    failure = execution(job, "failedexecution")
    return {
        "id": job.pk,
        "state": state_name(job) or None,
        "task": readable(lambda: job.task_path, None),
        "queue": readable(lambda: job.queue_name, None),
        "priority": readable(lambda: job.priority, None),
        "attempts": readable(lambda: job.attempts, None),
        "max_attempts": readable(lambda: abs(job.max_attempts), None),
        "cancelled": readable(lambda: job.is_cancelled, None),
        "enqueued_at": when(lambda: job.enqueued_at),
        "started_at": when(lambda: job.started_at),
        "finished_at": when(lambda: job.finished_at),
        "due_at": when(lambda: execution(job, "scheduledexecution").due_at),
        "concurrency_key": readable(lambda: job.concurrency_key, None),
        "error": None
        if failure is None
        else {
            "class": readable(lambda: failure.exception_class, None),
            "message": readable(lambda: message_of(job), None),
            "group": readable(lambda: failure.fingerprint, None),
        },
    }


def state_name(job: Any) -> str:
    """Return the name of the state of a job; empty if it has none."""
    return str(readable(lambda: state_of(job).name, ""))


def execution(job: Any, relation: str) -> Any:
    """Return the row of a job in a state, if it was read with it."""
    return readable(lambda: getattr(job, relation, None), None)


def message_of(job: Any) -> str:
    """Return the message of the error of a failed job, shortened in lists."""
    found = getattr(job, "message", None)
    return str(job.failedexecution.message if found is None else found)


def readable(read: Callable[[], Any], otherwise: Any) -> Any:
    """Return what ``read`` returns, or something else if that was damaged by a manual edit."""
    try:
        return read()
    except (*ERRORS, ObjectDoesNotExist):
        return otherwise


def when(read: Callable[[], datetime | None]) -> str | None:
    """Return a stored point in time for JSON; ``None`` if there is none."""
    found: str | None = readable(lambda: instant(read()), None)
    return found


def _detail(job: Any) -> str:
    """Return what matters of a job in its state."""
    state = state_name(job)
    if state == "failed":
        kind = str(job.failedexecution.exception_class).rpartition(".")[2]
        return line(f"{kind}: {message_of(job)}")[:100]
    if state == "scheduled":
        return f"due {moment(job.scheduledexecution.due_at)}"
    if state == "blocked":
        return f"waits for {name(job.blockedexecution.concurrency_key)}"
    if state == "waiting":
        return f"waits for {job.waitingexecution.width} members of its batch"
    if state == "running":
        since = between(job.claimedexecution.created_at, job.present)
        return f"for {since} by {name(job.claimedexecution.process)}"
    if state == "finished":
        return f"took {between(job.last_attempted_at, job.finished_at)}"
    return ""
