"""The unique key of a job, as it is shown."""

from __future__ import annotations

from typing import Any

from ...dialects.database import Database
from ...dialects.portable import aware
from ..shown_row import Parts, To
from .key import JobKey


def unique_key(job: Any, metadata: Any) -> Parts:
    """Return the unique key of a job, and who has it if that is another one."""
    key = metadata.unique_key
    return () if key is None else (key.key, *_owner_of(key, job))


def _owner_of(key: JobKey, job: Any) -> Parts:
    keys = Database.of(job._state.db).unique_keys
    rows = keys.read({key.key})
    if not keys.holders(rows):
        return (" (free)",)
    owner = rows[key.key]
    if owner.job_id != job.pk:
        return (" (of job ", To("job", owner.job_id, f"#{owner.job_id}"), ")")
    if owner.expires_at is not None:
        return (" (until ", aware(owner.expires_at), ")")
    return (" (until it starts)",) if key.ends_at_start else ()
