"""The keys of jobs that are about to be moved, and freeing their unique keys."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from django.db.models import Q, QuerySet

from ...dialects import JobKey, Link
from ...dialects.database import Database


class Keys(NamedTuple):
    """The keys of some jobs."""

    #: Those of their limits, sorted.
    concurrency: list[str]
    #: The unique ones that they have, or want, by the ids of the jobs.
    unique: dict[int, JobKey]
    #: The jobs that are members of batches.
    members: list[int]


def keys_of(jobs: QuerySet[Any], job_ids: Sequence[int]) -> Keys:
    """Return the keys of these of all ``jobs``."""
    # In one statement, for most jobs have neither.
    has_some = Q(concurrency_key__isnull=False) | Q(metadata__isnull=False)
    rows = jobs.filter(has_some, pk__in=job_ids)
    concurrency, unique, members = set(), {}, []
    for pk, key, metadata in rows.values_list("pk", "concurrency_key", "metadata"):
        if key is not None:
            concurrency.add(key)
        if (own := JobKey.read(metadata)) is not None:
            unique[pk] = own
        if (link := Link.read(metadata)) is not None and not link.is_callback:
            members.append(pk)
    return Keys(sorted(concurrency), unique, members)


def lock_keys(
    database: Database, jobs: QuerySet[Any], job_ids: Sequence[int]
) -> tuple[Keys, dict[str, int]]:
    """Return the keys of these of all ``jobs``; lock the unique ones that they have, and return
    which job has each.

    Whoever replaces a job, and so changes the key of its limit, has locked its unique key: the
    other keys are read once more under this lock.
    """
    keys = keys_of(jobs, job_ids)
    locked = lock_unique_keys(database, keys.unique)
    if locked:
        limited = jobs.filter(pk__in=set(locked.values()), concurrency_key__isnull=False)
        found = database.present_rows.of(limited.values_list("concurrency_key", flat=True))
        keys = keys._replace(concurrency=sorted({*keys.concurrency, *found}))
    return keys, locked


def lock_unique_keys(database: Database, wanted: Mapping[int, JobKey]) -> dict[str, int]:
    """Lock those of the unique keys of these jobs that they have; return which job has each.

    Lock order: before everything else.
    """
    if not wanted:
        return {}
    rows = database.unique_keys.read({key.key for key in wanted.values()})
    held = {key: row.job_id for key, row in rows.items() if row.job_id in wanted}
    database.unique_keys.lock(held)
    return held


def free_unique_keys(
    database: Database, locked: Mapping[str, int], job_ids: Collection[int]
) -> None:
    """Free those of the ``locked`` keys whose jobs are among these."""
    gone = set(job_ids)
    database.unique_keys.free(
        {key: job_id if job_id in gone else None for key, job_id in locked.items()}
    )
