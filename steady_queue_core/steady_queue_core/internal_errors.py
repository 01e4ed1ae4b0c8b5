"""One place for the errors of the queue's own threads and processes: the log, and a signal."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Mapping
from typing import Any

from .logging import SafeLogger, process_name
from .signals import InternalErrors, internal_error, send


def log_internal_error(
    logger: SafeLogger,
    message: str,
    *args: object,
    extra: Mapping[str, Any],
    level: int = logging.ERROR,
    error: BaseException | None = None,
) -> None:
    """Log ``error``, or the exception that is being handled, and send ``internal_error``. Never
    raises."""
    error = error or sys.exception()
    logger.log(level, message, *args, exc_info=error, extra=extra)
    if not internal_error.receivers:
        return
    details = {
        name: value for name, value in extra.items() if name not in ("event", "process_name")
    }
    send(
        internal_error,
        InternalErrors,
        error=error,
        event=extra["event"],
        message=message % args,
        process_name=process_name.get(),
        pid=os.getpid(),
        details=details,
    )
