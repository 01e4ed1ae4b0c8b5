"""Says whether anybody reads the records of a logger, so that none are made for nobody.

Django's default ``LOGGING`` lets the task framework log each start and end of a task, and drops the
records in a filter: on a busy worker that costs more than many a task does.
"""

from __future__ import annotations

import logging
from types import FunctionType

from django.conf import settings
from django.utils.log import RequireDebugFalse, RequireDebugTrue

_FILE = logging.Logger.isEnabledFor.__code__.co_filename


def is_read(logger: logging.Logger, level: int) -> bool:
    """Whether a handler may take a record of this level. What is not known counts as a reader: a
    filter of the project, or a tool that has replaced a method of ``Logger``."""
    if not logger.isEnabledFor(level):
        return False
    if _is_watched(type(logger)):
        return True
    at: logging.Logger | None = logger
    has_handlers = False
    while at is not None:
        if at.filters:
            return True
        if any(_takes(handler, level) for handler in at.handlers):
            return True
        has_handlers = has_handlers or bool(at.handlers)
        at = at.parent if at.propagate else None
    last_resort = logging.lastResort
    return not has_handlers and last_resort is not None and level >= last_resort.level


def _takes(handler: logging.Handler, level: int) -> bool:
    if level < handler.level or type(handler) is logging.NullHandler:
        return False
    return not any(map(_drops_all, handler.filters))


def _drops_all(each: object) -> bool:
    if type(each) is RequireDebugTrue:
        return not settings.DEBUG
    return type(each) is RequireDebugFalse and bool(settings.DEBUG)


def _is_watched(kind: type[logging.Logger]) -> bool:
    """Whether another module has replaced what a record passes: error trackers do."""
    passed = (kind.info, kind._log, kind.makeRecord, kind.handle, kind.callHandlers)
    return not all(map(_is_of_logging, passed))


def _is_of_logging(method: object) -> bool:
    # A wrapper takes over the name of what it wraps, and a proxy its code, too, but not its type.
    return type(method) is FunctionType and method.__code__.co_filename == _FILE
