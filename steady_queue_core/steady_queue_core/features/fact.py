"""Facts: what a job keeps beyond its columns, in its metadata, each under its name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, field, fields
from typing import Any, NamedTuple


class Fact(NamedTuple):
    """What is known of a fact, whatever it is about."""

    #: Whether a value that was found in a row may have been stored.
    is_valid: Callable[[Any], bool]
    #: Whether the queue changes it while the job lives: it is no part of the call, so that no copy
    #: has it.
    changes: bool
    #: Whether signatures cover it: not what changes, nor what decides only when a job starts.
    is_signed: bool
    #: Whether many jobs have the same value, as those of one task do.
    is_shared: bool


def fact(
    default: Any = None,
    *,
    is_valid: Callable[[Any], bool],
    changes: bool = False,
    is_signed: bool = True,
    is_shared: bool = True,
    default_factory: Any = MISSING,
) -> Any:
    """Declare a field of the dataclass in which a room has its facts; see ``Fact``."""
    known = Fact(is_valid, changes, is_signed and not changes, is_shared)
    metadata = {"fact": known}
    if default_factory is MISSING:
        return field(default=default, metadata=metadata)
    return field(default_factory=default_factory, hash=False, metadata=metadata)


def facts_of(of_rooms: type[Any]) -> dict[str, Fact]:
    """Return the facts that a dataclass declares, by their names."""
    return {each.name: each.metadata["fact"] for each in fields(of_rooms)}


def is_count(value: object) -> bool:
    """Whether ``value`` is a number of times."""
    return type(value) is int and value >= 0


def are_texts(value: object) -> bool:
    """Whether ``value`` is a tuple of strings."""
    return isinstance(value, tuple) and all(isinstance(each, str) for each in value)
