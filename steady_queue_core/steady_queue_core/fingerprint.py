"""What failures with the same cause have in common."""

from __future__ import annotations

import re
from hashlib import sha256

#: Hexadecimal digits of a fingerprint.
LENGTH = 16
#: Characters of a message that are looked at, and of the pattern of its first line.
MOST_READ, LONGEST_PATTERN = 2_048, 256
#: What stands for whatever differs between failures with the same cause.
BLANK = "?"

# The sets of characters are named one by one: Unicode's classes change with Python's releases.
_LETTER = "[A-Za-z0-9_\u00c0-\u024f]"
_BREAKS = re.compile("[\0\n\v\f\r\x1c-\x1e\x85\u2028\u2029]+")
#: Text in quotes, closed or not. An apostrophe within a word is none.
_QUOTED = re.compile(
    f"(?<!{_LETTER})'(?:[^']|'(?={_LETTER}))*(?:'|$)"
    '|"[^"]*(?:"|$)|`[^`]*(?:`|$)|\u201c[^\u201d]*(?:\u201d|$)|\u00ab[^\u00bb]*(?:\u00bb|$)'
)
#: Numbers, ids and whatever else has a digit in it, and hexadecimal numbers that may have none.
_NUMBERED = re.compile(
    f"(?<!{_LETTER})(?:[0-9A-Fa-f]{{8}}-(?:[0-9A-Fa-f]{{4}}-){{3}}[0-9A-Fa-f]{{12}}"
    f"|[0-9a-f]{{8,}}|[0-9A-F]{{8,}})(?!{_LETTER})"
    "|(?<![A-Za-z0-9_])[A-Za-z_]*[0-9][A-Za-z0-9_]*"
)
#: Several of these: a decimal fraction, a time, an address, or a list of any length.
_BLANKS = re.compile(r"[+-]?\?(?:[.,:;/+-]{0,3} ?[+-]?\?)*")
_FINGERPRINT = re.compile(f"[0-9a-f]{{{LENGTH}}}")
_SPACES = re.compile("[ \t]+")


def fingerprint_of(exception_class: object, message: object, task_path: object) -> str:
    """Return 16 hexadecimal digits that are the same for failures of a task with the same cause:
    the same class of exception, and the same first line of its message, whatever the numbers, ids
    and quoted parts in it.

    It is the same in every release, on every Python: stored fingerprints are compared with it.
    """
    parts = (str(exception_class), pattern_of(str(message)), str(task_path))
    text = "\0".join(parts).encode("utf-8", "backslashreplace")
    return sha256(text, usedforsecurity=False).hexdigest()[:LENGTH]


def pattern_of(message: str) -> str:
    """Return the first line of a message, with ``?`` in place of numbers, ids and quoted parts."""
    line = first_line(message)
    for part in (_QUOTED, _NUMBERED):
        line = part.sub(BLANK, line)
    return _BLANKS.sub(BLANK, _SPACES.sub(" ", line))[:LONGEST_PATTERN]


def first_line(message: str) -> str:
    """Return the first line of a message that is not empty, at most 2,048 characters of it."""
    lines = (each.strip(" \t") for each in _BREAKS.split(message[:MOST_READ]))
    return next((line for line in lines if line), "")


def is_fingerprint(text: str) -> bool:
    """Whether a text has the form of a fingerprint."""
    return _FINGERPRINT.fullmatch(text) is not None
