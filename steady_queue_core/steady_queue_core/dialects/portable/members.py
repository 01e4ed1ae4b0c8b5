"""Rows of batches: their members, and what these wait for."""

from __future__ import annotations

from collections.abc import Sequence

from django.db.backends.base.base import BaseDatabaseWrapper

from ..batches import parts
from ..records import EnqueuedJob, NewJob
from .models import model, rows_of


def insert_members(
    connection: BaseDatabaseWrapper, jobs: Sequence[NewJob], stored: Sequence[EnqueuedJob]
) -> None:
    """Make the stored jobs of batches their members, in the order of the jobs."""
    rows = [
        model("BatchMember")(batch_id=job.batch_id, job_id=new.job_id)
        for job, new in zip(jobs, stored, strict=True)
        if job.batch_id is not None and new.job_id is not None
    ]
    members = rows_of(connection, "BatchMember")
    for some in parts(rows):
        members.bulk_create(some)
