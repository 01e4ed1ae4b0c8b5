"""Text of an exception, in a form that any database can store."""

from __future__ import annotations

import json
from traceback import format_exception
from typing import NamedTuple

from ...tasks.results import errors_of

#: Most characters stored of a traceback, of the traceback of an earlier attempt, and of a message.
LONGEST_TRACEBACK, LONGEST_EARLIER, LONGEST_MESSAGE = 65_536, 8_192, 2_048
LONGEST_PATH = 255
#: Most earlier attempts whose errors are stored; every claim of the job loads them.
MOST_EARLIER = 19


class Failure(NamedTuple):
    """Stored form of an exception."""

    exception_class: str
    message: str
    traceback: str


def describe(error: BaseException) -> Failure:
    """Return the class path, message and traceback of ``error``, even if its methods raise."""
    return Failure(
        _storable(_path(error)[:LONGEST_PATH])[:LONGEST_PATH],
        bounded(_message(error), LONGEST_MESSAGE),
        bounded(_traceback(error), LONGEST_TRACEBACK),
    )


def appended(errors: str | None, failure: Failure) -> str:
    """Return the stored list of errors with ``failure`` added; of the earlier errors only the
    most recent, shortened."""
    earlier = errors_of(errors)[-MOST_EARLIER:]
    kept = [[path, bounded(text, LONGEST_EARLIER)] for path, text in earlier]
    return json.dumps([*kept, [failure.exception_class, failure.traceback]])


def bounded(text: str, longest: int) -> str:
    """Return ``text`` without characters that a database rejects, its middle cut if too long."""
    if len(text) > longest:
        note = f"\n... {len(text) - longest} characters cut ...\n"
        half = max(0, longest - len(note)) // 2
        text = text[:half] + note + text[len(text) - half :] if half else text[:longest]
    return _storable(text)


def _storable(text: str) -> str:
    return text.replace("\0", "\\x00").encode("utf-8", "backslashreplace").decode("utf-8")


def _path(error: BaseException) -> str:
    kind = type(error)
    try:
        return f"{kind.__module__}.{kind.__qualname__}"
    except BaseException:  # A metaclass may raise anything.
        return "builtins.BaseException"


def _message(error: BaseException) -> str:
    try:
        # str() may return a subclass of str that overrides any method.
        return str.__str__(str(error))
    except BaseException as problem:
        return f"<str() of the exception failed with {type(problem).__name__}>"


def _traceback(error: BaseException) -> str:
    try:
        return "".join(format_exception(error))
    except BaseException as problem:
        # For example, a chain of causes deeper than the stack.
        return f"{_path(error)}\n<no traceback: {type(problem).__name__}>\n"
