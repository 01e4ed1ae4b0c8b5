"""The callbacks of a batch: the jobs to insert when it ends, as they are stored with it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import fields, replace
from datetime import datetime, timedelta
from typing import Any

from .. import arguments
from ..arguments import DeserializationError, PayloadLimits
from ..features.batches.link import Link
from ..features.concurrency.stored import Limit
from ..features.fair.key import FairKey
from .membership import MemberState, linked
from .records import NewJob

ON_SUCCESS, ON_FAILURE, ON_FINISH = "on_success", "on_failure", "on_finish"
#: The names of the callbacks, in the order in which they are enqueued.
NAMES = (ON_SUCCESS, ON_FAILURE, ON_FINISH)
#: Those that are for other ends than a success, and than none of either.
_OTHERS = {
    MemberState.SUCCEEDED: (ON_FAILURE,),
    MemberState.DISCARDED: (ON_FAILURE,),
    MemberState.SKIPPED: (ON_SUCCESS, ON_FAILURE),
}

#: Under which name the ids of the jobs are stored beside the callbacks.
_ENQUEUED = "enqueued"
#: They were measured before, and the ids add a few bytes.
_UNLIMITED = PayloadLimits(max_bytes=2**40, max_depth=arguments.DEFAULT_LIMITS.max_depth + 2)

#: When jobs with a limit are due: the dispatcher gives out permits.
SOON = timedelta(milliseconds=2)

#: Longest names of queues, tasks, backends and keys.
LONGEST_NAME = 255
#: What columns of numbers hold.
SMALL, NUMBER = 2**15 - 1, 2**31 - 1

_FIELDS = [each.name for each in fields(NewJob) if each.name not in ("limit", "batch_id", "waits")]


def encoded(jobs: Mapping[str, NewJob], limits: PayloadLimits) -> str | None:
    """Return the stored form of the callbacks, by their names; ``None`` if there are none."""
    if not jobs:
        return None
    values = {name: _values(job) for name, job in jobs.items()}
    return arguments.encode(values, limits=limits, root="callbacks")


def jobs_at_end(batch: Any, state: MemberState) -> list[NewJob]:
    """Return the jobs to insert when a batch ends so; none if what is stored is damaged."""
    try:
        stored: Any = arguments.decode(str(batch.callbacks), resolve_models=False)
        others = _OTHERS.get(state, (ON_SUCCESS,))
        jobs = [_job(stored[name]) for name in NAMES if name in stored and name not in others]
    except (DeserializationError, TypeError, KeyError, ValueError, AttributeError):
        return []
    link = Link(batch.pk, is_callback=True)
    return [
        replace(
            job,
            metadata=linked(job.metadata, link),
            delay=SOON if job.limit is not None and job.run_at is None else job.delay,
        )
        for job in jobs
    ]


def with_enqueued(callbacks: str, job_ids: Collection[int]) -> str:
    """Return what is stored of callbacks together with the ids of these jobs, which they have
    become; the batch is kept until they have ended."""
    stored: Any = arguments.decode(callbacks, resolve_models=False)
    known = [*enqueued_ids(callbacks), *job_ids]
    return arguments.encode({**stored, _ENQUEUED: known}, limits=_UNLIMITED, root="callbacks")


def enqueued_ids(callbacks: object) -> list[int]:
    """Return the ids of the jobs that the callbacks of a batch have become."""
    try:
        stored: Any = arguments.decode(str(callbacks), resolve_models=False)
    except DeserializationError:
        return []
    found = stored.get(_ENQUEUED) if isinstance(stored, dict) else None
    if not isinstance(found, list):
        return []
    return [each for each in found if type(each) is int and 0 < each < 2**63]


def _values(job: NewJob) -> dict[str, Any]:
    values = {name: getattr(job, name) for name in _FIELDS}
    if (limit := job.limit) is not None:
        values["limit"] = (limit.key, limit.to, limit.duration, limit.discards)
    return {name: value for name, value in values.items() if value is not None}


def _job(values: Mapping[str, Any]) -> NewJob:
    given = dict(values)
    limit = given.pop("limit", None)
    if limit is not None:
        key, to, duration, discards = limit
        given["limit"] = Limit(key=key, to=to, duration=duration, discards=discards)
    job = NewJob(**{name: given[name] for name in given if name in {*_FIELDS, "limit"}})
    if not (_is_storable(job) and (job.limit is None or _is_limit(job.limit))):
        raise ValueError("no job that can be stored")
    return job


def _is_storable(job: NewJob) -> bool:
    """Whether the database takes a job whose values come from a row: where it did not, the last job
    of its batch could never be settled."""
    return (
        all(map(_is_name, (job.queue_name, job.task_path, job.backend_name)))
        and _is_text(job.arguments)
        and (job.metadata is None or _is_text(job.metadata))
        and _is_number(job.rank, SMALL)
        and _is_number(job.max_attempts, SMALL)
        and (job.fair_key is None or FairKey.of(job.fair_key) is not None)
        and (job.delay is None or isinstance(job.delay, timedelta))
        and (job.run_at is None or _is_moment(job.run_at))
    )


def _is_limit(limit: Limit) -> bool:
    return (
        _is_name(limit.key)
        and _is_number(limit.to, NUMBER)
        and limit.to > 0
        and isinstance(limit.duration, timedelta)
        and isinstance(limit.discards, bool)
    )


def _is_text(value: object) -> bool:
    return isinstance(value, str) and "\0" not in value and _is_unicode(value)


def _is_unicode(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:  # It has halves of characters.
        return False
    return True


def _is_name(value: object) -> bool:
    return _is_text(value) and 0 < len(str(value)) <= LONGEST_NAME


def _is_number(value: object, most: int) -> bool:
    return type(value) is int and -most <= value <= most


def _is_moment(value: object) -> bool:
    return isinstance(value, datetime) and value.utcoffset() is not None
