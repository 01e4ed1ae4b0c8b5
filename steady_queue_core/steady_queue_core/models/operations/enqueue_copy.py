"""Enqueueing jobs once more, with the same call."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.db.models import QuerySet

from ... import arguments
from ...arguments import DeserializationError
from ...arguments.tags import RESULT
from ...dialects import (
    EnqueuedJob,
    FairKey,
    JobKey,
    KeyTaken,
    Limit,
    Link,
    NewJob,
    fair_queues_in,
)
from ...dialects.database import Database
from ...own_tasks import OWN_TASKS
from ...payloads import PayloadError, call_scope
from ...payloads.backends import codec_of
from ..semaphore import Semaphore
from .transition import Transition

#: What a copy needs; errors and results may be large.
OF_CALL = (
    "task_path", "backend_name", "queue_name", "rank", "arguments", "max_attempts", "metadata",
    "concurrency_key", "concurrency_limit", "concurrency_duration", "concurrency_discards",
)  # fmt: skip


def enqueue_copies(jobs: QuerySet[Any], job_ids: Sequence[int]) -> dict[int, EnqueuedJob]:
    """Enqueue the calls of these of all ``jobs`` again, in one transaction; return what has become
    of each, by the id of the copied job.

    Left alone are jobs whose unique key another job, or an earlier copy, has, those with damaged
    metadata, those with results of other members of a batch among their arguments, and those of
    Steady Queue's own tasks.
    """
    return Transition.perform(jobs, job_ids, _enqueue_copies)


def _enqueue_copies(act: Transition) -> dict[int, EnqueuedJob]:
    database = act.database
    copied = act.jobs.filter(pk__in=act.job_ids).exclude(task_path__in=OWN_TASKS).only(*OF_CALL)
    rows = {job.pk: job for job in copied}
    limits = _present_limits(database, rows.values())
    calls = {pk: _call(database, rows[pk], limits) for pk in sorted(rows)}
    wanted = _without_conflicts(
        database, {pk: call for pk, call in calls.items() if call is not None}
    )
    stored = _enqueue(database, wanted)
    if stored:
        database.ring_after_commit(sorted({wanted[pk].queue_name for pk in stored}))
    return stored


def _enqueue(database: Database, wanted: Mapping[int, NewJob]) -> dict[int, EnqueuedJob]:
    left = dict(wanted)
    while left:
        try:
            stored = database.dialect.enqueue(database.connection, list(left.values()))
        except KeyTaken as taken:
            # Somebody has taken the key since it was looked at.
            del left[list(left)[taken.number]]
            continue
        copies = dict(zip(left, stored, strict=True))
        return {pk: new for pk, new in copies.items() if not new.is_duplicate}
    return {}


def _without_conflicts(database: Database, calls: Mapping[int, NewJob]) -> dict[int, NewJob]:
    """Return the calls without those whose unique key a job, or one of the calls before, has."""
    keys = {pk: key.key for pk, call in calls.items() if (key := JobKey.read(call.metadata))}
    rows = database.unique_keys.read(set(keys.values()))
    owners: dict[str, int | None] = dict.fromkeys(database.unique_keys.holders(rows))
    return {
        pk: call for pk, call in calls.items()
        if pk not in keys or owners.setdefault(keys[pk], pk) == pk
    }  # fmt: skip


def _call(database: Database, job: Any, limits: Mapping[str, int]) -> NewJob | None:
    """Return the call of a job; ``None`` if it has none that could be another job's."""
    try:
        metadata = _metadata(job.metadata)
        if Link.read(job.metadata) is not None and _needs_results(job):
            return None
    except (DeserializationError, PayloadError):
        return None
    fair, limit = fair_queues_in(database.alias), None
    if job.concurrency_key is not None:
        limit = Limit(
            key=job.concurrency_key,
            to=limits.get(job.concurrency_key, job.concurrency_limit),
            duration=job.concurrency_duration,
            discards=job.concurrency_discards,
        )
    is_fair = fair is not None and fair.weight_of(job.queue_name) is not None
    return NewJob(
        queue_name=job.queue_name,
        rank=job.rank,
        task_path=job.task_path,
        backend_name=job.backend_name,
        arguments=job.arguments,
        max_attempts=abs(job.max_attempts),
        limit=limit,
        metadata=metadata,
        fair_key=(FairKey.read(metadata) or "") if is_fair else None,
    )


def _needs_results(job: Any) -> bool:
    """Whether there are results of other members among the arguments. Raises ``PayloadError``."""
    codec = codec_of(job.backend_name)
    text = job.arguments
    if codec is not None:
        text = codec.open(text, call_scope(job, job.concurrency_key))
    return f'"{RESULT}"' in text


def _metadata(text: str | None) -> str | None:
    """Return the metadata of a copy: without what is of the one job. Raises
    ``DeserializationError``."""
    if text is None:
        return None
    found = arguments.decode(text, resolve_models=False)
    if not isinstance(found, dict):
        raise DeserializationError("The metadata are no object.")
    kept = {name: value for name, value in found.items() if _is_copied(name, value)}
    if kept == found:
        return text
    return arguments.encode(kept, root="metadata") if kept else None


def _is_copied(name: str, value: Any) -> bool:
    # The models are loaded where the task framework is missing, too, which the checks report.
    from ...features.declared import BY_NAME, CHANGING

    option = BY_NAME.get(name)
    return name not in CHANGING and (option is None or option.is_copied(value))


def _present_limits(database: Database, jobs: Iterable[Any]) -> dict[str, int]:
    """Return the limits of the semaphores: a copy of an old job does not bring an old one back."""
    keys = {job.concurrency_key for job in jobs if job.concurrency_key is not None}
    rows = Semaphore.objects.using(database.alias).filter(pk__in=keys)
    return dict(rows.values_list("pk", "limit"))
