"""The options ``retention`` and ``failure_retention`` of tasks and calls."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, TypedDict

from ...compat import InvalidTask
from ...configuration.errors import describe
from ...durations import LONGEST
from ..fact import fact
from ..option import Option
from .period import FOREVER, OF_FAILURE, OF_SUCCESS, Period, is_period


def checked_period(name: str, period: Any, where: str) -> Period:
    """Return a period. Raises ``InvalidTask`` that names ``where`` and the option."""
    if not is_period(period):
        raise InvalidTask(
            f"{where}: {name} must be a timedelta from 0 to {LONGEST.days} days or {FOREVER!r}, "
            f"not {describe(period)}."
        )
    return period


class RetentionOptions(TypedDict, total=False):
    """What ``@task`` and ``using()`` take."""

    retention: Period | None
    failure_retention: Period | None


@dataclass(frozen=True, kw_only=True)
class RetentionFacts:
    """What a job keeps: for how long it is kept itself after its success, and after its failure;
    ``None``: as long as its backend says."""

    __slots__ = ()

    retention: Period | None = fact(is_valid=is_period)
    failure_retention: Period | None = fact(is_valid=is_period)


OPTIONS = tuple(
    Option(name, check, check)
    for name in (OF_SUCCESS, OF_FAILURE)
    for check in [partial(checked_period, name)]
)
