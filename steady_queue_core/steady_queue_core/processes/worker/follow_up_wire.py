"""Jobs to store with an outcome, as JSON values, on their way from a task process to its worker."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from datetime import datetime, timedelta
from typing import Any

from ...dialects import EnqueuedJob, FollowUp, Limit, NewJob
from ...tasks.outbox import MOST_CALLS

#: The fields of a job that are texts, and those that are whole numbers.
_TEXTS = ("queue_name", "task_path", "backend_name", "arguments", "metadata", "fair_key")
_NUMBERS = ("rank", "max_attempts")
_REQUIRED = {"queue_name", "rank", "task_path", "backend_name", "arguments"}
_DEFAULTS = {each.name: each.default for each in fields(NewJob)}


def write_follow_up(follow_up: FollowUp) -> dict[str, Any]:
    """Return a job, and what was stored of it if the task process has done so."""
    job = follow_up.job
    sent = {
        name: getattr(job, name)
        for name in (*_TEXTS, *_NUMBERS)
        if getattr(job, name) != _DEFAULTS[name]
    }
    if job.run_at is not None:
        sent["run_at"] = job.run_at.isoformat()
    if job.delay is not None:
        sent["delay"] = _parts(job.delay)
    if (limit := job.limit) is not None:
        sent["limit"] = [limit.key, limit.to, _parts(limit.duration), limit.discards]
    if follow_up.stored is not None:
        job_id, enqueued_at, is_duplicate = follow_up.stored
        sent["stored"] = [job_id, enqueued_at.isoformat(), is_duplicate]
    return sent


def read_follow_ups(sent: Any) -> tuple[FollowUp, ...]:
    """Return what was given to ``write_follow_up``. Raises ``ValueError`` for anything else."""
    if not isinstance(sent, list) or len(sent) > MOST_CALLS + 1:
        raise ValueError("no jobs to store with an outcome")
    try:
        return tuple(map(_read, sent))
    except (TypeError, KeyError, OverflowError, AttributeError) as error:
        raise ValueError(f"no job to store with an outcome: {error}") from error


def _read(sent: dict[str, Any]) -> FollowUp:
    if not sent.keys() >= _REQUIRED:
        raise ValueError("a job to store with an outcome lacks some of its values")
    stored = sent.pop("stored", None)
    values = {name: _READERS[name](value) for name, value in sent.items()}
    return FollowUp(NewJob(**values), stored=stored and _stored(*stored))


def _stored(job_id: int | None, enqueued_at: str, is_duplicate: bool) -> EnqueuedJob:
    return EnqueuedJob(job_id, datetime.fromisoformat(enqueued_at), is_duplicate)


def _parts(duration: timedelta) -> list[int]:
    return [duration.days, duration.seconds, duration.microseconds]


def _duration(parts: list[int]) -> timedelta:
    days, seconds, microseconds = map(_number, parts)
    return timedelta(days, seconds, microseconds)


def _limit(values: list[Any]) -> Limit:
    key, to, duration, discards = values
    return Limit(key=_text(key), to=_number(to), duration=_duration(duration), discards=discards)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r:.100} is no text")
    return value


def _number(value: object) -> int:
    if type(value) is not int:
        raise TypeError(f"{value!r:.100} is no whole number")
    return value


_READERS: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(_TEXTS, _text),
    **dict.fromkeys(_NUMBERS, _number),
    "run_at": datetime.fromisoformat,
    "delay": _duration,
    "limit": _limit,
}
