"""Back-offs: the delay before a failed job runs again.

A back-off is a callable ``backoff(exception, task_result)`` that returns the delay before the next
attempt (seconds or a ``timedelta``), or None to give up early.
``task_result.attempts`` counts the attempts so far: 1 after the first run.
"""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, TypeAlias

from django.utils.module_loading import import_string

from .configuration.errors import describe
from .durations import LONGEST, to_timedelta
from .project_code import ProjectCodeError, contained

Backoff: TypeAlias = Callable[[BaseException, Any], "float | timedelta | None"]


@dataclass(frozen=True, kw_only=True)
class Exponential:
    """Waits ``first`` seconds, then ``factor`` times longer each time, up to ``longest``."""

    first: float
    factor: float
    longest: float
    jitter: float
    random: Callable[[float, float], float] = field(repr=False, compare=False)

    def __call__(self, exception: BaseException, task_result: Any) -> float:
        attempt: int = max(1, task_result.attempts)
        try:
            delay = min(self.longest, self.first * self.factor ** (attempt - 1))
        except OverflowError:
            delay = self.longest
        return max(0.0, delay * self.random(1 - self.jitter, 1 + self.jitter))


def _seconds(what: str, value: object) -> float:
    try:
        return to_timedelta(value).total_seconds()
    except (TypeError, ValueError):
        raise ValueError(
            f"{what} must be a number of seconds or a timedelta from 0 to {LONGEST.days} days, "
            f"got {describe(value)}"
        ) from None


def exponential(
    first: float = 1.0,
    factor: float = 2.0,
    longest: float = 3600.0,
    jitter: float = 0.25,
    *,
    random: Callable[[float, float], float] = random.uniform,
) -> Exponential:
    """Return a back-off of ``first`` seconds that grows by ``factor`` with each attempt.

    ``longest`` (seconds) caps it. The jitter then multiplies it by a random number between
    1 - ``jitter`` and 1 + ``jitter``, so that jobs that failed together are not retried together.

    Raises ValueError for a negative or infinite ``first`` or ``longest``, a ``factor`` below 1, or
    a ``jitter`` outside 0 to 1.
    """
    first, longest = _seconds("first", first), _seconds("longest", longest)
    if isinstance(factor, bool) or not isinstance(factor, (int, float)) or not 1 <= factor < 1e9:
        raise ValueError(f"factor must be a number of at least 1, not {factor!r}")
    if isinstance(jitter, bool) or not isinstance(jitter, (int, float)) or not 0 <= jitter <= 1:
        raise ValueError(f"jitter must be a number from 0 to 1, not {jitter!r}")
    return Exponential(
        first=first, factor=float(factor), longest=longest, jitter=float(jitter), random=random
    )


def constant(
    seconds: float | timedelta,
    jitter: float = 0.0,
    *,
    random: Callable[[float, float], float] = random.uniform,
) -> Exponential:
    """Return a back-off that always waits ``seconds``, varied by the fraction ``jitter``."""
    delay = _seconds("seconds", seconds)
    return exponential(delay, factor=1.0, longest=delay, jitter=jitter, random=random)


DEFAULT = exponential()
"""1 s, 2 s, 4 s ... up to an hour, each up to a quarter shorter or longer."""


def as_backoff(value: object) -> Backoff:
    """Return the back-off of a setting.

    None stands for ``DEFAULT``, a number of seconds or a timedelta for a constant delay, a callable
    for itself, and a string for the callable at this dotted path, which is imported.

    Raises ValueError for anything else, and for a path that cannot be imported.
    """
    if value is None:
        return DEFAULT
    backoff = value
    if isinstance(value, str):
        try:
            backoff = import_string(value)
        except ImportError as error:
            raise ValueError(f"backoff {value!r} cannot be imported: {error}") from error
        if not callable(backoff):
            raise ValueError(f"backoff {value!r} is not callable, but {type(backoff).__name__}")
    if inspect.iscoroutinefunction(backoff):
        raise ValueError(f"backoff {value!r} is a coroutine function; write it with a plain def")
    if callable(backoff):
        return backoff
    if isinstance(value, (int, float, timedelta)):
        return constant(_seconds("backoff", value))
    raise ValueError(
        f"backoff must be None, a number of seconds, a timedelta, a callable or its dotted path, "
        f"not {type(value).__name__}"
    )


def delay_of(backoff: Backoff, exception: BaseException, task_result: Any) -> float | None:
    """Return the delay in seconds before the next attempt, or None to give up.

    Raises ValueError if the back-off raises, or returns anything but None or a delay from 0 to ten
    years.
    """
    name = getattr(backoff, "__qualname__", None) or type(backoff).__qualname__
    try:
        delay: object = contained(backoff, exception, task_result)
    except Exception as error:
        raised = error.__cause__ if isinstance(error, ProjectCodeError) else error
        raise ValueError(f"backoff {name} raised {type(raised).__name__}") from raised
    return None if delay is None else _seconds(f"backoff {name}: its result", delay)
