"""The option ``max_snoozes`` of tasks and calls."""

from __future__ import annotations

from typing import Any

from ...compat import InvalidTask
from ..option import Option, is_count

#: The largest value of the option.
MOST_SNOOZES = 1_000_000


def checked_snoozes(most: Any, where: str) -> int:
    """Return how often a job may snooze. Raises ``InvalidTask`` that names ``where``."""
    if not is_count(most) or most > MOST_SNOOZES:
        raise InvalidTask(
            f"{where}: max_snoozes must be a whole number from 0 to {MOST_SNOOZES}, not {most!r}."
        )
    return int(most)


OPTIONS = (Option("max_snoozes", is_count, checked_snoozes, checked_snoozes),)
