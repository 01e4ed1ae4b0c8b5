"""Endings that a task chooses: it raises one of these exceptions."""

from __future__ import annotations

from datetime import timedelta

from .durations import LONGEST, to_timedelta
from .errors import SteadyQueueError


class ChosenEnding(SteadyQueueError):
    """Base class of the endings that a task chooses."""


class Retry(ChosenEnding):
    """Ends the attempt like a failure: the job runs again, unless this was its last attempt.

    ``delay``, in seconds or as a timedelta, replaces that of the back-off; ``None`` leaves it to
    the back-off.
    """

    def __init__(self, delay: float | timedelta | None = None) -> None:
        self.delay = None if delay is None else _seconds("Retry", delay)
        super().__init__("retry" if delay is None else f"retry in {self.delay:g} s")


class Snooze(ChosenEnding):
    """Puts the job off by ``delay``, in seconds or as a timedelta. No attempt is counted.

    The job fails with ``TooManySnoozesError`` once it has snoozed ``max_snoozes`` times.
    """

    def __init__(self, delay: float | timedelta) -> None:
        self.delay = _seconds("Snooze", delay)
        if not self.delay:
            raise ValueError("Snooze: delay must be more than 0 seconds.")
        super().__init__(f"snooze for {self.delay:g} s")


class Discard(ChosenEnding):
    """Ends the job without a result and without a failure: there is nothing left to do.

    The ``reason`` is kept as ``result.metadata["discarded"]``.
    """

    def __init__(self, reason: str = "") -> None:
        self.reason = _text("Discard", reason)
        super().__init__(self.reason or "discard")


class Fail(ChosenEnding):
    """Fails the job at once, whatever attempts are left, with ``reason`` as its message."""

    def __init__(self, reason: str = "") -> None:
        self.reason = _text("Fail", reason)
        super().__init__(self.reason or "fail")


def usable(error: BaseException) -> BaseException:
    """Return what a task has raised, unless it is an ending whose values are missing or not valid:
    a subclass may not have called ``__init__``. Then return a ``TypeError`` that says so."""
    try:
        if isinstance(error, Snooze):
            error.delay = Snooze(error.delay).delay
        elif isinstance(error, Retry):
            error.delay = Retry(error.delay).delay
        elif isinstance(error, Discard):
            error.reason = Discard(error.reason).reason
    except Exception as problem:
        name = type(error).__qualname__
        told = TypeError(
            f"The task raised {name}, an ending that cannot be used ({problem}). If {name} has an "
            "__init__ of its own, it must call super().__init__() with the delay or the reason."
        )
        told.__cause__ = error
        return told
    return error


def _seconds(name: str, delay: object) -> float:
    try:
        return to_timedelta(delay).total_seconds()
    except (TypeError, ValueError) as error:
        raise type(error)(
            f"{name}: delay must be a number of seconds or a timedelta from 0 to {LONGEST.days} "
            f"days, not {delay!r}"
        ) from None


def _text(name: str, reason: object) -> str:
    if not isinstance(reason, str):
        raise TypeError(f"{name}: reason must be a string, not {type(reason).__name__}")
    return reason
