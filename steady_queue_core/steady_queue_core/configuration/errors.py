"""The error for wrong settings, and the wording of its parts."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from django.core.exceptions import ImproperlyConfigured

from ..errors import SteadyQueueError

LONGEST_REPR = 80


class ConfigurationError(SteadyQueueError, ImproperlyConfigured):
    """The settings have unknown keys or wrong values; ``problems`` lists one sentence for each."""

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
    """Return the type and the shortened value: ``str 'ten'``, ``int 0``, ``None``."""
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
    """Return the valid word nearest to an unknown ``word``, or all, as the end of a sentence."""
    choices = sorted(valid)
    near = difflib.get_close_matches(str(word), choices, n=1)
    if near:
        return f"did you mean {near[0]!r}?"
    return f"valid are {', '.join(map(repr, choices))}" if choices else "none is valid"
