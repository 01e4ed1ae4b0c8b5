"""Text that does to a terminal, or to a log, nothing but stand there."""

from __future__ import annotations

import re
from typing import Any

#: Control characters, what ends a line elsewhere than here, what turns the direction of writing,
#: and halves of characters.
UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
UNSAFE_WITHIN_LINES = re.compile(f"(?!\n){UNSAFE.pattern}")


def printable(text: str) -> str:
    """Return ``text`` on one line, with an escape such as ``\\x1b`` for each unsafe character."""
    return UNSAFE.sub(_escape, text)


def printable_lines(text: str) -> str:
    """Do so, and keep the lines."""
    return UNSAFE_WITHIN_LINES.sub(_escape, text)


def indented(text: str) -> str:
    """Do so, and keep each line from passing for the first of a record."""
    return "\n".join(f"    {line}" for line in printable_lines(text).split("\n"))


def printable_value(value: Any) -> Any:
    """Return ``value``, as its printable text if it is an error or a text."""
    if isinstance(value, BaseException):
        value = str(value)
    return printable(value) if isinstance(value, str) else value


def _escape(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode("ascii")
