"""The error that wrong settings raise, and how it words its parts."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from django.core.exceptions import ImproperlyConfigured

from ..errors import SteadyQueueError

LONGEST_REPR = 80


class ConfigurationError(SteadyQueueError, ImproperlyConfigured):
    """The settings hold unknown keys or wrong values; ``problems`` has one sentence for each."""

    problems: list[str]

    def __init__(self, problems: str | Iterable[str]) -> None:
        self.problems = [problems] if isinstance(problems, str) else list(problems)
        super().__init__(self.problems)

    def __str__(self) -> str:
        if len(self.problems) == 1:
            return self.problems[0]
        return "\n".join(
            [f"{len(self.problems)} problems:", *(f"- {each}" for each in self.problems)]
        )


def describe(value: object) -> str:
    """The type and the value, shortened: ``str 'ten'``, ``int 0``, ``None``."""
    if value is None:
        return "None"
    try:
        text = repr(value)
    except Exception:  # as for an integer of more than 4300 digits
        return type(value).__name__
    if len(text) > LONGEST_REPR:
        text = text[:LONGEST_REPR] + "..."
    return f"{type(value).__name__} {text}"


def suggest(word: object, valid: Iterable[str]) -> str:
    """The end of a sentence about an unknown ``word``: the nearest valid one, or all of them."""
    choices = sorted(valid)
    near = difflib.get_close_matches(str(word), choices, n=1)
    if near:
        return f"did you mean {near[0]!r}?"
    return f"valid are {', '.join(map(repr, choices))}" if choices else "none is valid"
