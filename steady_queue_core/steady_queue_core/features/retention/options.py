"""The options ``retention`` and ``failure_retention`` of tasks and calls."""

from __future__ import annotations

from functools import partial
from typing import Any

from ...compat import InvalidTask
from ...configuration.errors import describe
from ...durations import LONGEST
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


OPTIONS = tuple(
    Option(name, is_period, check, check)
    for name in (OF_SUCCESS, OF_FAILURE)
    for check in [partial(checked_period, name)]
)
