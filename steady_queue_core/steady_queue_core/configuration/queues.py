"""The rule for names of queues, and for the entries of a worker's queue list.

An entry is a name, a prefix such as ``mail*``, or ``*`` for all queues. With a ``!`` before it, it
excludes a name or a prefix. All checks of queue names use this rule: those of tasks, recurring
tasks, workers and the admin.
"""

from __future__ import annotations

from collections.abc import Sequence

#: The size of the columns for names.
LONGEST_NAME = 255

_UNFIT = "contains control or other invisible characters, or leading or trailing whitespace"


def name_objection(name: str) -> str | None:
    """Return why no queue can be called ``name``, as the end of a sentence, or None."""
    if not name:
        return "is empty"
    return _UNFIT if name.endswith(" ") else prefix_objection(name)


def prefix_objection(prefix: str) -> str | None:
    """Return why no name can begin with ``prefix``, as the end of a sentence, or None."""
    if len(prefix) > LONGEST_NAME:
        return f"has {len(prefix)} characters, at most {LONGEST_NAME} are allowed"
    return None if prefix.isprintable() and not prefix.startswith(" ") else _UNFIT


def objection(entry: str) -> str | None:
    """Return why ``entry`` is not valid in a queue list, as the end of a sentence, or None."""
    if entry.startswith("!"):
        if entry[1:].startswith("!"):
            return "has a '!' too many"
        return "excludes all queues" if entry == "!*" else objection(entry[1:])
    if "*" in entry[:-1]:
        return (
            "has a '*' before its end; "
            "write an exact name, a prefix such as 'mail*', or '*' for all queues"
        )
    return prefix_objection(entry[:-1]) if entry.endswith("*") else name_objection(entry)


def contradiction(entries: Sequence[str]) -> str | None:
    """Return an entry that another one excludes as a whole, with the reason, or None."""
    excluding = [entry for entry in entries if entry.startswith("!")]
    for entry in entries:
        for other in excluding:
            if not entry.startswith("!") and _covers(other[1:], entry):
                return f"the entry {entry!r} matches nothing, because {other!r} excludes it"
    return None


def _covers(wider: str, entry: str) -> bool:
    return wider == entry or (wider.endswith("*") and entry.startswith(wider[:-1]))
