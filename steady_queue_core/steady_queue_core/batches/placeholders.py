"""Stand-ins, in the arguments of calls, for the results of other calls."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Previous:
    """Stands for the return value of the step before, in the arguments of a step of a chain.

    After a group that is the list of its return values, after a chain that of its last step.
    """


@dataclass(frozen=True, slots=True)
class ResultOf:
    """Stands for the return value of an earlier step of the same chain, counted from 0."""

    step: int


@dataclass(frozen=True, slots=True)
class NodeResult:
    """Stands for the return value of a node of a workflow: its ``result``."""

    node: Any


PLACEHOLDERS = (Previous, ResultOf, NodeResult)


def replaced(value: Any, replacement: Callable[[Any], Any]) -> Any:
    """Return ``value`` with what ``replacement`` returns in place of each stand-in that is in it,
    or in lists, tuples and dicts of it."""
    kind = type(value)
    if kind in PLACEHOLDERS:
        return replacement(value)
    if kind is list or kind is tuple:
        return kind(replaced(each, replacement) for each in value)
    if kind is dict:
        return {key: replaced(each, replacement) for key, each in value.items()}
    return value


def has_previous(*values: Any) -> bool:
    """Whether there is a ``Previous()`` in these values."""
    found: list[Any] = []
    for value in values:
        replaced(value, found.append)
    return any(type(each) is Previous for each in found)
