"""The callbacks of a batch: the jobs to insert when it ends, as they are stored with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from datetime import timedelta
from typing import Any

from .. import arguments
from ..arguments import DeserializationError, PayloadLimits
from .membership import Link, linked
from .records import Limit, NewJob

ON_SUCCESS, ON_FAILURE, ON_FINISH = "on_success", "on_failure", "on_finish"
#: The names of the callbacks, in the order in which they are enqueued.
NAMES = (ON_SUCCESS, ON_FAILURE, ON_FINISH)

#: When jobs with a limit are due: the dispatcher gives out permits.
SOON = timedelta(milliseconds=2)

_FIELDS = [each.name for each in fields(NewJob) if each.name not in ("limit", "batch_id", "waits")]


def encoded(jobs: Mapping[str, NewJob], limits: PayloadLimits) -> str | None:
    """Return the stored form of the callbacks, by their names; ``None`` if there are none."""
    if not jobs:
        return None
    values = {name: _values(job) for name, job in jobs.items()}
    return arguments.encode(values, limits=limits, root="callbacks")


def jobs_at_end(batch: Any, *, failed: bool) -> list[NewJob]:
    """Return the jobs to insert when a batch ends; none if what is stored is damaged."""
    try:
        stored: Any = arguments.decode(str(batch.callbacks), resolve_models=False)
        names = [name for name in NAMES if name != (ON_SUCCESS if failed else ON_FAILURE)]
        jobs = [_job(stored[name]) for name in names if name in stored]
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
    return NewJob(**{name: given[name] for name in given if name in {*_FIELDS, "limit"}})
