"""What the doctor says of jobs that have expired."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...dialects.portable import aware
from ...doctor.finding import Finding, problem
from ...listings.wording import duration


def of_waiting(job: Any, metadata: Any, present: Any) -> Iterator[Finding]:
    """Yield that a job will fail, since it has not started in time."""
    if job.started_at is not None:
        return
    deadline = metadata.deadline(aware(job.enqueued_at))
    if deadline is not None and deadline <= present:
        yield problem(
            "job-expired",
            f"Job {job.pk} has expired {duration(present - deadline)} ago, before it has "
            "started: it will fail as soon as a worker claims it.",
            "Enqueue the task again, with a later expires, once it can run.",
        )


def of_failed(which: str, noticed: str) -> Finding:
    """Return that a job has failed since it had expired; ``which`` names it, ``noticed`` the
    time."""
    return problem(
        "job-expired",
        f"{which} had not started when it expired; that was noticed {noticed}.",
        "See why jobs of its queue wait; raise expires for the task, or enqueue it again.",
    )
