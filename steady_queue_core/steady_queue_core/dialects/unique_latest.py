"""Bounds of how long calls that replace each other put a job off."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

from .. import arguments
from ..features.entries import UNLIMITED
from ..features.unique.key import NAME, JobKey
from .portable import aware
from .portable.enqueue import due_at
from .records import NewJob


def first_call(holder: Any) -> datetime:
    """Return when the first of the calls was made that have become a job which waits."""
    known = JobKey.read(holder.metadata)
    since = None if known is None else known.since
    return aware(holder.enqueued_at) if since is None else since


def bounded(job: NewJob, key: JobKey, first: datetime | None, present: datetime) -> NewJob:
    """Return a call that is due no later than its key says, counted from the ``first`` call, or
    from the ``present`` if that is the first."""
    due = due_at(job, present)
    latest = (present if first is None else first) + key.latest
    if due is not None and due > latest:
        job = replace(job, run_at=latest, delay=None)
    if key.since == first:
        return job
    values = arguments.decode(str(job.metadata), resolve_models=False)
    values[NAME] = key._replace(since=first).stored
    return replace(job, metadata=arguments.encode(values, limits=UNLIMITED, root="metadata"))
