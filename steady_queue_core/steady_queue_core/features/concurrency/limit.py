"""Concurrency limits: how many jobs that share a key may run at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal

from ...compat import Task
from ...configuration.module_settings import module_setting
from ...durations import LONGEST
from ..calls import NOTHING, Facts
from ..declaring import TaskT, checked_key, declaring
from ..former import pickled_in
from ..keys import Key, checked_group, in_group, text_of
from .stored import Limit

LARGEST_LIMIT = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ConcurrencyLimit:
    """The concurrency limit of a task, declared with ``@limits_concurrency``."""

    key: Key
    to: int = 1
    #: ``None``: the setting ``default_concurrency_control_period`` at the time of the enqueue.
    duration: timedelta | None = None
    #: ``None``: the path of the task.
    group: str | None = None
    discards: bool = False

    def of_call(self, task: Task, args: Any, kwargs: Any) -> Limit | None:
        """Return the limit of a call of ``task``, or ``None`` if it has none.

        Raises ``InvalidTask`` if the key could not be computed.
        """
        where = f"The concurrency key of {task.module_path}"
        key = text_of(self.key, args, kwargs, where, "no limit")
        if key is None:
            return None
        period: timedelta = module_setting("default_concurrency_control_period")
        return Limit(
            key=in_group(self.group_of(task), key),
            to=self.to,
            duration=period if self.duration is None else self.duration,
            discards=self.discards,
        )

    def group_of(self, task: Task) -> str:
        """Return the prefix that all keys of ``task`` share."""
        return task.module_path if self.group is None else self.group


def at_call(call: Any, backend: Any) -> Facts:
    """Give a call its limit. Raises ``InvalidTask``."""
    call.limit = call.task.concurrency.of_call(call.task, call.args, call.kwargs)
    return NOTHING


def limits_concurrency(
    *,
    key: Key,
    to: int = 1,
    duration: timedelta | None = None,
    group: str | None = None,
    on_conflict: Literal["block", "discard"] = "block",
) -> Callable[[TaskT], TaskT]:
    """Let at most ``to`` jobs of the decorated task that share a key run at once.

    ``key`` is a string, or a callable that gets the arguments of the call and returns a string, a
    number, a UUID, a model instance, or ``None`` for no limit. ``group``, by default the path of
    the task, is a part of the key: tasks with the same group and key share their limit.
    ``on_conflict`` decides about a job that is due while the limit is reached: ``"block"`` keeps
    it until a permit is free, ``"discard"`` drops it. A running job keeps its permit for
    ``duration`` after its start and after each heartbeat of its process; the default is the
    setting ``default_concurrency_control_period``.

    Apply it above ``@task``, once. Raises ``ValueError`` or ``TypeError`` for invalid values, while
    the module is imported.
    """
    limit = ConcurrencyLimit(
        key=checked_key(key, "@limits_concurrency"),
        to=_checked_limit(to),
        duration=_checked_duration(duration),
        group=checked_group(group, "@limits_concurrency"),
        discards=_checked_conflict(on_conflict) == "discard",
    )

    return declaring("@limits_concurrency", "concurrency", limit)


def _checked_limit(to: object) -> int:
    if type(to) is not int:
        raise TypeError(f"@limits_concurrency: to must be a whole number, not {to!r}")
    if not 1 <= to <= LARGEST_LIMIT:
        raise ValueError(f"@limits_concurrency: to must be from 1 to {LARGEST_LIMIT}, not {to}")
    return to


def _checked_duration(duration: object) -> timedelta | None:
    if duration is None:
        return None
    if not isinstance(duration, timedelta):
        raise TypeError(
            f"@limits_concurrency: duration must be a timedelta, not {type(duration).__name__}"
        )
    if not timedelta(0) < duration <= LONGEST:
        raise ValueError(
            f"@limits_concurrency: duration must be more than 0 and at most {LONGEST.days} days, "
            f"not {duration}"
        )
    return duration


def _checked_conflict(on_conflict: object) -> str:
    if on_conflict == "block" or on_conflict == "discard":
        return str(on_conflict)
    raise ValueError(
        f"@limits_concurrency: on_conflict must be 'block' or 'discard', not {on_conflict!r}"
    )


@dataclass(frozen=True, kw_only=True)
class ConcurrencyField:
    """What a task keeps."""

    __slots__ = ()

    #: The concurrency limit; set by ``@limits_concurrency``.
    concurrency: ConcurrencyLimit | None = None


pickled_in("steady_queue_core.concurrency", ConcurrencyLimit)
