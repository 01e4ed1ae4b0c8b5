"""Checks of the values of a recurring task, in the code or at run time.

Each returns the valid value, or raises TypeError or ValueError with a message that names the value;
``naming`` puts the key of the task before it.
"""

from __future__ import annotations

import inspect
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any

from ..arguments.signature import signature_of
from ..configuration.errors import suggest
from ..configuration.queues import LONGEST_NAME, name_objection
from ..durations import LONGEST
from .cron import InvalidScheduleError, Schedule
from .interval import Interval
from .once import Once
from .policies import OVERLAPS, CatchUp, Overlap
from .span import RESOLUTION, AnySchedule, Span


@contextmanager
def naming(key: str) -> Iterator[None]:
    """Have what is refused inside the block name the recurring task."""
    try:
        yield
    except (TypeError, ValueError) as error:
        raise type(error)(f"the recurring task {key!r}: {error}") from error


def checked_key(key: object) -> str:
    """Return the key of a recurring task. Its errors are complete without ``naming``."""
    where = "the key of a recurring task"
    if not isinstance(key, str):
        raise TypeError(f"{where} must be a string, not {type(key).__name__}")
    if not key.strip():
        raise ValueError(f"{where} must not be empty")
    if len(key) > LONGEST_NAME:
        raise ValueError(f"{where} has {len(key)} characters, at most {LONGEST_NAME} are allowed")
    if any(unicodedata.category(character) in ("Cc", "Cs") for character in key):
        raise ValueError(f"{where} holds a control character or a lone surrogate: {key!r}")
    return key


def checked_schedule(schedule: str | timedelta | datetime, timezone: str | None) -> AnySchedule:
    """Return the schedule that is meant: cron, an interval, or a single run."""
    if isinstance(schedule, datetime):
        if timezone:
            raise InvalidScheduleError(
                f"an instant has its own time zone, but timezone={timezone!r} is given as well; "
                "leave it out"
            )
        return Once(schedule)
    if isinstance(schedule, timedelta):
        if timezone:
            raise InvalidScheduleError(
                f"an interval has no time zone, but timezone={timezone!r} is given; leave it out, "
                "or write a cron expression"
            )
        return Interval(schedule)
    if not isinstance(schedule, str):
        raise InvalidScheduleError(
            "schedule must be a cron expression, a timedelta or a datetime, not "
            f"{type(schedule).__name__}"
        )
    return Schedule(schedule, timezone or "")


def checked_args(args: object) -> tuple[object, ...]:
    if not isinstance(args, (list, tuple)):
        raise TypeError(f"args must be a list or tuple, not {type(args).__name__}")
    return tuple(args)


def checked_kwargs(kwargs: object) -> Mapping[str, object]:
    if kwargs is None:
        return MappingProxyType({})
    if not isinstance(kwargs, Mapping) or not all(isinstance(name, str) for name in kwargs):
        raise TypeError("kwargs must be a dict with strings as keys, or None")
    return MappingProxyType(dict(kwargs))


def check_fit(task: Any, args: Sequence[object], kwargs: Mapping[str, object]) -> None:
    """Raise ValueError if the function of ``task`` cannot be called with these arguments."""
    function = getattr(task, "func", None)
    signature = signature_of(function, getattr(task, "takes_context", False)) if function else None
    problem = signature.misfit(args, kwargs) if signature is not None else None
    if problem is not None:
        raise ValueError(f"{task.module_path} cannot be called with its arguments: {problem}")


def checked_string(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a string, not {type(value).__name__}")
    return value


def checked_queue_name(name: str, value: object) -> str:
    queue_name = checked_string(name, value)
    if reason := name_objection(queue_name):
        raise ValueError(f"{name} {queue_name!r} {reason}")
    return queue_name


def integer(lowest: int, highest: int) -> Callable[[str, object], int]:
    """Return a check for integers of this range."""

    def checked(name: str, value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise TypeError(f"{name} must be an integer, not {type(value).__name__}")
        if not lowest <= value <= highest:
            raise ValueError(f"{name} must be from {lowest} to {highest}, not {value}")
        return value

    return checked


def checked_catch_up(name: str, value: object) -> CatchUp:
    if value == "skip" or value == "last":
        return value
    if isinstance(value, timedelta) and timedelta(0) <= value <= LONGEST:
        return value
    raise ValueError(
        f"{name} must be 'skip', 'last', or a timedelta of up to {LONGEST.days} days, not {value!r}"
    )


def checked_overlap(name: str, value: object) -> Overlap:
    for known in OVERLAPS:
        if value == known:
            return known
    raise ValueError(f"there is no {name} {value!r}; {suggest(value, OVERLAPS)}")


def checked_span(
    schedule: AnySchedule, starts_at: datetime | None, ends_at: datetime | None
) -> Span:
    """Return the time in which there are runs; at least one is known to be in it if it begins."""
    span = Span(schedule, starts_at, ends_at)
    if starts_at is None or ends_at is None:
        return span
    if ends_at < starts_at:
        raise ValueError(
            f"it ends before it starts: ends_at is {ends_at}, starts_at is {starts_at}"
        )
    if span.next_after(starts_at - RESOLUTION) is None:
        raise ValueError(f"{schedule.expression!r} has no run from {starts_at} to {ends_at}")
    return span


def check_single_run(schedule: AnySchedule, limits: Sequence[str]) -> None:
    """Raise ValueError if ``limits``, which are for several runs, are given for a single one."""
    if isinstance(schedule, Once) and limits:
        raise ValueError(
            f"it runs once, {schedule.expression}, so that {' and '.join(limits)} would mean "
            "nothing; leave out what is given"
        )


def description_of(task: Any) -> str:
    """Return the first line of the docstring of a task's function."""
    function = getattr(task, "func", None)
    return (inspect.getdoc(function) or "").partition("\n")[0] if function else ""
