"""The rate limit of a task, and the decorator that declares it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from ...compat import Task
from ...durations import LONGEST
from ..calls import NOTHING, Facts
from ..declaring import TaskT, checked_key, declaring
from ..former import pickled_in
from ..keys import Key, checked_group, in_group, text_of
from .stored import LARGEST_RATE, NAME, SHORTEST_PERIOD, JobRate


@dataclass(frozen=True, slots=True, kw_only=True)
class RateLimit:
    """The rate limit of a task, declared with ``@limits_rate``."""

    to: int
    per: timedelta
    key: Key = "all"
    burst: int = 0
    #: ``None``: the path of the task.
    group: str | None = None

    def of_call(self, task: Task, args: Any, kwargs: Any) -> JobRate | None:
        """Return the limit of a call of ``task``, or ``None`` if it has none.

        Raises ``InvalidTask`` if the key could not be computed.
        """
        where = f"The rate key of {task.module_path}"
        key = text_of(self.key, args, kwargs, where, "no limit")
        if key is None:
            return None
        return JobRate(in_group(self.group_of(task), key), self.to, self.per, self.burst)

    def group_of(self, task: Task) -> str:
        """Return the prefix that all keys of ``task`` share."""
        return task.module_path if self.group is None else self.group


def at_call(call: Any, backend: Any) -> Facts:
    """Return the limit of a call as its job keeps it. Raises ``InvalidTask``."""
    limit = call.task.rate.of_call(call.task, call.args, call.kwargs)
    return NOTHING if limit is None else {NAME: limit.stored}


def limits_rate(
    *,
    to: int,
    per: timedelta,
    key: Key = "all",
    burst: int = 0,
    group: str | None = None,
) -> Callable[[TaskT], TaskT]:
    """Let at most ``to`` jobs of the decorated task that share a key start in any ``per``.

    ``per`` is a timedelta of at least a second. ``burst`` more may start in one go after a pause:
    no window of ``per`` has more than ``to + burst`` starts; without it they are spaced evenly.
    ``key`` is a string, by default the same for all jobs of the task, or a callable that gets the
    arguments of the call and returns a string, a number, a UUID, a model instance, or ``None`` for
    no limit. ``group``, by default the path of the task, is a part of the key: tasks with the same
    group and key share their limit. A job that finds no place is scheduled for the next one that is
    free, and uses up no attempt by that.

    Apply it above ``@task``, once. Raises ``ValueError`` or ``TypeError`` for invalid values, while
    the module is imported.
    """
    limit = RateLimit(
        to=_checked_count("to", to, least=1),
        per=_checked_period(per),
        key=checked_key(key, "@limits_rate"),
        burst=_checked_count("burst", burst, least=0),
        group=checked_group(group, "@limits_rate"),
    )

    return declaring("@limits_rate", "rate", limit)


def _checked_count(name: str, value: object, *, least: int) -> int:
    if type(value) is not int:
        raise TypeError(f"@limits_rate: {name} must be a whole number, not {value!r}")
    if not least <= value <= LARGEST_RATE:
        raise ValueError(
            f"@limits_rate: {name} must be from {least} to {LARGEST_RATE}, not {value}"
        )
    return value


def _checked_period(per: object) -> timedelta:
    if not isinstance(per, timedelta):
        raise TypeError(f"@limits_rate: per must be a timedelta, not {type(per).__name__}")
    if not SHORTEST_PERIOD <= per <= LONGEST:
        raise ValueError(
            f"@limits_rate: per must be from 1 second to {LONGEST.days} days, not {per}; for a "
            "shorter period, give a whole second with as many more starts"
        )
    return per


@dataclass(frozen=True, kw_only=True)
class RateField:
    """What a task keeps."""

    __slots__ = ()

    #: The rate limit; set by ``@limits_rate``.
    rate: RateLimit | None = None


pickled_in("steady_queue_core.rates.limit", RateLimit)
