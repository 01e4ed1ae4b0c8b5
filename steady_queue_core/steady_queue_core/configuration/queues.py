"""The queue list of a worker: exact names, prefixes ``name*``, and ``*`` for all."""

from __future__ import annotations

import unicodedata

LONGEST_NAME = 255

UNSTORABLE = {"Cc", "Cs"}
"""Unicode categories that not every database keeps: control characters and lone surrogates."""


def objection(entry: str) -> str | None:
    """Why ``entry`` cannot stand in a queue list, as the end of a sentence; None if it can."""
    if not entry:
        return "is empty"
    if len(entry) > LONGEST_NAME:
        return f"has {len(entry)} characters, at most {LONGEST_NAME} are allowed"
    if any(unicodedata.category(character) in UNSTORABLE for character in entry):
        return "holds a control character or a lone surrogate"
    if "*" in entry[:-1]:
        return (
            "has a '*' before its end; "
            "write an exact name, a prefix such as 'mail*', or '*' for all queues"
        )
    return None
