"""When a job expires: if it has not started by then, it never starts."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal, TypedDict

from django.conf import settings
from django.utils import timezone

from ...compat import InvalidTask, Task
from ...configuration.errors import describe
from ...configuration.option_fields import duration, option, optional
from ...durations import LONGEST
from ...timezones import to_utc
from ..fact import fact
from ..option import Option

#: Says of a task, or a call, that its jobs do not expire, whatever their backend says.
NEVER: Literal["never"] = "never"
#: A timedelta counts from the enqueue, by the database's clock.
Expires = timedelta | datetime | Literal["never"]


def is_period(value: object) -> bool:
    """Whether ``value`` is a time after which a job may expire."""
    return isinstance(value, timedelta) and timedelta(0) < value <= LONGEST


def is_valid(value: object) -> bool:
    """Whether ``value`` may be stored with a job."""
    return is_period(value) or (isinstance(value, datetime) and value.utcoffset() is not None)


def of_task(value: Any, where: str) -> Expires:
    """Return the expiry of all jobs of a task. Raises ``InvalidTask`` that names ``where``."""
    if isinstance(value, datetime):
        raise InvalidTask(
            f"{where}: expires is a time at which all jobs would expire: {value.isoformat()}. Give "
            "a timedelta here, or that time for one call: using(expires=...)."
        )
    return of_call(value, where)


def of_call(value: Any, where: str) -> Expires:
    """Return the expiry of one call; a datetime is converted to UTC, a naive one from local time if
    the project has no time zones. Raises ``InvalidTask``."""
    if value == NEVER or is_period(value):
        known: Expires = value
        return known
    if not isinstance(value, datetime):
        raise InvalidTask(
            f"{where}: expires must be a timedelta of more than 0 and at most {LONGEST.days} days, "
            f"an aware datetime or {NEVER!r}, not {describe(value)}."
        )
    if settings.USE_TZ and timezone.is_naive(value):
        raise InvalidTask(
            f"{where}: expires is a naive datetime, {value.isoformat()}: give it a time zone, as "
            "timezone.now() has one."
        )
    try:
        return to_utc(value)
    except OverflowError:
        raise InvalidTask(
            f"{where}: expires lies outside the years 1 to 9999 in UTC: {value.isoformat()}."
        ) from None


def _is_span(value: object) -> bool:
    return not isinstance(value, datetime)


def deadline_of(expires: object, enqueued_at: datetime) -> datetime | None:
    """Return when a job expires that was enqueued then; ``None``: never."""
    if not isinstance(expires, timedelta):
        return expires if isinstance(expires, datetime) else None
    try:
        return enqueued_at + expires
    except OverflowError:
        return None


def require_start_before(expires: Expires, task: Task, setting: str) -> None:
    """Raise ``InvalidTask`` if a call of ``task`` would be due only when it has expired.

    ``setting`` names where ``expires`` comes from.
    """
    delay: timedelta | None = getattr(task, "delay", None)
    due = task.run_after if delay is None else delay
    if due is None or not _is_before(expires, due):
        return
    raise InvalidTask(
        f"{task.module_path}: the job would expire before it is due: {setting} is "
        f"{_shown(expires)}, run_after is {_shown(due)}. Let it expire later, or never: "
        f"using(expires={NEVER!r})."
    )


def _is_before(expires: Any, due: timedelta | datetime) -> bool:
    if isinstance(expires, timedelta) and isinstance(due, timedelta):
        return expires <= due
    try:
        return _moment(expires) <= _moment(due)
    except OverflowError:
        return isinstance(due, timedelta)  # It is due after the end of the calendar.


def _moment(value: timedelta | datetime) -> datetime:
    # By this host's clock: the database's is read when the job is stored.
    return to_utc(timezone.now()) + value if isinstance(value, timedelta) else to_utc(value)


def _shown(value: object) -> str:
    return value.isoformat(" ") if isinstance(value, datetime) else str(value)


class TaskOptions(TypedDict, total=False):
    """What ``@task`` takes."""

    expires: timedelta | Literal["never"] | None


class CallOptions(TypedDict, total=False):
    """What ``using()`` takes."""

    expires: Expires | None


@dataclass(frozen=True, kw_only=True)
class ExpiryDefaults:
    """What a backend says for jobs that do not say it themselves."""

    expires: timedelta | None = option(None, optional(duration))
    """Time from the enqueue after which a job no longer starts, unless its task or call says so
    itself; None: a job does not expire."""


@dataclass(frozen=True, kw_only=True)
class ExpiryFacts:
    """What a job keeps."""

    __slots__ = ()

    #: By when the job has to start; ``None``: it does not expire.
    expires: Expires | None = fact(is_valid=is_valid, is_signed=False)

    def deadline(self, enqueued_at: datetime) -> datetime | None:
        """Return when a job expires that was enqueued then; ``None``: never."""
        return deadline_of(self.expires, enqueued_at)


OPTIONS = (
    Option(
        "expires",
        of_call,
        of_task,
        require_start_before,
        has_default=True,
        off=NEVER,
        is_copied=_is_span,
    ),
)
