"""Names of queues, and the queue list of a worker: names, prefixes ``name*``, and ``*`` for all."""

from __future__ import annotations

LONGEST_NAME = 255


_UNFIT = "has control or other invisible characters, or blanks at an end"


def name_objection(name: str) -> str | None:
    """Why no queue can be called ``name``, as the end of a sentence; None if one can."""
    if not name:
        return "is empty"
    return _UNFIT if name.endswith(" ") else prefix_objection(name)


def prefix_objection(prefix: str) -> str | None:
    """Why no name can begin with ``prefix``, as the end of a sentence; None if one can."""
    if len(prefix) > LONGEST_NAME:
        return f"has {len(prefix)} characters, at most {LONGEST_NAME} are allowed"
    return None if prefix.isprintable() and not prefix.startswith(" ") else _UNFIT


def objection(entry: str) -> str | None:
    """Why ``entry`` cannot stand in a queue list, as the end of a sentence; None if it can."""
    if "*" in entry[:-1]:
        return (
            "has a '*' before its end; "
            "write an exact name, a prefix such as 'mail*', or '*' for all queues"
        )
    return prefix_objection(entry[:-1]) if entry.endswith("*") else name_objection(entry)
