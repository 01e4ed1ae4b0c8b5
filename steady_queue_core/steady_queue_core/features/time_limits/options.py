"""Time limits: how long an attempt may take, and how long it may still run after that."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal, NamedTuple, TypedDict

from ...compat import InvalidTask, Task
from ...configuration.errors import describe
from ...configuration.option_fields import duration, duration_or_zero, option, optional
from ...durations import LONGEST, to_timedelta
from ..fact import fact
from ..option import Option

#: Says of a task, or a call, that its attempts may take any time, whatever its backend says.
NEVER: Literal["never"] = "never"
#: Seconds, a timedelta or ``NEVER``.
Timeout = float | timedelta | Literal["never"]
Grace = float | timedelta

#: The names of the options.
TIMEOUT, GRACE = "timeout", "timeout_grace"
#: Seconds that a task gets at the least to end once it was interrupted.
LEAST_GRACE = 0.5


class TimeLimit(NamedTuple):
    """How long an attempt may take, and how much longer a task that was told to end; in seconds."""

    #: Infinite: it may take any time.
    timeout: float
    grace: float

    @property
    def longest(self) -> float:
        """Seconds after which the attempt has ended, unless its task cannot be interrupted."""
        return self.timeout + self.longest_grace

    @property
    def longest_grace(self) -> float:
        """Seconds that a task gets to end once it was interrupted."""
        return max(LEAST_GRACE, self.grace)


def is_timeout(value: object) -> bool:
    """Whether ``value`` is valid as the time-out of an attempt."""
    return value == NEVER if isinstance(value, str) else _seconds(value) not in (None, 0)


def is_grace(value: object) -> bool:
    """Whether ``value`` is valid as a grace."""
    return _seconds(value) is not None


def checked_timeout(value: Any, where: str) -> Timeout:
    """Return a time-out in its stored form: seconds, or ``NEVER``. Raises ``InvalidTask``."""
    if not is_timeout(value):
        raise InvalidTask(
            f"{where}: {TIMEOUT} must be a timedelta or a number of seconds above 0 and at most "
            f"{LONGEST.days} days, or {NEVER!r}, not {describe(value)}."
        )
    return NEVER if isinstance(value, str) else to_timedelta(value).total_seconds()


def checked_grace(value: Any, where: str) -> float:
    """Return a grace in its stored form, in seconds. Raises ``InvalidTask``."""
    seconds = _seconds(value)
    if seconds is None:
        raise InvalidTask(
            f"{where}: {GRACE} must be a timedelta or a number of seconds of at least 0 and at "
            f"most {LONGEST.days} days, not {describe(value)}."
        )
    return seconds


def require_time_limit(task: Task, facts: Any, default: Callable[[str], object]) -> None:
    """Raise ``InvalidTask`` unless the time-out and the grace of ``task`` are valid."""
    if (timeout := getattr(task, TIMEOUT, None)) is not None:
        checked_timeout(timeout, task.module_path)
    if (grace := getattr(task, GRACE, None)) is not None:
        checked_grace(grace, task.module_path)


def time_limit(timeouts: list[Timeout | None], graces: list[Grace | None]) -> TimeLimit:
    """Return the limit by the first time-out and the first grace that are given."""
    timeout = next((each for each in timeouts if each is not None), NEVER)
    seconds = math.inf if isinstance(timeout, str) else to_timedelta(timeout).total_seconds()
    grace = next(each for each in graces if each is not None)
    return TimeLimit(seconds, to_timedelta(grace).total_seconds())


def _seconds(value: object) -> float | None:
    try:
        return to_timedelta(value).total_seconds()
    except (TypeError, ValueError):
        return None


class TimeLimitOptions(TypedDict, total=False):
    """What ``@task`` and ``using()`` take."""

    timeout: Timeout | None
    timeout_grace: Grace | None


@dataclass(frozen=True, kw_only=True)
class TimeLimitDefaults:
    """What a backend says for jobs that do not say it themselves."""

    timeout: timedelta | None = option(None, optional(duration))
    """How long an attempt may take, unless its task or call says so itself; None: any time."""
    timeout_grace: timedelta = option(timedelta(seconds=10), duration_or_zero)
    """How much longer a task may run that does not end when its time is over, unless its task or
    call says so itself; then its worker is replaced."""


@dataclass(frozen=True, kw_only=True)
class TimeLimitFacts:
    """What a job keeps: how long an attempt may take, and how much longer if it does not end then,
    in seconds; ``None``: as its task or backend says."""

    __slots__ = ()

    timeout: Timeout | None = fact(is_valid=is_timeout)
    timeout_grace: float | None = fact(is_valid=is_grace)


@dataclass(frozen=True, kw_only=True)
class TimeLimitFields:
    """What a task keeps: how long an attempt may take, and how much longer if it does not end then;
    ``None``: the backend's ``timeout`` and ``timeout_grace``."""

    __slots__ = ()

    timeout: Timeout | None = None
    timeout_grace: Grace | None = None


# A task has a field of its own for each, for its time limit may change while its jobs wait.
OPTIONS = (
    Option(TIMEOUT, checked_timeout, None),
    Option(GRACE, checked_grace, None),
)
