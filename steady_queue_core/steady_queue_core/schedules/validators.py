"""Validators of the values of a recurring task, in the code or at run time.

Each function returns the valid value, or raises TypeError or ValueError with the task's key in the
message.
"""

from __future__ import annotations

import inspect
import unicodedata
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any

from ..configuration.errors import suggest
from ..configuration.queues import LONGEST_NAME, name_objection
from ..durations import LONGEST
from ..tasks.signature import signature_of
from .catch_up import CatchUp
from .cron import InvalidScheduleError, Schedule
from .instants import checked_instant
from .interval import Interval
from .once import Once
from .overlap import OVERLAPS, Overlap
from .span import RESOLUTION, AnySchedule, Span

LOWEST_PRIORITY, HIGHEST_PRIORITY = -100, 100
MOST_REPEATS = 2**31 - 1


def checked_key(key: object) -> str:
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


def checked_schedule(
    key: str, schedule: str | timedelta | datetime, timezone: str | None
) -> AnySchedule:
    try:
        if isinstance(schedule, datetime):
            if timezone:
                raise InvalidScheduleError(
                    f"an instant has its own time zone, but timezone={timezone!r} is given as "
                    "well; leave it out"
                )
            return Once(schedule)
        if isinstance(schedule, timedelta):
            if timezone:
                raise InvalidScheduleError(
                    f"an interval has no time zone, but timezone={timezone!r} is given; leave it "
                    "out, or write a cron expression"
                )
            return Interval(schedule)
        if not isinstance(schedule, str):
            raise InvalidScheduleError(
                "schedule must be a cron expression, a timedelta or a datetime, not "
                f"{type(schedule).__name__}"
            )
        return Schedule(schedule, timezone or "")
    except ValueError as error:
        raise type(error)(f"the recurring task {key!r}: {error}") from error


def checked_args(key: str, args: object) -> tuple[object, ...]:
    if not isinstance(args, (list, tuple)):
        raise TypeError(
            f"the recurring task {key!r}: args must be a list or tuple, not {type(args).__name__}"
        )
    return tuple(args)


def checked_kwargs(key: str, kwargs: object) -> Mapping[str, object]:
    if kwargs is None:
        return MappingProxyType({})
    if not isinstance(kwargs, Mapping) or not all(isinstance(name, str) for name in kwargs):
        raise TypeError(
            f"the recurring task {key!r}: kwargs must be a dict with strings as keys, or None"
        )
    return MappingProxyType(dict(kwargs))


def check_fit(key: str, task: Any, args: Sequence[object], kwargs: Mapping[str, object]) -> None:
    """Raise ValueError if the function of ``task`` cannot be called with these arguments."""
    function = getattr(task, "func", None)
    signature = signature_of(function, getattr(task, "takes_context", False)) if function else None
    problem = signature.misfit(args, kwargs) if signature is not None else None
    if problem is not None:
        raise ValueError(
            f"the recurring task {key!r}: {task.module_path} cannot be called with its "
            f"arguments: {problem}"
        )


def checked_queue_name(key: str, value: object) -> str | None:
    if value is None:
        return None
    where = f"the recurring task {key!r}: queue_name"
    if not isinstance(value, str):
        raise TypeError(f"{where} must be a string, not {type(value).__name__}")
    if reason := name_objection(value):
        raise ValueError(f"{where} {value!r} {reason}")
    return value


def checked_priority(key: str, priority: object) -> int | None:
    if priority is None:
        return None
    if isinstance(priority, bool) or not isinstance(priority, int):
        raise TypeError(
            f"the recurring task {key!r}: priority must be an integer, "
            f"not {type(priority).__name__}"
        )
    if not LOWEST_PRIORITY <= priority <= HIGHEST_PRIORITY:
        raise ValueError(
            f"the recurring task {key!r}: priority must be from {LOWEST_PRIORITY} to "
            f"{HIGHEST_PRIORITY}, not {priority}"
        )
    return priority


def checked_catch_up(key: str, value: object) -> CatchUp:
    if value == "skip" or value == "last":
        return value
    if isinstance(value, timedelta) and timedelta(0) <= value <= LONGEST:
        return value
    raise ValueError(
        f"the recurring task {key!r}: catch_up must be 'skip', 'last', or a timedelta of up to "
        f"{LONGEST.days} days, not {value!r}"
    )


def checked_bound(key: str, name: str, value: object) -> datetime | None:
    """Return ``starts_at`` or ``ends_at`` in UTC."""
    if value is None:
        return None
    try:
        return checked_instant(name, value)
    except (TypeError, ValueError) as error:
        raise type(error)(f"the recurring task {key!r}: {error}") from None


def checked_span(
    key: str, schedule: AnySchedule, starts_at: datetime | None, ends_at: datetime | None
) -> Span:
    """Return the time in which there are runs; at least one is known to be in it if it begins."""
    where = f"the recurring task {key!r}"
    if starts_at is not None and ends_at is not None and ends_at < starts_at:
        raise ValueError(
            f"{where}: it ends before it starts: ends_at is {ends_at}, starts_at is {starts_at}"
        )
    span = Span(schedule, starts_at, ends_at)
    if (
        starts_at is not None
        and ends_at is not None
        and span.next_after(starts_at - RESOLUTION) is None
    ):
        raise ValueError(
            f"{where}: {schedule.expression!r} has no run from {starts_at} to {ends_at}"
        )
    return span


def checked_repeats(key: str, repeats: object) -> int | None:
    if repeats is None:
        return None
    where = f"the recurring task {key!r}: repeats"
    if isinstance(repeats, bool) or not isinstance(repeats, int):
        raise TypeError(f"{where} must be an integer, not {type(repeats).__name__}")
    if not 1 <= repeats <= MOST_REPEATS:
        raise ValueError(f"{where} must be from 1 to {MOST_REPEATS}, not {repeats}")
    return repeats


def checked_overlap(key: str, overlap: object) -> Overlap:
    for known in OVERLAPS:
        if overlap == known:
            return known
    raise ValueError(
        f"the recurring task {key!r}: there is no overlap {overlap!r}; {suggest(overlap, OVERLAPS)}"
    )


def check_single_run(key: str, schedule: AnySchedule, **values: object) -> None:
    """Raise ValueError if any of ``values``, which are for several runs, is given for a single
    one."""
    given = [name for name, value in values.items() if value is not None]
    if isinstance(schedule, Once) and given:
        raise ValueError(
            f"the recurring task {key!r}: it runs once, {schedule.expression}, so that "
            f"{' and '.join(given)} would mean nothing; leave out what is given"
        )


def description_of(task: Any) -> str:
    """Return the first line of the docstring of a task's function."""
    function = getattr(task, "func", None)
    return (inspect.getdoc(function) or "").partition("\n")[0] if function else ""


def checked_description(key: str, value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(
            f"the recurring task {key!r}: description must be a string, not {type(value).__name__}"
        )
    return value
