"""Escapes text so that it cannot control a terminal or forge a log record, or can be stored."""

from __future__ import annotations

import re
from typing import Any

#: What breaks or reorders a line, or hides in it: control characters, separators of lines,
#: bidirectional controls, other invisible format characters, and lone surrogates. Not the two that
#: join and part letters, without which Persian, Hindi and many an emoji are misspelt.
UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    "\ud800-\udfff\ufeff\ufff9-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff]"
)
UNSAFE_WITHIN_LINES = re.compile(f"(?!\n){UNSAFE.pattern}")
UNSAFE_WITHIN_TEXT = re.compile(f"(?![\n\t]){UNSAFE.pattern}")
#: Most characters that are stored of a message, and of a path or a name.
LONGEST_MESSAGE, LONGEST_PATH = 2_048, 255


def printable(text: str) -> str:
    """Return ``text`` on one line, with an escape such as ``\\x1b`` for each unsafe character."""
    return UNSAFE.sub(_escape, text)


def printable_lines(text: str) -> str:
    """Return ``text`` with an escape for each unsafe character except newlines."""
    return UNSAFE_WITHIN_LINES.sub(_escape, text)


def printable_text(text: str) -> str:
    """Return ``text`` with an escape for each unsafe character except newlines and tabs."""
    return UNSAFE_WITHIN_TEXT.sub(_escape, text)


def indented(text: str) -> str:
    """Return the printable lines of ``text``, indented: none can pass for a new log record."""
    return "\n".join(indented_lines(text))


def indented_lines(text: str) -> list[str]:
    """Return the printable lines of ``text``, each indented."""
    return [f"    {line}" for line in printable_lines(text).split("\n")]


def hanging(text: str) -> str:
    """Return the printable lines of ``text``, all but the first one indented: none can pass for
    another message."""
    return printable_lines(text).replace("\n", "\n    ")


def storable(text: str) -> str:
    """Return ``text`` with an escape for each character that a database rejects."""
    return text.replace("\0", "\\x00").encode("utf-8", "backslashreplace").decode("utf-8")


def bounded(text: str, longest: int) -> str:
    """Return storable ``text``, its middle cut if it is longer than ``longest`` characters."""
    if len(text) > longest:
        note = f"\n... {len(text) - longest} characters cut ...\n"
        half = max(0, longest - len(note)) // 2
        text = text[:half] + note + text[len(text) - half :] if half else text[:longest]
    return storable(text)


def printable_value(value: Any) -> Any:
    """Return the printable text of a string or an exception; other values as they are."""
    if isinstance(value, BaseException):
        value = str(value)
    return printable(value) if isinstance(value, str) else value


def _escape(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode("ascii")
