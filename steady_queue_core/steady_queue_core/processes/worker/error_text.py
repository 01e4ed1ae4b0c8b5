"""Text of an exception, in a form that any database can store."""

from __future__ import annotations

import json
from datetime import datetime
from traceback import format_exception
from typing import NamedTuple

from ...printable import LONGEST_MESSAGE, LONGEST_PATH, bounded, storable
from ...project_code import text_of
from ...tasks.stored_errors import StoredError, stored_errors

#: Most characters stored of a traceback, and of the traceback of an earlier attempt.
LONGEST_TRACEBACK, LONGEST_EARLIER = 65_536, 8_192
#: Most earlier attempts whose errors are stored; every claim of the job loads them.
MOST_EARLIER = 19


class Failure(NamedTuple):
    """Stored form of an exception."""

    exception_class: str
    message: str
    traceback: str


class Attempted(NamedTuple):
    """What is known of an attempt that has failed; see ``StoredError``."""

    number: int | None = None
    started_at: datetime | None = None
    seconds: float | None = None
    worker: str = ""

    @classmethod
    def of(
        cls, number: int | None, started_at: datetime, ended_at: datetime | None, worker: str
    ) -> Attempted:
        """Return what is known of an attempt by its times."""
        seconds = None if ended_at is None else max(0.0, (ended_at - started_at).total_seconds())
        return cls(number, started_at, seconds, worker)


UNKNOWN = Attempted()


def describe(error: BaseException) -> Failure:
    """Return the class path, message and traceback of ``error``, even if its methods raise."""
    return Failure(
        storable(_path(error)[:LONGEST_PATH])[:LONGEST_PATH],
        bounded(text_of(error), LONGEST_MESSAGE),
        bounded(_traceback(error), LONGEST_TRACEBACK),
    )


def appended(errors: str | None, failure: Failure, attempt: Attempted = UNKNOWN) -> str:
    """Return the stored list of errors with ``failure`` of an attempt added; of the earlier errors
    only the most recent, shortened."""
    earlier = stored_errors(errors)[-MOST_EARLIER:]
    kept = [each._replace(traceback=bounded(each.traceback, LONGEST_EARLIER)) for each in earlier]
    added = StoredError(failure.exception_class, failure.traceback, *attempt)
    return json.dumps([each.stored for each in (*kept, added)])


def _path(error: BaseException) -> str:
    kind = type(error)
    try:
        return f"{kind.__module__}.{kind.__qualname__}"
    except BaseException:  # A metaclass may raise anything.
        return "builtins.BaseException"


def _traceback(error: BaseException) -> str:
    try:
        return "".join(format_exception(error))
    except BaseException as problem:
        # For example, a chain of causes deeper than the stack.
        return f"{_path(error)}\n<no traceback: {type(problem).__name__}>\n"
