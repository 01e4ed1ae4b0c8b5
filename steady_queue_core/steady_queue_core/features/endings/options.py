"""The option ``max_snoozes`` of tasks and calls."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypedDict

from ...compat import InvalidTask
from ...configuration.option_fields import integer, option
from ..fact import fact, is_count
from ..option import Option

#: The largest value of the option.
MOST_SNOOZES = 1_000_000


def checked_snoozes(most: Any, where: str) -> int:
    """Return how often a job may snooze. Raises ``InvalidTask`` that names ``where``."""
    if not is_count(most) or most > MOST_SNOOZES:
        raise InvalidTask(
            f"{where}: max_snoozes must be a whole number from 0 to {MOST_SNOOZES}, not {most!r}."
        )
    return int(most)


class EndingOptions(TypedDict, total=False):
    """What ``@task`` and ``using()`` take."""

    max_snoozes: int | None


@dataclass(frozen=True, kw_only=True)
class EndingDefaults:
    """What a backend says for jobs that do not say it themselves."""

    max_snoozes: int = option(1_000, integer(0, MOST_SNOOZES))
    """How often a job may snooze, unless its task says so itself."""


@dataclass(frozen=True, kw_only=True)
class EndingFacts:
    """What a job keeps."""

    __slots__ = ()

    #: How often the job may snooze; ``None``: as often as its backend says.
    max_snoozes: int | None = fact(is_valid=is_count)
    #: How often the job has snoozed.
    snoozes: int = fact(0, is_valid=is_count, changes=True)
    #: Why the task has discarded itself.
    discarded: str | None = fact(is_valid=lambda value: isinstance(value, str), changes=True)


OPTIONS = (Option("max_snoozes", checked_snoozes, checked_snoozes),)
