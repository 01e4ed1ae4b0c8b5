"""The queue's loggers, the attributes of their records, and formatters.

Each record of the loggers below ``steady_queue`` has an ``event``, a stable name, and details of it
(``docs/logs.md`` lists both). Arguments and results of tasks are never logged.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, date, datetime, time
from typing import Any, NamedTuple

from .printable import indented, printable, printable_value
from .project_code import is_meant_for_us

#: The loggers of the queue, and of the task framework.
OURS = ("steady_queue", "django.tasks", "django_tasks")
#: The logger of the queue's own lines for each task, which are many.
OF_TASKS = "steady_queue.task"
FORMATS = ("text", "json")


class RunningTask(NamedTuple):
    """The task that runs in the current context."""

    task: str
    task_id: str
    attempt: int | None


running_task: ContextVar[RunningTask | None] = ContextVar("steady_queue_running_task", default=None)
#: The trace of the attempt that runs in the current context, as 32 hexadecimal digits.
trace_id: ContextVar[str | None] = ContextVar("steady_queue_trace_id", default=None)
#: Name of the process, or of the worker thread, of the current context.
process_name: ContextVar[str | None] = ContextVar("steady_queue_process_name", default=None)


def about(event: str, **details: Any) -> dict[str, Any]:
    """Return the ``extra`` of a log record."""
    name = process_name.get()
    known = {"event": event, **details}
    return known if name is None else {"process_name": name, **known}


class TaskContextFilter(logging.Filter):
    """Adds ``task``, ``task_id``, ``attempt`` and ``trace_id`` to each record, which are ``None``
    outside of tasks, the last one also where nothing traces. Lets all records pass. For
    ``LOGGING["filters"]``."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Add the attributes that the record lacks."""
        running = running_task.get()
        for name in RunningTask._fields:
            if not hasattr(record, name):
                setattr(record, name, getattr(running, name, None))
        if not hasattr(record, "trace_id"):
            record.trace_id = trace_id.get()
        return True


class SafeLogger(logging.LoggerAdapter[logging.Logger]):
    """A logger that never raises.

    A job must not fail because a handler, filter or formatter of the project raises, or because
    standard error is closed. Messages stay on one line, whatever names and errors they quote.
    Traceback lines are indented.
    """

    def log(self, level: int, msg: object, *args: object, **kwargs: Any) -> None:
        """Log the message; ignore errors."""
        try:
            if self.logger.isEnabledFor(level):
                self.logger.handle(self._record(level, msg, args, **kwargs))
        except BaseException as error:
            if is_meant_for_us(error):
                raise

    def _record(
        self,
        level: int,
        msg: object,
        args: tuple[object, ...],
        *,
        extra: dict[str, Any] | None = None,
        exc_info: Any = None,
    ) -> logging.LogRecord:
        if isinstance(exc_info, BaseException):
            exc_info = (type(exc_info), exc_info, exc_info.__traceback__)
        elif exc_info:
            exc_info = sys.exc_info()
        file, line, function, _ = self.logger.findCaller(stacklevel=CALLER)
        record = self.logger.makeRecord(
            self.logger.name,
            level,
            file,
            line,
            msg,
            tuple(map(printable_value, args)),
            exc_info or None,
            function,
            {name: printable_value(value) for name, value in (extra or {}).items()},
        )
        if exc_info:
            # Formatters reuse this text.
            record.exc_text = indented(logging.Formatter().formatException(exc_info))
        return record


#: Frames of this module above the caller's.
CALLER = 3


def get_logger(name: str) -> SafeLogger:
    """Return a logger of the queue."""
    return SafeLogger(logging.getLogger(name))


#: Attributes of every record. The others come from ``extra`` or a filter.
_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class JSONFormatter(logging.Formatter):
    """Writes a record as one line of JSON: its time (UTC), level, logger, message, pid, other
    attributes and traceback. Values without a JSON form are written as text."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            "pid": record.process,
        }
        line |= {name: value for name, value in vars(record).items() if name not in _STANDARD}
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return "{" + ", ".join(f"{json.dumps(name)}: {_json(line[name])}" for name in line) + "}"


def _json(value: Any) -> str:
    try:
        return json.dumps(value, default=_text_of, allow_nan=False)
    except (TypeError, ValueError, RecursionError):  # Keys, NaN, and what contains itself.
        return json.dumps(_text_of(value))


def _text_of(value: object) -> str:
    try:
        return value.isoformat() if isinstance(value, date | time) else str(value)
    except Exception:
        return f"<{type(value).__qualname__}>"


class TextFormatter(logging.Formatter):
    """Writes time, level, pid and message on one line and a traceback on indented lines, so that
    quoted text cannot pass for another record."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)-8s %(process)d %(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:
        """Return the first line."""
        return printable(super().formatMessage(record))

    def formatException(self, ei: Any) -> str:
        """Return the lines of a traceback."""
        return indented(super().formatException(ei))


@contextmanager
def logging_to_stderr(form: str) -> Iterator[None]:
    """Write the queue's records from INFO on to standard error only, as ``text`` or ``json``,
    overriding the project's ``LOGGING``."""
    handler = _stderr_handler(form)
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


@contextmanager
def errors_to_stderr() -> Iterator[None]:
    """Write warnings and errors of the queue and the task framework to standard error if the
    project's ``LOGGING`` drops them, as Django's default does without ``DEBUG``."""
    handler = _stderr_handler("text")
    handler.setLevel(logging.WARNING)
    unheard = [each for each in map(logging.getLogger, OURS) if not _is_heard(each)]
    for each in unheard:
        each.addHandler(handler)
    try:
        yield
    finally:
        for each in unheard:
            each.removeHandler(handler)


def _is_heard(logger: logging.Logger) -> bool:
    """Whether a handler of the project receives a logger's errors, or the logger is disabled."""
    from django.utils.log import AdminEmailHandler

    error = logger.makeRecord(logger.name, logging.ERROR, __file__, 0, "", (), None)
    if not logger.isEnabledFor(logging.ERROR):
        return True
    at: logging.Logger | None = logger
    while at is not None:
        for handler in at.handlers:
            mails = isinstance(handler, AdminEmailHandler)
            if not mails and handler.level <= logging.ERROR and handler.filter(error):
                return True
        at = at.parent if at.propagate else None
    return False


def _stderr_handler(form: str) -> logging.Handler:
    handler = logging.StreamHandler()
    handler.addFilter(TaskContextFilter())
    handler.setFormatter(JSONFormatter() if form == "json" else TextFormatter())
    return handler
