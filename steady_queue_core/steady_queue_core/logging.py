"""What a log record of the queue says beside its message, and how it can be written.

Each record of the loggers below ``steady_queue`` has an ``event``, a name that stays as it is, and
what is known at that place (``docs/logs.md`` lists both). Arguments and results of tasks are never
logged.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any, NamedTuple

#: The loggers of the queue, and of the framework's lines for each task.
OURS = ("steady_queue", "django.tasks", "django_tasks")
#: The queue's own lines for each task: there are many, and some will not want them.
OF_TASKS = "steady_queue.task"
FORMATS = ("text", "json")


class RunningTask(NamedTuple):
    """The task that the present context runs."""

    task: str
    task_id: str
    attempt: int | None


running_task: ContextVar[RunningTask | None] = ContextVar("steady_queue_running_task", default=None)
#: Name of the process (or of the worker that is a thread) that the present context belongs to.
process_name: ContextVar[str | None] = ContextVar("steady_queue_process_name", default=None)


def about(event: str, **facts: Any) -> dict[str, Any]:
    """Return the ``extra`` of a log record."""
    name = process_name.get()
    known = {"event": event, **facts}
    return known if name is None else {"process_name": name, **known}


class TaskContextFilter(logging.Filter):
    """Tells each record the ``task``, ``task_id`` and ``attempt`` in which it was made, ``None``
    outside of tasks. Lets all records pass. For ``LOGGING["filters"]``."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Add what is not there."""
        running = running_task.get()
        for name in RunningTask._fields:
            if not hasattr(record, name):
                setattr(record, name, getattr(running, name, None))
        return True


#: What any record has: the rest was given as ``extra``, or added by a filter.
_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class JSONFormatter(logging.Formatter):
    """Writes a record as one line of JSON: its time (UTC), level, logger, message and pid, what it
    says besides as far as that is plain, and the traceback."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        told: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            "pid": record.process,
        }
        told |= {
            name: value
            for name, value in vars(record).items()
            if name not in _STANDARD and isinstance(value, str | int | float)
        }
        if record.exc_info:
            told["exception"] = self.formatException(record.exc_info)
        return json.dumps(told)


class TextFormatter(logging.Formatter):
    """Writes time, level, pid and message."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)-8s %(process)d %(message)s")


@contextmanager
def logging_to_stderr(form: str) -> Iterator[None]:
    """Have the queue's lines, from INFO on, written to the standard error as ``text`` or ``json``,
    and nowhere else, whatever the project's ``LOGGING`` says of them."""
    handler = logging.StreamHandler()
    handler.addFilter(TaskContextFilter())
    handler.setFormatter(JSONFormatter() if form == "json" else TextFormatter())
    loggers = [logging.getLogger(name) for name in (*OURS, OF_TASKS)]
    former = [(each.handlers[:], each.level, each.propagate) for each in loggers]
    for each in loggers:
        own = each.name in OURS
        each.handlers[:] = [handler] if own else []
        each.propagate = not own
        each.setLevel(min(each.level or logging.INFO, logging.INFO))
    try:
        yield
    finally:
        for each, (handlers, level, propagate) in zip(loggers, former, strict=True):
            each.handlers[:] = handlers
            each.propagate = propagate
            each.setLevel(level)
