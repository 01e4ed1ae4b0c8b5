"""Durable sleep: it ends an attempt, and the next one goes on after it."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from ...durations import LONGEST, in_words, to_timedelta
from ...errors import StepOrderError
from ...timezones import to_utc
from ..attempt_ending import AttemptEnding
from ..meaning import EndedJob, Meaning, Report

FINAL = (StepOrderError,)


class DurableSleep(BaseException):
    """Ends the attempt in which a task has called ``context.sleep()``: the job resumes when the
    sleep is over. Like ``TaskCancelled`` it passes whoever handles each ``Exception``."""

    def __init__(self, name: str, job_id: int, until: datetime, delay: float) -> None:
        self.name, self.job_id = name, job_id
        #: When it is over, by the database's clock, and the seconds until then.
        self.until, self.delay = until, delay
        super().__init__(f"sleep {name!r} until {until.isoformat(' ', 'seconds')}")


def sleep_of(error: BaseException, job_id: int) -> DurableSleep | None:
    """Return the sleep of a job that has ended its attempt, if that was it: of several in a group,
    the one that is over first."""
    if isinstance(error, BaseExceptionGroup):
        sleeps = [sleep_of(each, job_id) for each in error.exceptions]
        if None in sleeps:
            return None
        return min((each for each in sleeps if each is not None), key=lambda each: each.delay)
    return error if isinstance(error, DurableSleep) and error.job_id == job_id else None


def slept(error: BaseException, job: EndedJob) -> Meaning | None:
    """Return what it means if the job sleeps. It is no snooze: nothing bounds how many there
    are."""
    sleep = sleep_of(error, job.job_id)
    if sleep is None:
        return None
    report = Report("task.sleeps", "Task id=%s path=%s sleeps for %.1f s", (sleep.delay,))
    return Meaning(error, AttemptEnding.SNOOZED, sleep.delay, report=report)


def end_of_sleep(delay: Any, now: datetime) -> datetime:
    """Return when a sleep is over that begins ``now``: after seconds, a timedelta, or at an aware
    datetime. Raises ``TypeError`` and ``ValueError``."""
    if not isinstance(delay, datetime):
        return now + _duration(delay)
    if delay.utcoffset() is None:
        raise ValueError(
            f"sleep: the datetime {delay} has no time zone. Pass an aware one, or a delay."
        )
    until = to_utc(delay)
    if until > now + LONGEST:
        raise ValueError(f"sleep: {delay} is more than {in_words(LONGEST)} from now.")
    return until


def _duration(delay: object) -> timedelta:
    try:
        return to_timedelta(delay)
    except (TypeError, ValueError) as error:
        raise type(error)(
            "sleep: pass a number of seconds or a timedelta, from 0 to "
            f"{LONGEST.days} days, or an aware datetime, not {delay!r}"
        ) from None
