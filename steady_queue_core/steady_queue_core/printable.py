"""Escapes text so that it cannot control a terminal or forge a log record."""

from __future__ import annotations

import re
from typing import Any

#: Control characters, Unicode line separators, bidirectional controls and lone surrogates.
UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
UNSAFE_WITHIN_LINES = re.compile(f"(?!\n){UNSAFE.pattern}")


def printable(text: str) -> str:
    """Return ``text`` on one line, with an escape such as ``\\x1b`` for each unsafe character."""
    return UNSAFE.sub(_escape, text)


def printable_lines(text: str) -> str:
    """Return ``text`` with an escape for each unsafe character except newlines."""
    return UNSAFE_WITHIN_LINES.sub(_escape, text)


def indented(text: str) -> str:
    """Return the printable lines of ``text``, indented: none can pass for a new log record."""
    return "\n".join(f"    {line}" for line in printable_lines(text).split("\n"))


def printable_value(value: Any) -> Any:
    """Return the printable text of a string or an exception; other values as they are."""
    if isinstance(value, BaseException):
        value = str(value)
    return printable(value) if isinstance(value, str) else value


def _escape(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode("ascii")
