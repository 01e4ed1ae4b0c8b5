"""Log records about what tasks leave behind in their sessions."""

from __future__ import annotations

import logging
import threading
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from ...logging import RunningTask, about, get_logger, running_task
from .thread_roles import is_own

logger = get_logger("steady_queue.worker")


def log_broken(connection: Any, error: Exception) -> None:
    """Log the error that is being handled: a connection could not be tidied up."""
    # The control threads log that a server is down, and log it once.
    level = logging.DEBUG if isinstance(error, connection.Database.Error) else logging.WARNING
    logger.log(
        level,
        "A connection to %r broke",
        connection.alias,
        exc_info=True,
        extra=about("worker.connection_broken", database=connection.alias),
    )


def log_left_open(connection: BaseDatabaseWrapper, task: RunningTask | None) -> None:
    """Log that a task has left a transaction open."""
    logger.warning(
        "%s left a transaction open on the connection to %r: its uncommitted changes are rolled "
        "back, and the connection is closed",
        _subject(task),
        connection.alias,
        extra=_about("worker.transaction_left_open", connection, task),
    )


def log_changed(connection: BaseDatabaseWrapper, names: list[str]) -> None:
    """Log that the task that has just ended has changed these settings of a session."""
    logger.info(
        "%s changed %s on the connection to %r: the next task gets a new one",
        _subject(running_task.get()),
        ", ".join(names),
        connection.alias,
        extra=_about("worker.session_changed", connection, running_task.get()),
    )


def log_closed(connection: BaseDatabaseWrapper) -> None:
    """Log that the task that has just ended has closed a connection by itself."""
    task = running_task.get()
    logger.warning(
        "%s left a closed connection to %r: the next task gets a new one",
        _subject(task),
        connection.alias,
        extra=_about("worker.connection_closed", connection, task),
    )


def _subject(task: RunningTask | None) -> str:
    if task is not None:
        return f"Task {task.task} #{task.task_id}"
    thread = threading.current_thread()
    return "A signal receiver" if is_own(thread) else f"The thread {thread.name!r}"


def _about(event: str, connection: BaseDatabaseWrapper, task: RunningTask | None) -> dict[str, Any]:
    details = task._asdict() if task else {}
    return about(event, database=connection.alias, **details)
